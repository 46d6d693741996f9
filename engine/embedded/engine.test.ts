import { describe, expect, it } from 'vitest';
import { createRandom } from '../../rl/random.ts';
import { loadTensor } from '../tensor.ts';
import { adamStep } from './adam.ts';
import { createTracker } from './constraint.ts';
import { supportsOf } from './datum.ts';
import type { EngineDatum } from './datum.ts';
import { createDistribution } from './distribution.ts';
import { createLayout, initialWeights, parseModelName } from './layout.ts';
import { parseLoss } from './losses.ts';
import { createDecoder } from './decode.ts';
import { createModel } from './model.ts';
import type { OutputGradients, Outputs } from './model.ts';
import { createSampler } from './sampler.ts';
import type { SamplingParams } from './sampler.ts';
import { createLaneHelper } from './lane-helper.ts';
import { pass } from './trainer.ts';
import type { LaneWork } from './trainer.ts';
import { uploadWeights } from './weights.ts';

const ops = await loadTensor();
const model = createModel(ops);
const pause = (): Promise<void> => Promise.resolve();
const numbers = (n: number, value = 0): number[] => new Array<number>(n).fill(value);

function setUp(name: string, factor = 1.5) {
  const layout = createLayout(parseModelName(name));
  const values = initialWeights(layout, 3).map((x) => x * factor) as Float32Array<ArrayBuffer>;
  return { layout, values, weights: uploadWeights(ops, layout, values) };
}
const params = (over: Partial<SamplingParams>): SamplingParams => ({
  ...{ maxTokens: 6, temperature: 1, topK: -1, topP: 1, seed: 1, stop: [0], constraint: null, wantHidden: false },
  ...over,
});
function datum(prompt: number[], response: number[], over: Partial<EngineDatum> = {}): EngineDatum {
  const all = [...prompt, ...response];
  const weights = [...numbers(prompt.length - 1), ...numbers(response.length, 1)];
  return {
    tokens: all.slice(0, -1),
    targets: all.slice(1),
    weights,
    logprobs: null,
    advantages: null,
    supports: null,
    ...over,
  };
}

describe('gradients', () => {
  for (const name of ['tapwright-d16-l2-h2-v20-copy', 'tapwright-d16-l1-h2-v20', 'tapwright-d16-l3-h2-v20']) {
    it(`${name}: every parameter against finite differences`, () => {
      const [rows, length, outputs] = [3, 8, 3];
      const { layout, values } = setUp(name, 1);
      const random = createRandom(4, name);
      const weights = values.map((x) => x + 0.05 * random.normal()) as Float32Array<ArrayBuffer>;
      const tokens = new Int32Array(rows * length).map((_, i) =>
        i % length < Math.floor(i / length) ? -1 : random.int(20),
      );
      const targets = Array.from({ length: rows * outputs }, () => random.int(20));
      const distribution = createDistribution(20);
      const loss = (w: Float32Array, into: Float64Array | null): number => {
        const device = uploadWeights(ops, layout, w);
        let total = 0;
        const work = (out: Outputs): OutputGradients => {
          const zeros = (x: Float32Array | null): Float32Array | null => x && new Float32Array(x.length);
          const g = { logits: zeros(out.logits)!, copy: zeros(out.copy), gate: zeros(out.gate) };
          targets.forEach((target, at) => {
            const [b, s] = [Math.floor(at / outputs), at % outputs];
            distribution.fill(out, at, tokens, b * length, length - outputs + s + 1, null);
            total += -distribution.logprob(target) - 0.3 * distribution.entropy();
            distribution.back(target, -1, -0.3, g);
          });
          return g;
        };
        const tile = { tokens, rows, length, outputs };
        if (into === null) work(model.forward(device, tile));
        else model.train(device, tile, work, into);
        device.dispose();
        return total;
      };
      const gradient = new Float64Array(layout.size);
      loss(weights, gradient);
      for (const p of layout.parameters) {
        const direction = new Float64Array(layout.size);
        for (let i = 0; i < p.size; i++) direction[p.offset + i] = random.normal() / Math.sqrt(p.size);
        const at = (e: number): number =>
          loss(
            weights.map((x, i) => x + e * direction[i]!),
            null,
          );
        const h = 0.02;
        const wanted = (8 * (at(h / 2) - at(-h / 2)) - (at(h) - at(-h))) / (6 * h);
        let got = 0;
        for (let i = 0; i < p.size; i++) got += gradient[p.offset + i]! * direction[p.offset + i]!;
        expect(Math.abs(got - wanted), p.name).toBeLessThan(1e-3 * (1 + Math.abs(wanted)));
      }
    });
  }
});

