import { maskedMean, maskedSquares, validCount } from './masking.ts';

const EPSILON = 1e-8;

/**
 * Advantages whitened over unmasked *rows* (planner steps), never over tokens (algorithms.md, 5): sample standard
 * deviation, out = (a - mean) / (std + 1e-8). No unmasked row (the caller skips the update), a single one, or a standard
 * deviation below 1e-8: all 0. Masked rows come out 0.
 *
 * @param rows advantage of each row, (N); @param mask (N)
 */
export function whiten(rows: Float64Array, mask: Uint8Array): Float64Array {
  const out = new Float64Array(rows.length);
  const n = validCount(mask);
  if (n < 2) return out;
  const mean = maskedMean(rows, mask)!;
  const std = Math.sqrt(maskedSquares(rows, mask) / (n - 1));
  if (std < EPSILON) return out;
  for (let i = 0; i < rows.length; i++) if (mask[i] !== 0) out[i] = (rows[i]! - mean) / (std + EPSILON);
  return out;
}
