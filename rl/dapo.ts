import { validCount } from './masking.ts';

/** What DAPO adds to GRPO besides its wider upper clip (algorithms.md, 8). */

export interface Overlong {
  /** Tokens from which on the penalty is whole. */
  max: number;
  /** Tokens before `max` over which it grows. */
  buffer: number;
  factor: number;
}

/** Soft overlong penalty of a response of so many tokens: min(-(len - (max - buffer)) / buffer x factor, 0), at least -factor. */
export function overlongPenalty(length: number, { max, buffer, factor }: Overlong): number {
  const over = (length - (max - buffer)) / buffer;
  return over <= 0 ? 0 : -Math.min(over, 1) * factor;
}

/**
 * True for a group that teaches nothing because all its scores are equal, or fewer than two count: it is dropped, and
 * another task is drawn for it. Masked members do not matter.
 *
 * @param scores (N); @param mask (N)
 */
export function teachesNothing(scores: readonly number[], mask: Uint8Array): boolean {
  if (validCount(mask) < 2) return true;
  const first = scores[mask.findIndex((bit) => bit !== 0)];
  return scores.every((score, i) => mask[i] === 0 || score === first);
}
