import { TapwrightError } from '../domain/errors.ts';
import { createRandom } from './random.ts';
import { sha256 } from './sha256.ts';

/** Statistics of reports (algorithms.md, 14). */

export interface Interval {
  low: number;
  high: number;
}

const Z95 = 1.959963984540054;

/** Wilson score interval of a success rate, 95 % unless `z` says otherwise; null without trials. */
export function wilsonInterval(successes: number, trials: number, z = Z95): Interval | null {
  if (trials === 0) return null;
  const p = successes / trials;
  const denominator = 1 + (z * z) / trials;
  const centre = (p + (z * z) / (2 * trials)) / denominator;
  const half = (z / denominator) * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials));
  // The bound is exactly 0 or 1 at the ends; the formula leaves rounding there.
  return { low: successes === 0 ? 0 : centre - half, high: successes === trials ? 1 : centre + half };
}

/**
 * McNemar's exact test: two-sided p that the discordant pairs are a fair coin's. `onlyA`: pairs that A alone solved,
 * `onlyB`: that B alone solved. 1 when no pair disagrees.
 */
export function mcnemarExact(onlyA: number, onlyB: number): number {
  const n = onlyA + onlyB;
  const k = Math.min(onlyA, onlyB);
  // Terms by logarithms: 2^-n underflows beyond a thousand pairs.
  let logTerm = -n * Math.LN2;
  let tail = 0;
  for (let i = 0; i <= k; i++) {
    tail += Math.exp(logTerm);
    logTerm += Math.log(n - i) - Math.log(i + 1);
  }
  return Math.min(1, 2 * tail);
}

export interface PairedComparison {
  /** Pairs compared: both sides unmasked. */
  pairs: number;
  both: number;
  onlyA: number;
  onlyB: number;
  neither: number;
  /** Success rate of A minus B over the pairs; null without pairs. */
  difference: number | null;
  p: number;
}

/**
 * Two policies on the same task instances, paired by instance. A pair with a null (masked, or not run) on either side is
 * left out. Throws `invalid_input` when the lists differ in length.
 */
export function comparePaired(a: readonly (boolean | null)[], b: readonly (boolean | null)[]): PairedComparison {
  if (a.length !== b.length) {
    throw new TapwrightError(
      'invalid_input',
      `a paired comparison needs the same instances on both sides, got ${a.length} and ${b.length}`,
    );
  }
  const out = { pairs: 0, both: 0, onlyA: 0, onlyB: 0, neither: 0 };
  a.forEach((x, i) => {
    const y = b[i]!;
    if (x === null || y === null) return;
    out.pairs++;
    out[x ? (y ? 'both' : 'onlyA') : y ? 'onlyB' : 'neither']++;
  });
  const difference = out.pairs === 0 ? null : (out.onlyA - out.onlyB) / out.pairs;
  return { ...out, difference, p: mcnemarExact(out.onlyA, out.onlyB) };
}

/** Seed of instance i of a task, 32 bits: the first 4 bytes (big-endian) of sha256("{seed}_{task}_{i}"). */
export function instanceSeed(seed: number, task: string, i: number): number {
  return new DataView(sha256(`${seed}_${task}_${i}`).buffer).getUint32(0);
}

/**
 * Percentile bootstrap of the mean over tasks of the mean over a task's runs: tasks are drawn with replacement, then runs
 * within each drawn task. Unmasked runs only; tasks without runs are left out. Null when nothing is left.
 *
 * @param tasks results by task, (tasks)(runs); success is 1 or 0
 */
export function hierarchicalBootstrap(
  tasks: readonly (readonly number[])[],
  options: { seed: number; replicates?: number; level?: number },
): ({ mean: number } & Interval) | null {
  const { seed, replicates = 2000, level = 0.95 } = options;
  const filled = tasks.filter((runs) => runs.length > 0);
  if (filled.length === 0) return null;
  const average = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;
  const means = new Float64Array(replicates);
  for (let r = 0; r < replicates; r++) {
    const random = createRandom(seed, 'bootstrap', r);
    let sum = 0;
    for (let k = 0; k < filled.length; k++) {
      const runs = random.pick(filled);
      let inner = 0;
      for (let j = 0; j < runs.length; j++) inner += random.pick(runs);
      sum += inner / runs.length;
    }
    means[r] = sum / filled.length;
  }
  means.sort();
  return {
    mean: average(filled.map(average)),
    low: quantile(means, (1 - level) / 2),
    high: quantile(means, (1 + level) / 2),
  };
}

/** Linear interpolation between order statistics. */
function quantile(sorted: Float64Array, q: number): number {
  const at = q * (sorted.length - 1);
  const below = Math.floor(at);
  const low = sorted[below]!;
  const high = sorted[Math.min(below + 1, sorted.length - 1)]!;
  return low + (high - low) * (at - below);
}
