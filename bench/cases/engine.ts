import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adamStep } from '../../engine/embedded/adam.ts';
import { createDecoder } from '../../engine/embedded/decode.ts';
import type { EngineDatum } from '../../engine/embedded/datum.ts';
import { createLaneHelper } from '../../engine/embedded/lane-helper.ts';
import { createLayout, initialWeights, parseModelName, view } from '../../engine/embedded/layout.ts';
import { parseLoss } from '../../engine/embedded/losses.ts';
import { createModel } from '../../engine/embedded/model.ts';
import { createSampler } from '../../engine/embedded/sampler.ts';
import { encodeSafetensors } from '../../engine/embedded/safetensors.ts';
import { bucketLength, byBucket, outputPositions, TILE_ROWS } from '../../engine/embedded/tiles.ts';
import { pass } from '../../engine/embedded/trainer.ts';
import type { LaneWork } from '../../engine/embedded/trainer.ts';
import { uploadWeights } from '../../engine/embedded/weights.ts';
import { loadTensor } from '../../engine/tensor.ts';
import { createRandom } from '../../rl/random.ts';
import type { Random } from '../../rl/random.ts';
import { alternate, median, ratioOf, seconds } from '../lib/alternate.ts';
import type { CaseResult } from '../lib/alternate.ts';
import { missingModule, startPython } from '../lib/python.ts';

const MODEL = 'tapwright-d64-l2-h4-v512-copy';
/** A mini-batch of the presets, with the lengths of real prompts and responses. */
const ROWS = 256;
const PROMPTS = 128;
const MAX_TOKENS = 12;
/** Passes of one measurement: a single one is over before processor and caches are warm again. */
const PASSES = 5;
/** Two programs compute the same in float32: their sums of log-probabilities agree to this. */
const SAME = 1e-3;

/** Tokens that the decode-time mask of the presets leaves at a place, about. */
const SUPPORT = 20;

type Draw = (low: number, high: number) => number;

/** Ids that may stand at a place, `target` among them. */
function supportOf(whole: Draw, vocab: number, target: number): Int32Array {
  const ids = new Set([target]);
  while (ids.size < SUPPORT) ids.add(whole(0, vocab - 1));
  return Int32Array.from(ids).sort();
}

/**
 * Rows of a policy update: a prompt, a short response, the sampled log-probabilities, one advantage, and what each place of
 * the response may be, as with the presets' decode-time mask.
 */
function batch(random: Random, whole: Draw, vocab: number): EngineDatum[] {
  return Array.from({ length: ROWS }, () => {
    const [prompt, response] = [whole(28, 44), whole(4, 10)];
    const all = Array.from({ length: prompt + response }, () => whole(0, vocab - 1));
    const head = new Array<number>(prompt - 1).fill(0);
    const each = (value: number): number[] => [...head, ...new Array<number>(response).fill(value)];
    return {
      tokens: all.slice(0, -1),
      targets: all.slice(1),
      weights: each(1),
      logprobs: each(-6.2),
      advantages: each(random.normal()),
      supports: all.slice(prompt).map((target) => supportOf(whole, vocab, target)),
    };
  });
}

/**
 * Tokens a second of training (forward, backward, clip, Adam, new weights on the device) and of sampling, embedded engine over
 * PyTorch on the CPU: same weights, same batch, same threads. Both sides' log-probabilities are compared first.
 */
