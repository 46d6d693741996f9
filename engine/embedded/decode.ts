import type { Tensor, TensorOps } from '../tensor.ts';
import { COPY_WIDTH } from './layout.ts';
import type { Outputs, Prefilled, Tile } from './model.ts';
import { samplingRows } from './tiles.ts';
import type { DeviceWeights } from './weights.ts';

/** One sequence that is being decoded. Its arrays hold its own positions only: no padding, no neighbour. */
export interface RowState {
  /** Prompt and response ids; `length` of them are known. */
  context: Int32Array;
  length: number;
  /** How many of them the model has read. */
  fed: number;
  /** Rotary position of the first token: the padding that was before it in prefill. */
  offset: number;
  /** By layer, position x d. */
  keys: Float32Array[];
  values: Float32Array[];
  /** Position x c; null without a copy head. */
  copyKeys: Float32Array | null;
}

export interface Decoder {
  /** The state of row `b` of a prefilled tile, with room for `more` tokens. */
  start(weights: DeviceWeights, tile: Tile, prefilled: Prefilled, b: number, more: number): RowState;
  /**
   * Feeds each row's unread tokens, MAX_SAMPLING_ROWS of all rows together at most; the outputs' row i is what follows
   * `rows[i]`.
   */
  step(weights: DeviceWeights, rows: RowState[]): Outputs;
}

const ROTARY_BASE = 10000;
const EPS = 1e-6;

/** Inner product of `n` values, the first `whole` (a multiple of 4) in four sums. */
function inner(x: Float32Array, at: number, y: Float32Array, from: number, n: number, whole: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let e = 0;
  let j = 0;
  for (; j < whole; j += 4) {
    a += x[at + j]! * y[from + j]!;
    b += x[at + j + 1]! * y[from + j + 1]!;
    c += x[at + j + 2]! * y[from + j + 2]!;
    e += x[at + j + 3]! * y[from + j + 3]!;
  }
  for (; j < n; j++) a += x[at + j]! * y[from + j]!;
  return a + b + (c + e);
}

/**
 * One token a row. The matrix products of all rows are done together on the device; attention is done here, row by row
 * in doubles, so rows of any length and age share a step and no row's bits depend on another. One device operation
 * costs as much as the attention of several rows, so there are few of them.
 */
