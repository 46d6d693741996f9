import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hamming, hashHex, parseHash, phash64, popcount32, screenHash } from './hash.ts';
import { luma32 } from './resize.ts';

interface Vector {
  w: number;
  h: number;
  kind: 'noise' | 'waves' | 'screen';
  seed: number;
  crop: [number, number] | null;
  sum: number;
  hash: string;
}

const vectors = JSON.parse(
  readFileSync(new URL('../test/golden/hash-vectors.json', import.meta.url), 'utf8'),
) as Vector[];

/** The formulas of test/golden/make-hash-vectors.py. */
function words(seed: number): (n: number) => number {
  let state = (Math.imul(seed, 2654435761) + 12345) >>> 0;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % n;
  };
}

function build({ w, h, kind, seed }: Vector): Uint8Array {
  const out = new Uint8Array(w * h * 3);
  const below = words(seed);
  if (kind === 'noise') return out.map(() => below(256));
  if (kind === 'waves') {
    for (let y = 0; y < h; y++)
      for (let x = 0; x < w; x++)
        for (let c = 0; c < 3; c++)
          out[(y * w + x) * 3 + c] =
            Math.floor((x * x * (seed + c) + y * y * (c + 2) + x * y * 3 + seed * 17) / (64 + 32 * c)) % 256;
    return out;
  }
  const fill = (x0: number, y0: number, bw: number, bh: number, colour: number[]): void => {
    for (let y = y0; y < Math.min(y0 + bh, h); y++)
      for (let x = x0; x < Math.min(x0 + bw, w); x++) out.set(colour, (y * w + x) * 3);
  };
  const half = (n: number): number => Math.floor(n);
  const colour = (n: number, add = 0): number[] => [below(n) + add, below(n) + add, below(n) + add];
  fill(0, 0, w, h, colour(40, 210));
  fill(0, 0, w, half(h / 12), colour(256));
  const rows = 3 + below(8);
  for (let i = 0; i < rows; i++) {
    const y = half(h / 10) + half((i * h) / 12);
    fill(half(w / 20), y, half(w / 3) + below(half(w / 2)), Math.max(half(h / 60), 1), colour(120));
    if (below(2)) fill(w - half(w / 6), y, half(w / 10), Math.max(half(h / 40), 1), colour(256));
  }
  const boxes = 1 + below(4);
  for (let i = 0; i < boxes; i++) {
    const [x, y] = [below(w), below(h)];
    const [bw, bh] = [2 + below(half(w / 2)), 2 + below(half(h / 6))];
    fill(x, y, bw, bh, colour(256));
  }
  return out;
}

function rgba(rgb: Uint8Array, alpha: (pixel: number) => number): Uint8Array {
  const out = new Uint8Array((rgb.length / 3) * 4);
  for (let i = 0; i < rgb.length / 3; i++) out.set([rgb[3 * i]!, rgb[3 * i + 1]!, rgb[3 * i + 2]!, alpha(i)], 4 * i);
  return out;
}

