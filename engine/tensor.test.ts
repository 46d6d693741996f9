import { describe, expect, it } from 'vitest';
import { createRandom } from '../rl/random.ts';
import { loadTensor } from './tensor.ts';
import type { Tensor, TensorOps } from './tensor.ts';

// One tensor context per process: the whole file runs on one backend, this one again on wasm in tensor-wasm.test.ts.
const backend = (process.env['TAPWRIGHT_TEST_BACKEND'] ?? 'auto') as 'auto' | 'wasm';
const ops = await loadTensor({ backend });
const random = createRandom(11, 'tensor');
const fill = (n: number, positive = false): Float32Array =>
  new Float32Array(n).map(() => (positive ? 0.5 + random.next() : random.normal()));

interface Case {
  name: string;
  shapes: number[][];
  positive?: boolean;
  run: (o: TensorOps, xs: Tensor[]) => Tensor;
  /** The same in doubles on flat arrays. */
  reference: (xs: number[][]) => number[];
  gradient?: false;
}
const each =
  (f: (...v: number[]) => number) =>
  (xs: number[][]): number[] =>
    xs[0]!.map((_, i) => f(...xs.map((x) => x[i]!)));
const product = (a: number[], b: number[], m: number, k: number, n: number, ta: boolean, tb: boolean): number[] => {
  const out = new Array<number>(m * n).fill(0);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++)
      for (let q = 0; q < k; q++) out[i * n + j]! += a[ta ? q * m + i : i * k + q]! * b[tb ? j * k + q : q * n + j]!;
  return out;
};
const softmaxRows = (x: number[], width: number): number[] => {
  const out: number[] = [];
  for (let at = 0; at < x.length; at += width) {
    const row = x.slice(at, at + width);
    const top = Math.max(...row);
    const e = row.map((v) => Math.exp(v - top));
    const sum = e.reduce((a, b) => a + b, 0);
    out.push(...e.map((v) => v / sum));
  }
  return out;
};

