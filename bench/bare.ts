import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ringAfter } from '../activities/deadline.ts';
import { createDeviceActivities } from '../activities/device.ts';
import { createLearnActivities } from '../activities/learn.ts';
import type { Metrics } from '../activities/api.ts';
import { openRunFolder } from '../cli/run-folder.ts';
import type { RunConfig } from '../configs/schema.ts';
import { asTapwrightError } from '../domain/errors.ts';
import { spent } from '../domain/spans.ts';
import type { EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import type { Judge } from '../judges/judge.ts';
import { keepChild } from '../workers/child.ts';
import { engineArgs, usablePort } from '../workers/engine-process.ts';
import { collectBatch, collectEvaluation } from '../workflows/batch.ts';
import type { BatchPorts } from '../workflows/batch.ts';
import { advance } from '../workflows/stages.ts';
import type { StagePorts } from '../workflows/stages.ts';
import { startCursor } from '../workflows/types.ts';

export interface BareOptions {
  run: string;
  home: string;
  /** Hears of every batch: its stage, its number and its metrics. */
  onMetrics(stage: string, update: number, metrics: Metrics): void;
  /** Hears of every try of an attempt. */
  onAttempt?(spec: EpisodeSpec, result: EpisodeResult): void;
  onEvaluation?(update: number, cells: { split: string; n: number; success: number }[]): void;
  /** Hears after every update what this process and the engine's have spent their time on so far, in seconds. */
  onSpent?(here: Record<string, number>, engine: Record<string, number>): void;
  /** In place of the rule judge. */
  judge?: Judge;
}

/**
 * A whole run without Temporal: the same stages and the same activities, called directly in this process, beside the
 * engine's process. For tuning, and to measure what durability costs.
 */
export async function runBare(config: RunConfig, options: BareOptions): Promise<void> {
  const { run, home } = options;
  const folder = join(home, 'runs', run);
  await mkdir(join(folder, 'logs'), { recursive: true });
  const port = await usablePort(undefined);
  const embedded = config.engine.url === 'embedded';
  const engineUrl = embedded ? `http://127.0.0.1:${port}` : config.engine.url;
  const engine = embedded
    ? keepChild({
        role: 'engine',
        script: 'engine/embedded/main.ts',
        args: engineArgs(home, port, config),
        env: { TF_NUM_INTRAOP_THREADS: String(config.engine.threads), TF_CPP_MIN_LOG_LEVEL: '2' },
        logFile: join(folder, 'logs', 'engine.log'),
        onPid: () => {},
        onGiveUp: (message) => {
          throw new Error(message);
        },
        readyLine: (line) => line.startsWith('{'),
      })
    : null;
  await engine?.ready;
  const device = await createDeviceActivities({
    home,
    engineUrl,
    ...(options.judge !== undefined && { judge: options.judge }),
  });
  const learn = await createLearnActivities({ home, engineUrl });
  const batch: BatchPorts = {
    tasks: (request) => device.activities.tasks(request),
    attempt: async (spec) => {
      const result = await patient(() => device.activities.runEpisode(spec));
      options.onAttempt?.(spec, result);
      return result;
    },
    timer: ringAfter,
  };
  const site = { prefix: 'bare', hosts: ['here'] };
  const ports: StagePorts = {
    openRun: (id) => learn.activities.openRun(id),
    demonstrate: (request) => device.activities.demonstrate(request),
    sftChunk: async (request) => {
      const done = await patient(() => learn.activities.sftChunk(request));
      options.onMetrics('sft', request.chunk + 1, done.metrics);
      return done;
    },
    update: async (phase, update, round, policy) => {
      const started = performance.now();
      const results = await collectBatch(batch, config, { run, phase, update, round, policy: policy.sampler });
      const rolloutSeconds = (performance.now() - started) / 1000;
      const outcome = await patient(() => learn.activities.learn({ run, phase, update, results, rolloutSeconds }));
      options.onMetrics(phase, update, outcome.metrics);
      if (options.onSpent !== undefined) {
        const reply = await fetch(`${engineUrl}/api/v1/spent`);
        options.onSpent(spent(), (await reply.json()) as Record<string, number>);
      }
      return outcome;
    },
    evaluate: async (policy) => {
      const input = { run, config, site, policy, suite: config.suite, instances: config.evaluation.instances };
      const cells = await collectEvaluation(batch, input);
      const rows = await learn.activities.recordEvaluation({ run, policy, suite: config.suite, cells });
      options.onEvaluation?.(policy.stage === 'train' ? policy.index : 0, rows);
      return rows;
    },
    report: (id) => learn.activities.report(id),
  };
  try {
    const cursor = startCursor();
    while (cursor.stage !== 'done') await advance(cursor, run, config, ports, () => {});
  } finally {
    await device.close();
    await learn.close();
    await engine?.stop();
  }
}

/** Temporal's retries in small: an engine that is away for a while is waited for. */
async function patient<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (asTapwrightError(error).code !== 'engine_unavailable' || tries >= 60) throw error;
      if (tries === 1) process.stderr.write(`${String(error)}; trying again\n`);
      await sleep(1_000);
    }
  }
}

/** Stands for judging that costs nothing: a verdict without a look, not all the same so that there is something to learn. */
const unjudged: Judge = {
  name: 'none',
  judgeStep: ({ t }, memory) => Promise.resolve({ verdict: t % 2 === 0 ? 'success' : 'fail', why: 'unjudged', memory }),
  judgeOutcome: () => Promise.resolve({ verdict: 'fail', why: 'unjudged' }),
};

/**
 * `npx tsx bench/bare.ts <config> [--id ID] [--set k=v ...] [--unjudged] [--spent]`: one line an update. `--spent`: and a line
 * of JSON with the time that went into each part.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      id: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      unjudged: { type: 'boolean', default: false },
      spent: { type: 'boolean', default: false },
    },
  });
  const home = resolve(process.env['TAPWRIGHT_HOME'] ?? '.tapwright');
  const { id, config } = await openRunFolder({
    configPath: positionals[0] ?? 'configs/short.yaml',
    sets: values.set,
    ...(values.id === undefined ? {} : { id: values.id }),
  });
  const started = performance.now();
  await runBare(config, {
    run: id,
    home,
    onMetrics: (stage, update, metrics) => {
      const shown = Object.entries(metrics)
        .filter(([key, value]) => value !== null && SHOWN.test(key))
        .map(([key, value]) => `${key} ${Number(value).toPrecision(4)}`);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      process.stdout.write(`${seconds}s ${stage} ${update}: ${shown.join('  ')}\n`);
    },
    ...(values.unjudged && { judge: unjudged }),
    ...(values.spent && {
      onSpent: (here, engine) => {
        const seconds = (performance.now() - started) / 1000;
        process.stdout.write(`spent ${JSON.stringify({ seconds, here, engine })}\n`);
      },
    }),
    onEvaluation: (update, cells) => {
      for (const cell of cells) {
        const rate = ((100 * cell.success) / Math.max(1, cell.n)).toFixed(1);
        process.stdout.write(`evaluation of u${update} ${cell.split}: ${rate} % of ${cell.n}\n`);
      }
    },
  });
  process.stdout.write(`done in ${((performance.now() - started) / 1000).toFixed(1)}s\n`);
}
const SHOWN =
  /^(rollout\/(success|masked)|reward\/|episode\/|return\/mean|critic\/explained|ppo\/|sft\/loss|time\/|outcome\/(step_limit|false_completion|unparseable))/;

if (process.argv[1]?.endsWith('bench/bare.ts') === true) {
  main().then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
}
