import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Ratio } from './alternate.ts';

const FILE = new URL('../budget.json', import.meta.url);
const schema = z.record(z.string(), z.strictObject({ min: z.number().optional(), max: z.number().optional() }));
/** By a ratio's key: what its median may be. */
export type Budget = z.output<typeof schema>;

/** Errors: a file that is no budget, with the place in it. */
export async function readBudget(): Promise<Budget> {
  const parsed = schema.safeParse(JSON.parse(await readFile(FILE, 'utf8')));
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
