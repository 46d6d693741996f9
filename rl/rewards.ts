import type { DenseVerdict, Outcome } from '../domain/episode.ts';

/** Rewards of steps and attempts (algorithms.md, 1). The `rewards` section of a run's config fits this shape. */
export interface RewardTable {
  dense: Record<DenseVerdict, number>;
  terminal: Record<Outcome, number>;
}

/** The published numbers; `unparseable` is our choice, charged at the terminal scale. */
export const DEFAULT_REWARDS: RewardTable = {
  dense: { success: 1, fail: 0, overcomplete: -2 },
  terminal: {
    success: 2,
    blocked_complete: 0.5,
    failure: 0,
    step_limit: -0.75,
    false_completion: -1,
    unparseable: -1,
  },
};

/** Dense reward of one step. */
export function rewardOfVerdict(verdict: DenseVerdict, rewards: RewardTable = DEFAULT_REWARDS): number {
  return rewards.dense[verdict];
}

/** Terminal reward of one attempt. */
export function rewardOfOutcome(outcome: Outcome, rewards: RewardTable = DEFAULT_REWARDS): number {
  return rewards.terminal[outcome];
}

/**
 * Score of a whole attempt, undiscounted: its dense rewards, unless they are not used, and its terminal one. From counts, so
 * that a batch can be looked at without its records. What group estimators compare (algorithms.md, 8 and 9).
 */
export function attemptScore(
  attempt: { dense: Record<DenseVerdict, number>; outcome: Outcome },
  rewards: RewardTable & { useDense: boolean },
): number {
  const { dense, outcome } = attempt;
  const earned = (verdict: DenseVerdict): number => dense[verdict] * rewards.dense[verdict];
  return (
    rewardOfOutcome(outcome, rewards) +
    (rewards.useDense ? earned('success') + earned('fail') + earned('overcomplete') : 0)
  );
}
