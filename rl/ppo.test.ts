import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  aggregateTokenLoss,
  assertFirstEpochRatio,
  ppoStatistics,
  ppoTokenLoss,
  tokenRatio,
  tokenWeights,
} from './ppo.ts';

const table = [
  { old: 0.5, now: 0.65, a: 1, plain: -1.2, dual: -1.2, high: -1.28 },
  { old: 0.2, now: 0.1, a: 1, plain: -0.5, dual: -0.5, high: -0.5 },
  { old: 0.4, now: 0.44, a: -1, plain: 1.1, dual: 1.1, high: 1.1 },
  { old: 0.1, now: 0.35, a: -0.5, plain: 1.75, dual: 1.5, high: 1.75 },
  { old: 0.3, now: 0.3, a: 2, plain: -2, dual: -2, high: -2 },
];
const clip = { clipLow: 0.2, clipHigh: 0.2 };
const token = (row: (typeof table)[number]) => ({
  logpNew: Math.log(row.now),
  logpOld: Math.log(row.old),
  advantage: row.a,
});

describe('PPO policy loss (algorithms.md, 6)', () => {
  it.each(table)('p $old -> $now, A $a', (row) => {
    expect(ppoTokenLoss({ ...token(row), ...clip })).toBeCloseTo(row.plain, 12);
    expect(ppoTokenLoss({ ...token(row), ...clip, dualClip: 3 })).toBeCloseTo(row.dual, 12);
    expect(ppoTokenLoss({ ...token(row), clipLow: 0.2, clipHigh: 0.28 })).toBeCloseTo(row.high, 12);
    expect(ppoTokenLoss({ ...token(row), ...clip, dualClip: null })).toBeCloseTo(row.plain, 12);
  });

  it('means, clip fraction and drift of the table', () => {
    const batch = {
      logpNew: table.map((row) => [Math.log(row.now)]),
      logpOld: table.map((row) => [Math.log(row.old)]),
      advantages: table.map((row) => row.a),
      mask: [1, 1, 1, 1, 1],
    };
    const plain = ppoStatistics({ ...batch, ...clip })!;
    expect(plain.loss).toBeCloseTo(-0.17, 12);
    expect(plain.clipFraction).toBeCloseTo(0.2, 12);
    expect(plain.drift).toBeCloseTo(0.296542, 6);
    expect(plain.tokens).toBe(5);
    expect(ppoStatistics({ ...batch, ...clip, dualClip: 3 })!.loss).toBeCloseTo(-0.22, 12);
    expect(ppoStatistics({ ...batch, clipLow: 0.2, clipHigh: 0.28 })!.loss).toBeCloseTo(-0.186, 12);
    const masked = ppoStatistics({
      logpNew: [...batch.logpNew, [NaN, NaN]],
      logpOld: [...batch.logpOld, [NaN, NaN]],
      advantages: [...batch.advantages, NaN],
      mask: [...batch.mask, 0],
      ...clip,
    });
    expect(masked).toEqual(plain);
    expect(ppoStatistics({ ...batch, mask: [0, 0, 0, 0, 0], ...clip })).toBeNull();
  });

  it('clamps the log ratio to +-20', () => {
    expect(tokenRatio(100, 0)).toBe(Math.exp(20));
    expect(tokenRatio(-1000, 0)).toBe(Math.exp(-20));
  });

  it('is a pessimistic bound: never below the unclipped loss', () => {
    const logp = fc.double({ min: -8, max: 0, noNaN: true });
    fc.assert(
      fc.property(logp, logp, fc.double({ min: -3, max: 3, noNaN: true }), (logpNew, logpOld, advantage) => {
        const loss = ppoTokenLoss({ logpNew, logpOld, advantage, ...clip });
        expect(loss).toBeGreaterThanOrEqual(-tokenRatio(logpNew, logpOld) * advantage);
        const dual = ppoTokenLoss({ logpNew, logpOld, advantage, ...clip, dualClip: 3 });
        expect(dual).toBeLessThanOrEqual(loss);
        if (advantage < 0) expect(dual).toBeLessThanOrEqual(-3 * advantage);
      }),
    );
  });
});

describe('aggregation over tokens (algorithms.md, 6)', () => {
  const losses = [new Float64Array(100).fill(0.5), new Float64Array(900).fill(0.3)];

  it('micro-batch trap: 100 tokens at 0.5 and 900 at 0.3 is 0.32, not 0.40', () => {
    expect(aggregateTokenLoss(losses, [1, 1])).toBeCloseTo(0.32, 12);
    // The trap: each micro-batch averaged by itself.
    const trap = losses.map((row) => aggregateTokenLoss([row], [1])).reduce((a, b) => a + b, 0) / 2;
    expect(trap).toBeCloseTo(0.4, 12);
  });

  it('three kinds', () => {
    const rows = [[1, 2, 3], [4]];
    expect(aggregateTokenLoss(rows, [1, 1], 'token-mean')).toBeCloseTo(2.5, 12);
    expect(aggregateTokenLoss(rows, [1, 1], 'seq-mean-token-sum')).toBeCloseTo(5, 12);
    expect(aggregateTokenLoss(rows, [1, 1], 'seq-mean-token-mean')).toBeCloseTo(3, 12);
    expect(aggregateTokenLoss(rows, [0, 0])).toBe(0);
    expect(aggregateTokenLoss([...rows, []], [1, 1, 1], 'seq-mean-token-mean')).toBeCloseTo(3, 12);
  });

  it('the sum of weight x loss is the same for any split, and masked rows never matter', () => {
    const row = fc.record({ losses: fc.array(fc.double({ min: -2, max: 2, noNaN: true })), on: fc.boolean() });
    const kind = fc.constantFrom('token-mean', 'seq-mean-token-sum', 'seq-mean-token-mean' as const);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 12 }), kind, fc.nat({ max: 12 }), (rows, k, at) => {
        const mask = rows.map((r) => (r.on ? 1 : 0));
        const values = rows.map((r) => (r.on ? r.losses : r.losses.map(() => NaN)));
        const whole = aggregateTokenLoss(values, mask, k);
        const weights = tokenWeights(
          values.map((v) => v.length),
          mask,
          k,
        );
        const part = (from: number, to: number): number => {
          let sum = 0;
          for (let i = from; i < to; i++) if (mask[i]) for (const x of values[i]!) sum += weights[i]! * x;
          return sum;
        };
        const cut = Math.min(at, rows.length);
        expect(part(0, cut) + part(cut, rows.length)).toBeCloseTo(whole, 9);
        const kept = rows.filter((r) => r.on).map((r) => r.losses);
        expect(
          aggregateTokenLoss(
            kept,
            kept.map(() => 1),
            k,
          ),
        ).toBe(whole);
      }),
    );
  });
});

describe('first epoch', () => {
  it('accepts a ratio of 1 and stops the run on anything else', () => {
    assertFirstEpochRatio(1 + 9e-6, 1e-5);
    expect(() => assertFirstEpochRatio(1.01, 1e-3)).toThrow(/mean probability ratio/);
    expect(() => assertFirstEpochRatio(NaN, 1e-3)).toThrow(/NaN/);
  });
});
