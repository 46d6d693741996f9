/**
 * Counter-based random numbers: a draw is a pure function of its key path and its index, so the order in which draws
 * are made never matters (design.md, 4). 32-bit integer arithmetic only: the same on every machine.
 */

/** Murmur3's finaliser: a bijection of 32-bit integers with full avalanche. */
function mix32(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function absorb(state: number, word: number): number {
  return mix32(Math.imul(state ^ word, 0x9e3779b1) + 0x7f4a7c15);
}

/** A 32-bit seed from a path of numbers and strings, e.g. `hashSeed(runSeed, 'train', update, draw)`. Order matters. */
export function hashSeed(...path: (number | string)[]): number {
  let h = 0x2545f491;
  for (const part of path) {
    if (typeof part === 'number') {
      // Low and high halves: seeds up to 2^53 differ; negative numbers are taken modulo 2^32.
      h = absorb(h, 1);
      h = absorb(h, part >>> 0);
      h = absorb(h, Math.floor(Math.abs(part) / 4294967296) >>> 0);
    } else {
      h = absorb(h, 2);
      for (let i = 0; i < part.length; i++) h = absorb(h, part.charCodeAt(i));
      h = absorb(h, part.length);
    }
  }
  return h;
}

export interface Random {
  /** Uniform in [0, 1), 53 bits. */
  next(): number;
  /** Uniform integer in 0..n-1, n >= 1. */
  int(n: number): number;
  /** One element, uniformly; the list must not be empty. */
  pick<T>(items: readonly T[]): T;
  /** A shuffled copy (Fisher-Yates). */
  shuffle<T>(items: readonly T[]): T[];
  /** Standard normal (Box-Muller, one of the pair). */
  normal(): number;
}

/** The stream of draws at a key path. Two streams with different paths are independent for every practical purpose. */
export function createRandom(...path: (number | string)[]): Random {
  const key = hashSeed(...path);
  const key2 = mix32(key ^ 0x5bd1e995);
  let counter = 0;
  const word = (): number => {
    const c = counter++;
    return absorb(absorb(key, c), key2 ^ Math.imul(c, 0x01000193));
  };
  const next = (): number => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
  const int = (n: number): number => Math.floor(next() * n);
  return {
    next,
    int,
    pick: (items) => {
      if (items.length === 0) throw new RangeError('pick from an empty list');
      return items[int(items.length)]!;
    },
    shuffle: (items) => {
      const out = [...items];
      for (let i = out.length - 1; i > 0; i--) {
        const j = int(i + 1);
        [out[i], out[j]] = [out[j]!, out[i]!];
      }
      return out;
    },
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}
