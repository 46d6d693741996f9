import { describe, expect, it } from 'vitest';
import type { EpisodeResult, EpisodeSpec, TaskInstance } from '../domain/index.ts';
import { runConfigSchema } from '../configs/schema.ts';
import { collectBatch, collectEvaluation } from './batch.ts';
import { evaluates, instancesAt } from './evaluation-plan.ts';
import { evaluationDraw, taskIndex, updateId } from './ids.ts';
import { rollOut } from './roll-out.ts';
import { episodeSpec } from './spec.ts';
import type { StagePorts } from './stages.ts';
import { advance } from './stages.ts';
import { startCursor } from './types.ts';

const config = runConfigSchema.parse({
  name: 'test',
  seed: 1,
  suite: 'sim-phones',
  sft: { demonstrations: 600, steps: 100, chunk: 50 },
  learn: { warmup: 2, updates: 3, tasks: 2, attempts: 3 },
  evaluation: { every: 2, instances: { 'heldout-params': 5, train: 2 } },
});
const task = (index: number): TaskInstance => ({ id: `t${index}`, seed: index }) as TaskInstance;
const finished = (spec: EpisodeSpec): EpisodeResult => ({
  kind: 'finished',
  id: `${spec.key.draw}/${spec.key.attempt}`,
  ref: 'r',
  outcome: 'success',
  steps: 1,
  dense: { success: 1, fail: 0, overcomplete: 0 },
});
const masked = (spec: EpisodeSpec): EpisodeResult => ({
  kind: 'masked',
  id: `${spec.key.draw}/${spec.key.attempt}`,
  failure: 'device_hung',
  message: '',
  step: 0,
});
/** No clock: a batch under test does not stand still unless its test says so. */
const timer = () => () => {};
const once = { limit: 1, infraRetries: 0, stragglerMs: 0 };
const where = { run: 'r', phase: 'train' as const, update: 1, round: 0, policy: 'p' };

describe('what is evaluated when', () => {
  const at = (heldoutAt: number[] | undefined, every: number) => ({
    ...config,
    learn: { ...config.learn, updates: 10 },
    evaluation: { ...config.evaluation, every, ...(heldoutAt === undefined ? {} : { heldoutAt }) },
  });
  const updatesOf = (of: typeof config): number[] =>
    Array.from({ length: 11 }, (_, k) => k).filter((k) => evaluates(of, k));
  it('is everything each time, unless held-out splits are kept for what is reported', () => {
    expect(updatesOf(at(undefined, 4))).toEqual([0, 4, 8, 10]);
    expect(instancesAt(at(undefined, 4), 4, config.evaluation.instances)).toEqual({ 'heldout-params': 5, train: 2 });
    const reported = at([0, 0.5, 1], 4);
    expect(updatesOf(reported)).toEqual([0, 4, 5, 8, 10]);
    expect(instancesAt(reported, 4, config.evaluation.instances)).toEqual({ train: 2 });
    expect(instancesAt(reported, 5, config.evaluation.instances)).toEqual({ 'heldout-params': 5, train: 2 });
    const heldOut = { ...reported, evaluation: { ...reported.evaluation, instances: { 'heldout-params': 5 } } };
    expect(updatesOf(heldOut)).toEqual([0, 5, 10]);
  });
});

