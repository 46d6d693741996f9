import { span } from '../../domain/spans.ts';
import { responseStart } from './datum.ts';
import type { EngineDatum } from './datum.ts';
import { createDistribution } from './distribution.ts';
import type { Distribution } from './distribution.ts';
import { tokenLoss } from './losses.ts';
import type { LossSpec } from './losses.ts';
import type { Model, OutputGradients, Outputs, Tile } from './model.ts';
import { byBucket, leftPad, outputPositions, TILE_ROWS, trainingRows } from './tiles.ts';
import type { DeviceWeights } from './weights.ts';

export interface PassResult {
  /** By row, one per target; 0 before the first trained target of a row (nothing is computed there). */
  logprobs: Float64Array[];
  /** Sums over trained tokens; `loss:sum` already has weights and denominator in it. */
  metrics: Record<string, number>;
}

const METRICS = ['loss', 'tokens', 'clipped', 'ratio', 'drift', 'abs_dlogp', 'entropy'] as const;

/** Rows that go through the model together, padded to one length. */
export interface TileRows {
  length: number;
  rows: EngineDatum[];
}

/** The part of a pass that one process does. */
export interface LaneWork {
  tiles: TileRows[];
  spec: LossSpec;
  backward: boolean;
}

export interface LaneResult {
  /** By tile and row, one per target. */
  logprobs: Float64Array[][];
  sums: Record<string, number>;
  /** Flat, in the layout's order; null without a backward pass. */
  gradient: Float64Array | null;
}

/**
 * Forward, and with `into` backward, over rows in tiles of one padded length. The tiles are dealt to two lanes whose sums
 * are added at the end, so that the bits are the same whether `helper` does the second lane beside this process or not.
 */
export async function pass(options: {
  model: Model;
  weights: DeviceWeights;
  data: EngineDatum[];
  spec: LossSpec;
  /** Gradients are added here; null: forward only. */
  into: Float64Array | null;
  pause: () => Promise<void>;
  /** Has a lane's work done elsewhere; null result: it cannot, and it is done here. */
  helper?: (work: LaneWork) => Promise<{ result: Promise<LaneResult | null> }>;
}): Promise<PassResult> {
  const { model, weights, data, spec, into, pause, helper } = options;
  const backward = into !== null;
  const lanes = deal(data);
  const work = lanes.map((tiles) => ({
    tiles: tiles.map(({ length, places }) => ({ length, rows: places.map((i) => data[i]!) })),
    spec,
    backward,
  }));
  const here = (lane: LaneWork): Promise<LaneResult> => runLane({ model, weights, pause, ...lane });
  const elsewhere = helper !== undefined && work[1]!.tiles.length > 0 ? await helper(work[1]!) : null;
  const first = await here(work[0]!);
  const second = (await elsewhere?.result) ?? (await here(work[1]!));
  const logprobs = new Array<Float64Array>(data.length);
  const metrics: Record<string, number> = {};
  for (const name of METRICS) metrics[`${name}:sum`] = first.sums[name]! + second.sums[name]!;
  [first, second].forEach(({ logprobs: byTile, gradient }, lane) => {
    lanes[lane]!.forEach(({ places }, t) => places.forEach((place, r) => (logprobs[place] = byTile[t]![r]!)));
    if (into !== null) for (let i = 0; i < into.length; i++) into[i]! += gradient![i]!;
  });
  return { logprobs, metrics };
}

/** Tiles of rows of one padded length, each given to the lane that has less to do. A function of the lengths alone. */
function deal(data: EngineDatum[]): { length: number; places: number[] }[][] {
  const tiles: { length: number; places: number[] }[] = [];
  for (const { length, places } of byBucket(data.map((d) => d.tokens.length))) {
    for (let from = 0; from < places.length; from += TILE_ROWS)
      tiles.push({ length, places: places.slice(from, from + TILE_ROWS) });
  }
  const cost = (tile: { length: number; places: number[] }): number => tile.length * tile.places.length;
  tiles.sort((a, b) => cost(b) - cost(a));
  const lanes: (typeof tiles)[] = [[], []];
  const load = [0, 0];
  for (const tile of tiles) {
    const lane = load[0]! <= load[1]! ? 0 : 1;
    lanes[lane]!.push(tile);
    load[lane]! += cost(tile);
  }
  return lanes;
}

/** One lane's tiles, one after another; `pause` is awaited between them, so that a long pass holds nothing up. */
export async function runLane(
  options: LaneWork & { model: Model; weights: DeviceWeights; pause: () => Promise<void> },
): Promise<LaneResult> {
  const { model, weights, tiles, spec, backward, pause } = options;
  const distribution = createDistribution(weights.layout.config.vocab);
  const gradient = backward ? new Float64Array(weights.layout.size) : null;
  const sums: Record<string, number> = {};
  for (const name of METRICS) sums[name] = 0;
  const logprobs: Float64Array[][] = [];
  for (const { length, rows } of tiles) {
    const found = rows.map((row) => new Float64Array(row.tokens.length));
    logprobs.push(found);
    const tile = tileOf(rows, length);
    if (tile === null) continue;
    const work = (outputs: Outputs): OutputGradients =>
      lossOfTile(outputs, tile, rows, spec, distribution, found, sums, backward);
    span('train', () => {
      if (gradient === null) work(model.forward(weights, tile));
      else model.train(weights, tile, work, gradient);
    });
    await pause();
  }
  return { logprobs, sums, gradient };
}

function tileOf(rows: EngineDatum[], length: number): Tile | null {
  const longest = Math.max(...rows.map((row) => row.tokens.length - responseStart(row)));
  if (longest === 0) return null;
  const count = trainingRows(rows.length);
  // Rows beyond those given are padding only.
  const tokens = leftPad(
    Array.from({ length: count }, (_, i) => rows[i]?.tokens ?? []),
    length,
  );
  return { tokens, rows: count, length, outputs: outputPositions(longest, length) };
}

function lossOfTile(
  outputs: Outputs,
  tile: Tile,
  rows: EngineDatum[],
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
    const start = responseStart(row);
    for (let i = start; i < n; i++) {
      const target = row.targets[i]!;
      const weight = row.weights[i]!;
      const position = tile.length - n + i;
      const at = b * tile.outputs + position - (tile.length - tile.outputs);
      distribution.fill(outputs, at, tile.tokens, b * tile.length, position + 1, row.supports?.[i - start] ?? null);
      const logp = distribution.logprob(target);
      logprobs[b]![i] = logp;
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
