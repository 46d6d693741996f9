import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assembleBatch, type BatchTrajectory } from './batch.ts';

const A: BatchTrajectory = {
  key: 'u0001/t00/a0',
  mask: 1,
  dense: [1, 1, 0, 1],
  terminal: 2,
  values: { dense: [1.4, 1.1, 0.8, 0.6], terminal: [1.5, 1.6, 1.8, 1.8] },
};
const C: BatchTrajectory = { key: 'u0001/t00/a1', mask: 1, dense: [1, 0, 0], terminal: -1, values: [1.2, -0.1, 0.5] };
const lost: BatchTrajectory = { key: 'u0001/t00/a2', mask: 0, dense: [NaN, 1], terminal: NaN, values: [NaN, NaN] };

describe('batch assembly (algorithms.md, 2 to 5)', () => {
  it('the worked example: returns, A = R - V, whitened over rows', () => {
    const { rows, skip, statistics } = assembleBatch([C, A]);
    expect(skip).toBe(false);
    expect(rows.map((row) => `${row.key} ${row.step}`)).toEqual([
      ...[0, 1, 2, 3].map((t) => `u0001/t00/a0 ${t}`),
      ...[0, 1, 2].map((t) => `u0001/t00/a1 ${t}`),
    ]);
    expect(rows.map((row) => row.ret)).toEqual([3.625, 3.25, 2.5, 3, 0, -1, -1]);
    const raw = [0.725, 0.55, -0.1, 0.6, -1.2, -0.9, -1.5];
    const white = [1.056562, 0.868984, 0.172265, 0.922577, -1.006796, -0.685234, -1.328358];
    rows.forEach((row, i) => {
      expect(row.rawAdvantage).toBeCloseTo(raw[i]!, 12);
      expect(row.advantage).toBeCloseTo(white[i]!, 6);
    });
    expect(statistics['advantage/mean']).toBeCloseTo(-0.260714, 6);
    expect(statistics['advantage/std']).toBeCloseTo(0.932945, 6);
    expect(statistics['reward/dense_mean']).toBeCloseTo(4 / 7, 12);
    expect(statistics['reward/terminal_mean']).toBe(0.5);
    expect(statistics['batch/rows']).toBe(7);
    expect(statistics['batch/steps_mean']).toBe(3.5);
  });

  it('a masked trajectory full of NaN changes nothing but the counts', () => {
    const clean = assembleBatch([A, C]);
    const withLost = assembleBatch([lost, A, C]);
    expect(withLost.rows.slice(0, 7)).toEqual(clean.rows);
    expect(withLost.rows.slice(7)).toEqual(
      [0, 1].map((step) => ({ key: lost.key, step, mask: 0, ret: 0, value: 0, rawAdvantage: 0, advantage: 0 })),
    );
    const counts = { 'batch/trajectories': 3, 'batch/masked': 1, 'batch/rows_masked': 2 };
    expect(withLost.statistics).toEqual({ ...clean.statistics, ...counts });
  });

  it('a missing dense verdict masks its whole trajectory', () => {
    const { rows, statistics } = assembleBatch([A, { ...C, dense: [1, null, 0] }]);
    expect(rows.filter((row) => row.mask === 1).length).toBe(4);
    expect(statistics['batch/masked']).toBe(1);
  });

  it('all rows masked: skip, and every mean is null', () => {
    for (const batch of [assembleBatch([lost]), assembleBatch([])]) {
      expect(batch.skip).toBe(true);
      expect(batch.statistics['reward/dense_mean']).toBeNull();
      expect(batch.statistics['advantage/std']).toBeNull();
      expect(batch.statistics['critic/explained_variance']).toBeNull();
    }
  });

  it('lambda 0.95 runs the estimator in each channel', () => {
    const { rows } = assembleBatch([A], { lambda: 0.95 });
    const dense = [0.222556, 0.15275, -0.31, 0.4];
    // Terminal channel, gamma 1: delta = 0.1, 0.2, 0, 0.2.
    const terminal = [0.461475, 0.3805, 0.19, 0.2];
    rows.forEach((row, t) => expect(row.rawAdvantage).toBeCloseTo(dense[t]! + terminal[t]!, 6));
  });

  it('one critic for the total return: the same stream, continuous at lambda 1', () => {
    const near = assembleBatch([C], { lambda: 1 - 1e-12 }).rows;
    const exact = assembleBatch([C]).rows;
    near.forEach((row, t) => expect(row.rawAdvantage).toBeCloseTo(exact[t]!.rawAdvantage, 9));
    // A critic that is exactly right leaves no advantage, whatever lambda.
    const right = { ...C, values: [0, -1, -1] };
    for (const lambda of [0, 0.5, 0.95, 1]) {
      for (const row of assembleBatch([right], { lambda }).rows) expect(row.rawAdvantage).toBeCloseTo(0, 12);
    }
  });

  it('terminal only: the dense rewards are reported but do not enter', () => {
    const { rows, statistics } = assembleBatch([{ ...A, values: null }], { useDense: false });
    expect(rows.map((row) => row.ret)).toEqual([2, 2, 2, 2]);
    expect(statistics['reward/dense_mean']).toBe(0.75);
  });

  it('refuses what would poison a batch', () => {
    expect(() => assembleBatch([A, A])).toThrow(/the key occurs twice/);
    expect(() => assembleBatch([{ ...C, values: [1] }])).toThrow(/3 steps but 1 values/);
    expect(() => assembleBatch([{ ...C, terminal: NaN }])).toThrow(/u0001\/t00\/a1: step 0 has return NaN/);
  });

  it('does not depend on the order of the input, to the bit', () => {
    const number = fc.double({ min: -2, max: 2, noNaN: true });
    const step = fc.record({ d: number, v: number });
    const one = fc.record({ steps: fc.array(step, { minLength: 1, maxLength: 6 }), z: number, on: fc.boolean() });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), fc.infiniteStream(fc.nat()), (list, stream) => {
        const input = list.map(({ steps, z, on }, i): BatchTrajectory => ({
          key: `t${i}`,
          mask: on ? 1 : 0,
          dense: steps.map((s) => (on ? s.d : NaN)),
          terminal: on ? z : NaN,
          values: steps.map((s) => (on ? s.v : NaN)),
        }));
        const order = input.map((item) => ({ item, at: stream.next().value }));
        const shuffled = order.sort((a, b) => a.at - b.at).map((x) => x.item);
        expect(assembleBatch(shuffled)).toEqual(assembleBatch(input));
      }),
    );
  });
});
