import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { overlongPenalty, teachesNothing } from './dapo.ts';
import { discountedReturns, gigpoAdvantages } from './gigpo.ts';
import { groupAdvantages, type GroupBaseline } from './group-baselines.ts';
import { DEFAULT_REWARDS, attemptScore } from './rewards.ts';

const ones = (n: number): Uint8Array => new Uint8Array(n).fill(1);
const close = (got: readonly number[], wanted: readonly number[], digits: number): void =>
  wanted.forEach((x, i) => expect(got[i]).toBeCloseTo(x, digits));

describe('group baselines (algorithms.md, 8)', () => {
  const table: [number[], Record<GroupBaseline, number[]>][] = [
    [
      [1, 0, 0, 1],
      {
        grpo: [0.866024, -0.866024, -0.866024, 0.866024],
        'dr-grpo': [0.5, -0.5, -0.5, 0.5],
        rloo: [0.666667, -0.666667, -0.666667, 0.666667],
      },
    ],
    [
      [3.625, -0.75, 1.25, 0.5],
      {
        grpo: [1.340974, -1.035436, 0.050923, -0.356461],
        'dr-grpo': [2.46875, -1.90625, 0.09375, -0.65625],
        rloo: [3.291667, -2.541667, 0.125, -0.875],
      },
    ],
  ];
  it.each(table)('of %j', (scores, wanted) => {
    for (const kind of ['grpo', 'dr-grpo', 'rloo'] as const)
      close(groupAdvantages(scores, ones(4), kind), wanted[kind], 6);
  });
  it('leave a masked member out, whatever it holds', () => {
    const mask = Uint8Array.of(1, 1, 1, 0);
    close(groupAdvantages([2, 0.5, -1, NaN], mask, 'grpo'), [1, 0, -1, 0], 5);
    close(groupAdvantages([2, 0.5, -1, Infinity], mask, 'dr-grpo'), [1.5, 0, -1.5, 0], 12);
    close(groupAdvantages([2, 0.5, -1, 7], mask, 'rloo'), [2.25, 0, -2.25, 0], 12);
  });
  it('say nothing of equal scores, of a single valid member, or of none', () => {
    for (const kind of ['grpo', 'dr-grpo', 'rloo'] as const) {
      expect(groupAdvantages([3, 3, 3], ones(3), kind)).toEqual([0, 0, 0]);
      expect(groupAdvantages([3, 1], Uint8Array.of(0, 1), kind)).toEqual([0, 0]);
      expect(groupAdvantages([3, 1], new Uint8Array(2), kind)).toEqual([0, 0]);
    }
    expect(() => groupAdvantages([1], ones(2), 'grpo')).toThrow(/1 scores but 2 mask bits/);
  });
});

describe('DAPO (algorithms.md, 8)', () => {
  const overlong = { max: 512, buffer: 128, factor: 1 };
  it.each([
    [300, 0],
    [384, 0],
    [448, -0.5],
    [512, -1],
    [600, -1],
  ])('a response of %i tokens costs %f', (length, penalty) => {
    expect(overlongPenalty(length, overlong)).toBe(penalty);
    expect(overlongPenalty(length, { ...overlong, factor: 0.5 })).toBe(penalty / 2);
  });
  it('drops groups of equal scores and of a single valid member; masked ones do not matter', () => {
    expect(teachesNothing([2, 2, 2], ones(3))).toBe(true);
    expect(teachesNothing([2, 2, -1], ones(3))).toBe(false);
    expect(teachesNothing([2, NaN, 2, -1], Uint8Array.of(1, 0, 1, 0))).toBe(true);
    expect(teachesNothing([NaN, 2, -1], Uint8Array.of(0, 1, 1))).toBe(false);
    expect(teachesNothing([2, 1], Uint8Array.of(1, 0))).toBe(true);
    expect(teachesNothing([], ones(0))).toBe(true);
  });
  it('compares undiscounted scores: wandering for 30 against finishing for 10 in the cautionary rewards', () => {
    const cautionary = {
      useDense: true,
      dense: { success: 1, fail: 0, overcomplete: 1 },
      terminal: { ...DEFAULT_REWARDS.terminal, success: 10, step_limit: 0 },
    };
    const wandering = { dense: { success: 4, fail: 0, overcomplete: 26 }, outcome: 'step_limit' as const };
    const finishing = { dense: { success: 5, fail: 0, overcomplete: 0 }, outcome: 'success' as const };
    expect([attemptScore(wandering, cautionary), attemptScore(finishing, cautionary)]).toEqual([30, 15]);
    const paper = { ...DEFAULT_REWARDS, useDense: true };
    expect([attemptScore(wandering, paper), attemptScore(finishing, paper)]).toEqual([-48.75, 7]);
    expect(attemptScore(wandering, { ...paper, useDense: false })).toBe(-0.75);
  });
});

describe('GiGPO (algorithms.md, 9)', () => {
  const trajectory = (anchors: string[], rewards: number[]) => ({
    anchors,
    returns: discountedReturns(rewards, 0.95),
    score: rewards.reduce((a, b) => a + b, 0),
  });
  const group = [trajectory(['h0', 'h1', 'h2'], [0, 0, 1]), trajectory(['h0', 'h1', 'h3', 'h1'], [0, 0, 0, 0])];
  it('reproduces its example, mean only and with the standard deviation', () => {
    const mean = gigpoAdvantages(group, ones(2));
    close(mean[0]!, [0.9512, 1.1333, 0.5], 4);
    close(mean[1]!, [-0.9512, -0.8167, -0.5, -0.8167], 4);
    const both = gigpoAdvantages(group, ones(2), { kind: 'grpo' });
    close(both[0]!, [1.4142, 1.8618, 0.7071], 4);
    close(both[1]!, [-1.4142, -1.2845, -0.7071, -1.2845], 4);
  });
  it('does not see masked attempts', () => {
    const lost = { anchors: ['h0', 'h1'], returns: [NaN, NaN], score: NaN };
    const [a, b, none] = gigpoAdvantages([...group, lost], Uint8Array.of(1, 1, 0));
    expect([a, b]).toEqual(gigpoAdvantages(group, ones(2)));
    expect(none).toEqual([0, 0]);
  });
  it('with steps alone sums to 0 over each state', () => {
    const attempt = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: -4, max: 4 })), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(fc.array(attempt, { minLength: 1, maxLength: 5 }), (attempts) => {
        const given = attempts.map((steps) => ({
          anchors: steps.map(([anchor]) => anchor),
          returns: steps.map(([, ret]) => ret),
          score: 0,
        }));
        const advantages = gigpoAdvantages(given, ones(given.length), { episodeWeight: 0 });
        for (const anchor of ['a', 'b', 'c']) {
          const sum = given.reduce(
            (s, { anchors }, i) => s + anchors.reduce((r, x, t) => r + (x === anchor ? advantages[i]![t]! : 0), 0),
            0,
          );
          expect(sum).toBeCloseTo(0, 9);
        }
      }),
    );
  });
  it('refuses lists that do not belong together', () => {
    expect(() => gigpoAdvantages([{ anchors: ['a'], returns: [], score: 0 }], ones(1))).toThrow(/1 anchors, 0 returns/);
  });
});
