import type { Command } from 'commander';
import type { Ancestor, MetricsRow, RunFolder } from '../store/index.ts';
import { checkpointIndex } from '../store/index.ts';
import type { ControlView, RunStatus } from '../workflows/types.ts';
import { alive, openHomeRun, serverAddress } from './home.ts';
import { STAGES } from './progress.ts';
import { tableOf } from './results-table.ts';
import type { Answer } from './server.ts';
import { troubleText } from './trouble.ts';
import type { Trouble } from './trouble.ts';

/** Where a run stands, read from its folder: works with or without its processes, which say the rest when they are up. */
export interface RunState {
  run: string;
  folder: string;
  /** Stage of the newest whole checkpoint; `start` before the first; `done` when the last update is evaluated. */
  stage: 'start' | 'sft' | 'warmup' | 'train' | 'done';
  /** What the running workflow is at, e.g. an evaluation; null when it does not run. */
  now: RunStatus['stage'] | null;
  /** Units of the stage done (SFT chunks, warm-ups, updates), and their number. */
  update: number;
  of: number;
  lastMetrics: MetricsRow | null;
  /** Pause and budget, as the running workflow says; null when there is none to ask. */
  control: ControlView | null;
  /** What it is trying again after a failure, as its server says. */
  trouble: Trouble[];
  /** `run@update` of the runs it branched from, the oldest first. */
  lineage: string[];
  /** Why a run that came to its end did so before its config says; null when it did not. */
  ended: string | null;
  processes: { role: string; pid: number | null; alive: boolean }[];
  evaluations: { policy: string; checkpoint: string; suite: string; split: string; n: number; successes: number }[];
}

export async function runState(run: RunFolder, answer: Answer | null = null): Promise<RunState> {
  const control = answer?.status?.control ?? null;
  const { sft, learn, evaluation } = run.config;
  const [latest, rows, { cells }, processes, { ended, lineage }] = await Promise.all([
    run.checkpoints.latest(),
    run.metrics.read(),
    run.results(),
    run.processes(),
    run.header(),
  ]);
  // A run that was given more updates, or less, counts up to those.
  const updates = control?.updates ?? learn.updates;
  const lengths = { sft: Math.ceil(sft.steps / sft.chunk), warmup: learn.warmup, train: updates };
  const update = latest === null ? 0 : checkpointIndex(latest);
  const stage = latest?.stage ?? 'start';
  const last = stage !== 'start' && update >= lengths[stage] && lastStage(lengths) === stage;
  const evaluated =
    Object.values(evaluation.instances).every((n) => n === 0) ||
    cells.some((cell) => cell.schedule === undefined && cell.checkpoint === `${stage}-${update}`);
  return {
    run: run.id,
    folder: run.dir,
    stage: last && evaluated ? 'done' : stage,
    now: answer?.status?.stage ?? null,
    update,
    of: Math.max(update, lengths[stage === 'start' ? 'sft' : stage]),
    lastMetrics: rows.at(-1) ?? null,
    control,
    trouble: answer?.trouble ?? [],
    lineage: Array.isArray(lineage) ? (lineage as Ancestor[]).map((from) => `${from.run}@${from.update}`) : [],
    ended: control === null && typeof ended === 'string' ? ended : null,
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
    `stage      ${NAMES[state.stage]} ${state.update} of ${state.of}${state.now === null ? '' : `; now: ${STAGES[state.now]}`}`,
  ];
  if (state.lineage.length > 0) lines.push(`branch of  ${state.lineage.join(' -> ')}`);
  if (state.ended !== null) lines.push(`ended      ${state.ended}; tapwright run goes on from here`);
  if (state.control !== null) lines.push(...controlLines(state.control));
  for (const trouble of state.trouble) lines.push(`trouble    ${troubleText(trouble)}`);
  const { stage, update, ...metrics } = state.lastMetrics ?? { stage: '', update: 0 };
  if (state.lastMetrics !== null) {
    lines.push(`metrics    of ${stage} ${update}`);
    for (const [key, value] of Object.entries(metrics)) lines.push(`  ${key.padEnd(28)} ${figure(value)}`);
  }
  if (state.processes.length > 0) {
    lines.push('processes');
    for (const { role, pid, alive: lives } of state.processes) {
      // Nothing lives: it was taken down as a whole.
      const gone = pid === null || !state.processes.some((process) => process.alive);
      lines.push(`  ${role.padEnd(12)} ${gone ? 'stopped' : `pid ${pid}${lives ? '' : ' (gone)'}`}`);
    }
  }
  if (table !== null) lines.push('', table);
  return lines.join('\n');
}

/** Pause and budget for a terminal. */
export function controlLines(control: ControlView): string[] {
  const { paused, budget, used, evaluationEvery, ends } = control;
  const of = (n: number, unit: string, bound: number | null): string =>
    `${Number.isInteger(n) ? n : n.toFixed(1)}${bound === null ? '' : ` of ${bound}`} ${unit}`;
  const every = evaluationEvery === 0 ? 'only at the end' : `every ${evaluationEvery} updates`;
  return [
    `control    ${paused ? 'paused' : 'running'}${ends === null ? '' : `, ending: ${ends}`}`,
    `budget     ${of(used.updates, 'updates', control.updates)}, ${of(used.minutes, 'minutes', budget.minutes)}, ${of(used.judgeCalls, 'judge calls', budget.judgeCalls)}`,
    `evaluation ${every}`,
  ];
}

function figure(value: unknown): string {
  if (typeof value !== 'number') return String(value ?? '-');
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}

/** `tapwright status <id> [--json]`. */
export function registerStatus(program: Command): void {
  program
    .command('status')
    .description('where a run stands: stage, update k of N, pause and budget, last metrics, processes with pid')
    .argument('<id>', 'the run')
    .option('--json', 'print it as JSON')
    .action(async (id: string, options: { json?: boolean }) => {
      const run = await openHomeRun(id);
      const state = await runState(run, await answerOf(id));
      const { cells } = await run.results();
      const text = options.json === true ? JSON.stringify(state, null, 2) : statusText(state, table(cells));
      process.stdout.write(`${text}\n`);
    });
}

/** What the running workflow says. The client is loaded only when there may be somebody to ask. */
async function answerOf(id: string): Promise<Answer | null> {
  const address = await serverAddress();
  return address === null ? null : (await import('./server.ts')).askRun(address, id);
}

function table(cells: Parameters<typeof tableOf>[0]): string | null {
  return cells.length === 0 ? null : tableOf(cells);
}
