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