const cases: Case[] = [
  ...(
    [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const
  ).map(([ta, tb]): Case => ({
    name: `matmul ${ta ? 'a^T' : 'a'} ${tb ? 'b^T' : 'b'}`,
    shapes: [ta ? [4, 3] : [3, 4], tb ? [5, 4] : [4, 5]],
    run: (o, [a, b]) => o.matmul(a!, b!, ta, tb),
    reference: ([a, b]) => product(a!, b!, 3, 4, 5, ta, tb),
  })),
  {
    name: 'add',
    shapes: [
      [3, 4],
      [3, 4],
    ],
    run: (o, [a, b]) => o.add(a!, b!),
    reference: each((a, b) => a + b),
  },
  {
    name: 'sub',
    shapes: [
      [3, 4],
      [3, 4],
    ],
    run: (o, [a, b]) => o.sub(a!, b!),
    reference: each((a, b) => a - b),
  },
  {
    name: 'mul',
    shapes: [
      [3, 4],
      [3, 4],
    ],
    run: (o, [a, b]) => o.mul(a!, b!),
    reference: each((a, b) => a * b),
  },
  {
    name: 'mul broadcast',
    shapes: [
      [3, 4],
      [3, 1],
    ],
    run: (o, [a, b]) => o.mul(a!, b!),
    reference: ([a, b]) => a!.map((x, i) => x * b![Math.floor(i / 4)]!),
  },
  { name: 'scale', shapes: [[3, 4]], run: (o, [a]) => o.scale(a!, -2.5), reference: each((a) => -2.5 * a) },
  { name: 'relu', shapes: [[3, 4]], run: (o, [a]) => o.relu(a!), reference: each((a) => Math.max(0, a)) },
  { name: 'square', shapes: [[3, 4]], run: (o, [a]) => o.square(a!), reference: each((a) => a * a) },
  {
    name: 'rsqrt',
    shapes: [[3, 4]],
    positive: true,
    run: (o, [a]) => o.rsqrt(a!),
    reference: each((a) => 1 / Math.sqrt(a)),
  },
  { name: 'exp', shapes: [[3, 4]], run: (o, [a]) => o.exp(a!), reference: each(Math.exp) },
  { name: 'tanh', shapes: [[3, 4]], run: (o, [a]) => o.tanh(a!), reference: each(Math.tanh) },
  {
    name: 'maximum',
    shapes: [
      [3, 4],
      [3, 4],
    ],
    run: (o, [a, b]) => o.maximum(a!, b!),
    reference: each((a, b) => Math.max(a, b)),
  },
  {
    name: 'minimum',
    shapes: [
      [3, 4],
      [3, 4],
    ],
    run: (o, [a, b]) => o.minimum(a!, b!),
    reference: each((a, b) => Math.min(a, b)),
  },
  { name: 'softmax', shapes: [[3, 4]], run: (o, [a]) => o.softmax(a!), reference: ([a]) => softmaxRows(a!, 4) },
  {
    name: 'sum over the last',
    shapes: [[3, 4]],
    run: (o, [a]) => o.sum(a!, 1),
    reference: ([a]) => [0, 1, 2].map((i) => a!.slice(4 * i, 4 * i + 4).reduce((x, y) => x + y, 0)),
  },
  {
    name: 'transpose',
    shapes: [[2, 3, 2]],
    run: (o, [a]) => o.transpose(a!, [1, 0, 2]),
    reference: ([a]) => [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11].map((i) => a![i]!),
  },
  {
    name: 'slice',
    shapes: [[3, 4]],
    run: (o, [a]) => o.slice(a!, [1, 1], [2, 2]),
    reference: ([a]) => [5, 6, 9, 10].map((i) => a![i]!),
  },
  {
    name: 'concat',
    shapes: [
      [2, 1],
      [2, 2],
    ],
    run: (o, xs) => o.concat(xs, 1),
    reference: ([a, b]) => [a![0]!, b![0]!, b![1]!, a![1]!, b![2]!, b![3]!],
  },
  {
    name: 'gather',
    shapes: [[3, 2]],
    run: (o, [a]) => o.gather(a!, Int32Array.of(2, 0)),
    reference: ([a]) => [4, 5, 0, 1].map((i) => a![i]!),
    gradient: false,
  },
];

describe(`tensor operations on ${ops.backend}`, () => {
  for (const c of cases) {
    it(`${c.name}: values and gradients against doubles`, () => {
      const data = c.shapes.map((shape) =>
        fill(
          shape.reduce((a, b) => a * b, 1),
          c.positive,
        ),
      );
      const inputs = data.map((x, i) => ops.tensor(x.slice(), c.shapes[i]!));
      const doubles = data.map((x) => Array.from(x));
      const out = c.run(ops, inputs);
      const wanted = c.reference(doubles);
      ops.read(out).forEach((x, i) => expect(x).toBeCloseTo(wanted[i]!, 5));
      if (c.gradient === false) return;
      // Gradient of a fixed random weighting of the output, against central differences of the reference.
      const weights = fill(wanted.length);
      const total = (xs: number[][]): number => c.reference(xs).reduce((sum, y, i) => sum + y * weights[i]!, 0);
      const { grads } = ops.gradients(
        (xs) =>
          ops.reshape(
            ops.sum(ops.reshape(ops.mul(c.run(ops, xs), ops.tensor(weights.slice(), out.shape)), [1, -1]), 1),
            [],
          ),
        inputs,
      );
      grads.forEach((g, k) => {
        ops.read(g).forEach((x, i) => {
          const h = 1e-5;
          const moved = (d: number): number =>
            total(doubles.map((row, r) => (r === k ? row.map((v, j) => (j === i ? v + d : v)) : row)));
          expect(x).toBeCloseTo((moved(h) - moved(-h)) / (2 * h), 4);
        });
      });
    });
  }
  it('read is a copy and scope frees what was made inside', () => {
    const before = ops.count();
    const values = new Float32Array(4);
    ops.scope(() => {
      values.set(ops.read(ops.add(ops.tensor(Float32Array.of(1, 2, 3, 4), [4]), ops.tensor(new Float32Array(4), [4]))));
    });
    expect(Array.from(values)).toEqual([1, 2, 3, 4]);
    expect(ops.count()).toBe(before);
  });
  it('keeps NaN through maximum and minimum', () => {
    const t = ops.minimum(
      ops.maximum(ops.tensor(Float32Array.of(NaN), [1]), ops.tensor(Float32Array.of(0), [1])),
      ops.tensor(Float32Array.of(1), [1]),
    );
    expect(ops.read(t)[0]).toBeNaN();
  });
});
