/**
 * Masking: one rule for the policy loss, the critic loss, whitening, group baselines, the neighbour search and every
 * reported mean (algorithms.md, 2). mask = 0 marks what an infrastructure or judge failure took away; a masked entry may
 * hold anything, NaN included, and must not matter. So the value is replaced *before* any arithmetic: NaN times 0 is NaN.
 */

/** 1 = counts, 0 = masked. */
export type MaskBit = 0 | 1;

/** `value` where the bit is set, else 0. */
export function where(bit: number, value: number): number {
  return bit === 0 ? 0 : value;
}

/** A copy with masked entries set to 0. */
export function zeroMasked(values: ArrayLike<number>, mask: ArrayLike<number>): Float64Array {
  return Float64Array.from({ length: values.length }, (_, i) => where(mask[i] ?? 0, values[i]!));
}

/** How many entries count. */
export function validCount(mask: ArrayLike<number>): number {
  let n = 0;
  for (let i = 0; i < mask.length; i++) if (mask[i] !== 0) n++;
  return n;
}

/** Mean over unmasked entries, summed in index order; null when there are none. */
export function maskedMean(values: ArrayLike<number>, mask: ArrayLike<number>): number | null {
  const n = validCount(mask);
  if (n === 0) return null;
  let sum = 0;
  for (let i = 0; i < mask.length; i++) sum += where(mask[i]!, values[i]!);
  return sum / n;
}

/** Sum of squared distances from the mean over unmasked entries, two passes; 0 when there are fewer than two. */
export function maskedSquares(values: ArrayLike<number>, mask: ArrayLike<number>): number {
  const mean = maskedMean(values, mask);
  if (mean === null || validCount(mask) < 2) return 0;
  let sum = 0;
  for (let i = 0; i < mask.length; i++) sum += where(mask[i]!, values[i]! - mean) ** 2;
  return sum;
}

/**
 * Mask of an attempt: 0 when a failure took it away, or when one dense verdict is missing, because the return of every
 * earlier step depends on it. A step limit is an outcome, not a failure: it does not mask.
 */
export function attemptMask(attempt: { lost: boolean; dense: readonly (number | null)[] }): MaskBit {
  return attempt.lost || attempt.dense.includes(null) ? 0 : 1;
}

/** True when too few attempts of a batch survived and it may still be topped up with fresh ones. */
export function needsTopUp(
  mask: ArrayLike<number>,
  topUps: number,
  options: { minValidFraction?: number; maxTopUps?: number } = {},
): boolean {
  const { minValidFraction = 0.5, maxTopUps = 1 } = options;
  return topUps < maxTopUps && validCount(mask) < minValidFraction * mask.length;
}
