import { hasCritic } from '../configs/schema.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import { criticFeatures, siblingFeatures } from '../engine/critic-features.ts';
import type { CriticFeatures, NeighbourOfRow } from '../engine/critic-features.ts';
import type { Episode, PlannerSample } from '../domain/index.ts';
import { assembleBatch } from '../rl/batch.ts';
import type { Batch, BatchOptions } from '../rl/batch.ts';
import { overlongPenalty, teachesNothing } from '../rl/dapo.ts';
import { discountedReturns, gigpoAdvantages } from '../rl/gigpo.ts';
import { groupAdvantages } from '../rl/group-baselines.ts';
import type { GroupBaseline } from '../rl/group-baselines.ts';
import { nearestSiblings, siblingReturns } from '../rl/neighbours.ts';
import type { SiblingReturns } from '../rl/neighbours.ts';
import { twoChannelReturns } from '../rl/returns.ts';
import { attemptScore, rewardOfOutcome, rewardOfVerdict } from '../rl/rewards.ts';

/** Finished attempts as training rows: one planner step each, in key order. */
export interface TrainingRows {
  samples: PlannerSample[];
  /** The critic's input; null without a critic. */
  features: CriticFeatures | null;
  /** Mean distance to the nearest sibling state in bits; null for plain PPO. */
  neighbourDistance: number | null;
  /** Task draws that are left out: a single valid attempt, for DAPO also equal scores. */
  dropped: number;
  /** Returns, advantages and statistics, given the critic's values of the rows; null values: V = 0. */
  batch(values: Float32Array | null): Batch;
}

/**
 * Builds the rows of finished attempts. Sorted by episode id, so that whatever finished first does not matter. The critic's
 * input is the planner's hidden state before the response, for GiGPPO joined by the nearest sibling's: its hidden state,
 * return, distance, and whether there is one (algorithms.md, 7 and 10). Throws `engine_refused` without hidden states.
 */
export function trainingRows(episodes: readonly Episode[], config: RunConfig): TrainingRows {
  const whole = episodes.filter((e) => e.steps.length > 0).sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const { rewards, learn } = config;
  const { kept: ordered, dropped } = withoutDropped(whole, config);
  const trajectories = ordered.map((episode) => ({
    key: episode.id,
    mask: 1 as const,
    dense: episode.steps.map((step) => rewardOfVerdict(step.dense, rewards)),
    terminal: rewardOfOutcome(episode.outcome, rewards),
  }));
  const samples = ordered.flatMap((episode) => episode.steps.map((step) => step.sample));
  if (!hasCritic(config)) {
    const compared = groupEstimates(ordered, trajectories, config);
    const rows = trajectories.map((trajectory, i) => ({ ...trajectory, values: null, advantages: compared[i]! }));
    return {
      samples,
      features: null,
      neighbourDistance: null,
      dropped,
      batch: () => assembleBatch(rows, batchOptions(config)),
    };
  }
  const hidden = samples.map(hiddenState);
  const told = learn.estimator === 'gigppo' ? toldOfSiblings(ordered, trajectories, hidden, config) : null;
  return {
    samples,
    features: told?.features ?? criticFeatures(hidden, null),
    neighbourDistance: told?.distance ?? null,
    dropped,
    batch: (values) => {
      let row = 0;
      const valued = trajectories.map((trajectory) => {
        const own = values === null ? null : Array.from(values.subarray(row, row + trajectory.dense.length));
        row += trajectory.dense.length;
        return { ...trajectory, values: own };
      });
      return assembleBatch(valued, batchOptions(config));
    },
  };
}

/** The critic's input for GiGPPO, and the mean distance to the nearest sibling state (algorithms.md, 10). */
function toldOfSiblings(
  ordered: readonly Episode[],
  trajectories: readonly { dense: readonly number[]; terminal: number }[],
  hidden: readonly Float32Array[],
  { rewards, critic }: RunConfig,
): { features: CriticFeatures; distance: number | null } {
  const starts: number[] = [];
  let rows = 0;
  for (const episode of ordered) {
    starts.push(rows);
    rows += episode.steps.length;
  }
  const distances: number[] = [];
  const nearest: (NeighbourOfRow | null)[] = hidden.map(() => null);
  const all: (SiblingReturns | null)[] = hidden.map(() => null);
  for (const members of groups(ordered)) {
    const states = members.map((i) => {
      const { dense, terminal } = trajectories[i]!;
      const used = rewards.useDense ? dense : dense.map(() => 0);
      const returns = twoChannelReturns([...used], terminal, rewards.gammaDense).total;
      return ordered[i]!.steps.map((step, t) => ({ hash: BigInt(`0x${step.before.hash}`), ret: returns[t]! }));
    });
    const valid = new Uint8Array(members.length).fill(1);
    const place = (m: number, t: number): number => starts[members[m]!]! + t;
    if (critic.siblings === 'all') {
      siblingReturns(states, valid).forEach((found, m) => {
        found.forEach((one, t) => (all[place(m, t)] = one));
        distances.push(...found.flatMap((one) => one?.distance ?? []));
      });
    } else {
      nearestSiblings(states, valid).forEach((found, m) => {
        found.forEach((one, t) => {
          if (one === null) return;
          const { trajectory: j, step: u, distance } = one;
          nearest[place(m, t)] = { row: place(j, u), ret: states[j]![u]!.ret, distance };
          distances.push(distance);
        });
      });
    }
  }
  return {
    features: critic.siblings === 'all' ? siblingFeatures(hidden, all) : criticFeatures(hidden, nearest),
    distance: distances.length === 0 ? null : distances.reduce((a, b) => a + b, 0) / distances.length,
  };
}

