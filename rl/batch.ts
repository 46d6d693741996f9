import { TapwrightError } from '../domain/errors.ts';
import { explainedVariance } from './critic.ts';
import { gae } from './gae.ts';
import { attemptMask, maskedMean, maskedSquares, validCount } from './masking.ts';
import { twoChannelReturns } from './returns.ts';
import { whiten } from './whiten.ts';

/** From judged attempts to the rows of one update (algorithms.md, 2 to 5 and 7). */

export interface BatchTrajectory {
  /** Episode id; rows come in key order, whatever the order of the input. */
  key: string;
  /** 0: lost to an infrastructure or judge failure. What it holds may then be NaN. */
  mask: 0 | 1;
  /** Dense reward of each step, (T); a missing one (null) masks the whole trajectory. */
  dense: readonly (number | null)[];
  /** Terminal reward Z. */
  terminal: number;
  /** Critic value of each step, (T): of the total return, or one a channel; null: no critic, V = 0. */
  values: readonly number[] | { dense: readonly number[]; terminal: readonly number[] } | null;
  /** Advantage of each step, (T), from a group baseline; then it is taken as it is, without values and whitening. */
  advantages?: readonly number[];
}

export interface BatchOptions {
  gammaDense?: number;
  lambda?: number;
  /** False: terminal reward only; dense rewards are reported but do not enter the return. */
  useDense?: boolean;
}

/** One planner step = one training example. A masked row has 0 in every number and must not be trained on. */
export interface BatchRow {
  key: string;
  step: number;
  mask: 0 | 1;
  /** R[t], the critic's target. */
  ret: number;
  value: number;
  /** Before whitening. */
  rawAdvantage: number;
  /** After whitening over the unmasked rows of the batch; a given one is not whitened. */
  advantage: number;
}

export interface Batch {
  rows: BatchRow[];
  /** All rows masked: no update, and it does not count as one. */
  skip: boolean;
  /** By metric path; null where there is nothing to average. Unmasked only. */
  statistics: Record<string, number | null>;
}

/**
 * Rows, whitened advantages and statistics of a batch. Sums run in key order: the result does not depend on the order of
 * the input. Throws `invalid_input` on a repeated key, on lengths that differ, or on a non-finite number in an unmasked
 * trajectory.
 */
export function assembleBatch(trajectories: readonly BatchTrajectory[], options: BatchOptions = {}): Batch {
  const ordered = [...trajectories].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const rows: BatchRow[] = [];
  const dense: number[] = [];
  const valid: BatchTrajectory[] = [];
  ordered.forEach((trajectory, i) => {
    if (i > 0 && ordered[i - 1]!.key === trajectory.key) fail(trajectory.key, 'the key occurs twice');
    const mask = attemptMask({ lost: trajectory.mask === 0, dense: trajectory.dense });
    const { key } = trajectory;
    if (mask === 0) {
      for (let step = 0; step < trajectory.dense.length; step++) {
        rows.push({ key, step, mask: 0, ret: 0, value: 0, rawAdvantage: 0, advantage: 0 });
        dense.push(0);
      }
      return;
    }
    valid.push(trajectory);
    const rewards = trajectory.dense as readonly number[];
    const { returns, values, advantages } = estimate(trajectory, rewards, options);
    rewards.forEach((reward, step) => {
      const [ret, value, rawAdvantage] = [returns[step]!, values[step]!, advantages[step]!];
      if (![ret, value, rawAdvantage].every(Number.isFinite)) {
        fail(key, `step ${step} has return ${ret}, value ${value}, advantage ${rawAdvantage}; mask what is not known`);
      }
      rows.push({ key, step, mask: 1, ret, value, rawAdvantage, advantage: 0 });
      dense.push(reward);
    });
  });
  const mask = Uint8Array.from(rows, (row) => row.mask);
  const given = ordered.some((trajectory) => trajectory.advantages !== undefined);
  const raw = Float64Array.from(rows, (row) => row.rawAdvantage);
  const final = given ? raw : whiten(raw, mask);
  rows.forEach((row, i) => (row.advantage = final[i]!));
  return { rows, skip: validCount(mask) === 0, statistics: summarise(rows, dense, mask, ordered.length, valid) };
}