describe('sampling', () => {
  const inside = { tokens: [30, 31, 32], next: 2 };
  const mask = {
    states: [
      { arcs: [{ tokens: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], next: 1 }], other: 0 },
      { arcs: [inside], other: null },
      { arcs: [inside, { tokens: [20], next: 0 }], other: null },
    ],
  };
  for (const name of ['tapwright-d64-l2-h4-v64-copy', 'tapwright-d64-l2-h4-v512']) {
    const { weights } = setUp(name);
    const { vocab } = weights.layout.config;
    const random = createRandom(9, name);
    const requests = Array.from({ length: 64 }, (_, i) => ({
      prompt: Array.from({ length: 5 + random.int(60) }, () => random.int(vocab)),
      params: params({
        seed: i,
        temperature: i % 4 === 0 ? 0 : 1,
        constraint: i % 2 === 0 ? mask : null,
        wantHidden: true,
        maxTokens: 3 + random.int(8),
      }),
    }));
    const sampler = createSampler({ model, decoder: createDecoder(ops), maxBatch: 64 });
    const draw = (some: typeof requests) => Promise.all(some.map((r) => sampler.sample(weights, r.prompt, r.params)));

    it(`${name}: a request gives the same tokens and bits alone and among 63 others`, async () => {
      const all = await draw(requests);
      for (const size of [1, 7, 33]) {
        const part = await draw(requests.slice(0, size));
        part.forEach((one, i) => {
          expect(one.tokens).toEqual(all[i]!.tokens);
          expect(one.logprobs).toEqual(all[i]!.logprobs);
          expect(one.hidden).toEqual(all[i]!.hidden);
        });
      }
      expect(sampler.load()).toBe(0);
    });

    it(`${name}: training sees the sampled log-probabilities, masks included`, async () => {
      const sampled = await draw(requests);
      const data = requests.map((r, i) => {
        const row = datum(r.prompt, sampled[i]!.tokens);
        return { ...row, supports: supportsOf(row.targets, row.weights, r.params.constraint, 'row') };
      });
      const spec = parseLoss('cross_entropy', {});
      const { logprobs } = await pass({ model, weights, data, spec, into: null, pause });
      sampled.forEach((one, i) => {
        const row = logprobs[i]!.slice(-one.tokens.length);
        one.logprobs.forEach((x, j) => expect(Math.abs(x - row[j]!)).toBeLessThan(1e-5));
        const tracker = createTracker(requests[i]!.params.constraint);
        for (const token of one.tokens) {
          const support = tracker.support();
          if (support !== null) expect(Array.from(support)).toContain(token);
          tracker.push(token);
        }
      });
    });
  }

  it('stops at a stop token, at the limit, and keeps the number of tensors', async () => {
    const { weights } = setUp('tapwright-d16-l2-h2-v8');
    const sampler = createSampler({ model, decoder: createDecoder(ops), maxBatch: 4 });
    const one = (seed: number) =>
      sampler.sample(weights, [1, 2, 3], params({ seed, stop: [1, 2, 3, 4], maxTokens: 4 }));
    const twenty = () => Promise.all(Array.from({ length: 20 }, (_, i) => one(i)));
    // The first round fills the tables of rotary angles.
    await twenty();
    const before = ops.count();
    const many = await twenty();
    for (const s of many) {
      const last = s.tokens.at(-1)!;
      expect(s.stopReason).toBe([1, 2, 3, 4].includes(last) ? 'stop' : 'length');
      expect(s.tokens.slice(0, -1).some((t) => [1, 2, 3, 4].includes(t))).toBe(false);
    }
    expect(ops.count()).toBe(before);
  });
});

