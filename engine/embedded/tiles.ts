/** Rows of one tile of a forward or backward pass: enough to fill the matrix products, few enough for the cache. */
export const TILE_ROWS = 64;
const BUCKET = 16;
/** Shorter rows share this length: a tile for each of many lengths costs more than the padding. */
const SHORTEST = 48;

/**
 * The padded length of a row of `length` tokens: the next multiple of 16, at least 48. It depends on that row alone, because the
 * padded length decides the last bits of the result.
 */
export const bucketLength = (length: number): number => Math.max(SHORTEST, Math.ceil(length / BUCKET) * BUCKET);

const ROW_STEP = 16;
const OUTPUT_STEP = 8;

/**
 * Rows of a training tile that holds `rows`, and positions of its last layer. Few different ones: the matrix library keeps a
 * kernel for each shape that it has seen, which with any shape at all grew to 400 MB.
 */
export const trainingRows = (rows: number): number => Math.ceil(rows / ROW_STEP) * ROW_STEP;
export const outputPositions = (longest: number, length: number): number =>
  Math.min(length, OUTPUT_STEP * Math.ceil(longest / OUTPUT_STEP));

/**
 * Rows of a sampling tile. Matrix kernels are chosen by the number of rows and differ in the last bit, so only these
 * numbers occur, which were measured to agree (8 and 32, for instance, do not).
 */
const SAMPLING_ROWS = [16, 48, 64, 96, 128];
export const MAX_SAMPLING_ROWS = 128;

/** The smallest sampling tile that holds `rows`. */
export const samplingRows = (rows: number): number => SAMPLING_ROWS.find((n) => n >= rows) ?? MAX_SAMPLING_ROWS;

/** Rows left-padded with -1 to `length`. */
export function leftPad(rows: readonly (readonly number[])[], length: number): Int32Array {
  const out = new Int32Array(rows.length * length).fill(-1);
  rows.forEach((row, i) => out.set(row, i * length + length - row.length));
  return out;
}

/** Places of the rows by bucket length, in ascending order of length; inside a bucket in their own order. */
export function byBucket(lengths: readonly number[]): { length: number; places: number[] }[] {
  const groups = new Map<number, number[]>();
  lengths.forEach((n, i) => {
    const length = bucketLength(n);
    const group = groups.get(length);
    if (group === undefined) groups.set(length, [i]);
    else group.push(i);
  });
  return [...groups].sort(([a], [b]) => a - b).map(([length, places]) => ({ length, places }));
}
