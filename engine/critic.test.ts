import { describe, expect, it } from 'vitest';
import { explainedVariance } from '../rl/critic.ts';
import { createRandom } from '../rl/random.ts';
import { criticFeatures, siblingFeatures } from './critic-features.ts';
import { createCritic, valueLossOfRow } from './critic.ts';
import { loadTensor } from './tensor.ts';

const tensor = await loadTensor();
const make = (over: Partial<Parameters<typeof createCritic>[0]> = {}) =>
  createCritic({ tensor, inputSize: 8, normalise: [3, 2], hidden: [32], learningRate: 3e-3, seed: [5], ...over });
const how = { epochs: 4, minibatch: 32, seed: [1, 'rows'], valueClip: null, oldValues: null };

/** Rows whose return is a smooth function of the features. */
function problem(rows: number, width = 8) {
  const random = createRandom('critic-problem', rows);
  const features = Float32Array.from({ length: rows * width }, () => random.normal());
  const targets = Float32Array.from({ length: rows }, (_, i) => {
    const [a, b, c] = [features[i * width + 5]!, features[i * width + 6]!, features[i * width + 7]!];
    return Math.tanh(a) + 0.5 * Math.abs(b) + 0.3 * c;
  });
  return { features, targets, mask: new Uint8Array(rows).fill(1) };
}

