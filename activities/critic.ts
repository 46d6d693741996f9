import type { RunConfig } from '../configs/schema.ts';
import { createRandom } from '../rl/random.ts';
import type { CriticPort } from './learner.ts';
import { featureWidth } from './training-rows.ts';

export interface LearnerCritic extends CriticPort {
  save(): Uint8Array;
  dispose(): void;
}

/** A small multi-layer perceptron with ReLU and its own Adam, in plain doubles. */
export async function createLearnerCritic(options: {
  config: RunConfig;
  hidden: number;
  state: Uint8Array | null;
}): Promise<LearnerCritic> {
  const { config, state } = options;
  const sizes = [featureWidth(config.learn.estimator, options.hidden), ...config.critic.hidden, 1];
  const layers = sizes.slice(1).map((out, l) => ({ rows: out, cols: sizes[l]! }));
  const total = layers.reduce((sum, { rows, cols }) => sum + rows * (cols + 1), 0);
  const weights = new Float64Array(total);
  const m = new Float64Array(total);
  const v = new Float64Array(total);
  let step = 0;
  if (state === null) {
    const random = createRandom(config.seed, 'critic');
    let at = 0;
    layers.forEach(({ rows, cols }, l) => {
      const scale = l === layers.length - 1 ? 0.01 : Math.sqrt(2 / cols);
      for (let i = 0; i < rows * cols; i++) weights[at + i] = scale * random.normal();
      at += rows * (cols + 1);
    });
  } else {
    const all = new Float64Array(state.slice().buffer);
    weights.set(all.subarray(0, total));
    m.set(all.subarray(total, 2 * total));
    v.set(all.subarray(2 * total, 3 * total));
    step = all[3 * total]!;
  }
  const forward = (x: Float32Array | Float64Array): Float64Array[] => {
    const acts: Float64Array[] = [Float64Array.from(x)];
    let at = 0;
    layers.forEach(({ rows, cols }, l) => {
      const input = acts[l]!;
      const out = new Float64Array(rows);
      for (let r = 0; r < rows; r++) {
        let sum = weights[at + rows * cols + r]!;
        const base = at + r * cols;
        for (let c = 0; c < cols; c++) sum += weights[base + c]! * input[c]!;
        out[r] = l < layers.length - 1 && sum < 0 ? 0 : sum;
      }
      at += rows * (cols + 1);
      acts.push(out);
    });
    return acts;
  };
  const backward = (acts: Float64Array[], slope: number, gradients: Float64Array): void => {
    let delta = Float64Array.of(slope);
    let at = total;
    for (let l = layers.length - 1; l >= 0; l--) {
      const { rows, cols } = layers[l]!;
      at -= rows * (cols + 1);
      const input = acts[l]!;
      const next = new Float64Array(cols);
      for (let r = 0; r < rows; r++) {
        const d = delta[r]!;
        if (d === 0) continue;
        gradients[at + rows * cols + r]! += d;
        const base = at + r * cols;
        for (let c = 0; c < cols; c++) {
          gradients[base + c]! += d * input[c]!;
          next[c]! += d * weights[base + c]!;
        }
      }
      if (l > 0) for (let c = 0; c < cols; c++) if (input[c]! <= 0) next[c] = 0;
      delta = next;
    }
  };
  const rowOf = (features: { data: Float32Array; width: number }, i: number): Float32Array =>
    features.data.subarray(i * features.width, (i + 1) * features.width);
  return {
    values: (features) =>
      Float32Array.from({ length: features.rows }, (_, i) => forward(rowOf(features, i)).at(-1)![0]!),
    train: (features, returns, oldValues, seedPath) => {
      let loss = 0;
      let norm = 0;
      const { epochs, minibatch, learningRate, valueClip } = config.critic;
      for (let epoch = 0; epoch < epochs; epoch++) {
        const order = createRandom(...seedPath, epoch).shuffle(Array.from({ length: features.rows }, (_, i) => i));
        loss = 0;
        for (let from = 0; from < order.length; from += minibatch) {
          const part = order.slice(from, from + minibatch);
          const gradients = new Float64Array(total);
          for (const i of part) {
            const acts = forward(rowOf(features, i));
            const value = acts.at(-1)![0]!;
            const target = returns[i]!;
            let error = value - target;
            if (valueClip !== null) {
              const old = oldValues[i]!;
              const near = old + Math.min(Math.max(value - old, -valueClip), valueClip);
              if (Math.abs(near - target) > Math.abs(error)) error = near === value ? error : 0;
            }
            loss += 0.5 * error * error;
            if (error !== 0) backward(acts, error / part.length, gradients);
          }
          step += 1;
          norm = 0;
          for (let k = 0; k < total; k++) {
            const g = gradients[k]!;
            norm += g * g;
            m[k] = 0.9 * m[k]! + 0.1 * g;
            v[k] = 0.999 * v[k]! + 0.001 * g * g;
            const hat = m[k]! / (1 - 0.9 ** step) / (Math.sqrt(v[k]! / (1 - 0.999 ** step)) + 1e-8);
            weights[k]! -= learningRate * hat;
          }
        }
        loss /= Math.max(1, order.length);
      }
      return { loss, gradNorm: Math.sqrt(norm) };
    },
    save: () => {
      const all = new Float64Array(3 * total + 1);
      all.set(weights, 0);
      all.set(m, total);
      all.set(v, 2 * total);
      all[3 * total] = step;
      return new Uint8Array(all.buffer);
    },
    dispose: () => {},
  };
}
