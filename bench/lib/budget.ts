import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Ratio } from './alternate.ts';

const FILE = new URL('../budget.json', import.meta.url);
const schema = z.record(z.string(), z.strictObject({ min: z.number().optional(), max: z.number().optional() }));
/** Ratios that can have a bound. */
const BOUND_KEYS = [
  ...['engine/train', 'engine/train-2', 'engine/sample', 'hash/imagehash'],
  ...['pipeline/temporal', 'pipeline/judges', 'episodes/throughput', 'episodes/memory'],
];
/** By a ratio's key: what its median may be. */
export type Budget = z.output<typeof schema>;

/** Errors: a file that is no budget, with the place in it. */
export async function readBudget(): Promise<Budget> {
  const text = await readFile(FILE, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`bench/budget.json is not JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const parsed = schema.safeParse(value);
  const strange = Object.keys(parsed.data ?? {}).filter((key) => !BOUND_KEYS.includes(key));
  if (strange.length > 0) {
    throw new Error(`bench/budget.json: no ratio ${strange.join(', ')}: there are ${BOUND_KEYS.join(', ')}`);
  }
  if (parsed.success) return parsed.data;
  throw new Error(`bench/budget.json: ${z.prettifyError(parsed.error)}`);
}

/** A ratio's bound in words; empty without one. */
export function boundOf({ key }: Pick<Ratio, 'key'>, budget: Budget): string {
  const { min, max } = budget[key] ?? {};
  return [min === undefined ? '' : `>= ${min}`, max === undefined ? '' : `<= ${max}`]
    .filter((s) => s !== '')
    .join(', ');
}

/** A sentence when the median is past its bound, else null. */
export function verdictOf(ratio: Ratio, budget: Budget): string | null {
  const { min = -Infinity, max = Infinity } = budget[ratio.key] ?? {};
  if (ratio.median >= min && ratio.median <= max) return null;
  return `${ratio.key}: ${ratio.median.toFixed(3)}, allowed ${boundOf(ratio, budget)} (${ratio.what})`;
}
