import { TapwrightError } from '../domain/errors.ts';
import { createRandom } from '../rl/random.ts';
import { criticStep, readState, writeState } from './critic-state.ts';
import type { CriticState } from './critic-state.ts';
import type { TensorOps } from './tensor.ts';

export interface CriticOptions {
  tensor: TensorOps;
  /** Numbers of a row. */
  inputSize: number;
  /**
   * Widths of the parts at the start of a row that are normalised, each by itself, to mean 0 and variance 1: the hidden
   * states. A part of zeros stays zeros. The rest of a row is taken as it is.
   */
  normalise?: readonly number[];
  /** Units of the hidden layers. */
  hidden: readonly number[];
  learningRate: number;
  /** Key path of the initial weights. */
  seed: readonly (number | string)[];
}

export interface CriticTraining {
  epochs: number;
  minibatch: number;
  /** Key path of the row order. */
  seed: readonly (number | string)[];
  /** Bound on how far a value may move from the old one before the loss stops rewarding it; null: none. */
  valueClip: number | null;
  /** Values before this batch; needed with `valueClip`. */
  oldValues: Float32Array | null;
}

/** Value network over rows (algorithms.md, 7). Features are (rows, inputSize), row-major. */
export interface Critic {
  /** One value a row. */
  values(features: Float32Array, rows: number): Float32Array;
  /**
   * Epochs of mini-batches over the rows with mask 1; what a masked row holds never matters. `loss` is the mean of
   * 0.5 (V - R)^2 over the last epoch, `gradNorm` the mean norm over its steps; both 0 when every row is masked.
   */
  train(
    features: Float32Array,
    targets: Float32Array,
    mask: ArrayLike<number>,
    options: CriticTraining,
  ): { loss: number; gradNorm: number };
  /** Weights and moments; the same state gives the same bytes. */
  state(): Uint8Array;
  /** Goes on from such bytes, to the bit. Errors: `corrupt_checkpoint`. */
  load(bytes: Uint8Array): void;
}

interface Layer {
  rows: number;
  cols: number;
  /** Where its weights (cols x rows, input-major) and then its biases begin. */
  at: number;
}

const EPSILON = 1e-5;
/** Rows of one forward pass when only values are wanted. */
const VALUE_ROWS = 4096;

/**
 * A perceptron with ReLU and an Adam of its own. The matrix products run on the tensor library, all else on typed arrays:
 * the same few kernels on every backend, and the same bits after a reload.
 */
