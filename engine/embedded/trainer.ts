import { createTracker } from './constraint.ts';
import type { EngineDatum } from './datum.ts';
import { createDistribution } from './distribution.ts';
import type { Distribution } from './distribution.ts';
import { tokenLoss } from './losses.ts';
import type { LossSpec } from './losses.ts';
import type { Model, OutputGradients, Outputs, Tile } from './model.ts';
import { byBucket, leftPad, TILE_ROWS } from './tiles.ts';
import type { DeviceWeights } from './weights.ts';

export interface PassResult {
  /** By row, one per target; 0 before the first trained target of a row (nothing is computed there). */
  logprobs: Float64Array[];
  /** Sums over trained tokens; `loss:sum` already has weights and denominator in it. */
  metrics: Record<string, number>;
}

const METRICS = ['loss', 'tokens', 'clipped', 'ratio', 'drift', 'abs_dlogp', 'entropy'] as const;

/**
 * Forward, and with `into` backward, over rows in tiles of one padded length. `pause` is awaited between tiles, so that
 * a long pass does not hold up the rest of the process.
 */
export async function pass(options: {
  model: Model;
  weights: DeviceWeights;
  data: EngineDatum[];
  spec: LossSpec;
  /** Gradients are added here; null: forward only. */
  into: Float64Array | null;
  pause: () => Promise<void>;
}): Promise<PassResult> {
  const { model, weights, data, spec, into, pause } = options;
  const distribution = createDistribution(weights.layout.config.vocab);
  const logprobs = data.map((d) => new Float64Array(d.tokens.length));
  const sums: Record<string, number> = {};
  for (const name of METRICS) sums[name] = 0;
  for (const { length, places } of byBucket(data.map((d) => d.tokens.length))) {
    for (let from = 0; from < places.length; from += TILE_ROWS) {
      const chunk = places.slice(from, from + TILE_ROWS);
      const rows = chunk.map((i) => data[i]!);
      const tile = tileOf(rows, length);
      if (tile === null) continue;
      const work = (outputs: Outputs): OutputGradients =>
        lossOfTile(outputs, tile, rows, chunk, spec, distribution, logprobs, sums, into !== null);
      if (into === null) work(model.forward(weights, tile));
      else model.train(weights, tile, work, into);
      await pause();
    }
  }
  const metrics: Record<string, number> = {};
  for (const name of METRICS) metrics[`${name}:sum`] = sums[name]!;
  return { logprobs, metrics };
}

/** Where the response of a row begins: its first trained target, or its length. */
function responseStart(row: EngineDatum): number {
  const first = row.weights.findIndex((w) => w !== 0);
  return first < 0 ? row.tokens.length : first;
}

function tileOf(rows: EngineDatum[], length: number): Tile | null {
  const longest = Math.max(...rows.map((row) => row.tokens.length - responseStart(row)));
  if (longest === 0) return null;
  const tokens = leftPad(
    rows.map((row) => row.tokens),
    length,
  );
  return { tokens, rows: rows.length, length, outputs: Math.min(length, 4 * Math.ceil(longest / 4)) };
}

function lossOfTile(
  outputs: Outputs,
  tile: Tile,
  rows: EngineDatum[],
  places: number[],
  spec: LossSpec,
  distribution: Distribution,
  logprobs: Float64Array[],
  sums: Record<string, number>,
  wantGradients: boolean,
): OutputGradients {
  const zeros = (like: Float32Array | null): Float32Array | null => like && new Float32Array(like.length);
  const gradients: OutputGradients = wantGradients
    ? { logits: zeros(outputs.logits)!, copy: zeros(outputs.copy), gate: zeros(outputs.gate) }
    : { logits: outputs.logits, copy: null, gate: null };
  const reinforce = spec.name !== 'cross_entropy';
  rows.forEach((row, b) => {
    const n = row.tokens.length;
    const tracker = createTracker(row.constraint);
    for (let i = responseStart(row); i < n; i++) {
      const target = row.targets[i]!;
      const weight = row.weights[i]!;
      const position = tile.length - n + i;
      const at = b * tile.outputs + position - (tile.length - tile.outputs);
      distribution.fill(outputs, at, tile.tokens, b * tile.length, position + 1, tracker.support());
      tracker.push(target);
      const logp = distribution.logprob(target);
      logprobs[places[b]!]![i] = logp;
      if (weight === 0) continue;
      const token = tokenLoss(spec, logp, row.logprobs?.[i] ?? 0, row.advantages?.[i] ?? 0);
      const share = weight / spec.denominator;
      const entropy = reinforce || spec.entropy !== 0 ? distribution.entropy() : 0;
      sums['loss']! += share * (token.loss - spec.entropy * entropy);
      sums['tokens']! += 1;
      sums['clipped']! += token.clipped ? 1 : 0;
      sums['ratio']! += token.ratio;
      sums['drift']! += token.ratio - 1 - token.logRatio;
      sums['abs_dlogp']! += Math.abs(token.logRatio);
      sums['entropy']! += entropy;
      if (wantGradients) distribution.back(target, share * token.slope, -share * spec.entropy, gradients);
    }
  });
  return gradients;
}
