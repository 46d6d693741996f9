import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { Episode, PlannerSample } from '../domain/index.ts';
import { assembleBatch } from '../rl/batch.ts';
import type { Batch } from '../rl/batch.ts';
import { nearestSiblings, neighbourScalars } from '../rl/neighbours.ts';
import { twoChannelReturns } from '../rl/returns.ts';
import { rewardOfOutcome, rewardOfVerdict } from '../rl/rewards.ts';

/** The rows of a batch as the critic sees them, (rows, width), row-major. */
export interface Features {
  data: Float32Array;
  rows: number;
  width: number;
}

/** Finished attempts as training rows: one planner step each, in key order. */
export interface TrainingRows {
  samples: PlannerSample[];
  features: Features;
  /** Mean distance to the nearest sibling state in bits; null for plain PPO. */
  neighbourDistance: number | null;
  /** Returns, advantages and statistics, given the critic's values of the rows; null values: V = 0. */
  batch(values: Float32Array | null): Batch;
}

/** Width of the critic's input for a hidden state of `hidden` numbers. */
export function featureWidth(estimator: RunConfig['learn']['estimator'], hidden: number): number {
  return estimator === 'gigppo' ? 2 * hidden + 3 : hidden;
}

/**
 * Builds the rows of finished attempts. Sorted by episode id, so that whatever finished first does not matter. The critic's
 * input is the planner's hidden state before the response, for GiGPPO joined by the nearest sibling's: its hidden state,
 * return, distance, and whether there is one (algorithms.md, 7 and 10). Throws `engine_refused` without hidden states.
 */
export function trainingRows(episodes: readonly Episode[], config: RunConfig): TrainingRows {
  const ordered = episodes.filter((e) => e.steps.length > 0).sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const { rewards, learn } = config;
  const trajectories = ordered.map((episode) => ({
    key: episode.id,
    mask: 1 as const,
    dense: episode.steps.map((step) => rewardOfVerdict(step.dense, rewards)),
    terminal: rewardOfOutcome(episode.outcome, rewards),
  }));
  const samples = ordered.flatMap((episode) => episode.steps.map((step) => step.sample));
  const hidden = samples.map(hiddenState);
  const size = hidden[0]?.length ?? 0;
  const width = featureWidth(learn.estimator, size);
  const data = new Float32Array(hidden.length * width);
  hidden.forEach((state, row) => data.set(state, row * width));

  let neighbourDistance: number | null = null;
  if (learn.estimator === 'gigppo') {
    const starts: number[] = [];
    let row = 0;
    for (const episode of ordered) {
      starts.push(row);
      row += episode.steps.length;
    }
    const distances: number[] = [];
    for (const members of groups(ordered)) {
      const states = members.map((i) => {
        const { dense, terminal } = trajectories[i]!;
        const used = rewards.useDense ? dense : dense.map(() => 0);
        const returns = twoChannelReturns(used, terminal, rewards.gammaDense).total;
        return ordered[i]!.steps.map((step, t) => ({ hash: BigInt(`0x${step.before.hash}`), ret: returns[t]! }));
      });
      const nearest = nearestSiblings(states, new Uint8Array(members.length).fill(1));
      nearest.forEach((trajectory, m) => {
        trajectory.forEach((neighbour, t) => {
          const at = (starts[members[m]!]! + t) * width + size;
          if (neighbour !== null) {
            data.set(hidden[starts[members[neighbour.trajectory]!]! + neighbour.step]!, at);
            distances.push(neighbour.distance);
          }
          data.set(neighbourScalars(states, neighbour), at + size);
        });
      });
    }
    neighbourDistance = distances.length === 0 ? null : distances.reduce((a, b) => a + b, 0) / distances.length;
  }

  return {
    samples,
    features: { data, rows: samples.length, width },
    neighbourDistance,
    batch: (values) => {
      let row = 0;
      const valued = trajectories.map((trajectory) => {
        const own = values === null ? null : Array.from(values.subarray(row, row + trajectory.dense.length));
        row += trajectory.dense.length;
        return { ...trajectory, values: own };
      });
      return assembleBatch(valued, {
        gammaDense: rewards.gammaDense,
        lambda: learn.lambda,
        useDense: rewards.useDense,
      });
    },
  };
}

/** Places of the attempts of each task draw, in order. */
function groups(ordered: readonly Episode[]): number[][] {
  const byDraw = new Map<number, number[]>();
  ordered.forEach((episode, i) => {
    const members = byDraw.get(episode.key.draw) ?? [];
    members.push(i);
    byDraw.set(episode.key.draw, members);
  });
  return [...byDraw.values()];
}

/** A hidden state from its base64 form, float32 little-endian. */
function hiddenState(sample: PlannerSample): Float32Array {
  if (sample.hidden === null) {
    throw new TapwrightError(
      'engine_refused',
      'the engine gives no hidden states, which the critic reads: use the embedded engine or one with /api/v1/hidden_states',
    );
  }
  const bytes = Buffer.from(sample.hidden, 'base64');
  const out = new Float32Array(bytes.length / 4);
  for (let i = 0; i < out.length; i++) out[i] = bytes.readFloatLE(4 * i);
  return out;
}

/** Numbers in a hidden state, from the first recorded step; 0 without one. */
export function hiddenSize(episodes: readonly Episode[]): number {
  const first = episodes.find((episode) => episode.steps.length > 0)?.steps[0];
  return first === undefined || first.sample.hidden === null ? 0 : hiddenState(first.sample).length;
}
