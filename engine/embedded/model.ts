import type { Tensor, TensorOps } from '../tensor.ts';
import { COPY_WIDTH, view } from './layout.ts';
import { addRotatedGradient, inputScale } from './weights.ts';
import type { DeviceWeights, LayerWeights } from './weights.ts';

/**
 * A decoder-only transformer: learned shift, rotary positions, RMSNorm before each block, squared ReLU, tied embeddings,
 * no biases. Backward is written out by hand: a tape costs about twice as many operations. Shapes in comments:
 * B rows, T positions (left-padded), S output positions (the last S of T), d width, H heads, h = d/H.
 */
export interface Tile {
  /** B x T token ids, left-padded with -1. */
  tokens: Int32Array;
  rows: number;
  length: number;
  /** The last layer computes queries, MLP and logits for the last `outputs` positions only. */
  outputs: number;
}

export interface Outputs {
  /** B x S x V. */
  logits: Float32Array;
  /** B x S x T scores of copying the token at each position, and B x S gates added to them; null without a copy head. */
  copy: Float32Array | null;
  gate: Float32Array | null;
}

export interface OutputGradients {
  logits: Float32Array;
  copy: Float32Array | null;
  gate: Float32Array | null;
}

/** What decoding starts from: keys and values by layer, (B, T, d), and the copy head's keys, (B, T, c). */
export interface Prefilled {
  outputs: Outputs;
  /**
   * B x 2d, null unless asked for: the last position after the final norm, and the mean over the row's positions of what
   * the last layer reads. The last position mostly holds the next token; the mean says what the prompt is about.
   */
  hidden: Float32Array | null;
  keys: Float32Array[];
  values: Float32Array[];
  copyKeys: Float32Array | null;
}

interface Norm {
  out: Tensor;
  r: Tensor;
}

interface Block {
  x: Tensor;
  n1: Norm;
  n1S: Tensor;
  q: Tensor;
  k: Tensor;
  v: Tensor;
  /** The same before they are split into heads, (B*T, d). */
  keys: Tensor;
  values: Tensor;
  p: Tensor;
  heads: Tensor;
  o: Tensor;
  n2: Norm;
  h: Tensor;
  a: Tensor;
  out: Tensor;
}

export interface Model {
  forward(weights: DeviceWeights, tile: Tile): Outputs;
  /** Forward, `loss` on the outputs, backward; gradients are added to `into` (flat, in the layout's order). */
  train(weights: DeviceWeights, tile: Tile, loss: (outputs: Outputs) => OutputGradients, into: Float64Array): void;
  /** Forward that also reads keys and values; outputs for the last position. */
  prefill(weights: DeviceWeights, tile: Tile, wantHidden?: boolean): Prefilled;
}

const EPS = 1e-6;
const MASKED = -1e9;
const ROTARY_BASE = 10000;

