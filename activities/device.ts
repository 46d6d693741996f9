import { join } from 'node:path';
import { demonstrate } from '../agent/demonstrate.ts';
import type { DemonstrationRow } from '../agent/demonstrate.ts';
import { createGrounderRouter } from '../agent/grounder.ts';
import { runEpisode } from '../agent/loop.ts';
import { createPlanner } from '../agent/planner.ts';
import type { Planner } from '../agent/planner.ts';
import { createTokenizer } from '../agent/tokenizer.ts';
import { createRuleUser } from '../agent/user.ts';
import { hasCritic } from '../configs/schema.ts';
import type { PixelSink } from '../devices/device.ts';
import { openLeaseTable } from '../devices/leases.ts';
import type { LeaseTable } from '../devices/leases.ts';
import { TapwrightError, asTapwrightError, masks } from '../domain/errors.ts';
import { episodeId } from '../domain/episode.ts';
import { span } from '../domain/spans.ts';
import type { DenseVerdict, Episode, EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import { judgeFault } from '../judges/rule.ts';
import { createJudge } from '../judges/dense.ts';
import type { Judge } from '../judges/judge.ts';
import { hashSeed } from '../rl/random.ts';
import { openRun } from '../store/index.ts';
import { taskIndex } from '../workflows/ids.ts';
import { rollOut } from '../workflows/roll-out.ts';
import type { AttemptPorts } from '../workflows/roll-out.ts';
import type { DeviceActivities } from './api.ts';
import { either, ringAfter, untilDeadline } from './deadline.ts';
import { createDirectPorts } from './episode-ports.ts';
import type { DirectPorts } from './episode-ports.ts';
import { asActivity, cancellation } from './heartbeat.ts';
import { remember } from './remember.ts';
import { createReplay } from './replay.ts';
import { createRooms } from './rooms.ts';
import { createSampler } from './engine.ts';

export interface DeviceOptions {
  home: string;
  /** URL of the engine; null: the one of each run's config. */
  engineUrl: string | null;
  /** Name of this device host: its leases are kept under it. */
  host?: string;
  /** Who judges; the judges of judges/dense.ts when left out. */
  judge?: Judge;
}

/** Activities of a device host. */
export async function createDeviceActivities(
  options: DeviceOptions,
): Promise<{ activities: DeviceActivities; close: () => Promise<void> }> {
  const rooms = createRooms();
  const grounder = createGrounderRouter();
  const user = createRuleUser();
  const judge = timed(options.judge ?? createJudge());
  const folder = remember((run: string) => openRun(options.home, run));

  const engines: { close(): Promise<void> }[] = [];
  /** A run's planner speaks the words of the suite it is trained on, wherever it is evaluated. */
  const agent = remember(async (run: string) => {
    const { config } = await folder(run);
    const tokenizer = createTokenizer({ words: (await rooms.suite(config.suite, config)).vocabulary() });
    const engine = createSampler(options, config, tokenizer);
    engines.push(engine);
    const { historySteps } = config.agent;
    const planner = createPlanner({ engine, tokenizer, historySteps, hidden: hasCritic(config) });
    return { config, tokenizer, planner };
  });

  /** The host's devices are shared by all runs; how many there are is said by the first of them. */
  const leaseFile = join(options.home, 'devices', `${(options.host ?? 'local').replace(/[^\w.-]/g, '_')}.journal`);
  let table: Promise<LeaseTable> | null = null;
  const opened = new Set<DirectPorts>();
  const openPorts = async (run: string, suite: string, planner: Planner, pixels: PixelSink): Promise<DirectPorts> => {
    const { config } = await folder(run);
    const { count: devices, leaseTtlMs: ttlMs } = config.devices;
    table ??= openLeaseTable(leaseFile, { devices, ttlMs });
    // The next one may find the file free.
    table.catch(() => (table = null));
    const made = createDirectPorts({
      backend: await rooms.backend(await rooms.suite(suite, config), config),
      leases: await table,
      planner,
      grounder,
      user,
      judge,
      pixels,
      judgeFault,
    });
    opened.add(made);
    return made;
  };
  const ports = remember(async (where: string): Promise<DirectPorts> => {
    const [run, suite] = JSON.parse(where) as [string, string];
    const { blobs } = await folder(run);
    return openPorts(run, suite, (await agent(run)).planner, (png) => blobs.put(png));
  });
  const portsOf = (spec: EpisodeSpec): Promise<DirectPorts> => ports(JSON.stringify([spec.key.run, spec.task.suite]));

  const record = async (episode: Episode): Promise<EpisodeResult> => {
    const { ref } = await (await folder(episode.key.run)).episodes.put(episode);
    const dense: Record<DenseVerdict, number> = { success: 0, fail: 0, overcomplete: 0 };
    for (const step of episode.steps) dense[step.dense] += 1;
    return { kind: 'finished', id: episode.id, ref, outcome: episode.outcome, steps: episode.steps.length, dense };
  };

  /** One whole attempt, cut short by the signal. */
  const whole = async (spec: EpisodeSpec, cancelled: AbortSignal | null): Promise<EpisodeResult> => {
    let step: number | null = null;
    try {
      const direct = await portsOf(spec);
      const episode = await untilDeadline(spec.deadlineMs, cancelled, (signal) => {
        const ports = direct.until(signal);
        return runEpisode(spec, { ...ports, step: (request) => ((step = request.t), ports.step(request)) });
      });
      return await record(episode);
    } catch (error) {
      if (cancelled?.aborted === true) throw error;
      const failure = asTapwrightError(error);
      // An engine comes back: the attempt is made again, whole, by its retries. What is ours stops the run.
      if (!masks(failure.code) || failure.code === 'engine_unavailable') throw failure;
      return { kind: 'masked', id: episodeId(spec.key), failure: failure.code, message: failure.message, step };
    }
  };

  const replayOne = createReplay({
    folder,
    judge,
    planner: async (run) => (await agent(run)).planner,
    withPorts: async (run, suite, planner, body) => {
      const own = await openPorts(run, suite, planner, null);
      try {
        return await body(own);
      } finally {
        opened.delete(own);
      }
    },
  });

  const activities: DeviceActivities = {
    tasks: asActivity(async ({ run, suite, split, seed, indices }) => {
      const source = await rooms.suite(suite, (await folder(run)).config);
      if (!source.splits.includes(split)) {
        throw new TapwrightError(
          'invalid_config',
          `suite ${suite} has no split ${split}: it has ${source.splits.join(', ')} (see evaluation.instances)`,
        );
      }
      return indices.map((index) => source.instance(split, seed, index));
    }),

    demonstrate: asActivity(async ({ run, from, to }) => {
      const { config, tokenizer } = await agent(run);
      const { seed, sft } = config;
      const suite = await rooms.suite(config.suite, config);
      const backend = await rooms.backend(suite, config);
      const rows: DemonstrationRow[] = [];
      for (let draw = from; draw < to; draw++) {
        const index = taskIndex('demo', 0, draw);
        const task = suite.demonstration?.(seed, index) ?? suite.instance('train', seed, index);
        const key = { run, phase: 'demo' as const, update: 0, draw, attempt: 0 };
        const handle = await backend.open({ task, key, seed, faults: {}, infraTry: 0, pixels: null, frames: false });
        try {
          const made = await demonstrate({
            handle,
            task,
            tokenizer,
            user,
            noise: sft.noise,
            planNoise: sft.planNoise,
            decodeMask: config.agent.decodeMask,
            historySteps: config.agent.historySteps,
            seed: hashSeed(seed, 'demo', draw),
            maxSteps: task.stepBudget,
          });
          // What the planner could not write in full would teach it to be cut off.
          rows.push(...made.filter((row) => row.response.length <= config.agent.maxTokens));
        } finally {
          await handle.close();
        }
        cancellation()?.throwIfAborted();
        // The host goes on hearing of other work.
        if (draw % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      const { blobs } = await folder(run);
      const ref = await blobs.put(Buffer.from(JSON.stringify(rows)));
      return { ref, demonstrations: to - from, rows: rows.length };
    }),

    runEpisode: asActivity((spec) => whole(spec, cancellation())),

    runEpisodes: asActivity((specs, stragglerMs) => {
      const cancelled = cancellation();
      const ports: AttemptPorts = {
        attempt: (spec, late) => whole(spec, either(cancelled, late)),
        timer: ringAfter,
      };
      // Masked ones are made again by the batch, on another host.
      return rollOut(ports, specs, { limit: specs.length, infraRetries: 0, stragglerMs });
    }),

    openEpisode: asActivity(async (spec) => (await portsOf(spec)).until(cancellation()).open(spec)),
    stepEpisode: asActivity(async (request) => (await portsOf(request.spec)).until(cancellation()).step(request)),
    judgeStep: asActivity(async (spec, evidence, memory) => (await portsOf(spec)).judgeStep(spec, evidence, memory)),
    judgeOutcome: asActivity(async (spec, evidence) => (await portsOf(spec)).judgeOutcome(spec, evidence)),
    closeEpisode: asActivity(async (spec, lease) => (await portsOf(spec)).close(spec, lease)),
    recordEpisode: asActivity(record),

    replayEpisodes: asActivity(async ({ episodes, ...how }) => {
      const cancelled = cancellation();
      const settled = await Promise.allSettled(episodes.map((id) => replayOne(id, how, cancelled)));
      return settled.map((one) => {
        if (one.status === 'rejected') throw one.reason;
        return one.value;
      });
    }),
  };
  return {
    activities,
    close: async () => {
      await Promise.all([...opened].map((ports) => ports.drain()));
      if (table !== null) (await table).close();
      await Promise.all(engines.map((engine) => engine.close()));
      await rooms.close();
    },
  };
}

const timed = (judge: Judge): Judge => ({
  ...judge,
  judgeStep: (evidence, memory, spec) => span('judge', () => judge.judgeStep(evidence, memory, spec)),
  judgeOutcome: (evidence) => span('judge', () => judge.judgeOutcome(evidence)),
});
