import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DenseVerdict, Outcome } from '../domain/episode.ts';
import { explainedVariance, valueLoss } from './critic.ts';
import { gae } from './gae.ts';
import { attemptMask, maskedMean, needsTopUp, where, zeroMasked } from './masking.ts';
import { twoChannelReturns } from './returns.ts';
import { DEFAULT_REWARDS, rewardOfOutcome, rewardOfVerdict } from './rewards.ts';
import { learningRateAt } from './schedule.ts';
import { whiten } from './whiten.ts';

const close = (actual: ArrayLike<number>, expected: number[], digits = 6): void => {
  expect(actual.length).toBe(expected.length);
  expected.forEach((x, i) => expect(actual[i]).toBeCloseTo(x, digits));
};

describe('rewards (algorithms.md, 1)', () => {
  it('dense and terminal numbers', () => {
    const dense = (['success', 'fail', 'overcomplete'] as const).map((v) => rewardOfVerdict(v));
    expect(dense).toEqual([1, 0, -2]);
    const outcomes: Outcome[] = [
      'success',
      'blocked_complete',
      'failure',
      'step_limit',
      'false_completion',
      'unparseable',
    ];
    expect(outcomes.map((o) => rewardOfOutcome(o))).toEqual([2, 0.5, 0, -0.75, -1, -1]);
  });

  it('come from the given table', () => {
    const table = { ...DEFAULT_REWARDS, dense: { success: 0.5, fail: -0.1, overcomplete: -1 } };
    expect(rewardOfVerdict('fail', table)).toBe(-0.1);
    expect(rewardOfOutcome('success', table)).toBe(2);
  });
});

describe('masking (algorithms.md, 2)', () => {
  it('replaces before it multiplies: NaN does not survive', () => {
    expect(where(0, NaN) * 3).toBe(0);
    expect(where(1, 4)).toBe(4);
    expect([...zeroMasked([NaN, 2, Infinity], [0, 1, 0])]).toEqual([0, 2, 0]);
    expect(maskedMean([NaN, 2, 4], [0, 1, 1])).toBe(3);
    expect(maskedMean([NaN], [0])).toBeNull();
  });

  it('a missing dense verdict masks the whole attempt, a step limit does not', () => {
    expect(attemptMask({ lost: false, dense: [1, 1, 0] })).toBe(1);
    expect(attemptMask({ lost: false, dense: [1, null, 0] })).toBe(0);
    expect(attemptMask({ lost: true, dense: [] })).toBe(0);
  });

  it('tops up below the valid fraction, at most maxTopUps times', () => {
    expect(needsTopUp([1, 0, 0, 0], 0)).toBe(true);
    expect(needsTopUp([1, 0, 0, 0], 1)).toBe(false);
    expect(needsTopUp([1, 1, 0, 0], 0)).toBe(false);
    expect(needsTopUp([0, 0], 0, { maxTopUps: 0 })).toBe(false);
  });
});

describe('two-channel return (algorithms.md, 3)', () => {
  const A = [1, 1, 0, 1];
  const cases = [
    { name: 'A success', d: A, z: 2, D: [1.625, 1.25, 0.5, 1], R: [3.625, 3.25, 2.5, 3] },
    { name: 'B overrun', d: [1, 1, -2, -2], z: -0.75, D: [0.75, -0.5, -3, -2], R: [0, -1.25, -3.75, -2.75] },
    { name: 'C false completion', d: [1, 0, 0], z: -1, D: [1, 0, 0], R: [0, -1, -1] },
    { name: 'D blocked', d: [1, 1], z: 0.5, D: [1.5, 1], R: [2, 1.5] },
  ];
  it.each(cases)('$name', ({ d, z, D, R }) => {
    expect(twoChannelReturns(d, z)).toEqual({ dense: D, total: R });
  });

  it('is neither Z folded into the discounted stream nor undiscounted', () => {
    const { total } = twoChannelReturns(A, 2);
    const folded = twoChannelReturns([1, 1, 0, 3], 0).total;
    expect(folded).toEqual([1.875, 1.75, 1.5, 3]);
    expect(total).not.toEqual(folded);
    const undiscounted = twoChannelReturns(A, 2, 1).total.map((x) => x);
    expect(undiscounted).toEqual([5, 4, 3, 3]);
    expect(total).not.toEqual(undiscounted);
  });

  it('lies in (-5, 4) for the default rewards', () => {
    const verdict = fc.constantFrom<DenseVerdict>('success', 'fail', 'overcomplete');
    const outcome = fc.constantFrom(...(Object.keys(DEFAULT_REWARDS.terminal) as Outcome[]));
    fc.assert(
      fc.property(fc.array(verdict, { minLength: 1, maxLength: 30 }), outcome, (verdicts, o) => {
        const { total } = twoChannelReturns(
          verdicts.map((v) => rewardOfVerdict(v)),
          rewardOfOutcome(o),
        );
        for (const r of total) expect(r > -5 && r < 4).toBe(true);
      }),
    );
  });

  it('stalling gains less than 1, whatever its length', () => {
    for (let k = 0; k <= 30; k++) {
      const first = twoChannelReturns(new Array<number>(k + 1).fill(1), 2).total[0]!;
      expect(first).toBeCloseTo(4 - 2 ** -k, 12);
      expect(first - 3).toBeLessThan(1);
    }
  });

  it('an empty attempt has no returns', () => {
    expect(twoChannelReturns([], 2)).toEqual({ dense: [], total: [] });
  });
});