const batchOptions = ({ rewards, learn }: RunConfig): BatchOptions => ({
  gammaDense: rewards.gammaDense,
  lambda: learn.lambda,
  useDense: rewards.useDense,
});

/** Estimators that compare whole attempts only. */
const OF_ATTEMPTS: readonly RunConfig['learn']['estimator'][] = ['grpo', 'dr-grpo', 'rloo', 'dapo'];

/**
 * What takes part in the loss where whole attempts are compared: an attempt without a valid sibling does not, nor, for
 * DAPO, a group whose scores are equal (algorithms.md, 8). Left in with advantage 0 they would still count as tokens.
 */
function withoutDropped(ordered: readonly Episode[], config: RunConfig): { kept: readonly Episode[]; dropped: number } {
  const { estimator } = config.learn;
  if (!OF_ATTEMPTS.includes(estimator)) return { kept: ordered, dropped: 0 };
  const out = new Set<Episode>();
  let dropped = 0;
  for (const members of groups(ordered)) {
    const scores = members.map((i) => episodeScore(ordered[i]!, config));
    const lost =
      estimator === 'dapo' ? teachesNothing(scores, new Uint8Array(scores.length).fill(1)) : scores.length < 2;
    if (!lost) continue;
    dropped += 1;
    for (const i of members) out.add(ordered[i]!);
  }
  return { kept: dropped === 0 ? ordered : ordered.filter((episode) => !out.has(episode)), dropped };
}

function episodeScore({ steps, outcome }: Episode, { rewards }: RunConfig): number {
  const dense = { success: 0, fail: 0, overcomplete: 0 };
  for (const step of steps) dense[step.dense] += 1;
  return attemptScore({ dense, outcome }, rewards);
}

/** DAPO's penalty of an attempt: the mean over its responses, so that its factor stays on the scale of one score. */
function meanOverlong(episode: Episode, { learn }: RunConfig): number {
  const { max = 512, buffer = 128, factor = 1 } = learn.dapo?.overlong ?? {};
  const penalties = episode.steps.map(({ sample }) =>
    overlongPenalty(sample.responseTokens.length, { max, buffer, factor }),
  );
  return penalties.reduce((a, b) => a + b, 0) / penalties.length;
}

/** Advantages by attempt and step from comparing the attempts of each task draw (algorithms.md, 8 and 9). */
function groupEstimates(
  ordered: readonly Episode[],
  trajectories: readonly { dense: readonly number[]; terminal: number }[],
  config: RunConfig,
): number[][] {
  const { rewards, learn } = config;
  const out: number[][] = ordered.map(() => []);
  const attempts = trajectories.map(({ dense, terminal }) => {
    const used = rewards.useDense ? [...dense] : dense.map(() => 0);
    const total = used.map((d, t) => d + (t === used.length - 1 ? terminal : 0));
    return { used, terminal, total, score: total.reduce((a, b) => a + b, 0) };
  });
  for (const members of groups(ordered)) {
    const ones = new Uint8Array(members.length).fill(1);
    if (learn.estimator === 'gigpo') {
      const { returns, gamma, baseline, episodeWeight, stepWeight } = learn.gigpo;
      const group = members.map((i) => ({
        anchors: ordered[i]!.steps.map((step) => step.before.hash),
        returns:
          returns === 'discounted'
            ? discountedReturns(attempts[i]!.total, gamma)
            : twoChannelReturns(attempts[i]!.used, attempts[i]!.terminal, rewards.gammaDense).total,
        score: attempts[i]!.score,
      }));
      const advantages = gigpoAdvantages(group, ones, { episodeWeight, stepWeight, kind: baseline });
      members.forEach((i, m) => (out[i] = advantages[m]!));
    } else {
      const dapo = learn.estimator === 'dapo';
      const scores = members.map((i) => attempts[i]!.score + (dapo ? meanOverlong(ordered[i]!, config) : 0));
      const advantages = groupAdvantages(scores, ones, dapo ? 'grpo' : (learn.estimator as GroupBaseline));
      members.forEach((i, m) => (out[i] = attempts[i]!.used.map(() => advantages[m]!)));
    }
  }
  return out;
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