function estimate(
  trajectory: BatchTrajectory,
  rewards: readonly number[],
  options: BatchOptions,
): { returns: number[]; values: readonly number[]; advantages: number[] } {
  const { gammaDense = 0.5, lambda = 1, useDense = true } = options;
  const used = useDense ? [...rewards] : rewards.map(() => 0);
  const steps = used.length;
  const terminal = trajectory.terminal;
  const returns = twoChannelReturns(used, terminal, gammaDense).total;
  const given = trajectory.values ?? used.map(() => 0);
  const channels = 'dense' in given ? given : null;
  const values = 'dense' in given ? given.dense.map((v, t) => v + given.terminal[t]!) : given;
  if (values.length !== steps || (channels && channels.terminal.length !== steps)) {
    fail(trajectory.key, `${steps} steps but ${values.length} values; give one value per step`);
  }
  if (trajectory.advantages !== undefined) {
    if (trajectory.advantages.length !== steps)
      fail(trajectory.key, `${steps} steps but ${trajectory.advantages.length} advantages; give one per step`);
    return { returns, values, advantages: [...trajectory.advantages] };
  }
  // With lambda = 1 both channels telescope to R - V; taking it directly keeps it exact.
  if (lambda === 1) return { returns, values, advantages: returns.map((ret, t) => ret - values[t]!) };
  if (channels) {
    const last = used.map((_, t) => (t === steps - 1 ? terminal : 0));
    const a = gae({ rewards: used, values: channels.dense, gamma: gammaDense, lambda }).advantages;
    const b = gae({ rewards: last, values: channels.terminal, gamma: 1, lambda }).advantages;
    return { returns, values, advantages: a.map((x, t) => x + b[t]!) };
  }
  // One critic for the total return: R[t] = d[t] + (1 - gamma) Z + gamma R[t+1], so this stream has return R under gamma.
  const stream = used.map((d, t) => d + (t === steps - 1 ? terminal : (1 - gammaDense) * terminal));
  return { returns, values, advantages: gae({ rewards: stream, values, gamma: gammaDense, lambda }).advantages };
}

function summarise(
  rows: readonly BatchRow[],
  dense: readonly number[],
  mask: Uint8Array,
  total: number,
  valid: readonly BatchTrajectory[],
): Record<string, number | null> {
  const ones = new Uint8Array(valid.length).fill(1);
  const column = (pick: (row: BatchRow) => number): number[] => rows.map(pick);
  const mean = (values: readonly number[]): number | null => maskedMean(values, mask);
  const n = validCount(mask);
  const raw = column((row) => row.rawAdvantage);
  const returns = column((row) => row.ret);
  const values = column((row) => row.value);
  return {
    'batch/trajectories': total,
    'batch/masked': total - valid.length,
    'batch/rows': n,
    'batch/rows_masked': rows.length - n,
    'batch/steps_mean': maskedMean(
      valid.map((trajectory) => trajectory.dense.length),
      ones,
    ),
    'reward/dense_mean': mean(dense),
    'reward/terminal_mean': maskedMean(
      valid.map((trajectory) => trajectory.terminal),
      ones,
    ),
    'reward/return_mean': mean(returns),
    'critic/value_mean': mean(values),
    'critic/explained_variance': explainedVariance(values, returns, mask),
    'advantage/mean': mean(raw),
    'advantage/std': n < 2 ? null : Math.sqrt(maskedSquares(raw, mask) / (n - 1)),
  };
}

function fail(key: string, what: string): never {
  throw new TapwrightError('invalid_input', `batch: trajectory ${key}: ${what}`);
}