export function createCritic(options: CriticOptions): Critic {
  const { tensor, inputSize, normalise = [], hidden, learningRate } = options;
  if (normalise.reduce((a, b) => a + b, 0) > inputSize) {
    throw new TapwrightError('internal', `the normalised parts ${normalise.join(' + ')} exceed ${inputSize} numbers`);
  }
  const sizes = [inputSize, ...hidden, 1];
  const layers: Layer[] = [];
  let total = 0;
  for (let l = 1; l < sizes.length; l++) {
    layers.push({ rows: sizes[l]!, cols: sizes[l - 1]!, at: total });
    total += sizes[l]! * (sizes[l - 1]! + 1);
  }
  let state: CriticState = { weights: initial(), m: new Float32Array(total), v: new Float32Array(total), step: 0 };

  function initial(): Float32Array {
    const random = createRandom(...options.seed, 'critic-weights');
    const weights = new Float32Array(total);
    layers.forEach(({ rows, cols, at }, l) => {
      // The last layer starts near zero: the first values are those of a critic that knows nothing.
      const scale = l === layers.length - 1 ? 0.01 / Math.sqrt(cols) : Math.sqrt(2 / cols);
      for (let i = 0; i < rows * cols; i++) weights[at + i] = scale * random.normal();
    });
    return weights;
  }

  /** a (n, k) times b (k, m), either transposed. */
  function product(a: Float32Array, aShape: number[], b: Float32Array, bShape: number[], ta: boolean, tb: boolean) {
    const out = tensor.scope(() => tensor.matmul(tensor.tensor(a, aShape), tensor.tensor(b, bShape), ta, tb));
    const values = tensor.read(out);
    tensor.dispose(out);
    return values;
  }

  const weightsOf = ({ rows, cols, at }: Layer): Float32Array => state.weights.subarray(at, at + rows * cols);

  /** Activations of every layer, the input first, values last. */
  function forward(input: Float32Array, n: number): Float32Array[] {
    const acts = [input];
    layers.forEach((layer, l) => {
      const { rows, cols, at } = layer;
      const out = product(acts[l]!, [n, cols], weightsOf(layer), [cols, rows], false, false);
      const last = l === layers.length - 1;
      for (let i = 0; i < out.length; i++) {
        const x = out[i]! + state.weights[at + rows * cols + (i % rows)]!;
        out[i] = !last && x < 0 ? 0 : x;
      }
      acts.push(out);
    });
    return acts;
  }

  /** Gradient of all weights, given that of the values. */
  function backward(acts: Float32Array[], slopes: Float32Array, n: number): Float32Array {
    const gradient = new Float32Array(total);
    let delta = slopes;
    for (let l = layers.length - 1; l >= 0; l--) {
      const layer = layers[l]!;
      const { rows, cols, at } = layer;
      gradient.set(product(acts[l]!, [n, cols], delta, [n, rows], true, false), at);
      for (let i = 0; i < delta.length; i++) gradient[at + rows * cols + (i % rows)]! += delta[i]!;
      if (l === 0) break;
      delta = product(delta, [n, rows], weightsOf(layer), [cols, rows], false, true);
      const act = acts[l]!;
      for (let i = 0; i < delta.length; i++) if (act[i]! <= 0) delta[i] = 0;
    }
    return gradient;
  }

  /** The rows at `places`, normalised, as one input. */
  function gather(features: Float32Array, places: ArrayLike<number>): Float32Array {
    const out = new Float32Array(places.length * inputSize);
    for (let r = 0; r < places.length; r++) {
      out.set(features.subarray(places[r]! * inputSize, (places[r]! + 1) * inputSize), r * inputSize);
      let from = r * inputSize;
      for (const width of normalise) {
        layerNorm(out.subarray(from, from + width));
        from += width;
      }
    }
    return out;
  }

  function check(features: Float32Array, rows: number): void {
    if (features.length === rows * inputSize) return;
    const got = `${features.length} numbers for ${rows} rows`;
    throw new TapwrightError('invalid_input', `the critic takes ${inputSize} numbers a row and got ${got}`);
  }

  return {
    values: (features, rows) => {
      check(features, rows);
      const out = new Float32Array(rows);
      for (let from = 0; from < rows; from += VALUE_ROWS) {
        const n = Math.min(VALUE_ROWS, rows - from);
        const input = gather(
          features,
          Array.from({ length: n }, (_, i) => from + i),
        );
        out.set(forward(input, n).at(-1)!, from);
      }
      return out;
    },
    train: (features, targets, mask, { epochs, minibatch, seed, valueClip, oldValues }) => {
      check(features, targets.length);
      const valid = Array.from(targets, (_, i) => i).filter((i) => mask[i] !== 0);
      if (valid.length === 0) return { loss: 0, gradNorm: 0 };
      let loss = 0;
      let norm = 0;
      for (let epoch = 0; epoch < epochs; epoch++) {
        const order = createRandom(...seed, 'critic-rows', epoch).shuffle([...valid]);
        let steps = 0;
        loss = norm = 0;
        for (let from = 0; from < order.length; from += minibatch, steps++) {
          const part = order.slice(from, from + minibatch);
          const acts = forward(gather(features, part), part.length);
          const slopes = new Float32Array(part.length);
          part.forEach((row, i) => {
            const old = valueClip === null ? null : oldValues![row]!;
            const one = valueLossOfRow(acts.at(-1)![i]!, targets[row]!, old, valueClip);
            loss += one.loss;
            slopes[i] = one.slope / part.length;
          });
          const gradient = backward(acts, slopes, part.length);
          norm += criticStep(state, gradient, learningRate);
        }
        loss /= order.length;
        norm /= Math.max(1, steps);
      }
      return { loss, gradNorm: norm };
    },
    state: () => writeState(state, sizes),
    load: (bytes) => {
      state = readState(bytes, sizes);
    },
  };
}

/**
 * 0.5 (V - R)^2 of one row and its derivative by V. With a clip c the larger of it and the loss of
 * V_old + clamp(V - V_old, -c, c) (algorithms.md, 7).
 */
export function valueLossOfRow(
  value: number,
  target: number,
  oldValue: number | null,
  clip: number | null,
): { loss: number; slope: number } {
  const error = value - target;
  const free = { loss: 0.5 * error * error, slope: error };
  if (clip === null || oldValue === null) return free;
  const near = oldValue + Math.min(Math.max(value - oldValue, -clip), clip) - target;
  const bounded = 0.5 * near * near;
  return bounded > free.loss ? { loss: bounded, slope: 0 } : free;
}

/** In place: mean 0, variance 1. */
function layerNorm(x: Float32Array): void {
  if (x.length === 0) return;
  let mean = 0;
  for (const value of x) mean += value;
  mean /= x.length;
  let variance = 0;
  for (const value of x) variance += (value - mean) ** 2;
  const scale = 1 / Math.sqrt(variance / x.length + EPSILON);
  for (let i = 0; i < x.length; i++) x[i] = (x[i]! - mean) * scale;
}
