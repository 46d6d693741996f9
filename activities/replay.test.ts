import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createGrounderRouter } from '../agent/grounder.ts';
import { runEpisode } from '../agent/loop.ts';
import { formatIntent } from '../agent/parser.ts';
import type { Planner } from '../agent/planner.ts';
import { createRuleUser } from '../agent/user.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { DeviceBackend, DeviceHandle } from '../devices/device.ts';
import { createLeaseTable } from '../devices/leases.ts';
import { createSimBackend } from '../devices/sim/backend.ts';
import type { Episode, Intent, ReplayMode, ReplayResult } from '../domain/index.ts';
import { createRuleJudge } from '../judges/rule.ts';
import type { Judge } from '../judges/judge.ts';
import { createRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { createSimSuite } from '../suites/sim/suite.ts';
import { episodeSpec } from '../workflows/spec.ts';
import { createDirectPorts } from './episode-ports.ts';
import { createReplay } from './replay.ts';

/** Replays on simulated phones; the policy is the expert, who now and then takes a look around first. */
const suite = createSimSuite({ only: ['core'] });
const config = runConfigSchema.parse({
  name: 'replays',
  seed: 4,
  suite: 'sim-phones',
  // Faults end attempts, and so leave no record; a replay has none of them.
  devices: { faults: { crash: 0.4, frozen_frame: 0.3, judge_down: 0.2 } },
});

interface World {
  backend?: DeviceBackend;
  judge?: Judge;
  /** What the policy does instead at a step. */
  instead?: (t: number) => Intent | null;
}

function world({ backend = createSimBackend(), judge = createRuleJudge(), instead = () => null }: World = {}) {
  const handles = new Map<string, DeviceHandle>();
  const leases = createLeaseTable({ devices: 2, ttlMs: 60_000 });
  const planner: Planner = {
    async plan({ key }, t) {
      const move = (await handles.get(`${key.draw}/${key.attempt}`)!.expert())!;
      const intent = instead(t) ?? move.intent;
      const text = formatIntent(intent);
      const sample = { promptTokens: [t], responseTokens: [...Buffer.from(text)], logprobs: [-0.5 - t] };
      return {
        sample: { ...sample, hidden: null, allowed: null, text },
        plan: { reasoning: move.reasoning, text, intent, remaining: '' },
      };
    },
  };
  const ports = (by: Planner) =>
    createDirectPorts({
      backend: {
        ...backend,
        open: async (options) => {
          const handle = await backend.open(options);
          handles.set(`${options.key!.draw}/${options.key!.attempt}`, handle);
          return handle;
        },
      },
      leases,
      planner: by,
      grounder: createGrounderRouter(),
      user: createRuleUser(),
      judge,
      pixels: null,
    });
  const one = createReplay({
    folder: () => Promise.resolve(run),
    judge,
    planner: () => Promise.resolve(planner),
    withPorts: (_run, _suite, by, body) => body(ports(by)),
  });
  return {
    leases,
    record: async (draw: number, attempt: number): Promise<Episode> => {
      const key = { run: 'replays', phase: 'train' as const, update: 1, draw, attempt };
      const task = suite.instance('train', config.seed, draw);
      return runEpisode({ ...episodeSpec(config, key, task, 'tinker://expert'), faults: {} }, ports(planner));
    },
    replay: (id: string, mode: ReplayMode = 'recorded', policy: string | null = null): Promise<ReplayResult> =>
      one(id, { run: 'replays', mode, policy }, null),
  };
}

/** A look at the home screen first, in every other attempt. */
const dawdling = (attempt: number) => (t: number) => (attempt % 2 === 1 && t === 0 ? home : null);
const home: Intent = { kind: 'navigate_home' };

let dir: string;
let run: RunFolder;
let recorded: Episode[];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tapwright-'));
  run = await createRun(dir, 'replays', config, {});
  recorded = [];
  for (let draw = 0; draw < 12; draw++) {
    for (const attempt of [0, 1]) {
      const episode = await world({ instead: dawdling(attempt) }).record(draw, attempt);
      await run.episodes.put(episode);
      recorded.push(episode);
    }
  }
}, 60_000);
afterAll(() => rm(dir, { recursive: true, force: true }));
afterEach(() => {
  vi.doUnmock('../devices/sim/transition.ts');
  vi.resetModules();
});

const all = (replay: (id: string) => Promise<ReplayResult>): Promise<ReplayResult[]> =>
  recorded.reduce(async (done, { id }) => [...(await done), await replay(id)], Promise.resolve<ReplayResult[]>([]));

/** Simulated phones whose switches are turned to another word. */
async function changedApps(): Promise<DeviceBackend> {
  vi.resetModules();
  vi.doMock('../devices/sim/transition.ts', async (original) => {
    const real = await original<typeof import('../devices/sim/transition.ts')>();
    const apply: typeof real.apply = (phone, effect) => {
      const next = real.apply(phone, effect);
      if (effect.do !== 'toggle' || next.data[effect.key] !== 'on') return next;
      return { ...next, data: { ...next.data, [effect.key]: 'an' } };
    };
    return { ...real, apply };
  });
  return (await import('../devices/sim/backend.ts')).createSimBackend();
}

