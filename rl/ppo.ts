import { TapwrightError } from '../domain/errors.ts';

/** The clipped policy loss and its aggregation, as numbers: the reference for the engine's tensors (algorithms.md, 6). */

const MAX_LOG_RATIO = 20;

export interface PpoClip {
  clipLow: number;
  clipHigh: number;
  /** Bound c >= 1 of the loss for negative advantages; null or absent: none. */
  dualClip?: number | null;
}

export interface PpoToken extends PpoClip {
  /** log p of the sampled token under the policy being trained, and under the one that sampled it. */
  logpNew: number;
  logpOld: number;
  advantage: number;
}

/** exp(log p_new - log p_old), the difference clamped to +-20. */
export function tokenRatio(logpNew: number, logpOld: number): number {
  return Math.exp(Math.min(Math.max(logpNew - logpOld, -MAX_LOG_RATIO), MAX_LOG_RATIO));
}

/** Loss of one token: max(-ratio A, -clip(ratio, 1 - clipLow, 1 + clipHigh) A); with dual clip and A < 0 at most -c A. */
export function ppoTokenLoss(token: PpoToken): number {
  const { logpNew, logpOld, advantage, clipLow, clipHigh, dualClip } = token;
  const ratio = tokenRatio(logpNew, logpOld);
  const clipped = Math.min(Math.max(ratio, 1 - clipLow), 1 + clipHigh);
  const loss = Math.max(-ratio * advantage, -clipped * advantage);
  return dualClip != null && advantage < 0 ? Math.min(loss, -dualClip * advantage) : loss;
}

/** True when the clip, not the ratio, decides the loss: the token gives no gradient. */
function clips(token: PpoToken): boolean {
  const ratio = tokenRatio(token.logpNew, token.logpOld);
  return token.advantage > 0 ? ratio > 1 + token.clipHigh : token.advantage < 0 && ratio < 1 - token.clipLow;
}

export type Aggregation = 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean';

/**
 * Weight of each token of row i, (N), over the *whole* mini-batch: the denominator is fixed before micro-batching, so
 * summing weight x loss gives the same for any split. Masked rows and rows without tokens weigh 0.
 *
 * @param lengths response tokens of each row, (N); @param mask (N)
 */
export function tokenWeights(lengths: ArrayLike<number>, mask: ArrayLike<number>, kind: Aggregation): Float64Array {
  const counts = (i: number): boolean => mask[i] !== 0 && lengths[i]! > 0;
  let tokens = 0;
  let rows = 0;
  for (let i = 0; i < lengths.length; i++) {
    if (!counts(i)) continue;
    tokens += lengths[i]!;
    rows++;
  }
  return Float64Array.from({ length: lengths.length }, (_, i) => {
    if (!counts(i)) return 0;
    if (kind === 'token-mean') return 1 / tokens;
    return kind === 'seq-mean-token-sum' ? 1 / rows : 1 / (rows * lengths[i]!);
  });
}

/**
 * One number for a mini-batch from its token losses, (N)(tokens of the row). `token-mean`: sum over all unmasked tokens
 * divided by their number; `seq-mean-token-sum`: mean over rows of the row's sum; `seq-mean-token-mean`: mean over rows
 * of the row's mean. 0 when nothing counts.
 */
export function aggregateTokenLoss(
  losses: readonly ArrayLike<number>[],
  mask: ArrayLike<number>,
  kind: Aggregation = 'token-mean',
): number {
  const weights = tokenWeights(
    losses.map((row) => row.length),
    mask,
    kind,
  );
  let sum = 0;
  losses.forEach((row, i) => {
    if (weights[i] === 0) return;
    for (let j = 0; j < row.length; j++) sum += weights[i]! * row[j]!;
  });
  return sum;
}

export interface PpoStatistics {
  loss: number;
  /** Share of unmasked tokens whose loss the clip decides. */
  clipFraction: number;
  /** mean(ratio - 1 - log ratio): a non-negative estimate of how far the policy moved from its sampler. */
  drift: number;
  meanRatio: number;
  /** mean |log p_new - log p_old|. */
  meanLogpDifference: number;
  tokens: number;
}

/** Loss and monitors of a mini-batch; null when no token counts. `logpNew` and `logpOld` are (N)(tokens), the rest (N). */
export function ppoStatistics(
  batch: {
    logpNew: readonly ArrayLike<number>[];
    logpOld: readonly ArrayLike<number>[];
    advantages: ArrayLike<number>;
    mask: ArrayLike<number>;
    aggregation?: Aggregation;
  } & PpoClip,
): PpoStatistics | null {
  const { logpNew, logpOld, advantages, mask, aggregation = 'token-mean', clipLow, clipHigh, dualClip } = batch;
  let tokens = 0;
  let clipped = 0;
  let drift = 0;
  let ratios = 0;
  let differences = 0;
  const losses = logpNew.map((row, i) => {
    const out = new Float64Array(row.length);
    if (mask[i] === 0) return out;
    for (let j = 0; j < row.length; j++) {
      const token = {
        logpNew: row[j]!,
        logpOld: logpOld[i]![j]!,
        advantage: advantages[i]!,
        clipLow,
        clipHigh,
        dualClip,
      };
      const ratio = tokenRatio(token.logpNew, token.logpOld);
      out[j] = ppoTokenLoss(token);
      tokens++;
      if (clips(token)) clipped++;
      ratios += ratio;
      drift += ratio - 1 - Math.log(ratio);
      differences += Math.abs(token.logpNew - token.logpOld);
    }
    return out;
  });
  if (tokens === 0) return null;
  return {
    loss: aggregateTokenLoss(losses, mask, aggregation),
    clipFraction: clipped / tokens,
    drift: drift / tokens,
    meanRatio: ratios / tokens,
    meanLogpDifference: differences / tokens,
    tokens,
  };
}

/**
 * On the first epoch the policy is the sampler, so the mean ratio is 1. Throws `determinism_broken` when it is off by more
 * than `maxRatioDrift`, or is no number: the tokens or their log-probabilities are then not the sampled ones.
 */
export function assertFirstEpochRatio(meanRatio: number, maxRatioDrift: number): void {
  if (Math.abs(meanRatio - 1) <= maxRatioDrift) return;
  throw new TapwrightError(
    'determinism_broken',
    `the mean probability ratio of the first epoch is ${meanRatio}, not 1 within ${maxRatioDrift}: the trainer does not ` +
      'see the policy that sampled. Check that sampler and trainer hold the same weights and the same token ids',
  );
}