describe('training', () => {
  it('learns to copy a marked word that it was never trained to say', async () => {
    const { layout, values } = setUp('tapwright-d32-l2-h2-v64-copy', 1);
    const state = {
      weights: values.slice(),
      m: new Float32Array(layout.size),
      v: new Float32Array(layout.size),
      step: 0,
    };
    const random = createRandom(2, 'copy');
    const example = (from: number, to: number): EngineDatum => {
      const prompt = Array.from({ length: 12 }, () => 4 + random.int(30));
      const at = random.int(10);
      [prompt[at], prompt[at + 1]] = [1, from + random.int(to - from)];
      return datum([...prompt, 2], [prompt[at + 1]!, 3]);
    };
    const gradient = new Float64Array(layout.size);
    const losses: number[] = [];
    let tensors = 0;
    for (let step = 0; step < 60; step++) {
      const weights = uploadWeights(ops, layout, state.weights);
      const data = Array.from({ length: 32 }, () => example(4, 34));
      const { metrics } = await pass({
        model,
        weights,
        data,
        spec: parseLoss('cross_entropy', { denominator: 64 }),
        into: gradient,
        pause,
      });
      losses.push(metrics['loss:sum']!);
      adamStep(state, gradient, {
        learningRate: 5e-3,
        beta1: 0.9,
        beta2: 0.98,
        eps: 1e-8,
        weightDecay: 0,
        clipNorm: 1,
      });
      gradient.fill(0);
      weights.dispose();
      if (step === 0) tensors = ops.count();
      else expect(ops.count()).toBe(tensors);
    }
    expect(losses[0]!).toBeGreaterThan(3);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 3);
    const weights = uploadWeights(ops, layout, state.weights);
    const unseen = Array.from({ length: 32 }, () => example(34, 64));
    const { logprobs } = await pass({
      model,
      weights,
      data: unseen,
      spec: parseLoss('cross_entropy', {}),
      into: null,
      pause,
    });
    const word = logprobs.reduce((sum, row) => sum - row.at(-2)!, 0) / unseen.length;
    expect(word).toBeLessThan(2);
  }, 30_000);

  it('gives the same bits whether another process does its lane or not', async () => {
    const { layout, values, weights } = setUp('tapwright-d16-l2-h2-v20-copy');
    const random = createRandom(8, 'lanes');
    const data = Array.from({ length: 150 }, () => {
      const prompt = Array.from({ length: 4 + random.int(40) }, () => random.int(20));
      return datum(
        prompt,
        Array.from({ length: 1 + random.int(5) }, () => random.int(20)),
      );
    });
    const spec = parseLoss('cross_entropy', { denominator: 25 });
    const alone = new Float64Array(layout.size);
    const shared = new Float64Array(layout.size);
    const wanted = await pass({ model, weights, data, spec, into: alone, pause });
    const lanes = createLaneHelper({ backend: 'auto', threads: 1, log: () => {} });
    try {
      let helped = 0;
      const helper = async (work: LaneWork) => {
        const { result } = await lanes.run(layout.config.name, 'v1', values, work);
        if ((await result) !== null) helped += 1;
        return { result };
      };
      // Until it is up its lane is done here, with the same bits.
      for (let i = 0; helped < 2 && i < 1000; i++) {
        shared.fill(0);
        expect(await pass({ model, weights, data, spec, into: shared, pause, helper })).toEqual(wanted);
        expect(shared).toEqual(alone);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(helped).toBe(2);
    } finally {
      lanes.close();
    }
  }, 120_000);

  it('gives the same gradient however the rows are split, with one fixed denominator', async () => {
    const { layout, weights } = setUp('tapwright-d16-l2-h2-v20-copy');
    const random = createRandom(6, 'split');
    const data = Array.from({ length: 9 }, (_, i) => {
      const prompt = Array.from({ length: 4 + random.int(30) }, () => random.int(20));
      const response = Array.from({ length: 1 + random.int(5) }, () => random.int(20));
      const head = numbers(prompt.length - 1);
      return datum(prompt, response, {
        logprobs: [...head, ...response.map(() => -3 + random.normal())],
        advantages: [...head, ...response.map(() => (i % 3) - 1)],
      });
    });
    const spec = parseLoss('ppo', { denominator: 25, entropy: 0.01, dual_clip: 3 });
    const whole = new Float64Array(layout.size);
    const parts = new Float64Array(layout.size);
    const all = await pass({ model, weights, data, spec, into: whole, pause });
    let sum = 0;
    for (const part of [data.slice(0, 2), data.slice(2, 3), data.slice(3)]) {
      sum += (await pass({ model, weights, data: part, spec, into: parts, pause })).metrics['loss:sum']!;
    }
    expect(sum).toBeCloseTo(all.metrics['loss:sum']!, 6);
    whole.forEach((x, i) => expect(Math.abs(x - parts[i]!)).toBeLessThan(1e-6));
  });
});
