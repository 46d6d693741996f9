import type { Tensor, TensorOps } from '../tensor.ts';
import { view } from './layout.ts';
import type { Layout } from './layout.ts';

export interface LayerWeights {
  wq: Tensor;
  wk: Tensor;
  /** wq and wk with each head's halves swapped and signed, so that x @ wqR is the rotary partner of x @ wq. */
  wqR: Tensor;
  wkR: Tensor;
  wv: Tensor;
  wo: Tensor;
  w1: Tensor;
  w2: Tensor;
  /** [wq | wk | wv], with the copy head's keys after them in the last layer: one product a step of decoding. */
  qkv(): Tensor;
}

/** One version of a model's weights, ready for the device. */
export interface DeviceWeights {
  layout: Layout;
  embed: Tensor;
  /** Its transpose (d x V): products with a transposed operand give bits that depend on the number of rows. */
  embedT: Tensor;
  layers: LayerWeights[];
  gain: Tensor;
  copyQuery: Tensor | null;
  copyKey: Tensor | null;
  copyGate: Tensor | null;
  /** [embedT | copyQuery] for decoding; embedT alone without a copy head. */
  readout(): Tensor;
  /** Input tables (V x d): the token's own row, and what it adds to the next token (the learned shift). */
  current: Float32Array;
  previous: Float32Array;
  /** The learned shift (d x d). */
  shift: Float32Array;
  /** Gains of the final norm and gates of the copy head, for decoding. */
  gainValues: Float32Array;
  gateValues: Float32Array | null;
  dispose(): void;
}

/** Input embeddings are scaled so that the tied output logits stay small. */
export const inputScale = (width: number): number => Math.sqrt(width);

/** Uploads weights. `values` is copied: later changes to it do not show. */
export function uploadWeights(ops: TensorOps, layout: Layout, values: Float32Array): DeviceWeights {
  const { width: d, heads, layers, copy } = layout.config;
  const made: Tensor[] = [];
  const put = (data: Float32Array, shape: number[]): Tensor => {
    const t = ops.keep(ops.tensor(data, shape));
    made.push(t);
    return t;
  };
  const param = (name: string): Tensor => {
    const p = layout.parameters.find((each) => each.name === name)!;
    return put(view(layout, values, name).slice(), p.shape);
  };
  const rotated = (name: string): Tensor => put(rotateColumns(view(layout, values, name), d, heads), [d, d]);
  /** Only sampling wants these, so they are made on first use, from a copy of the values. */
  const lazyJoin = (parts: Float32Array[]): (() => Tensor) => {
    let joined: Tensor | null = null;
    return () => (joined ??= put(joinColumns(parts, d), [d, parts.reduce((sum, part) => sum + part.length / d, 0)]));
  };
  const qkv = (i: number): (() => Tensor) => {
    const names = ['wq', 'wk', 'wv'].map((name) => `layers.${i}.${name}`);
    if (copy && i === layers - 1) names.push('copy.key');
    return lazyJoin(names.map((name) => view(layout, values, name).slice()));
  };
  const embed = param('embed');
  const outward = transposed(view(layout, values, 'embed'), d);
  const shift = ops.tensor(view(layout, values, 'shift').slice(), [d, d]);
  const scale = inputScale(d);
  const current = view(layout, values, 'embed').map((x) => x * scale);
  const product = ops.matmul(embed, shift);
  const previous = ops.read(product).map((x) => x * scale);
  ops.dispose(product, shift);
  return {
    layout,
    embed,
    embedT: put(outward, [d, layout.config.vocab]),
    layers: Array.from({ length: layers }, (_, i) => ({
      wq: param(`layers.${i}.wq`),
      wk: param(`layers.${i}.wk`),
      wqR: rotated(`layers.${i}.wq`),
      wkR: rotated(`layers.${i}.wk`),
      wv: param(`layers.${i}.wv`),
      wo: param(`layers.${i}.wo`),
      w1: param(`layers.${i}.w1`),
      w2: param(`layers.${i}.w2`),
      qkv: qkv(i),
    })),
    gain: param('gain'),
    copyQuery: copy ? param('copy.query') : null,
    copyKey: copy ? param('copy.key') : null,
    copyGate: copy ? param('copy.gate') : null,
    readout: lazyJoin(copy ? [outward, view(layout, values, 'copy.query').slice()] : [outward]),
    current,
    previous,
    shift: view(layout, values, 'shift').slice(),
    gainValues: view(layout, values, 'gain').slice(),
    gateValues: copy ? view(layout, values, 'copy.gate').slice() : null,
    dispose: () => ops.dispose(...made.splice(0)),
  };
}

/** Matrices of `rows` rows side by side. */
function joinColumns(parts: Float32Array[], rows: number): Float32Array {
  const width = parts.reduce((sum, part) => sum + part.length / rows, 0);
  const out = new Float32Array(rows * width);
  let at = 0;
  for (const part of parts) {
    const columns = part.length / rows;
    for (let i = 0; i < rows; i++) out.set(part.subarray(i * columns, (i + 1) * columns), i * width + at);
    at += columns;
  }
  return out;
}

/** (rows x columns) -> (columns x rows). */
function transposed(x: Float32Array, columns: number): Float32Array {
  const rows = x.length / columns;
  const out = new Float32Array(x.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) out[j * rows + i] = x[i * columns + j]!;
  return out;
}

/** Column j of the result is column `partner(j)` of w times its sign: the 90 degree turn of rotary positions. */
function rotateColumns(w: Float32Array, d: number, heads: number): Float32Array {
  const out = new Float32Array(w.length);
  const head = d / heads;
  const half = head / 2;
  for (let row = 0; row < d; row++) {
    for (let j = 0; j < d; j++) {
      const first = j % head < half;
      out[row * d + j] = first ? -w[row * d + j + half]! : w[row * d + j - half]!;
    }
  }
  return out;
}

/** Adds the gradient of a rotated weight to that of the weight itself: the turn's transpose. */
export function addRotatedGradient(into: Float64Array, rotated: Float32Array, d: number, heads: number): void {
  const head = d / heads;
  const half = head / 2;
  for (let row = 0; row < d; row++) {
    for (let j = 0; j < d; j++) {
      const first = j % head < half;
      if (first) into[row * d + j + half]! -= rotated[row * d + j]!;
      else into[row * d + j - half]! += rotated[row * d + j]!;
    }
  }
}