export async function engineCase({ rounds }: { rounds: number }): Promise<CaseResult> {
  const missing = missingModule('torch', 'torch numpy');
  if (missing !== null) return { ratios: [], tables: [], notes: [`engine against PyTorch: ${missing}`] };
  const ops = await loadTensor({ threads: 1, log: (line) => process.stderr.write(`${line}\n`) });
  const layout = createLayout(parseModelName(MODEL));
  const { vocab } = layout.config;
  const state = {
    weights: initialWeights(layout, 1),
    m: new Float32Array(layout.size),
    v: new Float32Array(layout.size),
    step: 0,
  };
  const random = createRandom(1, 'bench', 'rows');
  const whole: Draw = (low, high) => low + Math.floor(random.next() * (high - low + 1));
  const data = batch(random, whole, vocab);
  // A mask with a choice at every place: nothing can be skipped.
  const allowed = Array.from({ length: MAX_TOKENS }, () => Array.from(supportOf(whole, vocab, 0)));
  const constraint = {
    states: allowed.map((tokens, i) => ({ arcs: [{ tokens, next: Math.min(i + 1, MAX_TOKENS - 1) }], other: null })),
  };
  const prompts = data.slice(0, PROMPTS).map((row) => row.tokens.slice(0, 40));
  const scratch = await mkdtemp(join(tmpdir(), 'tapwright-bench-'));
  const helper = createLaneHelper({ backend: 'auto', threads: 1, log: () => {} });
  try {
    const weightsFile = join(scratch, 'weights.safetensors');
    const tensors = new Map(
      layout.parameters.map(({ name, shape }) => [name, { shape, data: view(layout, state.weights, name).slice() }]),
    );
    await writeFile(weightsFile, encodeSafetensors({ tensors, metadata: {} }));
    const tiles = byBucket(data.map((row) => row.tokens.length)).flatMap(({ length, places }) =>
      Array.from({ length: Math.ceil(places.length / TILE_ROWS) }, (_, i) => {
        const part = places.slice(i * TILE_ROWS, (i + 1) * TILE_ROWS);
        const longest = Math.max(...part.map((p) => data[p]!.weights.filter((w) => w > 0).length));
        return { length, places: part, outputs: outputPositions(longest, length) };
      }),
    );
    const workload = join(scratch, 'workload.json');
    await writeFile(
      workload,
      JSON.stringify({
        config: layout.config,
        weights: weightsFile,
        rows: data.map((row) => ({ ...row, supports: row.supports!.map((ids) => Array.from(ids!)) })),
        tiles,
        prompts,
        promptLength: bucketLength(40),
        maxTokens: MAX_TOKENS,
        allowed,
      }),
    );

    const model = createModel(ops);
    const sampler = createSampler({ model, decoder: createDecoder(ops), maxBatch: PROMPTS });
    const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const trained = data.reduce((sum, row) => sum + row.tokens.length, 0);
    const spec = parseLoss('ppo', {
      denominator: data.reduce((n, row) => n + row.weights.filter((w) => w > 0).length, 0),
    });
    let weights = uploadWeights(ops, layout, state.weights);
    let version = 0;
    const train = async (processes: 1 | 2): Promise<number> => {
      const into = new Float64Array(layout.size);
      const took = await seconds(async () => {
        const elsewhere = (work: LaneWork) => helper.run(MODEL, String(version), state.weights, work);
        await pass({ model, weights, data, spec, into, pause, ...(processes === 2 && { helper: elsewhere }) });
        adamStep(state, into, { learningRate: 1e-12, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0, clipNorm: 1 });
        weights.dispose();
        weights = uploadWeights(ops, layout, state.weights);
        version += 1;
      });
      return trained / took;
    };
    let seed = 0;
    const sample = async (): Promise<number> => {
      const params = {
        maxTokens: MAX_TOKENS,
        temperature: 1,
        topK: 0,
        topP: 1,
        stop: [],
        constraint,
        wantHidden: false,
      };
      const took = await seconds(() =>
        Promise.all(prompts.map((prompt) => sampler.sample(weights, prompt, { ...params, seed: seed++ }))),
      );
      return (PROMPTS * MAX_TOKENS) / took;
    };

    const torch = await startPython('engine.py', [workload]);
    try {
      const theirs = (await torch.ask({ do: 'forward', threads: 1 }))['logprobs'] as number[][];
      const ours = await pass({ model, weights, data, spec, into: null, pause });
      tiles.forEach(({ places }, t) =>
        places.forEach((place, r) => {
          const own = ours.logprobs[place]!.reduce((a, b) => a + b, 0);
          const other = theirs[t]![r]!;
          if (Math.abs(own - other) > SAME)
            throw new Error(`row ${place}: log-probabilities sum to ${own} here and to ${other} in PyTorch`);
        }),
      );
      const peer = (what: 'train' | 'sample', threads: number) => async (): Promise<number> => {
        const reply = await torch.ask({ do: what, threads, passes: PASSES });
        return (reply['tokens'] as number) / (reply['seconds'] as number);
      };
      // The helper process loads its library meanwhile.
      await sleep(3_000);
      const versions = String(torch.hello['version']);
      const several = (side: () => Promise<number>) => async (): Promise<number> => {
        const rates: number[] = [];
        while (rates.length < PASSES) rates.push(await side());
        // As many passes over the time of all of them.
        return PASSES / rates.reduce((sum, rate) => sum + 1 / rate, 0);
      };
      const pairs = [
        { key: 'train', what: 'training tokens/s, 1 thread', own: () => train(1), other: peer('train', 1) },
        {
          key: 'train-2',
          what: 'training tokens/s, 2 processes against 2 threads',
          own: () => train(2),
          other: peer('train', 2),
        },
        { key: 'sample', what: 'sampling tokens/s, 1 thread', own: sample, other: peer('sample', 1) },
      ];
      const ratios = [];
      const rows = [];
      for (const { key, what, own, other } of pairs) {
        const found = await alternate(rounds, several(own), other, { warm: true });
        ratios.push(ratioOf(`engine/${key}`, `${what}: embedded engine / PyTorch`, found.ratios));
        rows.push([what, Math.round(median(found.a)), Math.round(median(found.b))]);
      }
      const title = `${MODEL}, ${ROWS} rows of 28-44 + 4-10 tokens; ${PROMPTS} prompts x ${MAX_TOKENS} tokens`;
      return { ratios, tables: [{ title, columns: ['', `engine (${ops.backend})`, versions], rows }], notes: [] };
    } finally {
      torch.close();
    }
  } finally {
    helper.close();
    await rm(scratch, { recursive: true, force: true });
  }
}