describe('a batch', () => {
  it('runs tasks x attempts, in order, within the limit', async () => {
    let open = 0;
    let most = 0;
    const specs = Array.from({ length: 20 }, (_, i) => ({ key: { draw: i, attempt: 0 } }) as EpisodeSpec);
    const attempt = async (spec: EpisodeSpec): Promise<EpisodeResult> => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setTimeout(resolve, (7 * spec.key.draw) % 5));
      open -= 1;
      return finished(spec);
    };
    const results = await rollOut({ attempt, timer }, specs, { ...once, limit: 4 });
    expect(results.map((r) => r.id)).toEqual(specs.map((_, i) => `${i}/0`));
    expect(most).toBe(4);
  });

  it('tries a masked attempt again, at most infraRetries times, with the same key', async () => {
    const tries: number[] = [];
    const attempt = async (spec: EpisodeSpec): Promise<EpisodeResult> => {
      tries.push(spec.infraTry);
      return spec.infraTry < 2 ? masked(spec) : finished(spec);
    };
    const spec = { key: { draw: 0, attempt: 0 }, infraTry: 0 } as EpisodeSpec;
    const ports = { tasks: async () => [], attempt, timer };
    expect((await rollOut(ports, [spec], { ...once, infraRetries: 2 }))[0]!.kind).toBe('finished');
    expect((await rollOut(ports, [spec], { ...once, infraRetries: 1 }))[0]!.kind).toBe('masked');
    expect(tries).toEqual([0, 1, 2, 0, 1]);
  });

  it('goes to the hosts in parcels; a masked attempt of one is made again by itself', async () => {
    const sent: string[] = [];
    const waits: number[] = [];
    const name = (spec: EpisodeSpec): string => `${spec.key.draw}/${spec.infraTry}`;
    const ports = {
      timer: (ms: number) => (waits.push(ms), () => {}),
      attempt: async (spec: EpisodeSpec) => (sent.push(name(spec)), finished(spec)),
      parcel: async (some: readonly EpisodeSpec[], turn: number) => {
        sent.push(`${turn}: ${some.map(name).join(' ')}`);
        return some.map((spec) => (spec.key.draw === 4 ? masked(spec) : finished(spec)));
      },
    };
    const specs = Array.from({ length: 7 }, (_, draw) => ({ key: { draw, attempt: 0 }, infraTry: 0 }) as EpisodeSpec);
    const options = { limit: 6, infraRetries: 1, stragglerMs: 50, parcel: 3 };
    const results = await rollOut(ports, specs, options);
    expect(results.map((r) => `${r.id} ${r.kind}`)).toEqual(specs.map((_, i) => `${i}/0 finished`));
    // The seventh is a parcel of one: a plain attempt.
    expect(sent.toSorted()).toEqual(['0: 0/0 1/0 2/0', '1: 3/0 4/0 5/0', '4/1', '6/0']);
    // A parcel deals with its own stragglers first.
    expect(new Set(waits)).toEqual(new Set([100]));
  });

  it('is topped up with fresh attempts of the same tasks when too few are valid (algorithms.md, 2)', async () => {
    const seen: string[] = [];
    const ports = {
      timer,
      tasks: async ({ indices }: { indices: number[] }) => indices.map(task),
      attempt: async (spec: EpisodeSpec) => {
        seen.push(`${spec.task.id} ${spec.key.attempt}`);
        return spec.key.attempt < 2 ? masked(spec) : finished(spec);
      },
    };
    const results = await collectBatch(ports, { ...config, rollout: { ...config.rollout, infraRetries: 0 } }, where);
    expect(results).toHaveLength(12);
    expect(new Set(seen).size).toBe(12);
    expect(new Set(results.map((r) => r.id.split('/')[0])).size).toBe(2);
  });

  it('is not held by stragglers: with half of it in and a quiet period over they are masked', async () => {
    const rings: (() => void)[] = [];
    const begun: string[] = [];
    const told: number[] = [];
    const answers = new Map<number, () => void>();
    const ports = {
      tasks: async () => [],
      attempt: (spec: EpisodeSpec, late: Promise<void>): Promise<EpisodeResult> => {
        const { draw } = spec.key;
        begun.push(`${draw}/${spec.infraTry}`);
        void late.then(() => told.push(draw));
        return new Promise((resolve) => answers.set(draw, () => resolve(finished(spec))));
      },
      timer: (ms: number, ring: () => void) => (rings.push(ring), expect(ms).toBe(50), () => {}),
    };
    const specs = Array.from({ length: 6 }, (_, draw) => ({ key: { draw, attempt: 0 }, infraTry: 0 }) as EpisodeSpec);
    const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const batch = rollOut(ports, specs, { limit: 5, infraRetries: 2, stragglerMs: 50 });
    for (const draw of [0, 1]) answers.get(draw)!();
    await tick();
    // Less than half: everything may be away, and that is waited for.
    expect(rings).toHaveLength(0);
    answers.get(2)!();
    await tick();
    expect(rings).toHaveLength(1);
    answers.get(3)!();
    await tick();
    // The batch moved meanwhile: another period.
    rings[0]!();
    expect(rings).toHaveLength(2);
    rings[1]!();
    const results = await batch;
    expect(results.map((r) => (r.kind === 'masked' ? r.failure : r.kind))).toEqual([
      ...['finished', 'finished', 'finished', 'finished'],
      ...['deadline', 'deadline'],
    ]);
    // They were told, and nothing was tried again.
    expect(begun).toEqual(['0/0', '1/0', '2/0', '3/0', '4/0', '5/0']);
    expect(told).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('for DAPO draws other tasks for groups of equal scores, so many times and no more', async () => {
    const asked: number[][] = [];
    const ports = (equal: (draw: number) => boolean) => ({
      timer,
      tasks: async ({ indices }: { indices: number[] }) => (asked.push(indices), indices.map(task)),
      attempt: async (spec: EpisodeSpec): Promise<EpisodeResult> => {
        const won = finished(spec);
        const fails = !equal(spec.key.draw) && spec.key.attempt === 0;
        return fails ? ({ ...won, outcome: 'failure' } as EpisodeResult) : won;
      },
    });
    const dapo = { ...config, learn: { ...config.learn, estimator: 'dapo' as const } };
    const drawsOf = async (equal: (draw: number) => boolean, round = 0): Promise<number[]> => {
      asked.length = 0;
      const results = await collectBatch(ports(equal), dapo, { ...where, round });
      return [...new Set(results.map(({ id }) => Number(id.split('/')[0])))];
    };
    expect(await drawsOf(() => false)).toEqual([0, 1]);
    expect(await drawsOf((draw) => draw === 1 || draw === 2)).toEqual([0, 1, 2, 4]);
    expect(asked.flat()).toEqual([0, 1, 2, 4].map((draw) => taskIndex('train', 1, draw)));
    expect(await drawsOf(() => true)).toEqual([0, 1, 2, 3, 4, 5]);
    // The next round of this update draws others.
    expect(await drawsOf(() => true, 1)).toEqual([6, 7, 8, 9, 10, 11]);
    asked.length = 0;
    await collectBatch(
      ports(() => true),
      config,
      where,
    );
    expect(asked).toHaveLength(1);
  });

  it('has attempts of at most rollout.maxSteps steps', () => {
    const short = { ...config, rollout: { ...config.rollout, maxSteps: 4 } };
    const key = { run: 'r', phase: 'train' as const, update: 1, draw: 0, attempt: 0 };
    const budgetOf = (stepBudget: number): number =>
      episodeSpec(short, key, { ...task(0), stepBudget }, 'p').task.stepBudget;
    expect([2, 4, 21].map(budgetOf)).toEqual([2, 4, 4]);
  });

  it('stops for a failure of ours', async () => {
    const ports = {
      timer,
      tasks: async ({ indices }: { indices: number[] }) => indices.map(task),
      attempt: async () => Promise.reject(new Error('disk full')),
    };
    await expect(collectBatch(ports, config, where)).rejects.toThrow('disk full');
  });

  it('evaluates fixed instances greedily, without faults', async () => {
    const specs: EpisodeSpec[] = [];
    const ports = {
      timer,
      tasks: async ({ indices }: { indices: number[] }) => indices.map(task),
      attempt: async (spec: EpisodeSpec) => (specs.push(spec), finished(spec)),
    };
    const cells = await collectEvaluation(ports, {
      run: 'r',
      config: { ...config, devices: { ...config.devices, faults: { hang: 1 } } },
      site: { prefix: '', hosts: [] },
      policy: { stage: 'train', index: 3, sampler: 's' },
      suite: 'sim-phones',
      instances: config.evaluation.instances,
    });
    expect(cells.map((c) => [c.split, c.results.length])).toEqual([
      ['heldout-params', 5],
      ['train', 2],
    ]);
    expect(new Set(specs.map((s) => s.key.draw)).size).toBe(7);
    expect(specs.every((s) => s.temperature === 0 && Object.keys(s.faults).length === 0)).toBe(true);
  });
});

