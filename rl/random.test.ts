import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom, hashSeed } from './random.ts';

const part = fc.oneof(fc.string({ maxLength: 6 }), fc.integer({ min: 0, max: 0xffffffff }));
const path = fc.array(part, { minLength: 1, maxLength: 4 });

describe('counter-based random numbers', () => {
  it('golden numbers: a change here changes every recorded run', () => {
    expect(hashSeed(7, 'train', 3, 1)).toBe(3150908205);
    expect(hashSeed()).toBe(625341585);
    expect(hashSeed(-1)).toBe(4259974550);
    expect(hashSeed(2 ** 40 + 5)).toBe(1652265821);
    const random = createRandom(7, 'a', 1);
    expect([random.next(), random.next()]).toEqual([0.5494733443633861, 0.4557259871244077]);
    expect(random.int(10)).toBe(1);
    expect(random.shuffle([1, 2, 3, 4, 5, 6])).toEqual([4, 1, 6, 2, 3, 5]);
    expect(random.normal()).toBe(1.0095677241671634);
    expect(random.pick(['x', 'y', 'z'])).toBe('z');
  });

  it('the same path gives the same stream, whatever else was drawn before', () => {
    fc.assert(
      fc.property(path, path, (p, q) => {
        const first = createRandom(...p);
        const draws = [first.next(), first.next(), first.next()];
        const other = createRandom(...q);
        const again = createRandom(...p);
        const interleaved = [0, 1, 2].map(() => {
          other.next();
          return again.next();
        });
        expect(interleaved).toEqual(draws);
      }),
    );
  });

  it('paths differ by order, by kind and by the place of the cut', () => {
    const seeds = [
      hashSeed(1, 2),
      hashSeed(2, 1),
      hashSeed('1', 2),
      hashSeed(12),
      hashSeed('12'),
      hashSeed('1', '2'),
      hashSeed('a', 'bc'),
      hashSeed('ab', 'c'),
      hashSeed('abc'),
      hashSeed(1),
      hashSeed(1, 0),
      hashSeed(1 + 2 ** 32),
    ];
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  it('seeds of a grid of paths hardly collide', () => {
    const seeds = new Set<number>();
    for (let u = 0; u < 100; u++)
      for (let d = 0; d < 16; d++) for (let a = 0; a < 8; a++) seeds.add(hashSeed(7, 'train', u, d, a));
    // 12,800 of 2^32: 0.02 collisions expected.
    expect(seeds.size).toBeGreaterThanOrEqual(12_798);
  });

  it('next is uniform in [0, 1): chi-square over 64 bins', () => {
    const random = createRandom('uniform');
    const bins = new Float64Array(64);
    const n = 64_000;
    for (let i = 0; i < n; i++) {
      // A draw outside [0, 1) would leave the bins, and their sum short of n.
      bins[Math.floor(random.next() * 64)]!++;
    }
    expect(bins.reduce((a, b) => a + b, 0)).toBe(n);
    const chi = bins.reduce((sum, count) => sum + (count - n / 64) ** 2 / (n / 64), 0);
    // 63 degrees of freedom: 0.1 % below 32, 0.1 % above 104.
    expect(chi).toBeGreaterThan(32);
    expect(chi).toBeLessThan(104);
  });

  it('first draws of neighbouring paths are uniform and uncorrelated', () => {
    const n = 20_000;
    const draws = Float64Array.from({ length: n }, (_, i) => createRandom(7, 'train', i).next());
    const mean = draws.reduce((a, b) => a + b, 0) / n;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.009);
    for (const lag of [1, 2, 8, 16]) {
      let sum = 0;
      for (let i = lag; i < n; i++) sum += (draws[i]! - 0.5) * (draws[i - lag]! - 0.5) * 12;
      // Four standard errors.
      expect(Math.abs(sum / (n - lag))).toBeLessThan(4 / Math.sqrt(n));
    }
  });

  it('streams of two paths are uncorrelated', () => {
    const n = 10_000;
    for (const [a, b] of [
      [createRandom(1), createRandom(2)],
      [createRandom('a', 1), createRandom('a', 2)],
      [createRandom('x', 'y'), createRandom('y', 'x')],
    ] as const) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += (a.next() - 0.5) * (b.next() - 0.5) * 12;
      expect(Math.abs(sum / n)).toBeLessThan(4 / Math.sqrt(n));
    }
  });

  it('int covers its range evenly, pick refuses an empty list', () => {
    const random = createRandom('int');
    const counts = [0, 0, 0, 0, 0, 0, 0];
    for (let i = 0; i < 7000; i++) counts[random.int(7)]!++;
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(120);
    expect(random.int(1)).toBe(0);
    expect(() => random.pick([])).toThrow(RangeError);
  });

  it('shuffle permutes a copy, and every order is as likely', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), path, (list, p) => {
        const before = [...list];
        const out = createRandom(...p).shuffle(list);
        expect(list).toEqual(before);
        expect([...out].sort((a, b) => a - b)).toEqual(before.sort((a, b) => a - b));
      }),
    );
    const orders = new Map<string, number>();
    for (let i = 0; i < 6000; i++) {
      const key = createRandom('order', i).shuffle(['a', 'b', 'c']).join('');
      orders.set(key, (orders.get(key) ?? 0) + 1);
    }
    expect(orders.size).toBe(6);
    for (const count of orders.values()) expect(Math.abs(count - 1000)).toBeLessThan(120);
  });

  it('normal has mean 0 and variance 1', () => {
    const random = createRandom('normal');
    const n = 20_000;
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < n; i++) {
      const x = random.normal();
      sum += x;
      squares += x * x;
    }
    expect(Math.abs(sum / n)).toBeLessThan(4 / Math.sqrt(n));
    expect(Math.abs(squares / n - 1)).toBeLessThan(0.04);
  });
});
