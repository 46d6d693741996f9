import { maskedMean, maskedSquares, validCount, where } from './masking.ts';

/** Critic mathematics over unmasked rows (algorithms.md, 7). */

/**
 * Value loss 0.5 mean (V - R)^2; null when every row is masked. With `clip` c the larger of it and the loss of
 * V_old + clamp(V - V_old, -c, c) counts, which needs `oldValues`. All arrays are (N).
 */
export function valueLoss(input: {
  values: ArrayLike<number>;
  returns: ArrayLike<number>;
  mask: ArrayLike<number>;
  clip?: number | null;
  oldValues?: ArrayLike<number>;
}): number | null {
  const { values, returns, mask, clip, oldValues } = input;
  const losses = new Float64Array(mask.length);
  for (let i = 0; i < mask.length; i++) {
    const v = where(mask[i]!, values[i]!);
    const r = where(mask[i]!, returns[i]!);
    let square = (v - r) ** 2;
    if (clip != null && oldValues) {
      const old = where(mask[i]!, oldValues[i]!);
      square = Math.max(square, (old + Math.min(Math.max(v - old, -clip), clip) - r) ** 2);
    }
    losses[i] = 0.5 * square;
  }
  return maskedMean(losses, mask);
}

/** 1 - Var(R - V) / Var(R) over the whole batch; null when Var(R) is 0 (nothing to explain) or no row counts. */
export function explainedVariance(
  values: ArrayLike<number>,
  returns: ArrayLike<number>,
  mask: ArrayLike<number>,
): number | null {
  const total = maskedSquares(returns, mask);
  if (total === 0 || validCount(mask) < 2) return null;
  const errors = Float64Array.from({ length: mask.length }, (_, i) => where(mask[i]!, returns[i]! - values[i]!));
  return 1 - maskedSquares(errors, mask) / total;
}