describe('perceptual hash (algorithms.md, 11)', () => {
  it('has enough golden vectors, of many sizes', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(40);
    expect(new Set(vectors.map((v) => `${v.w}x${v.h}`)).size).toBeGreaterThan(12);
  });

  it.each(vectors)('equals imagehash.phash 4.3.2: $kind $w x $h seed $seed', (vector) => {
    const image = build(vector);
    expect(image.reduce((a, b) => a + b, 0)).toBe(vector.sum);
    const crop = vector.crop ? { top: vector.crop[0], bottom: vector.crop[1] } : undefined;
    const { hash, degenerate } = screenHash(image, vector.w, vector.h, crop);
    expect(hashHex(hash)).toBe(vector.hash);
    expect(degenerate).toBe(false);
  });

  it('a black rectangle on white gives bb00c40000003b00', () => {
    const luma = new Uint8Array(1024).fill(255);
    for (let y = 8; y < 24; y++) luma.fill(0, y * 32 + 4, y * 32 + 16);
    expect(hashHex(phash64(luma))).toBe('bb00c40000003b00');
    const rgb = new Uint8Array(3 * 1024).map((_, i) => luma[Math.floor(i / 3)]!);
    expect(hashHex(screenHash(rgb, 32, 32).hash)).toBe('bb00c40000003b00');
  });

  it('flat images give 8000000000000000, black 0, and are degenerate', () => {
    for (const grey of [1, 7, 128, 255]) {
      const flat = screenHash(new Uint8Array(195 * 422 * 3).fill(grey), 195, 422, { top: 12, bottom: 0 });
      expect([hashHex(flat.hash), flat.degenerate]).toEqual(['8000000000000000', true]);
    }
    expect(screenHash(new Uint8Array(300), 10, 10)).toEqual({ hash: 0n, degenerate: true });
  });

  it('drops alpha', () => {
    const vector = vectors.find((v) => v.kind === 'screen' && v.crop)!;
    const image = build(vector);
    const crop = { top: vector.crop![0], bottom: vector.crop![1] };
    for (const alpha of [() => 0, (i: number) => i % 256]) {
      expect(hashHex(screenHash(rgba(image, alpha), vector.w, vector.h, crop, 4).hash)).toBe(vector.hash);
    }
    // At an odd place in memory, where pixels cannot be read as whole words.
    const plain = rgba(image, () => 255);
    const shifted = new Uint8Array(plain.length + 1).subarray(1);
    shifted.set(plain);
    expect(hashHex(screenHash(shifted, vector.w, vector.h, crop, 4).hash)).toBe(vector.hash);
  });

  it('the cropped rows never matter: a clock does not change a state', () => {
    const vector = vectors.find((v) => v.kind === 'screen' && v.crop && v.crop[1] > 0)!;
    const image = build(vector);
    const [top, bottom] = vector.crop!;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 1, max: 97 }), (start, step) => {
        const other = image.slice();
        for (let i = 0; i < top * vector.w * 3; i++) other[i] = start + i * step;
        for (let i = (vector.h - bottom) * vector.w * 3; i < other.length; i++) other[i] = start + i * step;
        expect(hashHex(screenHash(other, vector.w, vector.h, { top, bottom }).hash)).toBe(vector.hash);
      }),
      { numRuns: 10 },
    );
  });

  it('32 x 32 grey images pass through the resize unchanged', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1024, maxLength: 1024 }), (luma) => {
        const rgb = new Uint8Array(3 * 1024).map((_, i) => luma[Math.floor(i / 3)]!);
        expect(luma32(rgb, 32, 32)).toEqual(luma);
      }),
      { numRuns: 20 },
    );
  });

  it('refuses sizes that disagree, with a clear error', () => {
    expect(() => screenHash(new Uint8Array(10), 2, 2)).toThrow(/10 bytes do not make 2 x 2 x 3/);
    expect(() => screenHash(new Uint8Array(12), 2, 2, { top: 1, bottom: 1 })).toThrow(/at least one row/);
    expect(() => phash64(new Uint8Array(1000))).toThrow(/1024/);
  });
});

describe('hash helpers', () => {
  const hash = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

  it('hashHex and parseHash are inverse', () => {
    fc.assert(
      fc.property(hash, (h) => {
        expect(hashHex(h)).toMatch(/^[0-9a-f]{16}$/);
        expect(parseHash(hashHex(h))).toBe(h);
      }),
    );
    expect(() => parseHash('123')).toThrow(/16 hex digits/);
    expect(() => parseHash('0x00000000000000')).toThrow(/16 hex digits/);
  });

  it('hamming counts differing bits', () => {
    fc.assert(
      fc.property(hash, hash, (a, b) => {
        const slow = [...(a ^ b).toString(2)].filter((bit) => bit === '1').length;
        expect(hamming(a, b)).toBe(slow);
        expect(hamming(b, a)).toBe(slow);
        expect(hamming(a, a)).toBe(0);
      }),
    );
    expect(hamming(0n, (1n << 64n) - 1n)).toBe(64);
    expect(popcount32(-1)).toBe(32);
  });
});
