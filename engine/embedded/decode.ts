import type { Tensor, TensorOps } from '../tensor.ts';
import { createAttention } from './attention.ts';
import { COPY_WIDTH } from './layout.ts';
import type { Outputs, Prefilled, Tile } from './model.ts';
import { MAX_SAMPLING_ROWS, samplingRows } from './tiles.ts';
import type { DeviceWeights } from './weights.ts';

/** One sequence that is being decoded. What is kept of it holds its own positions only: no padding, no neighbour. */
export interface RowState {
  /** Prompt and response ids; `length` of them are known. */
  context: Int32Array;
  length: number;
  /** How many of them the model has read. */
  fed: number;
  /** Rotary position of the first token: the padding that was before it in prefill. */
  offset: number;
  /** Where its keys and values lie in the memory of the attention kernels, and how many numbers they take. */
  cache: number;
  cached: number;
}

export interface Decoder {
  /** The state of row `b` of a prefilled tile, with room for `more` tokens. */
  start(weights: DeviceWeights, tile: Tile, prefilled: Prefilled, b: number, more: number): RowState;
  /**
   * Feeds each row's unread tokens, MAX_SAMPLING_ROWS of all rows together at most; the outputs' row i is what follows
   * `rows[i]`.
   */
  step(weights: DeviceWeights, rows: RowState[]): Outputs;
  /** Gives back what a row holds; nothing is fed to it after that. */
  end(row: RowState): void;
}

const ROTARY_BASE = 10000;
const EPS = 1e-6;

/** The first `width` columns of `rows` rows, and the others. */
function splitColumns(x: Float32Array, rows: number, width: number): [Float32Array, Float32Array] {
  const all = x.length / rows;
  const [left, right] = [new Float32Array(rows * width), new Float32Array(rows * (all - width))];
  for (let i = 0; i < rows; i++) {
    left.set(x.subarray(i * all, i * all + width), i * width);
    right.set(x.subarray(i * all + width, (i + 1) * all), i * (all - width));
  }
  return [left, right];
}

/**
 * One token a row. The matrix products of all rows are done together on the device; attention is done row by row
 * by kernels of our own, so rows of any length and age share a step and no row's bits depend on another. One device
 * operation costs as much as the attention of many rows, so there are few of them.
 */
