import type { Outcome } from '../domain/episode.ts';
import type { Split } from '../domain/task.ts';

/** One policy on one split: a row of the results table. */
export interface ResultCell {
  /** `sft`, `rl`, or a baseline's name. */
  policy: string;
  /** Stage and k, e.g. `train-40`. */
  checkpoint: string;
  suite: string;
  split: Split;
  /** Attempts that count: the denominator. Masked ones are not in it. */
  n: number;
  successes: number;
  /** Attempts masked, by failure class. */
  masked: Record<string, number>;
  outcomes: Partial<Record<Outcome, number>>;
  /** The schedule or the person that asked for it; absent: the run itself. */
  schedule?: string;
  /** In instance order, for paired tests; null: masked. */
  perTask: { task: string; success: boolean | null }[];
}

/** `results.json` of a run. */
export interface Results {
  cells: ResultCell[];
}

/** Results with cells added; a cell of the same policy, checkpoint, suite, split and schedule takes the old one's place. */
export function withCells(results: Results, cells: readonly ResultCell[]): Results {
  const key = (c: ResultCell): string => [c.policy, c.checkpoint, c.suite, c.split, c.schedule ?? ''].join('\n');
  const fresh = new Map(cells.map((cell) => [key(cell), cell]));
  const kept = results.cells.map((cell) => {
    const replacement = fresh.get(key(cell)) ?? cell;
    fresh.delete(key(cell));
    return replacement;
  });
  return { cells: [...kept, ...fresh.values()] };
}
