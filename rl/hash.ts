import { TapwrightError } from '../domain/errors.ts';
import { HASH_SIDE, luma32 } from './resize.ts';

/** Perceptual hash of a screen: equal to Python's `imagehash.phash` 4.3.2 bit for bit (algorithms.md, 11). */

const BLOCK = 8;
const BITS = BLOCK * BLOCK;
/** Coefficients are compared after rounding to 1e-6: without it a flat screen hashes to rounding noise. */
const ROUNDING = 1e6;
/** A state whose low-frequency contrast is below one grey level (root mean square) is degenerate: nothing to see. */
export const DEGENERATE_CONTRAST = 1;

/** basis[k * 32 + n] = 2 cos(pi k (2n + 1) / 64): the DCT-II, unnormalised, only the 8 rows that are read. */
const basis = new Float64Array(BLOCK * HASH_SIDE);
for (let k = 0; k < BLOCK; k++) {
  for (let n = 0; n < HASH_SIDE; n++) basis[k * HASH_SIDE + n] = 2 * Math.cos((Math.PI * k * (2 * n + 1)) / 64);
}

/** 32 x 32 luma (row-major) to the top-left 8 x 8 of its 2-D DCT-II, in units of 1e-6 and rounded to whole ones. */
function lowFrequencies(luma: Uint8Array): Float64Array {
  // Columns first: down[k * 32 + x]. Cosines are even or odd about the middle, so a line is folded before it is summed.
  const down = new Float64Array(BLOCK * HASH_SIDE);
  const line = new Float64Array(HASH_SIDE);
  const lows = new Float64Array(BLOCK);
  for (let x = 0; x < HASH_SIDE; x++) {
    for (let y = 0; y < HASH_SIDE; y++) line[y] = luma[y * HASH_SIDE + x]!;
    transformLine(line, lows);
    for (let k = 0; k < BLOCK; k++) down[k * HASH_SIDE + x] = lows[k]!;
  }
  const out = new Float64Array(BITS);
  for (let k = 0; k < BLOCK; k++) {
    transformLine(down.subarray(k * HASH_SIDE, (k + 1) * HASH_SIDE), lows);
    for (let l = 0; l < BLOCK; l++) out[k * BLOCK + l] = Math.round(lows[l]! * ROUNDING);
  }
  return out;
}

const HALF_SIDE = HASH_SIDE / 2;

/** The first 8 DCT-II coefficients of 32 values. */
function transformLine(line: Float64Array, lows: Float64Array): void {
  for (let k = 0; k < BLOCK; k++) {
    const row = k * HASH_SIDE;
    let sum = 0;
    if (k % 2 === 0) for (let n = 0; n < HALF_SIDE; n++) sum += basis[row + n]! * (line[n]! + line[HASH_SIDE - 1 - n]!);
    else for (let n = 0; n < HALF_SIDE; n++) sum += basis[row + n]! * (line[n]! - line[HASH_SIDE - 1 - n]!);
    lows[k] = sum;
  }
}

/** Bit = value above the median of the 64, row-major, most significant bit first. */
function threshold(block: Float64Array): bigint {
  const sorted = block.slice().sort();
  const median = (sorted[BITS / 2 - 1]! + sorted[BITS / 2]!) / 2;
  let high = 0;
  let low = 0;
  for (let i = 0; i < 32; i++) {
    high = (high << 1) | (block[i]! > median ? 1 : 0);
    low = (low << 1) | (block[i + 32]! > median ? 1 : 0);
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** Root mean square of the picture's low-frequency part without its mean, in grey levels. */
function contrast(block: Float64Array): number {
  // The orthonormal coefficient is X / 4 * a_k * a_l with a_0^2 = 1/32 and a_k^2 = 2/32; Parseval does the rest.
  let energy = 0;
  for (let i = 1; i < BITS; i++) {
    const edge = i < BLOCK || i % BLOCK === 0;
    const x = block[i]! / ROUNDING;
    energy += ((x * x) / 16) * (edge ? 2 : 4);
  }
  return Math.sqrt(energy) / (HASH_SIDE * HASH_SIDE);
}

/** The 64-bit hash of 32 x 32 luma, row-major (algorithms.md, 11, steps 3 and 4). Throws `invalid_input` on another size. */
export function phash64(luma32: Uint8Array): bigint {
  if (luma32.length !== HASH_SIDE * HASH_SIDE) {
    throw new TapwrightError('invalid_input', `phash64 takes 32 x 32 = 1024 grey values, got ${luma32.length}`);
  }
  return threshold(lowFrequencies(luma32));
}

/**
 * The hash of a screen: interleaved 8-bit `rgb` of `width` x `height` pixels, or RGBA with `channels` 4 (alpha dropped).
 * `crop` leaves out rows of pixels at the edges: the status bar's clock must not change a state. `degenerate`: hardly any
 * contrast, the bits mean little; such a state still pairs. Throws `invalid_input` when the sizes disagree.
 */
export function screenHash(
  rgb: Uint8Array,
  width: number,
  height: number,
  crop?: { top: number; bottom: number },
  channels: 3 | 4 = 3,
): { hash: bigint; degenerate: boolean } {
  const block = lowFrequencies(luma32(rgb, width, height, { channels, top: crop?.top, bottom: crop?.bottom }));
  return { hash: threshold(block), degenerate: contrast(block) < DEGENERATE_CONTRAST };
}

/** 16 lower-case hex digits. */
export function hashHex(hash: bigint): string {
  return hash.toString(16).padStart(16, '0');
}

/** The hash of 16 hex digits (`Screen.hash`). Throws `invalid_input` on anything else. */
export function parseHash(hex: string): bigint {
  if (!/^[0-9a-f]{16}$/i.test(hex)) {
    throw new TapwrightError(
      'invalid_input',
      `a screen hash is 16 hex digits, got ${JSON.stringify(hex.slice(0, 40))}`,
    );
  }
  return BigInt(`0x${hex}`);
}

/** Set bits of a 32-bit integer. */
export function popcount32(value: number): number {
  let v = value - ((value >>> 1) & 0x55555555);
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Differing bits of two 64-bit hashes, 0..64. */
export function hamming(a: bigint, b: bigint): number {
  const x = a ^ b;
  return popcount32(Number(x & 0xffffffffn) | 0) + popcount32(Number((x >> 32n) & 0xffffffffn) | 0);
}
