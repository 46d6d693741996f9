/** SHA-256 (FIPS 180-4) without Node's crypto: workflows may not import that. For short texts; not fast. */

/** The first 32 fractional bits of the n-th root (2 or 3) of the first primes are the standard's constants. */
function rootBits(count: number, root: (p: number) => number): Int32Array {
  const out = new Int32Array(count);
  for (let n = 0, p = 2; n < count; p++) {
    let prime = true;
    for (let d = 2; d * d <= p && prime; d++) prime = p % d !== 0;
    if (prime) out[n++] = Math.floor((root(p) % 1) * 4294967296) | 0;
  }
  return out;
}

const K = rootBits(64, Math.cbrt);
const INITIAL = rootBits(8, Math.sqrt);

const rotate = (x: number, n: number): number => (x >>> n) | (x << (32 - n));

function compress(h: Int32Array, block: DataView, w: Int32Array): void {
  for (let t = 0; t < 16; t++) w[t] = block.getInt32(4 * t);
  for (let t = 16; t < 64; t++) {
    const x = w[t - 15]!;
    const y = w[t - 2]!;
    const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    w[t] = w[t - 16]! + s0 + w[t - 7]! + s1;
  }
  let [a, b, c, d, e, f, g, k] = h as unknown as [number, number, number, number, number, number, number, number];
  for (let t = 0; t < 64; t++) {
    const t1 = (k + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[t]! + w[t]!) | 0;
    const t2 = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [k, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, k].forEach((x, i) => (h[i] = h[i]! + x));
}

/** Digest of bytes, or of a text's UTF-8: 32 bytes. */
export function sha256(data: Uint8Array | string): Uint8Array {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
  const h = INITIAL.slice();
  const w = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) compress(h, new DataView(padded.buffer, at, 64), w);
  const out = new Uint8Array(32);
  const digest = new DataView(out.buffer);
  h.forEach((x, i) => digest.setInt32(4 * i, x));
  return out;
}

/** The digest as 64 lower-case hex digits. */
export function sha256Hex(data: Uint8Array | string): string {
  return Array.from(sha256(data), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
