import { beforeAll, describe, expect, it } from 'vitest';
import { createRandom } from '../../rl/random.ts';
import { loadTensor } from '../tensor.ts';
import type { TensorOps } from '../tensor.ts';
import { createDecoder } from './decode.ts';
import type { Decoder } from './decode.ts';
import { createLayout, initialWeights, parseModelName } from './layout.ts';
import { createModel } from './model.ts';
import { createSampler } from './sampler.ts';
import type { Sampled, SamplingParams } from './sampler.ts';
import { uploadWeights } from './weights.ts';
import type { DeviceWeights } from './weights.ts';

const VOCAB = 20;
let ops: TensorOps;
let weights: DeviceWeights;

beforeAll(async () => {
  ops = await loadTensor();
  const layout = createLayout(parseModelName(`tapwright-d16-l2-h2-v${VOCAB}-copy`));
  weights = uploadWeights(ops, layout, initialWeights(layout, 3));
});

const params = (seed: number, more: Partial<SamplingParams> = {}): SamplingParams => ({
  maxTokens: 9,
  temperature: 1,
  topK: 0,
  topP: 1,
  seed,
  stop: [],
  constraint: null,
  wantHidden: false,
  ...more,
});
const prompt = (seed: number): number[] => {
  const random = createRandom(seed, 'prompt');
  return Array.from({ length: 3 + random.int(40) }, () => random.int(VOCAB));
};
/** One choice of two, `run` tokens without any, then a choice again. */
const forced = (run: number): NonNullable<SamplingParams['constraint']> => {
  const open = { arcs: [{ tokens: [4, 5], next: 1 }], other: null };
  const only = Array.from({ length: run }, (_, i) => ({ arcs: [{ tokens: [i % VOCAB], next: i + 2 }], other: null }));
  return { states: [open, ...only, { ...open, arcs: [{ tokens: [4, 5, 6], next: run + 1 }] }] };
};
const make = (decoder: Decoder = createDecoder(ops)) =>
  createSampler({ model: createModel(ops), decoder, maxBatch: 128 });

describe('sampling', () => {
  it('reads a forced run longer than a tile in pieces, and nobody beside it hears of it', async () => {
    const asked = [
      ...Array.from({ length: 8 }, (_, i) => ({ prompt: prompt(i), params: params(i) })),
      ...[127, 128, 300].map((run) => ({
        prompt: prompt(run),
        params: params(run, { constraint: forced(run), maxTokens: run + 4 }),
      })),
    ];
    const sampler = make();
    const alone: Sampled[] = [];
    for (const each of asked) alone.push(await sampler.sample(weights, each.prompt, each.params));
    const together = await Promise.all(asked.map((each) => sampler.sample(weights, each.prompt, each.params)));
    expect(together).toEqual(alone);
    expect(alone.at(-1)!.tokens).toHaveLength(304);
    // What comes after the run is a draw of a real distribution, not of zeros.
    expect(new Set(alone.slice(-3).map(({ logprobs }) => logprobs.at(-1))).size).toBe(3);
  });

  it('keeps rows waiting while there is no memory for them, and fails only one that never has room', async () => {
    const decoder = createDecoder(ops);
    let rows = 0;
    const most = 3;
    const tight: Decoder = {
      ...decoder,
      start: (...args) => {
        if (args[4] > 50 || rows >= most) throw new Error('no room');
        rows += 1;
        return decoder.start(...args);
      },
      end: (row) => {
        rows -= 1;
        decoder.end(row);
      },
    };
    const asked = Array.from({ length: 20 }, (_, i) => ({ prompt: prompt(i), params: params(i) }));
    const sampler = make(tight);
    const got = await Promise.all(asked.map((each) => sampler.sample(weights, each.prompt, each.params)));
    const roomy = make();
    expect(got).toEqual(await Promise.all(asked.map((each) => roomy.sample(weights, each.prompt, each.params))));
    await expect(sampler.sample(weights, prompt(1), params(1, { maxTokens: 60 }))).rejects.toThrow('no room');
    expect([rows, sampler.load()]).toEqual([0, 0]);
  });
});