export function createModel(ops: TensorOps): Model {
  const { add, sub, mul, scale, matmul, reshape, transpose, slice } = ops;
  const rotary = new Map<string, { cos: Tensor; sin: Tensor; cosQ: Tensor; sinQ: Tensor }>();
  const eps = new Map<number, Tensor>();

  /** cos and sin (T, d) from position `from`; the Q pair also carries 1/sqrt(h). Few keys: lengths are bucketed. */
  function angles(d: number, heads: number, from: number, count: number) {
    const key = `${d} ${heads} ${from} ${count}`;
    const known = rotary.get(key);
    if (known !== undefined) return known;
    const head = d / heads;
    const half = head / 2;
    const make = (f: (x: number) => number, factor: number): Tensor => {
      const data = new Float32Array(count * d);
      for (let t = 0; t < count; t++) {
        for (let j = 0; j < d; j++) {
          data[t * d + j] = factor * f((from + t) * Math.pow(ROTARY_BASE, -((j % head) % half) / half));
        }
      }
      return ops.keep(ops.tensor(data, [count, d]));
    };
    const q = 1 / Math.sqrt(head);
    const made = { cos: make(Math.cos, 1), sin: make(Math.sin, 1), cosQ: make(Math.cos, q), sinQ: make(Math.sin, q) };
    rotary.set(key, made);
    return made;
  }

  function epsilon(d: number): Tensor {
    let t = eps.get(d);
    if (t === undefined) eps.set(d, (t = ops.keep(ops.tensor(new Float32Array([EPS * d]), [1, 1]))));
    return t;
  }

  /** x (N, d) over its root mean square. */
  function norm(x: Tensor): Norm {
    const d = x.shape[1]!;
    const r = scale(ops.rsqrt(add(ops.sum(ops.square(x), 1), epsilon(d))), Math.sqrt(d));
    return { out: mul(x, r), r };
  }

  function normBack(n: Norm, dOut: Tensor): Tensor {
    const mean = scale(ops.sum(mul(dOut, n.out), 1), 1 / n.out.shape[1]!);
    return mul(sub(dOut, mul(n.out, mean)), n.r);
  }

  /** (B*T, d) -> (B, H, T, h). */
  const split = (x: Tensor, rows: number, length: number, heads: number): Tensor =>
    transpose(reshape(x, [rows, length, heads, x.shape[x.shape.length - 1]! / heads]), [0, 2, 1, 3]);
  /** (B, H, T, h) -> (B*T, d). */
  const merge = (x: Tensor): Tensor => {
    const [rows, heads, length, head] = x.shape as [number, number, number, number];
    return reshape(transpose(x, [0, 2, 1, 3]), [rows * length, heads * head]);
  };

  /** x @ w turned by its positions, (B*T, d). */
  function rotated(x: Tensor, w: Tensor, wR: Tensor, cos: Tensor, sin: Tensor, rows: number): Tensor {
    const d = w.shape[1]!;
    const length = x.shape[0]! / rows;
    const shape = [rows, length, d];
    const y = add(mul(reshape(matmul(x, w), shape), cos), mul(reshape(matmul(x, wR), shape), sin));
    return reshape(y, [rows * length, d]);
  }

  /** The last `outputs` of T positions of every row. */
  function tail(x: Tensor, rows: number, length: number, outputs: number): Tensor {
    if (outputs === length) return x;
    const d = x.shape[1]!;
    const cut = slice(reshape(x, [rows, length, d]), [0, length - outputs, 0], [rows, outputs, d]);
    return reshape(cut, [rows * outputs, d]);
  }

  /** Inverse of `tail` for gradients: zeros before. */
  function untail(x: Tensor, rows: number, length: number, outputs: number): Tensor {
    if (outputs === length) return x;
    const d = x.shape[1]!;
    const zeros = ops.tensor(new Float32Array(rows * (length - outputs) * d), [rows, length - outputs, d]);
    return reshape(ops.concat([zeros, reshape(x, [rows, outputs, d])], 1), [rows * length, d]);
  }

  /** What backward does not need is freed at once: a tile's memory is a few blocks', not all that was ever computed. */
  const block = (x: Tensor, w: LayerWeights, tile: Tile, outputs: number, heads: number, mask: Tensor): Block => ({
    x,
    ...ops.scope(() => blockIn(x, w, tile, outputs, heads, mask)),
  });

  function blockIn(
    x: Tensor,
    w: LayerWeights,
    tile: Tile,
    outputs: number,
    heads: number,
    mask: Tensor,
  ): Omit<Block, 'x'> {
    const { rows, length } = tile;
    const d = x.shape[1]!;
    const all = angles(d, heads, 0, length);
    const n1 = norm(x);
    const keys = rotated(n1.out, w.wk, w.wkR, all.cos, all.sin, rows);
    const values = matmul(n1.out, w.wv);
    const [k, v] = [split(keys, rows, length, heads), split(values, rows, length, heads)];
    const n1S = tail(n1.out, rows, length, outputs);
    const some = outputs === length ? all : angles(d, heads, length - outputs, outputs);
    const q = split(rotated(n1S, w.wq, w.wqR, some.cosQ, some.sinQ, rows), rows, outputs, heads);
    const p = ops.softmax(add(matmul(q, k, false, true), mask));
    const headsOut = matmul(p, v);
    const o = merge(headsOut);
    const x2 = add(tail(x, rows, length, outputs), matmul(o, w.wo));
    const n2 = norm(x2);
    const h = ops.relu(matmul(n2.out, w.w1));
    const a = ops.square(h);
    return { n1, n1S, q, k, v, keys, values, p, heads: headsOut, o, n2, h, a, out: add(x2, matmul(a, w.w2)) };
  }

  /** Gradient to the block's input; `extra` is added to the gradient of its normed input (the copy head's keys). */
  function blockBack(
    b: Block,
    w: LayerWeights,
    tile: Tile,
    heads: number,
    dOut: Tensor,
    extra: Tensor | null,
    grad: (name: string, value: Tensor) => void,
  ): Tensor {
    const { rows, length } = tile;
    const outputs = b.q.shape[2]!;
    const d = b.x.shape[1]!;
    grad('w2', matmul(b.a, dOut, true, false));
    const dH = mul(matmul(dOut, w.w2, false, true), scale(b.h, 2));
    grad('w1', matmul(b.n2.out, dH, true, false));
    const dX2 = add(dOut, normBack(b.n2, matmul(dH, w.w1, false, true)));
    grad('wo', matmul(b.o, dX2, true, false));
    const dHeads = split(matmul(dX2, w.wo, false, true), rows, outputs, heads);
    const dV = merge(matmul(b.p, dHeads, true, false));
    // Row sums of dP * P equal those of dHeads * heads, which are h wide, not T.
    const dot = ops.sum(mul(dHeads, b.heads), 3);
    const dS = mul(b.p, sub(matmul(dHeads, b.v, false, true), dot));
    const dQ = reshape(merge(matmul(dS, b.k)), [rows, outputs, d]);
    const dK = reshape(merge(matmul(dS, b.q, true, false)), [rows, length, d]);
    const all = angles(d, heads, 0, length);
    const some = outputs === length ? all : angles(d, heads, length - outputs, outputs);
    const flat = (x: Tensor): Tensor => reshape(x, [x.shape[0]! * x.shape[1]!, d]);
    const [qCos, qSin] = [flat(mul(dQ, some.cosQ)), flat(mul(dQ, some.sinQ))];
    const [kCos, kSin] = [flat(mul(dK, all.cos)), flat(mul(dK, all.sin))];
    grad('wq', matmul(b.n1S, qCos, true, false));
    grad('wqR', matmul(b.n1S, qSin, true, false));
    grad('wk', matmul(b.n1.out, kCos, true, false));
    grad('wkR', matmul(b.n1.out, kSin, true, false));
    grad('wv', matmul(b.n1.out, dV, true, false));
    const dN1S = add(matmul(qCos, w.wq, false, true), matmul(qSin, w.wqR, false, true));
    let dN1 = add(matmul(kCos, w.wk, false, true), matmul(kSin, w.wkR, false, true));
    dN1 = add(dN1, matmul(dV, w.wv, false, true));
    dN1 = add(dN1, untail(dN1S, rows, length, outputs));
    if (extra !== null) dN1 = add(dN1, extra);
    return add(untail(dX2, rows, length, outputs), normBack(b.n1, dN1));
  }

  /** Input embeddings (B*T, d), made here because a gather has no gradient on wasm. */
  function embed(weights: DeviceWeights, tile: Tile): Tensor {
    const d = weights.layout.config.width;
    const { tokens, length } = tile;
    const out = new Float32Array(tokens.length * d);
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i]!;
      if (token < 0) continue;
      const before = i % length === 0 ? -1 : tokens[i - 1]!;
      for (let j = 0; j < d; j++) {
        const own = weights.current[token * d + j]!;
        out[i * d + j] = before < 0 ? own : own + weights.previous[before * d + j]!;
      }
    }
    return ops.tensor(out, [tokens.length, d]);
  }

  /** 0 where position t may be seen from output s, else a large negative number: (B, 1, S, T). */
  function masking(tile: Tile, outputs: number): Tensor {
    const { rows, length, tokens } = tile;
    const out = new Float32Array(rows * outputs * length);
    for (let b = 0; b < rows; b++) {
      for (let s = 0; s < outputs; s++) {
        const at = (b * outputs + s) * length;
        const now = length - outputs + s;
        for (let t = 0; t < length; t++) if (t > now || tokens[b * length + t]! < 0) out[at + t] = MASKED;
      }
    }
    return ops.tensor(out, [rows, 1, outputs, length]);
  }

  function run(weights: DeviceWeights, tile: Tile) {
    const { heads, layers } = weights.layout.config;
    const { rows, length, outputs } = tile;
    const blocks: Block[] = [];
    let x = embed(weights, tile);
    const full = layers > 1 ? masking(tile, length) : null;
    const last = outputs === length && full !== null ? full : masking(tile, outputs);
    weights.layers.forEach((w, i) => {
      const isLast = i === layers - 1;
      const b = block(x, w, tile, isLast ? outputs : length, heads, isLast ? last : full!);
      blocks.push(b);
      x = b.out;
    });
    return {
      blocks,
      head: head(weights, x, rows, outputs, copyKeys(weights, blocks[layers - 1]!.n1.out, rows, length)),
    };
  }

  const copyKeys = (weights: DeviceWeights, normed: Tensor, rows: number, length: number): Tensor | null =>
    weights.copyKey === null ? null : reshape(matmul(normed, weights.copyKey), [rows, length, COPY_WIDTH]);

  function head(weights: DeviceWeights, x: Tensor, rows: number, outputs: number, keys: Tensor | null) {
    const n = norm(x);
    const hidden = mul(n.out, weights.gain);
    const logits = matmul(hidden, weights.embedT);
    if (keys === null) return { n, hidden, logits, query: null, keys, copy: null, gate: null };
    const query = reshape(scale(matmul(hidden, weights.copyQuery!), 1 / Math.sqrt(COPY_WIDTH)), [
      rows,
      outputs,
      COPY_WIDTH,
    ]);
    const copy = matmul(query, keys, false, true);
    return { n, hidden, logits, query, keys, copy, gate: matmul(hidden, weights.copyGate!) };
  }

  const outputsOf = (h: ReturnType<typeof head>): Outputs => ({
    logits: ops.read(h.logits),
    copy: h.copy === null ? null : ops.read(h.copy),
    gate: h.gate === null ? null : ops.read(h.gate),
  });

  /** The hidden states of a prefilled tile (see Prefilled). */
  function hiddenStates(last: Float32Array, read: Float32Array, { tokens, rows, length }: Tile, d: number) {
    const out = new Float32Array(rows * 2 * d);
    const sum = new Float64Array(d);
    for (let b = 0; b < rows; b++) {
      out.set(last.subarray(b * d, (b + 1) * d), b * 2 * d);
      let count = 0;
      sum.fill(0);
      for (let i = b * length; i < (b + 1) * length; i++) {
        if (tokens[i]! < 0) continue;
        count += 1;
        for (let j = 0; j < d; j++) sum[j]! += read[i * d + j]!;
      }
      for (let j = 0; j < d && count > 0; j++) out[(2 * b + 1) * d + j] = sum[j]! / count;
    }
    return out;
  }

  function backward(
    weights: DeviceWeights,
    tile: Tile,
    { blocks, head: h }: ReturnType<typeof run>,
    dOutputs: OutputGradients,
    into: Float64Array,
  ): void {
    const { layout } = weights;
    const { width: d, heads, layers, vocab } = layout.config;
    const { rows, length, outputs, tokens } = tile;
    const n = rows * outputs;
    const accumulate = (name: string, value: Tensor): void => {
      const from = ops.read(value);
      if (name.endsWith('R')) {
        addRotatedGradient(view(layout, into, name.slice(0, -1)), from, d, heads);
        return;
      }
      const to = view(layout, into, name);
      for (let i = 0; i < from.length; i++) to[i]! += from[i]!;
    };
    const dLogits = ops.tensor(dOutputs.logits, [n, vocab]);
    accumulate('embed', matmul(dLogits, h.hidden, true, false));
    let dHidden = matmul(dLogits, weights.embed);
    let dNormed: Tensor | null = null;
    if (h.query !== null && h.keys !== null) {
      const dCopy = ops.tensor(dOutputs.copy!, [rows, outputs, length]);
      const dGate = ops.tensor(dOutputs.gate!, [n, 1]);
      const dQuery = reshape(scale(matmul(dCopy, h.keys), 1 / Math.sqrt(COPY_WIDTH)), [n, COPY_WIDTH]);
      const dKeys = reshape(matmul(dCopy, h.query, true, false), [rows * length, COPY_WIDTH]);
      accumulate('copy.query', matmul(h.hidden, dQuery, true, false));
      accumulate('copy.gate', matmul(h.hidden, dGate, true, false));
      accumulate('copy.key', matmul(blocks[layers - 1]!.n1.out, dKeys, true, false));
      dHidden = add(dHidden, matmul(dQuery, weights.copyQuery!, false, true));
      dHidden = add(dHidden, matmul(dGate, weights.copyGate!, false, true));
      dNormed = matmul(dKeys, weights.copyKey!, false, true);
    }
    accumulate('gain', ops.sum(mul(dHidden, h.n.out), 0));
    let dX = normBack(h.n, mul(dHidden, weights.gain));
    for (let i = layers - 1; i >= 0; i--) {
      const extra = i === layers - 1 ? dNormed : null;
      const grad = (name: string, value: Tensor): void => accumulate(`layers.${i}.${name}`, value);
      const dOut = dX;
      dX = ops.scope(() => blockBack(blocks[i]!, weights.layers[i]!, tile, heads, dOut, extra, grad));
    }
    // Input tables: current = scale * embed, previous = scale * embed @ shift.
    const dInput = ops.read(dX);
    const factor = inputScale(d);
    const dEmbed = view(layout, into, 'embed');
    const dPrevious = new Float32Array(vocab * d);
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i]!;
      if (token < 0) continue;
      const before = i % length === 0 ? -1 : tokens[i - 1]!;
      for (let j = 0; j < d; j++) {
        const g = factor * dInput[i * d + j]!;
        dEmbed[token * d + j]! += g;
        if (before >= 0) dPrevious[before * d + j]! += g;
      }
    }
    const dPrev = ops.tensor(dPrevious, [vocab, d]);
    const shift = ops.tensor(weights.shift, [d, d]);
    accumulate('shift', matmul(weights.embed, dPrev, true, false));
    accumulate('embed', matmul(dPrev, shift, false, true));
  }

  return {
    forward: (weights, tile) => {
      let outputs: Outputs | null = null;
      ops.scope(() => {
        outputs = outputsOf(run(weights, tile).head);
      });
      return outputs!;
    },
    train: (weights, tile, loss, into) => {
      ops.scope(() => {
        const passed = run(weights, tile);
        backward(weights, tile, passed, loss(outputsOf(passed.head)), into);
      });
    },
    prefill: (weights, tile, wantHidden = false) => {
      let result: Prefilled | null = null;
      ops.scope(() => {
        const { blocks, head: h } = run(weights, { ...tile, outputs: 1 });
        result = {
          outputs: outputsOf(h),
          hidden: wantHidden
            ? hiddenStates(ops.read(h.hidden), ops.read(blocks.at(-1)!.n1.out), tile, weights.layout.config.width)
            : null,
          keys: blocks.map((b) => ops.read(b.keys)),
          values: blocks.map((b) => ops.read(b.values)),
          copyKeys: h.keys === null ? null : ops.read(h.keys),
        };
      });
      return result!;
    },
  };
}
