import { TapwrightError } from '../domain/errors.ts';
import { groupAdvantages } from './group-baselines.ts';
import type { GroupBaseline } from './group-baselines.ts';

/** One attempt at a task, as GiGPO compares it with its siblings. */
export interface GigpoTrajectory {
  /** Anchor of each step's state, (T): the screen hash. Equal anchors are one state. */
  anchors: readonly string[];
  /** Return of each step, (T). */
  returns: readonly number[];
  /** Score of the whole attempt. */
  score: number;
}

export interface GigpoOptions {
  /** Weight of the comparison of whole attempts. */
  episodeWeight?: number;
  /** Weight of the comparison of steps from one state: omega. */
  stepWeight?: number;
  kind?: GroupBaseline;
}

/** R[t] = r[t] + gamma R[t+1] inside one trajectory (algorithms.md, 9). */
export function discountedReturns(rewards: readonly number[], gamma: number): number[] {
  const out = new Array<number>(rewards.length);
  let next = 0;
  for (let t = rewards.length - 1; t >= 0; t--) out[t] = next = rewards[t]! + gamma * next;
  return out;
}

/**
 * GiGPO's advantages for the attempts at one task draw (algorithms.md, 9): the episode's score against its siblings',
 * plus each step's return against those of all steps that start from the same state; a state seen once gives 0. Masked
 * attempts get zeros and do not matter. Throws `invalid_input` when lengths differ.
 *
 * @returns by trajectory and step
 */
export function gigpoAdvantages(
  group: readonly GigpoTrajectory[],
  mask: Uint8Array,
  { episodeWeight = 1, stepWeight = 1, kind = 'dr-grpo' }: GigpoOptions = {},
): number[][] {
  const episode = groupAdvantages(
    group.map(({ score }) => score),
    mask,
    kind,
  );
  const states = new Map<string, { at: [number, number][]; returns: number[] }>();
  group.forEach(({ anchors, returns }, i) => {
    if (anchors.length !== returns.length)
      throw new TapwrightError(
        'invalid_input',
        `trajectory ${i}: ${anchors.length} anchors, ${returns.length} returns`,
      );
    if (mask[i] === 0) return;
    anchors.forEach((anchor, t) => {
      const state = states.get(anchor) ?? { at: [], returns: [] };
      states.set(anchor, state);
      state.at.push([i, t]);
      state.returns.push(returns[t]!);
    });
  });
  const out = group.map(({ returns }, i) => returns.map(() => (mask[i] === 0 ? 0 : episodeWeight * episode[i]!)));
  for (const { at, returns } of states.values()) {
    const step = groupAdvantages(returns, new Uint8Array(returns.length).fill(1), kind);
    at.forEach(([i, t], n) => (out[i]![t]! += stepWeight * step[n]!));
  }
  return out;
}
