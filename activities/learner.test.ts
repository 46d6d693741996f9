import { describe, expect, it } from 'vitest';
import { runConfigSchema } from '../configs/schema.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { DenseVerdict, Episode, JudgedStep, Outcome } from '../domain/index.ts';
import { sftBatch } from './imitation.ts';
import { learnFromBatch } from './learner.ts';
import type { CriticPort } from './learner.ts';
import { createPolicyTrainer } from './policy-trainer.ts';
import type { TrainingEngine } from './policy-trainer.ts';
import { trainingRows } from './training-rows.ts';

const config = (learn: object = {}): RunConfig =>
  runConfigSchema.parse({ name: 'test', seed: 1, suite: 'sim-phones', learn });

const base64 = (...values: number[]): string => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeFloatLE(value, 4 * i));
  return bytes.toString('base64');
};
const step = (t: number, dense: DenseVerdict, hash: string, hidden: number[], tokens = 2): JudgedStep =>
  ({
    t,
    dense,
    before: { hash },
    sample: {
      promptTokens: [1, 2, 3],
      responseTokens: Array.from({ length: tokens }, (_, i) => 10 + i),
      logprobs: Array.from({ length: tokens }, (_, i) => -0.5 - 0.1 * i),
      hidden: base64(...hidden),
      allowed: null,
      text: '',
    },
  }) as unknown as JudgedStep;
const episode = (draw: number, attempt: number, outcome: Outcome, steps: JudgedStep[]): Episode =>
  ({
    id: `u0001/t0${draw}/a${attempt}`,
    key: { run: 'r', phase: 'train', update: 1, draw, attempt },
    outcome,
    steps,
  }) as Episode;
const batch = [
  episode(0, 1, 'step_limit', [step(0, 'success', 'F0F0F0F00F0F0F0E', [5, 6])]),
  episode(0, 0, 'success', [
    step(0, 'success', 'F0F0F0F00F0F0F0F', [1, 2], 3),
    step(1, 'success', 'FFFF0000FFFF0000', [3, 4]),
  ]),
];

/** An engine that gives back the log-probabilities it is told, shifted by `off`. */
function fakeEngine(off = 0): TrainingEngine & { calls: string[]; denominators: number[]; failNext: boolean } {
  const self = {
    calls: [] as string[],
    denominators: [] as number[],
    failNext: false,
    createModel: async () => (self.calls.push('create'), `m${self.calls.length}`),
    loadWeights: async (_model: string, path: string, optimizer: boolean) =>
      void self.calls.push(`load ${path}${optimizer ? '' : ' without moments'}`),
    forwardBackward: async (_model: string, data: Parameters<TrainingEngine['forwardBackward']>[1]) => {
      self.calls.push(`gradients ${data.map((row) => row.tokens.length).join(',')}`);
      if (self.failNext) throw new Error('connection refused');
      return {
        logprobs: data.map((row) => row.logprobs!.map((x) => x + off)),
        metrics: { 'entropy:sum': 7, 'tokens:sum': 7 },
      };
    },
    optimStep: async () => (self.calls.push('step'), { grad_norm: 2 }),
    saveWeights: async (_model: string, name: string) => `tinker://${name}`,
    saveSampler: async (_model: string, name: string) => `tinker://s/${name}`,
  };
  const plain = self.forwardBackward;
  self.forwardBackward = (async (model: string, data: never, _loss: string, settings: Record<string, number>) => {
    self.denominators.push(settings['denominator']!);
    return plain(model, data);
  }) as never;
  return self as never;
}
const zeroCritic: CriticPort & { seen: number[][] } = {
  seen: [],
  values: (features) => new Float32Array(features.rows),
  train: (features, returns) => {
    zeroCritic.seen.push(Array.from(returns));
    return { loss: features.rows, gradNorm: 1 };
  },
};

