import { setTimeout as sleep } from 'node:timers/promises';

/** A ratio measured in one run: both sides in turn, so that what drifts on a shared machine favours neither. */
export interface Ratio {
  /** Its name in bench/budget.json. */
  key: string;
  /** What is divided by what. */
  what: string;
  /** Median, smallest and largest of the rounds' ratios. */
  median: number;
  low: number;
  high: number;
  rounds: number;
}

/** Figures beside the ratios, for reading. */
export interface Table {
  title: string;
  columns: string[];
  rows: (string | number)[][];
}

export interface CaseResult {
  ratios: Ratio[];
  tables: Table[];
  /** Why something was left out, a sentence with what to do. */
  notes: string[];
}

/** Milliseconds between two sides: threads of a library that spin for more work have gone to sleep by then. */
const SETTLE_MS = 250;

/** Middle value; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

export function ratioOf(key: string, what: string, values: readonly number[]): Ratio {
  return {
    key,
    what,
    median: median(values),
    low: Math.min(...values),
    high: Math.max(...values),
    rounds: values.length,
  };
}

/**
 * Runs `a` and `b` in turn, `rounds` times, the first of a pair changing each time. Each returns its figure, seconds or a
 * rate. `warm`: a round before that does not count. Returns the figures of each and a / b by round.
 */
export async function alternate(
  rounds: number,
  a: () => Promise<number> | number,
  b: () => Promise<number> | number,
  { warm = false } = {},
): Promise<{ a: number[]; b: number[]; ratios: number[] }> {
  const out = { a: [] as number[], b: [] as number[], ratios: [] as number[] };
  const settled = async (side: () => Promise<number> | number): Promise<number> => {
    await sleep(SETTLE_MS);
    const figure = await side();
    process.stderr.write('.');
    return figure;
  };
  for (let round = warm ? 0 : 1; round <= rounds; round++) {
    const early = round % 2 === 0 ? await settled(a) : null;
    const other = await settled(b);
    const own = early ?? (await settled(a));
    if (round === 0) continue;
    out.a.push(own);
    out.b.push(other);
    out.ratios.push(own / other);
  }
  process.stderr.write('\n');
  return out;
}

/** Seconds that `work` takes. */
export async function seconds(work: () => Promise<unknown> | unknown): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}
