import { asTapwrightError } from '../../domain/errors.ts';
import { openRun } from '../../store/index.ts';
import type { MetricsRow, ResultCell, RunFolder } from '../../store/index.ts';
import { MAX_SERIES, lineChart, short } from '../report/charts.ts';
import type { Series } from '../report/charts.ts';
import type { ExperimentPlan } from './plan.ts';

/** What the runs of an experiment did on their way. */
export interface RunHistory {
  rows: readonly MetricsRow[];
  cells: readonly ResultCell[];
}
export type Histories = ReadonlyMap<string, RunHistory>;

/** Metrics and results of all runs of a plan that have begun. */
export async function readHistories(home: string, plan: ExperimentPlan): Promise<Histories> {
  const out = new Map<string, RunHistory>();
  const runs = new Set([...plan.rows, ...plan.curves].flatMap((of) => of.runs.map(({ run }) => run)));
  for (const run of runs) {
    const folder = await openRun(home, run).catch((error: unknown): RunFolder | null => {
      if (asTapwrightError(error).code === 'not_found') return null;
      throw error;
    });
    if (folder === null) continue;
    out.set(run, { rows: await folder.metrics.read(), cells: (await folder.results()).cells });
  }
  return out;
}

const COLUMNS = [
  'rollout/success',
  'reward/return_mean',
  'reward/dense_mean',
  'reward/terminal_mean',
  'episode/steps_mean',
  'rollout/masked',
  'ppo/entropy',
  'ppo/clip_fraction',
  'critic/explained_variance',
  'judge/wrong',
  'judge/believed_reasoning',
] as const;

/** One line a policy update of each run. */
export function curvesCsv(plan: ExperimentPlan, histories: Histories): string {
  const lines = [['arm', 'seed', 'update', ...COLUMNS].join(',')];
  for (const { arm, runs } of plan.curves) {
    for (const { seed, run } of runs) {
      for (const row of training(histories.get(run))) {
        lines.push([arm, seed, row.update, ...COLUMNS.map((key) => row[key] ?? '')].join(','));
      }
    }
  }
  return `${lines.join('\n')}\n`;
}

/** One line an evaluation of each run. */
export function evaluationsCsv(plan: ExperimentPlan, histories: Histories): string {
  const lines = ['arm,seed,update,split,n,successes,masked'];
  const runs = [...plan.rows, ...plan.curves].flatMap((of) =>
    of.runs.map(({ seed, run }) => ({ arm: of.arm, seed, run })),
  );
  const once = runs.filter(({ run }, i) => runs.findIndex((other) => other.run === run) === i);
  for (const { arm, seed, run } of once) {
    for (const cell of own(histories.get(run))) {
      const masked = Object.values(cell.masked).reduce((a, b) => a + b, 0);
      lines.push([arm, seed, updateOf(cell), cell.split, cell.n, cell.successes, masked].join(','));
    }
  }
  return `${lines.join('\n')}\n`;
}

const CHARTS: readonly { key: string; title: string; note: string; rate?: boolean }[] = [
  {
    key: 'rollout/success',
    title: 'Sampled success',
    note: 'of the attempts of each batch, mean of the seeds',
    rate: true,
  },
  { key: 'reward/return_mean', title: 'Return', note: 'a step, by the rewards of each arm, mean of the seeds' },
  { key: 'episode/steps_mean', title: 'Steps', note: 'an attempt, mean of the seeds' },
  { key: 'judge/wrong', title: 'Wrong verdicts', note: 'of all dense ones, against the rules', rate: true },
  {
    key: 'judge/believed_reasoning',
    title: 'Believed reasoning',
    note: 'steps called good for what was written',
    rate: true,
  },
];

/** Figures as HTML: at most so many arms in each as can be told apart. */
export function curveCharts(plan: ExperimentPlan, histories: Histories): string[] {
  const groups: ExperimentPlan['curves'][] = [];
  // An arm that has not begun to learn has no curve to show.
  const begun = plan.curves.filter(({ runs }) => runs.some(({ run }) => training(histories.get(run)).length > 0));
  for (let i = 0; i < begun.length; i += MAX_SERIES) groups.push(begun.slice(i, i + MAX_SERIES));
  const many = (i: number): string => (groups.length > 1 ? ` (${i + 1} of ${groups.length})` : '');
  const charts = CHARTS.flatMap(({ key, title, note, rate }) =>
    groups.map((group, i) => {
      const found = group.map(({ arm, runs }) => ({ arm, rows: runs.map(({ run }) => training(histories.get(run))) }));
      const x = updatesOf(found.flatMap(({ rows }) => rows.flat().map(({ update }) => update)));
      const series = found.map(({ arm, rows }): Series => ({ name: arm, values: x.map((k) => meanAt(rows, key, k)) }));
      return chart(`${title}${many(i)}`, note, x, series, rate);
    }),
  );
  const evaluated = (['validation', 'train', 'heldout-params'] as const).flatMap((split) =>
    groups.map((group, i) => {
      const found = group.map(({ arm, runs }) => ({
        arm,
        cells: runs.flatMap(({ run }) => own(histories.get(run)).filter((cell) => cell.split === split)),
      }));
      const x = updatesOf(found.flatMap(({ cells }) => cells.map(updateOf)));
      const series = found.map(({ arm, cells }): Series => {
        const rateAt = (k: number): number | null => {
          const there = cells.filter((cell) => updateOf(cell) === k);
          const n = there.reduce((sum, cell) => sum + cell.n, 0);
          return n === 0 ? null : there.reduce((sum, cell) => sum + cell.successes, 0) / n;
        };
        return { name: arm, values: x.map(rateAt) };
      });
      return chart(`Success, ${split}${many(i)}`, 'greedy, all seeds together', x, series, true);
    }),
  );
  return [...charts, ...evaluated].filter((figure) => figure !== '');
}

/** An axis of rates begins at 0 and is never narrower than this. */
const RATES = [0, 0.1];

function chart(title: string, note: string, x: number[], series: Series[], rate = false): string {
  if (x.length === 0) return '';
  const percents = { format: (v: number): string => `${short(100 * v)} %` };
  return lineChart({
    title,
    note,
    x,
    series,
    xName: 'update',
    include: rate ? RATES : [],
    legend: true,
    ...(rate ? percents : {}),
  });
}

const training = (history: RunHistory | undefined): MetricsRow[] =>
  (history?.rows ?? []).filter(({ stage }) => stage === 'train');
const own = (history: RunHistory | undefined): ResultCell[] =>
  (history?.cells ?? []).filter(({ schedule }) => schedule === undefined);
const updateOf = ({ policy, checkpoint }: ResultCell): number =>
  policy === 'sft' ? 0 : Number(checkpoint.split('-')[1] ?? 0);
const updatesOf = (updates: readonly number[]): number[] => [...new Set(updates)].sort((a, b) => a - b);

/** Mean over the runs that have come so far; null when none has. */
function meanAt(runs: readonly (readonly MetricsRow[])[], key: string, update: number): number | null {
  const values = runs
    .map((rows) => rows.find((row) => row.update === update)?.[key])
    .filter((value): value is number => typeof value === 'number');
  return values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;
}
