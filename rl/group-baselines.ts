import { TapwrightError } from '../domain/errors.ts';
import { maskedMean, maskedSquares, validCount, where } from './masking.ts';

/** How a member of a group is compared with the others (algorithms.md, 8). */
export type GroupBaseline = 'grpo' | 'dr-grpo' | 'rloo';

const EPSILON = 1e-6;

/**
 * Advantages of the members of one group from their scores (algorithms.md, 8): grpo (s - mean) / (std + 1e-6) with the
 * sample standard deviation, dr-grpo s - mean, rloo s - mean of the others. Masked members get 0 and do not matter; so
 * do all when fewer than two count or all scores are equal. Throws `invalid_input` when the lengths differ.
 *
 * @param scores (N); @param mask (N)
 */
export function groupAdvantages(scores: readonly number[], mask: Uint8Array, kind: GroupBaseline): number[] {
  if (scores.length !== mask.length)
    throw new TapwrightError('invalid_input', `${scores.length} scores but ${mask.length} mask bits: give one each`);
  const n = validCount(mask);
  const none = scores.map(() => 0);
  if (n < 2) return none;
  const mean = maskedMean(scores, mask)!;
  const std = Math.sqrt(maskedSquares(scores, mask) / (n - 1));
  if (std === 0) return none;
  // s - mean of the others = (s - mean) n / (n - 1).
  const factor = kind === 'grpo' ? 1 / (std + EPSILON) : kind === 'rloo' ? n / (n - 1) : 1;
  return scores.map((score, i) => where(mask[i]!, (score - mean) * factor));
}
