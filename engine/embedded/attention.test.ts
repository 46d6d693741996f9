import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../rl/random.ts';
import { createAttention } from './attention.ts';

/** The same in doubles. */
function reference(q: number[], keys: number[], values: number[], count: number, d: number, head: number): number[] {
  const out = new Array<number>(d).fill(0);
  for (let h = 0; h < d; h += head) {
    const scores = Array.from({ length: count }, (_, t) => {
      let dot = 0;
      for (let j = h; j < h + head; j++) dot += q[j]! * keys[t * d + j]!;
      return dot / Math.sqrt(head);
    });
    const top = Math.max(...scores);
    const p = scores.map((s) => Math.exp(s - top));
    const total = p.reduce((a, b) => a + b, 0);
    for (let t = 0; t < count; t++) for (let j = h; j < h + head; j++) out[j]! += (p[t]! / total) * values[t * d + j]!;
  }
  return out;
}

describe('attention kernels', () => {
  it('agree with doubles for any shape, and with themselves wherever they lie', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 1000 }),
        fc.constantFrom(0.1, 1, 30),
        (count, heads, quads, seed, size) => {
          const [head, d] = [4 * quads, 4 * quads * heads];
          const random = createRandom(seed, 'attention');
          const draw = (n: number, by: number): number[] =>
            Array.from({ length: n }, () => Math.fround(by * random.normal()));
          const [q, keys, values] = [draw(d, size), draw(count * d, 1), draw(count * d, 1)];
          const run = (before: number): number[] => {
            const attention = createAttention();
            attention.allocate(before);
            const place = (data: number[]): number => {
              const at = attention.allocate(data.length);
              attention.floats().set(data, at);
              return at;
            };
            const [atQ, atK, atV, out] = [place(q), place(keys), place(values), attention.allocate(d)];
            attention.attend(atQ, atK, atV, count, d, head, out);
            return Array.from(attention.floats().subarray(out, out + d));
          };
          const got = run(1);
          reference(q, keys, values, count, d, head).forEach((x, j) => expect(got[j]).toBeCloseTo(x, 4));
          expect(run(70_000)).toEqual(got);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('uses again what was given back, and keeps what is there when the memory grows', () => {
    const attention = createAttention();
    const first = attention.allocate(2000);
    attention.floats()[first + 7] = 3;
    const used = attention.used();
    const second = attention.allocate(900_000);
    expect(attention.floats()[first + 7]).toBe(3);
    attention.release(second, 900_000);
    expect(attention.allocate(800_000)).toBe(second);
    attention.release(second, 800_000);
    expect(attention.used()).toBe(used);
  });

  it('is as before after it had no more memory to give', () => {
    const attention = createAttention();
    const first = attention.allocate(2000);
    const used = attention.used();
    expect(() => attention.allocate(2 ** 31)).toThrow('no room for more');
    expect(attention.used()).toBe(used);
    expect(attention.allocate(5000)).toBeGreaterThan(first);
  });
});