export function createDecoder(ops: TensorOps): Decoder {
  const tables = new Map<number, { cos: Float64Array; sin: Float64Array; positions: number }>();
  const attention = createAttention();
  /** Rows of queries and of results of one layer, in the memory of the kernels. */
  let scratch = { at: 0, count: 0 };

  /** cos and sin, position x h/2, for at least `positions`. */
  function angles(half: number, positions: number) {
    let table = tables.get(half);
    if (table === undefined || table.positions < positions) {
      const size = Math.max(256, 2 * positions);
      table = { cos: new Float64Array(size * half), sin: new Float64Array(size * half), positions: size };
      for (let t = 0; t < size; t++) {
        for (let j = 0; j < half; j++) {
          const angle = t * Math.pow(ROTARY_BASE, -j / half);
          table.cos[t * half + j] = Math.cos(angle);
          table.sin[t * half + j] = Math.sin(angle);
        }
      }
      tables.set(half, table);
    }
    return table;
  }

  /** Every row of `x` (R x d) over its root mean square, times `gain` when there is one. */
  function norm(x: Float32Array, d: number, gain: Float32Array | null): Float32Array {
    const out = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += d) {
      let sum = 0;
      for (let j = 0; j < d; j++) sum += x[at + j]! * x[at + j]!;
      const r = 1 / Math.sqrt(sum / d + EPS);
      for (let j = 0; j < d; j++) out[at + j] = x[at + j]! * r * (gain === null ? 1 : gain[j]!);
    }
    return out;
  }

  /** Turns `d` values in place by their position, head by head. */
  function turn(x: Float32Array, at: number, d: number, head: number, position: number): void {
    const half = head / 2;
    const { cos, sin } = angles(half, position + 1);
    const from = position * half;
    for (let h = at; h < at + d; h += head) {
      for (let j = 0; j < half; j++) {
        const a = x[h + j]!;
        const b = x[h + half + j]!;
        const c = cos[from + j]!;
        const s = sin[from + j]!;
        x[h + j] = a * c - b * s;
        x[h + half + j] = b * c + a * s;
      }
    }
  }

  /** Room for `count` numbers that lasts until the next call. */
  function room(count: number): number {
    if (scratch.count < count) {
      if (scratch.count > 0) attention.release(scratch.at, scratch.count);
      scratch = { at: 0, count: 0 };
      scratch = { at: attention.allocate(count), count };
    }
    return scratch.at;
  }

  /** Where the parts of a row's cache lie: keys, then values of each layer, then the copy head's keys. */
  const places = (row: RowState, d: number, layer: number) => {
    const size = row.context.length * d;
    const keys = row.cache + 2 * layer * size;
    return { keys, values: keys + size };
  };

  const product = (x: Float32Array, rows: number, w: Tensor): Float32Array => {
    const t = ops.tensor(x, [rows, x.length / rows]);
    const y = ops.matmul(t, w);
    const out = ops.read(y);
    ops.dispose(t, y);
    return out;
  };

  const mlp = (x: Float32Array, rows: number, w1: Tensor, w2: Tensor): Float32Array => {
    const y = ops.scope(() =>
      ops.matmul(ops.square(ops.relu(ops.matmul(ops.tensor(x, [rows, x.length / rows]), w1))), w2),
    );
    const out = ops.read(y);
    ops.dispose(y);
    return out;
  };

  /** One unread token: the `now`-th of its row. */
  interface Fed {
    row: RowState;
    now: number;
  }
  // A row's tokens stand in order, so each finds the keys of those before it in place.
  const unread = (row: RowState, to: number): Fed[] =>
    Array.from({ length: to - row.fed }, (_, j) => ({ row, now: row.fed + j }));

  /** Reads tokens, MAX_SAMPLING_ROWS at most; what the last layer makes of each, (count, d). */
  function feed(weights: DeviceWeights, fed: readonly Fed[]): Float32Array {
    const { width: d, heads, layers, copy } = weights.layout.config;
    const head = d / heads;
    const count = samplingRows(fed.length);
    const x = new Float32Array(count * d);
    fed.forEach(({ row, now }, i) => {
      const [token, before] = [row.context[now]!, now > 0 ? row.context[now - 1]! : -1];
      for (let j = 0; j < d; j++) {
        const own = weights.current[token * d + j]!;
        x[i * d + j] = before < 0 ? own : own + weights.previous[before * d + j]!;
      }
    });
    const stride = (last: boolean): number => 3 * d + (last && copy ? COPY_WIDTH : 0);
    for (let l = 0; l < layers; l++) {
      const w = weights.layers[l]!;
      const wide = stride(l === layers - 1);
      const qkv = product(norm(x, d, null), count, w.qkv());
      const asked = room(count * (wide + d));
      const results = asked + count * wide;
      attention.floats().set(qkv, asked);
      fed.forEach(({ row, now }, i) => {
        // The scores' room may have moved it.
        const memory = attention.floats();
        const at = asked + i * wide;
        turn(memory, at, 2 * d, head, row.offset + now);
        const { keys, values } = places(row, d, l);
        memory.copyWithin(keys + now * d, at + d, at + 2 * d);
        memory.copyWithin(values + now * d, at + 2 * d, at + 3 * d);
        if (wide > 3 * d) {
          memory.copyWithin(places(row, d, layers).keys + now * COPY_WIDTH, at + 3 * d, at + wide);
        }
        attention.attend(at, keys, values, now + 1, d, head, results + i * d);
      });
      // Its own copy: rows of the tile that nothing is fed to are zeros.
      const attended = new Float32Array(count * d);
      attended.set(attention.floats().subarray(results, results + fed.length * d));
      const o = product(attended, count, w.wo);
      for (let i = 0; i < x.length; i++) x[i]! += o[i]!;
      const m = mlp(norm(x, d, null), count, w.w1, w.w2);
      for (let i = 0; i < x.length; i++) x[i]! += m[i]!;
    }
    return x;
  }

  return {
    start: (weights, tile, prefilled, b, more) => {
      const { width: d, layers } = weights.layout.config;
      const { length: padded } = tile;
      const row = tile.tokens.subarray(b * padded, (b + 1) * padded);
      const offset = row.findIndex((id) => id >= 0);
      const length = padded - offset;
      const context = new Int32Array(length + more);
      context.set(row.subarray(offset));
      const copies = prefilled.copyKeys !== null;
      const cached = context.length * (2 * layers * d + (copies ? COPY_WIDTH : 0));
      const state = { context, length, fed: length, offset, cache: attention.allocate(cached), cached };
      const memory = attention.floats();
      const own = (all: Float32Array, width: number): Float32Array =>
        all.subarray((b * padded + offset) * width, (b + 1) * padded * width);
      for (let l = 0; l < layers; l++) {
        const { keys, values } = places(state, d, l);
        memory.set(own(prefilled.keys[l]!, d), keys);
        memory.set(own(prefilled.values[l]!, d), values);
      }
      if (copies) memory.set(own(prefilled.copyKeys!, COPY_WIDTH), places(state, d, layers).keys);
      return state;
    },

    end: (row) => attention.release(row.cache, row.cached),

    step: (weights, rows) => {
      const { width: d, layers, copy } = weights.layout.config;
      // A long run of tokens that a mask left no choice about is read in pieces, the last of them with the other rows.
      for (const row of rows) {
        for (; row.length - row.fed > MAX_SAMPLING_ROWS; row.fed += MAX_SAMPLING_ROWS) {
          feed(weights, unread(row, row.fed + MAX_SAMPLING_ROWS));
        }
      }
      const fed = rows.flatMap((row) => unread(row, row.length));
      const x = feed(weights, fed);
      const ends = samplingRows(rows.length);
      const newest = new Float32Array(ends * d);
      let end = 0;
      fed.forEach(({ row, now }, i) => {
        if (now === row.length - 1) newest.set(x.subarray(i * d, (i + 1) * d), end++ * d);
      });
      for (const row of rows) row.fed = row.length;
      const hidden = norm(newest, d, weights.gainValues);
      const read = product(hidden.slice(), ends, weights.readout());
      if (!copy) return { logits: read, copy: null, gate: null };
      const [logits, query] = splitColumns(read, ends, weights.layout.config.vocab);
      const longest = rows.reduce((most, row) => Math.max(most, row.length), 0);
      const pointed = new Float32Array(ends * longest);
      const gate = new Float32Array(ends);
      const scale = 1 / Math.sqrt(COPY_WIDTH);
      const asked = room(query.length + longest);
      const scores = asked + query.length;
      const memory = attention.floats();
      memory.set(query, asked);
      rows.forEach((row, i) => {
        const { keys } = places(row, d, layers);
        attention.dots(asked + i * COPY_WIDTH, keys, row.length, COPY_WIDTH, COPY_WIDTH, scale, scores);
        pointed.set(memory.subarray(scores, scores + row.length), i * longest);
        let sum = 0;
        for (let j = 0; j < d; j++) sum += hidden[i * d + j]! * weights.gateValues![j]!;
        gate[i] = sum;
      });
      return { logits, copy: pointed, gate };
    },
  };
}
