import { TapwrightError } from '../domain/errors.ts';

export interface GaeInput {
  /** Reward of each planner step, (T). */
  rewards: readonly number[];
  /** Value of each planner step, (T). */
  values: readonly number[];
  gamma: number;
  lambda: number;
  /** V[T]: 0 for a true end (the step limit is one); only an external stop bootstraps. */
  bootstrap?: number;
}

/**
 * Generalised advantage estimation over planner steps (algorithms.md, 4): delta[t] = r[t] + gamma V[t+1] - V[t];
 * A[t] = delta[t] + gamma lambda A[t+1]; target = A + V. Throws `invalid_input` when the lengths differ.
 */
export function gae(input: GaeInput): { advantages: number[]; targets: number[] } {
  const { rewards, values, gamma, lambda, bootstrap = 0 } = input;
  if (rewards.length !== values.length) {
    throw new TapwrightError(
      'invalid_input',
      `gae: ${rewards.length} rewards but ${values.length} values; give one value per planner step`,
    );
  }
  const advantages = new Array<number>(rewards.length).fill(0);
  let advantage = 0;
  let nextValue = bootstrap;
  for (let t = rewards.length - 1; t >= 0; t--) {
    const value = values[t]!;
    advantage = rewards[t]! + gamma * nextValue - value + gamma * lambda * advantage;
    advantages[t] = advantage;
    nextValue = value;
  }
  return { advantages, targets: advantages.map((a, t) => a + values[t]!) };
}