describe('a replay', () => {
  it('of each recorded attempt is identical, and gives its device back', async () => {
    const { replay, leases } = world();
    const results = await all((id) => replay(id));
    expect(results).toEqual(
      recorded.map(({ id, outcome, steps }) => ({ kind: 'identical', id, outcome, steps: steps.length })),
    );
    expect(leases.status()).toMatchObject({ free: 2, leased: 0, quarantined: 0 });
  }, 60_000);

  it('of an app whose logic has changed ends at the first step that differs, and says how', async () => {
    // The first step that turns a switch on.
    const toggled = (e: Episode): number =>
      e.steps.findIndex(({ plan, before, after }) => {
        const target = plan?.intent.kind === 'tap' ? plan.intent.target : null;
        const value = (s: typeof before): unknown =>
          s.outline!.find(({ role, label }) => role === 'switch' && label === target)?.value;
        return value(before) === 'off' && value(after) === 'on';
      });
    const { replay, leases } = world({ backend: await changedApps() });
    const results = await all((id) => replay(id));
    const parted = results.filter((result) => result.kind === 'different');
    for (const episode of recorded.filter((e) => toggled(e) >= 0)) {
      const result = parted.find(({ id }) => id === episode.id)!;
      const t = toggled(episode);
      // A switch that the goal is about: the way to the goal is another one from the first step on.
      if (result.field === 'truth_before') expect(result).toMatchObject({ step: 0 });
      else expect(result).toMatchObject({ step: t, field: 'screen_after', ended: null });
    }
    const seen = parted.filter(({ field }) => field === 'screen_after');
    expect(seen.length).toBeGreaterThan(0);
    for (const { step, sentence } of seen) {
      expect(sentence).toMatch(
        new RegExp(`^step ${step} \\(tap .*\\): the screen after it is another one: .*switch ".*" was on and is an$`),
      );
    }
    expect(results.some(({ kind }) => kind === 'identical')).toBe(true);
    expect(leases.status()).toMatchObject({ free: 2, leased: 0, quarantined: 0 });
  }, 60_000);

  it('names an earlier verdict although its judge answers later than the device', async () => {
    const judge = createRuleJudge();
    const strict: Judge = {
      ...judge,
      judgeStep: async (evidence, memory) => {
        const said = await judge.judgeStep(evidence, memory);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return evidence.t === 0 ? { ...said, verdict: 'fail', why: 'strict' } : said;
      },
    };
    const long = recorded.find((e) => e.steps.length > 4 && e.steps[0]!.dense === 'success')!;
    const lazy: DeviceBackend = {
      ...createSimBackend(),
      open: async (options) => {
        const handle = await createSimBackend().open(options);
        let actions = 0;
        // The third action does not arrive.
        return {
          ...handle,
          perform: (action) => (++actions === 3 ? handle.perform({ kind: 'wait' }) : handle.perform(action)),
        };
      },
    };
    expect(await world({ backend: lazy }).replay(long.id)).toMatchObject({ kind: 'different', step: 2 });
    expect(await world({ backend: lazy, judge: strict }).replay(long.id)).toMatchObject({
      ...{ kind: 'different', step: 0, field: 'dense', recorded: 'success (progress)', now: 'fail (strict)' },
    });
  }, 60_000);

  it('with the policy that recorded it is identical to the bit; another one parts where it decides otherwise', async () => {
    const id = recorded[0]!.id;
    expect(await world().replay(id, 'live')).toMatchObject({ kind: 'identical', id });
    const other = world({ instead: (t) => (t === 1 ? { kind: 'task_complete', claim: 'done' } : null) });
    const parted = await other.replay(id, 'live', 'tinker://newer');
    expect(parted).toMatchObject({
      ...{ kind: 'different', step: 1, field: 'decision', now: '"done"' },
      ...{ outcome: recorded[0]!.outcome, ended: 'false_completion' },
    });
  });

  it('of the judge alone touches no device', async () => {
    const judge = createRuleJudge();
    const { replay } = world({ backend: { ...createSimBackend(), open: () => Promise.reject(new Error('touched')) } });
    for (const { id, outcome } of recorded) {
      expect(await replay(id, 'judge')).toMatchObject({ kind: 'identical', id, outcome });
    }
    const kind: Judge = { ...judge, judgeOutcome: async () => ({ verdict: 'fail', why: 'never' }) };
    const won = recorded.find(({ outcome }) => outcome === 'success')!;
    expect(await world({ judge: kind }).replay(won.id, 'judge')).toMatchObject({
      ...{ kind: 'different', step: null, field: 'terminal', recorded: 'success', now: 'fail' },
      ...{ sentence: 'at the end: the terminal judge judged otherwise: success was recorded, now it is fail' },
    });
  });

  it('that a device fails is no difference', async () => {
    const sim = createSimBackend();
    const backend: DeviceBackend = {
      ...sim,
      open: (options) => sim.open({ ...options, faults: { crash: 1 } }),
    };
    const { replay } = world({ backend });
    expect(await replay(recorded[0]!.id)).toMatchObject({ kind: 'failed', failure: 'app_crashed' });
    expect(await replay('u0001/t99/a0')).toMatchObject({ kind: 'failed', failure: 'not_found' });
  });
});