export function createDecoder(ops: TensorOps): Decoder {
  const tables = new Map<number, { cos: Float64Array; sin: Float64Array; positions: number }>();
  let scores = new Float64Array(256);

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

  /** Attention of one row's newest token over its `count` positions: `out[to..to+d]`. */
  function attend(
    q: Float32Array,
    at: number,
    keys: Float32Array,
    values: Float32Array,
    count: number,
    d: number,
    head: number,
    out: Float32Array,
    to: number,
  ): void {
    if (scores.length < count) scores = new Float64Array(2 * count);
    const some = scores;
    const scale = 1 / Math.sqrt(head);
    const whole = head - (head % 4);
    for (let h = 0; h < d; h += head) {
      let top = -Infinity;
      for (let t = 0; t < count; t++) {
        const k = t * d + h;
        const dot = scale * inner(q, at + h, keys, k, head, whole);
        some[t] = dot;
        if (dot > top) top = dot;
      }
      let total = 0;
      for (let t = 0; t < count; t++) total += some[t] = Math.exp(some[t]! - top);
      // Four sums at a time: one chain of additions would wait for itself.
      let j = 0;
      for (; j < whole; j += 4) {
        let a = 0;
        let b = 0;
        let c = 0;
        let e = 0;
        for (let t = 0, v = h + j; t < count; t++, v += d) {
          const p = some[t]!;
          a += p * values[v]!;
          b += p * values[v + 1]!;
          c += p * values[v + 2]!;
          e += p * values[v + 3]!;
        }
        out[to + h + j] = a / total;
        out[to + h + j + 1] = b / total;
        out[to + h + j + 2] = c / total;
        out[to + h + j + 3] = e / total;
      }
      for (; j < head; j++) {
        let sum = 0;
        for (let t = 0; t < count; t++) sum += some[t]! * values[t * d + h + j]!;
        out[to + h + j] = sum / total;
      }
    }
  }

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

  return {
    start: (weights, tile, prefilled, b, more) => {
      const { width: d, heads, layers } = weights.layout.config;
      const { length: padded } = tile;
      const head = d / heads;
      const row = tile.tokens.subarray(b * padded, (b + 1) * padded);
      const offset = row.findIndex((id) => id >= 0);
      const length = padded - offset;
      const room = length + more;
      const context = new Int32Array(room);
      context.set(row.subarray(offset));
      // (B, H, T, h) -> T x d of this row, without its padding.
      const own = (all: Float32Array): Float32Array => {
        const out = new Float32Array(room * d);
        for (let h = 0; h < heads; h++) {
          for (let t = 0; t < length; t++) {
            const from = ((b * heads + h) * padded + offset + t) * head;
            for (let j = 0; j < head; j++) out[t * d + h * head + j] = all[from + j]!;
          }
        }
        return out;
      };
      let copyKeys: Float32Array | null = null;
      if (prefilled.copyKeys !== null) {
        copyKeys = new Float32Array(room * COPY_WIDTH);
        copyKeys.set(prefilled.copyKeys.subarray((b * padded + offset) * COPY_WIDTH, (b + 1) * padded * COPY_WIDTH));
      }
      const each = Array.from({ length: layers }, (_, i) => i);
      return {
        context,
        length,
        fed: length,
        offset,
        keys: each.map((i) => own(prefilled.keys[i]!)),
        values: each.map((i) => own(prefilled.values[i]!)),
        copyKeys,
      };
    },

    step: (weights, rows) => {
      const { width: d, heads, layers, copy } = weights.layout.config;
      const head = d / heads;
      // A row's tokens stand in order, so each finds the keys of those before it in place.
      const fed = rows.flatMap((row) =>
        Array.from({ length: row.length - row.fed }, (_, j) => ({ row, now: row.fed + j })),
      );
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
        const attended = new Float32Array(count * d);
        fed.forEach(({ row, now }, i) => {
          const at = i * wide;
          turn(qkv, at, 2 * d, head, row.offset + now);
          row.keys[l]!.set(qkv.subarray(at + d, at + 2 * d), now * d);
          row.values[l]!.set(qkv.subarray(at + 2 * d, at + 3 * d), now * d);
          if (wide > 3 * d) row.copyKeys!.set(qkv.subarray(at + 3 * d, at + wide), now * COPY_WIDTH);
          attend(qkv, at, row.keys[l]!, row.values[l]!, now + 1, d, head, attended, i * d);
        });
        const o = product(attended, count, w.wo);
        for (let i = 0; i < x.length; i++) x[i]! += o[i]!;
        const m = mlp(norm(x, d, null), count, w.w1, w.w2);
        for (let i = 0; i < x.length; i++) x[i]! += m[i]!;
      }
      const ends = samplingRows(rows.length);
      const newest = new Float32Array(ends * d);
      let end = 0;
      fed.forEach(({ row, now }, i) => {
        if (now === row.length - 1) newest.set(x.subarray(i * d, (i + 1) * d), end++ * d);
      });
      for (const row of rows) row.fed = row.length;
      const hidden = norm(newest, d, weights.gainValues);
      const logits = product(hidden.slice(), ends, weights.embedT);
      if (!copy) return { logits, copy: null, gate: null };
      const query = product(hidden.slice(), ends, weights.copyQuery!);
      const longest = rows.reduce((most, row) => Math.max(most, row.length), 0);
      const pointed = new Float32Array(ends * longest);
      const gate = new Float32Array(ends);
      const scale = 1 / Math.sqrt(COPY_WIDTH);
      rows.forEach((row, i) => {
        for (let t = 0; t < row.length; t++) {
          const dot = inner(query, i * COPY_WIDTH, row.copyKeys!, t * COPY_WIDTH, COPY_WIDTH, COPY_WIDTH);
          pointed[i * longest + t] = dot * scale;
        }
        let sum = 0;
        for (let j = 0; j < d; j++) sum += hidden[i * d + j]! * weights.gateValues![j]!;
        gate[i] = sum;
      });
      return { logits, copy: pointed, gate };
    },
  };
}