describe('ids', () => {
  it('never give two draws one instance', () => {
    expect(taskIndex('train', 1, 0)).toBeGreaterThan(50_000);
    expect(taskIndex('train', 2, 0) - taskIndex('train', 1, 0)).toBeGreaterThanOrEqual(4096);
    expect(taskIndex('train', 10_000, 0)).toBeLessThan(taskIndex('warmup', 0, 0));
    expect(evaluationDraw('train', 0)).not.toBe(evaluationDraw('heldout-skin', 0));
  });
  it('name updates as design.md 8 says', () => {
    expect(updateId('run', 'train', 12, 0)).toBe('run/u0012');
    expect(updateId('run', 'warmup', 3, 0)).toBe('run/w0003');
  });
});

describe('the stages', () => {
  const run = async (skip: (phase: string, update: number, round: number) => boolean): Promise<string[]> => {
    const log: string[] = [];
    const policy = (stage: 'sft' | 'warmup' | 'train', index: number) => ({
      stage,
      index,
      sampler: `${stage}${index}`,
    });
    const ports: StagePorts = {
      openRun: async () => ({ sftChunks: 0, warmups: 0, updates: 0, policy: null, evaluations: [] }),
      demonstrate: async ({ from, to }) => {
        log.push(`demo ${from}-${to}`);
        return { ref: 'sha256:x', demonstrations: to - from, rows: 1 };
      },
      sftChunk: async ({ chunk }) => {
        log.push(`sft ${chunk}`);
        return { policy: policy('sft', chunk + 1), metrics: {} };
      },
      update: async (phase, update, round, from) => {
        log.push(`${phase} ${update}.${round} from ${from.sampler}`);
        if (skip(phase, update, round)) return { kind: 'skipped', reason: 'all masked', metrics: {} };
        return { kind: 'done', policy: policy(phase, update), metrics: {} };
      },
      evaluate: async (which) => (log.push(`eval ${which.sampler}`), []),
      report: async () => ({ path: 'report.html', digest: 'd' }),
    };
    let cursor = startCursor();
    while (cursor.stage !== 'done') {
      await advance(cursor, 'r', config, ports, () => {});
      // Any step can be the last before a continue-as-new: the cursor is plain data.
      cursor = JSON.parse(JSON.stringify(cursor)) as typeof cursor;
    }
    return log;
  };

  it('go in order: demonstrations, SFT, its evaluation, warm-ups, updates, evaluations', async () => {
    expect(await run(() => false)).toEqual([
      'demo 0-250',
      'demo 250-500',
      'demo 500-600',
      'sft 0',
      'sft 1',
      'eval sft2',
      'warmup 1.0 from sft2',
      'warmup 2.0 from warmup1',
      'train 1.0 from warmup2',
      'train 2.0 from train1',
      'eval train2',
      'train 3.0 from train2',
      'eval train3',
    ]);
  });

  it('draw other tasks when a batch taught nothing, without counting it', async () => {
    const log = await run((phase, update, round) => phase === 'train' && update === 2 && round < 2);
    expect(log.filter((line) => line.startsWith('train'))).toEqual([
      'train 1.0 from warmup2',
      'train 2.0 from train1',
      'train 2.1 from train1',
      'train 2.2 from train1',
      'train 3.0 from train2',
    ]);
  });

  it('stop with advice when nothing can be learned', async () => {
    await expect(run((phase) => phase === 'train')).rejects.toThrow(/no usable attempt.*--id/);
  });
});