describe('training rows', () => {
  it('come in key order, with returns of two channels', () => {
    const rows = trainingRows(batch, config());
    expect(Array.from(rows.features!.data)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(rows.batch(null).rows.map((row) => row.ret)).toEqual([3.5, 3, 0.25]);
  });
  it('for GiGPPO carry the nearest sibling, never the own attempt', () => {
    const rows = trainingRows(batch, config({ estimator: 'gigppo' }));
    expect(rows.features!.width).toBe(7);
    const row = (i: number): number[] => Array.from(rows.features!.data.slice(7 * i, 7 * i + 7));
    expect(row(0)).toEqual([1, 2, 5, 6, 0.0625, 1 / 64, 1]);
    expect(row(2)).toEqual([5, 6, 1, 2, 0.875, 1 / 64, 1]);
  });
  it('for group estimators carry advantages and no features', () => {
    const rows = trainingRows(batch, config({ estimator: 'rloo' }));
    expect(rows.features).toBeNull();
    // Scores 4 and 0.25: each against the other.
    expect(rows.batch(null).rows.map((row) => row.advantage)).toEqual([3.75, 3.75, -3.75]);
  });
  it('of an attempt without a valid sibling take no part where attempts are compared', () => {
    const alone = episode(1, 0, 'success', [step(0, 'success', 'AAAAAAAAAAAAAAAA', [1, 1])]);
    for (const estimator of ['grpo', 'dr-grpo', 'rloo', 'dapo']) {
      const rows = trainingRows([...batch, alone], config({ estimator }));
      expect([rows.samples.length, rows.dropped]).toEqual([3, 1]);
    }
    expect(trainingRows([...batch, alone], config({ estimator: 'gigpo' })).samples).toHaveLength(4);
  });
  it('for DAPO leave groups of equal scores out, and count long responses against an attempt', () => {
    const same = [0, 1].map((k) => episode(2, k, 'failure', [step(0, 'fail', 'BBBBBBBBBBBBBBBB', [1, 1])]));
    const rows = trainingRows([...batch, ...same], config({ estimator: 'dapo' }));
    expect([rows.samples.length, rows.dropped]).toEqual([3, 1]);
    expect(trainingRows([...batch, ...same], config({ estimator: 'grpo' })).samples).toHaveLength(5);
    // Scores 4 and 0.25: +-1 / sqrt 2 in units of their standard deviation.
    expect(rows.batch(null).rows.map((row) => row.advantage)).toEqual(
      [0, 0, 0].map((_, i) => expect.closeTo(i < 2 ? 0.7071 : -0.7071, 4) as number),
    );
    // Responses of 3 and 2 tokens, and of 2: penalties -1 and -0.5, and -0.5, with 3 for the most and a buffer of 2.
    const long = config({ estimator: 'dapo', dapo: { overlong: { max: 3, buffer: 2, factor: 8 } } });
    // (4 - 6) against (0.25 - 4): the difference shrinks, the order stays.
    expect(trainingRows(batch, long).batch(null).rows[0]!.advantage).toBeCloseTo(0.7071, 4);
    const longer = config({ estimator: 'dapo', dapo: { overlong: { max: 3, buffer: 2, factor: 16 } } });
    // (4 - 12) against (0.25 - 8): now it turns.
    expect(trainingRows(batch, longer).batch(null).rows[0]!.advantage).toBeCloseTo(-0.7071, 4);
  });
  it('for GiGPPO without a sibling are zeros with has_neighbour 0', () => {
    const rows = trainingRows([batch[1]!], config({ estimator: 'gigppo' }));
    expect(Array.from(rows.features!.data.slice(2, 7))).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('learning from a batch', () => {
  const options = { critic: async () => zeroCritic, learningRate: 1e-3, seedPath: [1, 'train', 1] };
  it('is one step on the whole batch with the number of response tokens as denominator', async () => {
    const engine = fakeEngine();
    const trainer = createPolicyTrainer({ engine, beat: () => {} });
    await trainer.at({ weights: 'k0', sampler: 's0' });
    const metrics = await learnFromBatch({ ...options, config: config(), episodes: batch, trainer });
    // Rows sorted by length.
    expect(engine.calls).toEqual(['create', 'load k0', 'gradients 4,4,5', 'step']);
    expect(engine.denominators).toEqual([7]);
    expect(zeroCritic.seen.at(-1)).toEqual([3.5, 3, 0.25]);
    expect(metrics).toMatchObject({ 'ppo/ratio_mean_first': 1, 'ppo/clip_fraction': 0, 'ppo/drift': 0 });
    expect(metrics).toMatchObject({ 'ppo/grad_norm': 2, 'ppo/entropy': 1, 'ppo/steps': 1, 'critic/loss': 3 });
  });
  it('stops when the trainer does not see the policy that sampled', async () => {
    const trainer = createPolicyTrainer({ engine: fakeEngine(0.01), beat: () => {} });
    await trainer.at(null);
    await expect(learnFromBatch({ ...options, config: config(), episodes: batch, trainer })).rejects.toThrow(
      expect.objectContaining({ code: 'determinism_broken' }),
    );
  });
  it('leaves the policy alone in warm-up', async () => {
    const metrics = await learnFromBatch({ ...options, config: config(), episodes: batch, trainer: null });
    expect(metrics).toHaveProperty('critic/loss');
    expect(metrics).not.toHaveProperty('ppo/loss');
  });
  it('has nothing to say of an empty batch', async () => {
    expect(await learnFromBatch({ ...options, config: config(), episodes: [], trainer: null })).toBeNull();
  });
});

describe('the live training model', () => {
  it('is reused when it stands at the checkpoint, and made fresh after any doubt', async () => {
    const engine = fakeEngine();
    const trainer = createPolicyTrainer({ engine, beat: () => {} });
    await trainer.at(null);
    const saved = await trainer.save('k1');
    await trainer.at(saved);
    expect(engine.calls).toEqual(['create']);
    await trainer.at({ weights: 'k0', sampler: '' });
    expect(engine.calls).toEqual(['create', 'create', 'load k0']);
    engine.failNext = true;
    const row = { tokens: [1], targets: [2], weights: [1], logprobs: [0], advantages: [0], allowed: null };
    await expect(trainer.gradients([row], 'ppo', {})).rejects.toThrow();
    engine.failNext = false;
    await trainer.at({ weights: 'k0', sampler: '' });
    expect(engine.calls.slice(-2)).toEqual(['create', 'load k0']);
    await trainer.gradients([row], 'ppo', {});
    await trainer.at({ weights: 'k0', sampler: '' });
    expect(engine.calls.slice(-2)).toEqual(['create', 'load k0']);
    // With fresh moments it is not that checkpoint: it is loaded again when that one is asked for.
    await trainer.at({ weights: 'k0', sampler: '' }, true);
    await trainer.at({ weights: 'k0', sampler: '' });
    expect(engine.calls.slice(-4)).toEqual(['create', 'load k0 without moments', 'create', 'load k0']);
  });
});

describe('SFT batches', () => {
  it('take every row once an epoch, the same for the same seed', () => {
    const steps = Array.from({ length: 5 }, (_, s) => sftBatch(10, 4, s, 7)).flat();
    expect([...steps.slice(0, 10)].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...steps.slice(10, 20)].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(sftBatch(10, 4, 3, 7)).toEqual(sftBatch(10, 4, 3, 7));
  });
});
