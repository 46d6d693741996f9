import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256Hex } from './sha256.ts';
import { comparePaired, hierarchicalBootstrap, instanceSeed, mcnemarExact, wilsonInterval } from './statistics.ts';

describe('sha256', () => {
  it('NIST vectors', () => {
    expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(sha256Hex('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq')).toBe(
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    );
    expect(sha256Hex('a'.repeat(1_000_000))).toBe('cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0');
  });

  it('equals the platform on any bytes and any text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'binary' }), (bytes, text) => {
        expect(sha256Hex(bytes)).toBe(createHash('sha256').update(bytes).digest('hex'));
        expect(sha256Hex(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'));
      }),
    );
  });
});

describe('reporting (algorithms.md, 14)', () => {
  it('instance seeds are the first 4 bytes of sha256("{seed}_{task}_{i}")', () => {
    expect(instanceSeed(7, 'send_message', 3)).toBe(3728486943);
    fc.assert(
      fc.property(fc.nat(), fc.string(), fc.nat(), (seed, task, i) => {
        const digest = createHash('sha256').update(`${seed}_${task}_${i}`).digest();
        expect(instanceSeed(seed, task, i)).toBe(digest.readUInt32BE(0));
      }),
    );
  });

  it('instance seeds do not depend on which other instances are drawn', () => {
    const all = Array.from({ length: 50 }, (_, i) => instanceSeed(1, 'x', i));
    expect([3, 41, 7].map((i) => instanceSeed(1, 'x', i))).toEqual([all[3], all[41], all[7]]);
    expect(new Set(all).size).toBe(50);
  });

  it('Wilson interval', () => {
    const eight = wilsonInterval(8, 10)!;
    expect(eight.low).toBeCloseTo(0.490162, 6);
    expect(eight.high).toBeCloseTo(0.943318, 6);
    expect(wilsonInterval(0, 10)).toEqual({ low: 0, high: expect.closeTo(0.277533, 6) as number });
    expect(wilsonInterval(10, 10)).toEqual({ low: expect.closeTo(0.722467, 6) as number, high: 1 });
    expect(wilsonInterval(0, 0)).toBeNull();
    fc.assert(
      fc.property(fc.nat({ max: 500 }), fc.integer({ min: 1, max: 500 }), (a, n) => {
        const s = Math.min(a, n);
        const { low, high } = wilsonInterval(s, n)!;
        expect(low >= 0 && low <= s / n && s / n <= high && high <= 1).toBe(true);
        expect(wilsonInterval(n - s, n)!.low).toBeCloseTo(1 - high, 9);
      }),
    );
  });

  it("McNemar's exact test", () => {
    // 2 (C(12,0) + C(12,1) + C(12,2)) / 2^12 = 158/4096.
    expect(mcnemarExact(10, 2)).toBeCloseTo(158 / 4096, 12);
    expect(mcnemarExact(2, 10)).toBe(mcnemarExact(10, 2));
    expect(mcnemarExact(0, 0)).toBe(1);
    expect(mcnemarExact(5, 5)).toBe(1);
    expect(mcnemarExact(0, 6)).toBeCloseTo(2 / 64, 12);
    expect(mcnemarExact(3000, 2900)).toBeCloseTo(0.1974, 4);
  });

  it('pairs by instance and leaves out masked ones', () => {
    const a = [true, true, false, null, true, false];
    const b = [true, false, true, true, null, false];
    expect(comparePaired(a, b)).toEqual({
      pairs: 4,
      both: 1,
      onlyA: 1,
      onlyB: 1,
      neither: 1,
      difference: 0,
      p: 1,
    });
    expect(comparePaired([null], [true])).toMatchObject({ pairs: 0, difference: null, p: 1 });
    expect(() => comparePaired([true], [])).toThrow(/same instances/);
  });

  it('hierarchical bootstrap: seeded, contains the mean, wider than pretending runs are independent', () => {
    // Ten tasks that are each all right or all wrong: thirty runs, but only ten independent things.
    const tasks = Array.from({ length: 10 }, (_, i) => [1, 1, 1].map(() => (i < 5 ? 1 : 0)));
    const clustered = hierarchicalBootstrap(tasks, { seed: 3 })!;
    expect(clustered).toEqual(hierarchicalBootstrap(tasks, { seed: 3 }));
    expect(clustered.mean).toBe(0.5);
    expect(clustered.low).toBeLessThan(0.3);
    expect(clustered.high).toBeGreaterThan(0.7);
    const flat = hierarchicalBootstrap(
      tasks.flat().map((x) => [x]),
      { seed: 3 },
    )!;
    expect(flat.high - flat.low).toBeLessThan(clustered.high - clustered.low);
    expect(hierarchicalBootstrap([[1, 1], [1]], { seed: 1 })).toEqual({ mean: 1, low: 1, high: 1 });
    expect(hierarchicalBootstrap([[], []], { seed: 1 })).toBeNull();
  });
});