describe('critic', () => {
  it('learns a return that its features tell, beyond the rows it saw', () => {
    const seen = problem(512);
    const unseen = problem(256);
    const critic = make({ learningRate: 1e-2 });
    const often = { ...how, epochs: 40, minibatch: 128 };
    const first = critic.train(seen.features, seen.targets, seen.mask, { ...often, epochs: 1 });
    const last = critic.train(seen.features, seen.targets, seen.mask, often);
    expect(last.loss).toBeLessThan(first.loss / 5);
    expect(last.gradNorm).toBeGreaterThan(0);
    const explained = explainedVariance(critic.values(unseen.features, 256), unseen.targets, unseen.mask);
    expect(explained).toBeGreaterThan(0.7);
  });

  it('overfits a handful of rows', () => {
    const { features, targets, mask } = problem(8);
    const critic = make({ learningRate: 1e-2 });
    const { loss } = critic.train(features, targets, mask, { ...how, epochs: 200 });
    expect(loss).toBeLessThan(1e-3);
  });

  it('never looks at a masked row', () => {
    const { features, targets, mask } = problem(40);
    for (let i = 0; i < 40; i += 3) mask[i] = 0;
    const clean = make();
    const poisoned = make();
    const a = clean.train(features, targets, mask, how);
    for (let i = 0; i < 40; i += 3) {
      features.fill(NaN, 8 * i, 8 * i + 8);
      targets[i] = Infinity;
    }
    expect(poisoned.train(features, targets, mask, how)).toEqual(a);
    expect(poisoned.state()).toEqual(clean.state());
    expect(clean.train(features, targets, new Uint8Array(40), how)).toEqual({ loss: 0, gradNorm: 0 });
    expect(poisoned.state()).toEqual(clean.state());
  });

  it('goes on from its saved state with the same bits, and leaves no tensors behind', () => {
    const { features, targets, mask } = problem(100);
    const one = make();
    one.train(features, targets, mask, how);
    const saved = one.state();
    const two = make({ seed: [77] });
    two.load(saved);
    expect(two.values(features, 100)).toEqual(one.values(features, 100));
    const tensors = tensor.count();
    expect(two.train(features, targets, mask, how)).toEqual(one.train(features, targets, mask, how));
    expect(two.state()).toEqual(one.state());
    expect(tensor.count()).toBe(tensors);
    expect(() => make({ hidden: [16] }).load(saved)).toThrow(/layers 8,32,1, the config asks for 8,16,1/);
    expect(() => one.load(saved.subarray(0, saved.length - 4))).toThrow(/are not those of its header/);
    expect(() => one.load(new Uint8Array(3))).toThrow(/cut short/);
    expect(() => one.values(features, 99)).toThrow(/8 numbers a row/);
  });

  it('clips values as worked out by hand', () => {
    const [oldValue, clip] = [1, 0.2];
    const values = [1.5, 1.1, 0.4, 1.5];
    const losses = [2, 2, 2, 1].map((target, i) => valueLossOfRow(values[i]!, target, oldValue, clip).loss);
    expect(losses.reduce((a, b) => a + b, 0) / 4).toBeCloseTo(0.5325, 10);
    // Where the clipped loss counts, the value has no slope.
    expect(valueLossOfRow(1.5, 2, 1, 0.2)).toMatchObject({ slope: 0 });
    expect(valueLossOfRow(1.5, 1, 1, 0.2)).toMatchObject({ slope: 0.5 });
    const { features, targets, mask } = problem(16);
    const critic = make();
    const oldValues = Float32Array.from(targets, (t) => t - 5);
    const { gradNorm } = critic.train(features, targets, mask, { ...how, epochs: 1, valueClip: 0.2, oldValues });
    expect(gradNorm).toBe(0);
  });

  it('has the gradient of its loss', () => {
    // Adam's first step moves every weight by the learning rate against the sign of its gradient.
    const { features, targets, mask } = problem(6);
    const rate = 1e-4;
    const loss = (critic: ReturnType<typeof make>): number =>
      critic.values(features, 6).reduce((sum, v, i) => sum + 0.5 * (v - targets[i]!) ** 2, 0) / 6;
    const critic = make({ learningRate: rate, hidden: [4] });
    const before = loss(critic);
    const weights = (bytes: Uint8Array): Float32Array => {
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const from = 8 + Number(view.getBigUint64(0, true));
      return Float32Array.from({ length: 41 }, (_, i) => view.getFloat32(from + 4 * i, true));
    };
    const old = critic.state();
    critic.train(features, targets, mask, { ...how, epochs: 1, minibatch: 6 });
    const moved = weights(critic.state()).map((w, k) => Math.sign(weights(old)[k]! - w));
    const probe = make({ hidden: [4] });
    for (let k = 0; k < 41; k++) {
      const bytes = old.slice();
      const view = new DataView(bytes.buffer);
      const at = 8 + Number(view.getBigUint64(0, true)) + 4 * k;
      view.setFloat32(at, view.getFloat32(at, true) + 1e-2, true);
      probe.load(bytes);
      const slope = (loss(probe) - before) / 1e-2;
      if (Math.abs(slope) > 1e-2) expect([k, moved[k]]).toEqual([k, Math.sign(slope)]);
    }
  });
});

describe('criticFeatures', () => {
  it('joins the nearest sibling: hidden state, return / 4, distance / 64, whether there is one', () => {
    const hidden = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
    expect(criticFeatures(hidden, null)).toMatchObject({ width: 2, normalise: [2], data: Float32Array.of(1, 2, 3, 4) });
    const joined = criticFeatures(hidden, [{ row: 1, ret: -2, distance: 32 }, null]);
    expect(joined).toMatchObject({ rows: 2, width: 7, normalise: [2, 2] });
    expect(Array.from(joined.data)).toEqual([1, 2, 3, 4, -0.5, 0.5, 1, 3, 4, 0, 0, 0, 0, 0]);
    expect(() => criticFeatures([Float32Array.of(1), Float32Array.of(1, 2)], null)).toThrow(/has 2 numbers/);
  });

  it('tells of all equally near siblings in numbers alone', () => {
    const hidden = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
    const told = siblingFeatures(hidden, [{ mean: 1.5, count: 4, distance: 32, start: -0.5 }, null]);
    expect(told).toMatchObject({ rows: 2, width: 7, normalise: [2] });
    expect(Array.from(told.data)).toEqual([1, 2, 1.5, -0.5, 0.5, 0.5, 1, 3, 4, 0, 0, 0, 0, 0]);
  });
});
