import { TapwrightError } from '../domain/errors.ts';

/**
 * Pillow's Lanczos reduction to 32 x 32 grey values, bit for bit (algorithms.md, 11, steps 1 and 2): fixed-point
 * weights, horizontal pass first, an 8-bit intermediate, then the vertical pass.
 */

export const HASH_SIDE = 32;
const PRECISION = 22;
const HALF = 1 << (PRECISION - 1);
const LOBES = 3;
/** Screens come in a few sizes; the bound only keeps a caller with thousands of sizes from growing the memory. */
const MAX_TABLES = 64;

/** For output i: input indices first[i] .. first[i] + taps[i] - 1 and their weights from weights[i * stride]. */
interface Table {
  first: Int32Array;
  taps: Int32Array;
  stride: number;
  weights: Int32Array;
}

const tables = new Map<number, Table>();

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
}

function lanczos3(x: number): number {
  return x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
}

function buildTable(size: number): Table {
  const scale = size / HASH_SIDE;
  const filterScale = Math.max(scale, 1);
  const support = LOBES * filterScale;
  const stride = Math.ceil(support) * 2 + 1;
  const first = new Int32Array(HASH_SIDE);
  const taps = new Int32Array(HASH_SIDE);
  const weights = new Int32Array(HASH_SIDE * stride);
  for (let i = 0; i < HASH_SIDE; i++) {
    const centre = (i + 0.5) * scale;
    const from = Math.max(0, Math.trunc(centre - support + 0.5));
    const count = Math.min(size, Math.trunc(centre + support + 0.5)) - from;
    const raw = new Float64Array(count);
    let sum = 0;
    for (let x = 0; x < count; x++) {
      const w = lanczos3((x + from - centre + 0.5) * (1 / filterScale));
      raw[x] = w;
      sum += w;
    }
    for (let x = 0; x < count; x++) {
      const w = (raw[x]! / sum) * (1 << PRECISION);
      weights[i * stride + x] = Math.trunc(w < 0 ? w - 0.5 : w + 0.5);
    }
    first[i] = from;
    taps[i] = count;
  }
  return { first, taps, stride, weights };
}

function tableFor(size: number): Table {
  let table = tables.get(size);
  if (!table) {
    if (tables.size >= MAX_TABLES) tables.clear();
    table = buildTable(size);
    tables.set(size, table);
  }
  return table;
}

/**
 * Four lines at once, interleaved as lines[4 x + r], to 32 outputs each: output i of line r goes to
 * out[offset + i * step + r]. A weight is read once for four products, which is what makes it fast.
 */
function reduceFour(lines: Int32Array, table: Table, out: Uint8Array, offset: number, step: number): void {
  const { first, taps, stride, weights } = table;
  for (let i = 0; i < HASH_SIDE; i++) {
    // |sum| < 1.4 * 255 * 2^22 < 2^31: 32 bits hold it, as they do in the reference.
    let a = HALF;
    let b = HALF;
    let c = HALF;
    let d = HALF;
    let x = first[i]! << 2;
    const end = i * stride + taps[i]!;
    for (let w = i * stride; w < end; w++, x += 4) {
      const weight = weights[w]!;
      a = (a + Math.imul(lines[x]!, weight)) | 0;
      b = (b + Math.imul(lines[x + 1]!, weight)) | 0;
      c = (c + Math.imul(lines[x + 2]!, weight)) | 0;
      d = (d + Math.imul(lines[x + 3]!, weight)) | 0;
    }
    const o = offset + i * step;
    out[o] = clip8(a >> PRECISION);
    out[o + 1] = clip8(b >> PRECISION);
    out[o + 2] = clip8(c >> PRECISION);
    out[o + 3] = clip8(d >> PRECISION);
  }
}

function clip8(value: number): number {
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

/** Which rows of `stride` cells differ from the row above (`starts`, as row numbers), and which of them row y equals. */
function distinctRows(
  cells: Uint8Array | Uint32Array,
  stride: number,
  from: number,
  to: number,
): { starts: number[]; indexOf: Int32Array } {
  const starts = [from];
  const indexOf = new Int32Array(to - from);
  for (let y = from + 1; y < to; y++) {
    let x = y * stride;
    const end = x + stride;
    while (x < end && cells[x] === cells[x - stride]) x++;
    if (x < end) starts.push(y);
    indexOf[y - from] = starts.length - 1;
  }
  return { starts, indexOf };
}

/**
 * Interleaved 8-bit pixels to 32 x 32 luma, row-major. `top` and `bottom` are rows left out at either edge; with 4
 * channels the fourth (alpha) is dropped. Throws `invalid_input` when the buffer does not have the stated size.
 */
export function luma32(
  pixels: Uint8Array,
  width: number,
  height: number,
  options: { channels?: 3 | 4; top?: number; bottom?: number } = {},
): Uint8Array {
  const { channels = 3, top = 0, bottom = 0 } = options;
  const rows = height - top - bottom;
  const sound = [width, height, top, bottom].every((n) => Number.isInteger(n) && n >= 0) && width > 0 && rows > 0;
  if (!sound || pixels.length !== width * height * channels) {
    throw new TapwrightError(
      'invalid_input',
      `screen hash: ${pixels.length} bytes do not make ${width} x ${height} x ${channels} with ${top} rows cut at the ` +
        `top and ${bottom} at the bottom; pass interleaved pixels of exactly that size and leave at least one row`,
    );
  }
  const across = tableFor(width);
  const down = tableFor(rows);
  // Most rows of a screen repeat the one above; the horizontal pass, which is most of the work, runs once for each run.
  // Four channels are compared as whole pixels where their place in memory allows it.
  const words = channels === 4 && pixels.byteOffset % 4 === 0;
  const cells = words ? new Uint32Array(pixels.buffer, pixels.byteOffset, width * height) : pixels;
  const { starts, indexOf } = distinctRows(cells, words ? width : width * channels, top, top + rows);
  // Column-major and padded to whole blocks of four rows, so that a block is written side by side.
  const padded = (starts.length + 3) & ~3;
  const columns = new Uint8Array(HASH_SIDE * padded);
  const lines = new Int32Array(4 * Math.max(width, rows));
  for (let y = 0; y < padded; y += 4) {
    for (let r = 0; r < 4 && y + r < starts.length; r++) {
      let p = starts[y + r]! * width * channels;
      for (let x = r; x < 4 * width; x += 4, p += channels) {
        lines[x] =
          (Math.imul(19595, pixels[p]!) + Math.imul(38470, pixels[p + 1]!) + Math.imul(7471, pixels[p + 2]!) + 32768) >>
          16;
      }
    }
    reduceFour(lines, across, columns, y, padded);
  }
  const out = new Uint8Array(HASH_SIDE * HASH_SIDE);
  for (let i = 0; i < HASH_SIDE; i += 4) {
    for (let r = 0; r < 4; r++) {
      for (let y = 0; y < rows; y++) lines[4 * y + r] = columns[(i + r) * padded + indexOf[y]!]!;
    }
    reduceFour(lines, down, out, i, HASH_SIDE);
  }
  return out;
}
