import type { Split } from '../../domain/index.ts';
import { comparePaired, hierarchicalBootstrap, wilsonInterval } from '../../rl/statistics.ts';
import type { Interval, PairedComparison } from '../../rl/statistics.ts';
import type { ResultCell } from '../../store/index.ts';
import { rowName } from './plan.ts';
import type { ExperimentPlan, PlannedRow } from './plan.ts';

/** The table of an experiment (algorithms.md, 14): pure, from the results of its runs. */

export interface PairedRows extends Omit<PairedComparison, 'both' | 'neither'> {
  /** Row names: `arm@fraction`. */
  row: string;
  reference: string;
}

export interface TableRow {
  arm: string;
  fraction: number;
  updates: number;
  note: string;
  /** Seeds whose run has come to this checkpoint. */
  seeds: number[];
  /** Attempts that count, of all seeds together. */
  n: number;
  successes: number;
  masked: Record<string, number>;
  /** Within the pooled attempts; null without any. */
  wilson: Interval | null;
  /** Tasks drawn with replacement, then runs within each. */
  bootstrap: ({ mean: number } & Interval) | null;
  paired: PairedRows | null;
}

export interface SplitTable {
  suite: string;
  split: Split;
  rows: TableRow[];
  comparisons: PairedRows[];
}

export interface ExperimentTable {
  experiment: string;
  title: string;
  scale: string | null;
  seeds: number[];
  splits: SplitTable[];
  /** Runs that have not come to what is reported of them. */
  missing: string[];
  footnotes: string[];
}

/** Results of a run by its id; null: it has not begun. */
export type ResultsOf = (run: string) => readonly ResultCell[] | null;

const SPLITS: readonly Split[] = ['heldout-params', 'heldout-skin', 'heldout-tasks', 'train', 'validation'];
const BOOTSTRAP = { seed: 14, replicates: 1000 };

/** The row's own evaluation in one run: by the run itself, at the checkpoint of the row. */
function cellOf(cells: readonly ResultCell[], row: PlannedRow, split: Split): ResultCell | null {
  const at = (cell: ResultCell): boolean =>
    row.policy === 'sft' ? cell.policy === 'sft' : cell.checkpoint === `train-${row.updates}`;
  return cells.find((cell) => cell.schedule === undefined && cell.split === split && at(cell)) ?? null;
}

/** All rows on all splits that were evaluated anywhere. The same results give the same table, to the byte. */
export function experimentTable(plan: ExperimentPlan, results: ResultsOf): ExperimentTable {
  const cells = new Map<string, readonly ResultCell[]>();
  const missing = new Set<string>();
  for (const row of plan.rows) {
    for (const { run } of row.runs) {
      const found = results(run) ?? [];
      cells.set(run, found);
      if (!SPLITS.some((split) => cellOf(found, row, split) !== null)) missing.add(run);
    }
  }
  const splits = SPLITS.flatMap((split): SplitTable[] => {
    const found = (row: PlannedRow): { seed: number; cell: ResultCell }[] =>
      row.runs.flatMap(({ seed, run }) => {
        const cell = cellOf(cells.get(run)!, row, split);
        return cell === null ? [] : [{ seed, cell }];
      });
    const evaluated = new Map(plan.rows.map((row) => [rowName(row), found(row)]));
    const compare = (row: string, reference: string): PairedRows | null => {
      const [a, b] = [evaluated.get(row) ?? [], evaluated.get(reference) ?? []];
      if (a.length === 0 || b.length === 0) return null;
      const { both: _both, neither: _neither, ...paired } = pairedOf(a, b);
      return { row, reference, ...paired };
    };
    const rows = plan.rows
      .filter((row) => evaluated.get(rowName(row))!.length > 0)
      .map((row) => {
        const { reference } = row;
        const paired = reference === null ? null : compare(rowName(row), reference);
        return tableRow(row, evaluated.get(rowName(row))!, paired);
      });
    const suite = [...evaluated.values()].flat()[0]?.cell.suite;
    if (suite === undefined) return [];
    return [{ suite, split, rows, comparisons: plan.comparisons.flatMap(([a, b]) => compare(a, b) ?? []) }];
  });
  const { id: experiment, title, scale, seeds } = plan;
  return { experiment, title, scale, seeds, splits, missing: [...missing].sort(), footnotes: footnotes(plan) };
}

function tableRow(row: PlannedRow, found: { seed: number; cell: ResultCell }[], paired: PairedRows | null): TableRow {
  const masked: Record<string, number> = {};
  for (const { cell } of found) {
    for (const [code, count] of Object.entries(cell.masked)) masked[code] = (masked[code] ?? 0) + count;
  }
  const n = found.reduce((sum, { cell }) => sum + cell.n, 0);
  const successes = found.reduce((sum, { cell }) => sum + cell.successes, 0);
  const byTask = new Map<string, number[]>();
  for (const { cell } of found) {
    for (const { task, success } of cell.perTask) {
      const runs = byTask.get(task) ?? [];
      byTask.set(task, runs);
      if (success !== null) runs.push(success ? 1 : 0);
    }
  }
  return {
    ...{ arm: row.arm, fraction: row.fraction, updates: row.updates, note: row.note },
    ...{ seeds: found.map(({ seed }) => seed), n, successes, masked },
    wilson: wilsonInterval(successes, n),
    bootstrap: hierarchicalBootstrap([...byTask.values()], BOOTSTRAP),
    paired,
  };
}

/** Pairs are the same task instance with the same seed; a masked side leaves its pair out. */
function pairedOf(a: { seed: number; cell: ResultCell }[], b: { seed: number; cell: ResultCell }[]): PairedComparison {
  const key = (seed: number, task: string): string => `${seed} ${task}`;
  const other = new Map(
    b.flatMap(({ seed, cell }) => cell.perTask.map(({ task, success }) => [key(seed, task), success] as const)),
  );
  const own = a.flatMap(({ seed, cell }) =>
    cell.perTask.flatMap(({ task, success }) => {
      const known = other.get(key(seed, task));
      return known === undefined ? [] : [[success, known] as const];
    }),
  );
  return comparePaired(
    own.map(([x]) => x),
    own.map(([, y]) => y),
  );
}

function footnotes({ rows, partial, seeds }: ExperimentPlan): string[] {
  const notes = [
    'Success is of the attempts that count, all seeds together; masked ones (failures of device, network or judge) are in no denominator.',
    'Wilson: 95 % of the pooled attempts, as if they were independent. Bootstrap: 95 %, tasks drawn with replacement, then runs within each: the one to go by across seeds.',
    'Paired: the same task instances with the same seed; McNemar, exact, two-sided.',
    'All arms of a seed begin with the same imitated policy, and all rows are of the same task instances. Tuning looks at train and validation only; held-out splits are evaluated at the checkpoints of this table and nowhere else.',
  ];
  if (rows.some(({ fraction }) => fraction > 0 && fraction < 1)) {
    notes.push(
      partial === 'checkpoint'
        ? 'A row at a fraction of the updates is the checkpoint there of the whole run, whose rate schedule goes on to its end: not a run that was planned to end there (partial: run makes those).'
        : 'A row at a fraction of the updates is a run of its own, whose rate schedule ends there (partial: run).',
    );
  }
  if (seeds.length < 3) notes.push(`Only ${seeds.length} of at least 3 seeds: no statement across seeds.`);
  return notes;
}
