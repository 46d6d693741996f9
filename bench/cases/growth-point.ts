import { createDecoder } from '../../engine/embedded/decode.ts';
import { createLayout, initialWeights, parseModelName } from '../../engine/embedded/layout.ts';
import { parseLoss } from '../../engine/embedded/losses.ts';
import { createModel } from '../../engine/embedded/model.ts';
import { createSampler } from '../../engine/embedded/sampler.ts';
import { pass } from '../../engine/embedded/trainer.ts';
import { uploadWeights } from '../../engine/embedded/weights.ts';
import { loadTensor } from '../../engine/tensor.ts';
import { createRandom } from '../../rl/random.ts';
import { median, seconds } from '../lib/alternate.ts';

/**
 * `growth-point.ts WIDTH PROMPT ROWS`: one training pass and one sampling of that size in a fresh process, the memory being
 * its own. Prints {train, sample, memory}: seconds, and the largest resident bytes.
 */
const [width, prompt, rows] = process.argv.slice(2).map(Number) as [number, number, number];
const RESPONSE = 8;
const ROUNDS = 3;

const ops = await loadTensor({ threads: 1 });
const layout = createLayout(parseModelName(`tapwright-d${width}-l2-h4-v512-copy`));
const weights = uploadWeights(ops, layout, initialWeights(layout, 1));
const model = createModel(ops);
const sampler = createSampler({ model, decoder: createDecoder(ops), maxBatch: rows });
const random = createRandom(1, 'bench', 'growth');
const tokens = (n: number): number[] => Array.from({ length: n }, () => Math.floor(random.next() * 512));
const data = Array.from({ length: rows }, () => {
  const all = tokens(prompt + RESPONSE);
  const each = (value: number): number[] =>
    Array.from({ length: all.length - 1 }, (_, i) => (i < prompt - 1 ? 0 : value));
  return {
    tokens: all.slice(0, -1),
    targets: all.slice(1),
    weights: each(1),
    logprobs: each(-6),
    advantages: each(1),
    supports: null,
  };
});
const spec = parseLoss('ppo', { denominator: rows * RESPONSE });
const pause = (): Promise<void> => Promise.resolve();
const params = { maxTokens: RESPONSE, temperature: 1, topK: 0, topP: 1, stop: [], constraint: null, wantHidden: false };
const trains: number[] = [];
const samples: number[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const into = new Float64Array(layout.size);
  const train = await seconds(() => pass({ model, weights, data, spec, into, pause }));
  const sample = await seconds(() =>
    Promise.all(data.map((row, i) => sampler.sample(weights, row.tokens.slice(0, prompt), { ...params, seed: i }))),
  );
  if (round === 0) continue;
  trains.push(train);
  samples.push(sample);
}
const memory = process.resourceUsage().maxRSS * 1024;
process.stdout.write(`${JSON.stringify({ train: median(trains), sample: median(samples), memory })}\n`);
process.exit(0);