describe('generalised advantage estimation (algorithms.md, 4)', () => {
  const dense = { rewards: [1, 1, 0, 1], values: [1.4, 1.1, 0.8, 0.6], gamma: 0.5 };
  const terminal = { rewards: [0, 0, 0, 2], values: [1.5, 1.6, 1.8, 1.8], gamma: 1 };

  it('example A with lambda 1 and 0.95', () => {
    const d = gae({ ...dense, lambda: 1 });
    const z = gae({ ...terminal, lambda: 1 });
    close(d.advantages, [0.225, 0.15, -0.3, 0.4], 12);
    close(z.advantages, [0.5, 0.4, 0.2, 0.2], 12);
    const sum = d.advantages.map((x, t) => x + z.advantages[t]!);
    close(sum, [0.725, 0.55, -0.1, 0.6], 12);
    close(gae({ ...dense, lambda: 0.95 }).advantages, [0.222556, 0.15275, -0.31, 0.4]);
    close(
      d.targets.map((x, t) => x + z.targets[t]!),
      twoChannelReturns([1, 1, 0, 1], 2).total,
      12,
    );
  });

  it('a true end has V[T] = 0, an external stop bootstraps', () => {
    const stop = { rewards: [1, 1], values: [1.2, 0.9], gamma: 0.5, lambda: 1 };
    close(gae(stop).advantages, [0.3, 0.1], 12);
    close(gae({ ...stop, bootstrap: 0.8 }).advantages, [0.5, 0.5], 12);
  });

  it('with lambda 1 the two channels are R - V', () => {
    const number = fc.double({ min: -3, max: 3, noNaN: true });
    const step = fc.record({ d: number, vd: number, vz: number });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), number, (steps, z) => {
        const d = steps.map((s) => s.d);
        const a = gae({ rewards: d, values: steps.map((s) => s.vd), gamma: 0.5, lambda: 1 }).advantages;
        const last = steps.map((_, t) => (t === steps.length - 1 ? z : 0));
        const b = gae({ rewards: last, values: steps.map((s) => s.vz), gamma: 1, lambda: 1 }).advantages;
        const { total } = twoChannelReturns(d, z);
        steps.forEach((s, t) => expect(a[t]! + b[t]!).toBeCloseTo(total[t]! - s.vd - s.vz, 9));
      }),
    );
  });

  it('refuses lengths that differ', () => {
    expect(() => gae({ rewards: [1], values: [], gamma: 1, lambda: 1 })).toThrow(/one value per planner step/);
  });
});

