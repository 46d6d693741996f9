import type { Command } from 'commander';
import type { MetricsRow, RunFolder } from '../store/index.ts';
import { checkpointIndex } from '../store/index.ts';
import { alive, openHomeRun } from './home.ts';
import { tableOf } from './results-table.ts';

/** Where a run stands, read from its folder: works with or without its processes. */
export interface RunState {
  run: string;
  folder: string;
  /** Stage of the newest whole checkpoint; `start` before the first; `done` when the last update is evaluated. */
  stage: 'start' | 'sft' | 'warmup' | 'train' | 'done';
  /** Units of the stage done (SFT chunks, warm-ups, updates), and their number. */
  update: number;
  of: number;
  lastMetrics: MetricsRow | null;
  processes: { role: string; pid: number | null; alive: boolean }[];
  evaluations: { policy: string; checkpoint: string; suite: string; split: string; n: number; successes: number }[];
}

export async function runState(run: RunFolder): Promise<RunState> {
  const { sft, learn, evaluation } = run.config;
  const [latest, rows, { cells }, processes] = await Promise.all([
    run.checkpoints.latest(),
    run.metrics.read(),
    run.results(),
    run.processes(),
  ]);
  const lengths = { sft: Math.ceil(sft.steps / sft.chunk), warmup: learn.warmup, train: learn.updates };
  const update = latest === null ? 0 : checkpointIndex(latest);
  const stage = latest?.stage ?? 'start';
  const last = stage !== 'start' && update >= lengths[stage] && lastStage(lengths) === stage;
  const evaluated =
    Object.values(evaluation.instances).every((n) => n === 0) ||
    cells.some((cell) => cell.checkpoint === `${stage}-${update}`);
  return {
    run: run.id,
    folder: run.dir,
    stage: last && evaluated ? 'done' : stage,
    update,
    of: stage === 'start' ? lengths.sft : lengths[stage],
    lastMetrics: rows.at(-1) ?? null,
    processes: processes.map(({ role, pid }) => ({ role, pid, alive: alive(pid) })),
    evaluations: cells.map(({ policy, checkpoint, suite, split, n, successes }) => ({
      policy,
      checkpoint,
      suite,
      split,
      n,
      successes,
    })),
  };
}

function lastStage(lengths: { sft: number; warmup: number; train: number }): 'sft' | 'warmup' | 'train' {
  if (lengths.train > 0) return 'train';
  return lengths.warmup > 0 ? 'warmup' : 'sft';
}

const NAMES: Record<RunState['stage'], string> = {
  start: 'demonstrations',
  sft: 'imitation (SFT), chunk',
  warmup: 'critic warm-up, update',
  train: 'policy update',
  done: 'done, policy update',
};

/** The state as text for a terminal. */
export function statusText(state: RunState, table: string | null): string {
  const lines = [
    `run        ${state.run}`,
    `folder     ${state.folder}`,
    `stage      ${NAMES[state.stage]} ${state.update} of ${state.of}`,
  ];
  const { stage, update, ...metrics } = state.lastMetrics ?? { stage: '', update: 0 };
  if (state.lastMetrics !== null) {
    lines.push(`metrics    of ${stage} ${update}`);
    for (const [key, value] of Object.entries(metrics)) lines.push(`  ${key.padEnd(28)} ${figure(value)}`);
  }
  if (state.processes.length > 0) {
    lines.push('processes');
    for (const { role, pid, alive: lives } of state.processes) {
      lines.push(`  ${role.padEnd(12)} ${pid === null ? 'stopped' : `pid ${pid}${lives ? '' : ' (gone)'}`}`);
    }
  }
  if (table !== null) lines.push('', table);
  return lines.join('\n');
}

function figure(value: unknown): string {
  if (typeof value !== 'number') return String(value ?? '-');
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}

/** `tapwright status <id> [--json]`. */
export function registerStatus(program: Command): void {
  program
    .command('status')
    .description('where a run stands: stage, update k of N, last metrics, processes with role and pid')
    .argument('<id>', 'the run')
    .option('--json', 'print it as JSON')
    .action(async (id: string, options: { json?: boolean }) => {
      const run = await openHomeRun(id);
      const state = await runState(run);
      const { cells } = await run.results();
      const text = options.json === true ? JSON.stringify(state, null, 2) : statusText(state, table(cells));
      process.stdout.write(`${text}\n`);
    });
}

function table(cells: Parameters<typeof tableOf>[0]): string | null {
  return cells.length === 0 ? null : tableOf(cells);
}