describe('whitening (algorithms.md, 5)', () => {
  const ones = (n: number): Uint8Array => new Uint8Array(n).fill(1);

  it('example', () => {
    const rows = Float64Array.of(0.725, 0.55, -0.1, 0.6, -1.2, -0.9, -1.5);
    const expected = [1.056562, 0.868984, 0.172265, 0.922577, -1.006796, -0.685234, -1.328358];
    close(whiten(rows, ones(7)), expected);
    // The population deviation, a variant to reject, would give 1.141223 first.
    expect(whiten(rows, ones(7))[0]).not.toBeCloseTo(1.141223, 3);
  });

  it('counts rows, not tokens: +1 on 10 tokens and -1 on 90 is +-0.7071', () => {
    close(whiten(Float64Array.of(1, -1), ones(2)), [0.7071, -0.7071], 4);
  });

  it('no row, one row, no spread: 0', () => {
    expect([...whiten(Float64Array.of(NaN, NaN), new Uint8Array(2))]).toEqual([0, 0]);
    expect([...whiten(Float64Array.of(3, NaN), Uint8Array.of(1, 0))]).toEqual([0, 0]);
    expect([...whiten(Float64Array.of(0.1, 0.1, 0.1), ones(3))]).toEqual([0, 0, 0]);
  });

  it('has mean 0 and standard deviation 1, and masked entries never matter', () => {
    const row = fc.record({ a: fc.double({ min: -5, max: 5, noNaN: true }), on: fc.boolean() });
    const junk = fc.constantFrom(NaN, Infinity, -1e300, 7);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 60 }), junk, (list, j) => {
        const mask = Uint8Array.from(list, (r) => (r.on ? 1 : 0));
        const out = whiten(
          Float64Array.from(list, (r) => (r.on ? r.a : j)),
          mask,
        );
        const kept = list.filter((r) => r.on).map((r) => r.a);
        const alone = whiten(Float64Array.from(kept), ones(kept.length));
        expect([...out].filter((_, i) => mask[i] === 1)).toEqual([...alone]);
        list.forEach((r, i) => r.on || expect(out[i]).toBe(0));
        if (kept.length < 2 || Math.max(...kept) - Math.min(...kept) < 1e-2) return;
        const mean = alone.reduce((a, b) => a + b, 0) / alone.length;
        const variance = alone.reduce((a, b) => a + (b - mean) ** 2, 0) / (alone.length - 1);
        expect(mean).toBeCloseTo(0, 9);
        expect(Math.sqrt(variance)).toBeCloseTo(1, 4);
      }),
    );
  });
});

describe('critic (algorithms.md, 7)', () => {
  it('value loss is half the mean square over unmasked rows', () => {
    expect(valueLoss({ values: [1, NaN, 3], returns: [2, NaN, 1], mask: [1, 0, 1] })).toBeCloseTo(1.25, 12);
    expect(valueLoss({ values: [NaN], returns: [NaN], mask: [0] })).toBeNull();
  });

  it('clipped value loss', () => {
    const values = [1.5, 1.1, 0.4, 1.5];
    const returns = [2, 2, 2, 1];
    const loss = valueLoss({ values, returns, mask: [1, 1, 1, 1], clip: 0.2, oldValues: [1, 1, 1, 1] });
    expect(loss).toBeCloseTo(0.5325, 12);
    const padded = valueLoss({
      values: [...values, NaN],
      returns: [...returns, NaN],
      mask: [1, 1, 1, 1, 0],
      clip: 0.2,
      oldValues: [1, 1, 1, 1, NaN],
    });
    expect(padded).toBe(loss);
  });

  it('explained variance: 1 perfect, 0 for a constant, null when the returns do not vary', () => {
    const on = [1, 1, 1, 0];
    expect(explainedVariance([1, 2, 4, NaN], [1, 2, 4, NaN], on)).toBe(1);
    expect(explainedVariance([5, 5, 5, NaN], [1, 2, 4, NaN], on)).toBeCloseTo(0, 12);
    expect(explainedVariance([1, 2, 3, 0], [2, 2, 2, 9], on)).toBeNull();
    expect(explainedVariance([NaN], [NaN], [0])).toBeNull();
    // A constant offset of the critic is not counted against it.
    expect(explainedVariance([2, 3, 5, 0], [1, 2, 4, 0], on)).toBe(1);
  });
});

describe('learning-rate schedule', () => {
  const schedule = { learningRate: 4e-4, warmup: 5, updates: 336, end: 0.1 };
  it('warms up linearly, peaks, decays to the fraction at the last update', () => {
    expect(learningRateAt(0, schedule)).toBeCloseTo(8e-5, 12);
    expect(learningRateAt(4, schedule)).toBeCloseTo(4e-4, 12);
    expect(learningRateAt(335, schedule)).toBeCloseTo(4e-5, 12);
    expect(learningRateAt(400, schedule)).toBeCloseTo(4e-5, 12);
    for (let k = 5; k < 336; k++) expect(learningRateAt(k, schedule)).toBeLessThan(learningRateAt(k - 1, schedule));
  });
  it('works without warm-up and with a single update', () => {
    expect(learningRateAt(0, { ...schedule, warmup: 0 })).toBe(4e-4);
    expect(learningRateAt(0, { ...schedule, warmup: 0, updates: 1 })).toBe(4e-4);
  });
});
