import { relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Command } from 'commander';
import { SCALES } from '../../configs/scale.ts';
import type { Scale } from '../../configs/scale.ts';
import { TapwrightError } from '../../domain/errors.ts';
import { experimentDir, openExperiment, openRun, readPlan } from '../../store/index.ts';
import type { RunFolder } from '../../store/index.ts';
import { settings } from '../../workers/settings.ts';
import { refuseSecondSupervisor } from '../../workers/supervisor.ts';
import { experimentWorkflowId } from '../../workflows/ids.ts';
import { queues } from '../../workflows/queues.ts';
import type { ExperimentInput, ExperimentStatus, ExperimentUnit, RunStatus } from '../../workflows/types.ts';
import { machineHeader } from '../run-folder.ts';
import { resultOf, say, supervised, unreachable } from '../run.ts';
import { onlyArms, planExperiment, refuseEdits } from './plan.ts';
import type { ExperimentPlan, PlannedUnit } from './plan.ts';
import { createExperimentProgress } from './progress.ts';
import { writeExperimentReport } from './report.ts';

/** How it stands is asked for so often, in milliseconds. */
const POLL_MS = 500;

interface ExperimentCommand {
  id?: string;
  scale?: string;
  seeds?: string;
  only?: string;
  concurrency?: string;
}

/** `tapwright experiment FILE [--scale S] [--seeds 1,2,3] [--only arm,...]`, `tapwright experiment status|report ID`. */
export function registerExperiment(program: Command): void {
  const experiment = program
    .command('experiment')
    .description('arms x seeds of an experiment file as one durable workflow, and a table with paired tests');
  experiment
    .command('run', { isDefault: true })
    .description('make the runs that are not made yet; the same command goes on where it stands')
    .argument('<file>', 'YAML file, e.g. configs/experiments/paper-table.yaml')
    .option('--id <id>', 'name of the experiment (default: its own, with the scale)')
    .option('--scale <scale>', `dial of all arms: ${SCALES.join(', ')}`)
    .option('--seeds <seeds>', 'seeds with commas between, e.g. 1,2,3')
    .option('--only <arms>', 'only these arms, with commas between')
    .option('--concurrency <n>', 'runs at once')
    .action(async (file: string, options: ExperimentCommand) => {
      await run(file, options);
    });
  experiment
    .command('status')
    .description('which runs are made, and how far the others are')
    .argument('<id>', 'the experiment')
    .action(async (id: string) => {
      const { home } = settings();
      process.stdout.write(`${await statusText(home, await readPlan<SavedPlan>(home, id))}\n`);
    });
  experiment
    .command('report')
    .description('write table.md, table.json, curves.csv and report.html anew, from what there is now')
    .argument('<id>', 'the experiment')
    .action(async (id: string) => {
      const { home } = settings();
      const { markdown, html } = await writeExperimentReport(home, (await readPlan<SavedPlan>(home, id)).plan);
      process.stdout.write(`${markdown}\nreport: ${html}\n`);
    });
}

/** experiment.json: the plan, and the runs that it asks for. */
interface SavedPlan {
  plan: ExperimentPlan;
  runs: { arm: string; run: string; seed: number; updates: number }[];
}

async function run(file: string, options: ExperimentCommand): Promise<void> {
  const { home } = settings();
  const { plan, units } = planExperiment({
    path: file,
    ...(options.id === undefined ? {} : { id: options.id }),
    ...(options.scale === undefined ? {} : { scale: scaleOf(options.scale) }),
    ...(options.seeds === undefined ? {} : { seeds: seedsOf(options.seeds) }),
  });
  // An id that cannot be one is said before anything is made.
  experimentDir(home, plan.id);
  const concurrency = options.concurrency === undefined ? plan.concurrency : countOf(options.concurrency);
  const wanted = options.only === undefined ? units : onlyArms(units, list(options.only));
  await refuseEdits(home, plan.id, units);
  const { suite, tasks } = wanted[0]!.config;
  if (tasks.only.length + tasks.without.length > 0) (await import('../../suites/index.ts')).getSuite(suite, tasks);
  await refuseSecondSupervisor();

  const folder = await openExperiment(home, plan.id);
  const runs = units.map(({ arm, run: id, config }) => ({
    arm,
    run: id,
    seed: config.seed,
    updates: config.learn.updates,
  }));
  const saved: SavedPlan = { plan, runs };
  await folder.write('experiment.json', `${JSON.stringify(saved, null, 2)}\n`);
  say(`experiment ${plan.id} in ${folder.dir}: ${wanted.length} runs, ${concurrency} at a time`);

  const goOn = `tapwright ${process.argv.slice(2).join(' ')}`;
  let failed: ExperimentStatus['units'] = [];
  await supervised(
    plan.id,
    wanted[0]!.config,
    folder.dir,
    async (client, supervisor) => {
      const input = {
        experiment: plan.id,
        site: { prefix: settings().prefix, hosts: [settings().host] },
        units: wanted.map(({ run: id, config, from }): ExperimentUnit => ({ run: id, config, from })),
        concurrency,
        header: await machineHeader(),
      };
      failed = await Promise.race([drive(client, input, wanted, await finishedRuns(home, wanted)), supervisor.failed]);
    },
    { goOn, tell: say },
  );
  const { markdown, html } = await writeExperimentReport(home, plan);
  process.stdout.write(`\n${markdown}\n`);
  say(`report: ${html}`);
  if (failed.length === 0) return;
  const told = failed.map(({ run: id, why }) => `${id}: ${why ?? 'unknown'}`).join('\n');
  throw new TapwrightError(
    'internal',
    `${failed.length} of ${wanted.length} runs failed; the same command tries them again:\n${told}`,
  );
}

/** Begins the workflow, or joins the one that is open, until all that is wanted is made or has failed. Those that failed. */
async function drive(
  client: Client,
  input: ExperimentInput,
  wanted: readonly PlannedUnit[],
  before: ReadonlySet<string>,
): Promise<ExperimentStatus['units']> {
  const tty = process.stdout.isTTY;
  const progress = createExperimentProgress({
    ...{ units: wanted, before, tty },
    write: (text) => process.stdout.write(text),
    now: () => Date.now(),
  });
  for (;;) {
    const handle = await begin(client, input);
    const { units } = await follow(client, handle, progress);
    const known = new Map(units.map((unit) => [unit.run, unit]));
    // Told of these in its last moment, an open workflow may have ended without them: a new one makes them.
    if (!wanted.every(({ run: id }) => known.has(id) && known.get(id)!.state !== 'waiting')) continue;
    progress.end();
    return units.filter(({ state }) => state === 'failed');
  }
}

async function begin(client: Client, input: ExperimentInput): Promise<WorkflowHandle> {
  const workflowId = experimentWorkflowId(input.experiment);
  for (;;) {
    try {
      return await client.workflow.start('experiment', {
        ...{ workflowId, taskQueue: queues(input.site.prefix).workflow, args: [input] },
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const open = client.workflow.getHandle(workflowId);
    try {
      await open.signal('wanted', input.units);
      return open;
    } catch (error) {
      // It ended in between.
      if (unreachable(error)) throw error;
      await sleep(POLL_MS);
    }
  }
}

async function follow(
  client: Client,
  handle: WorkflowHandle,
  progress: ReturnType<typeof createExperimentProgress>,
): Promise<ExperimentStatus> {
  let ended = false;
  const result = resultOf(handle).finally(() => (ended = true));
  result.catch(() => {});
  while (!ended) {
    try {
      const status = await handle.query<ExperimentStatus>('experiment');
      const running = new Map<string, RunStatus>();
      for (const { run: id, state } of status.units) {
        if (state !== 'running') continue;
        // It may not have begun yet, or have just ended.
        const live = await client.workflow
          .getHandle(id)
          .query<RunStatus>('status')
          .catch(() => null);
        if (live !== null) running.set(id, live);
      }
      if (!ended) progress.show(status, running);
    } catch (error) {
      if (unreachable(error)) await sleep(POLL_MS);
    }
    await Promise.race([sleep(POLL_MS), result.catch(() => {})]);
  }
  return (await result) as ExperimentStatus;
}

/** Runs that came to their end before. */
async function finishedRuns(home: string, units: readonly PlannedUnit[]): Promise<Set<string>> {
  const out = new Set<string>();
  for (const unit of units) {
    const folder = await existing(home, unit.run);
    if (folder !== null && (await folder.header())['ended'] === null) out.add(unit.run);
  }
  return out;
}

const existing = (home: string, id: string): Promise<RunFolder | null> => openRun(home, id).catch(() => null);

/** From the folders of the runs: nothing needs to be up. */
async function statusText(home: string, { plan, runs }: SavedPlan): Promise<string> {
  const lines: string[] = [];
  let done = 0;
  for (const { arm, run: id, seed, updates } of runs) {
    const folder = await existing(home, id);
    let state = 'not begun';
    if (folder !== null && (await folder.header())['ended'] === null) {
      state = 'done';
      done += 1;
    } else if (folder !== null) {
      const newest = (await folder.checkpoints.list()).at(-1);
      const stage = newest === undefined ? 'begun' : `${newest.stage} ${newest.k}`;
      state = newest?.stage === 'train' ? `update ${newest.k} of ${updates}` : stage;
    }
    lines.push(`${arm.padEnd(24)} seed ${String(seed).padEnd(6)} ${state.padEnd(20)} ${id}`);
  }
  const where = relative(process.cwd(), experimentDir(home, plan.id));
  return [`experiment ${plan.id}: ${done} of ${runs.length} runs done, in ${where}`, ...lines].join('\n');
}

const list = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

function scaleOf(text: string): Scale {
  const scale = SCALES.find((known) => known === text);
  if (scale === undefined)
    throw new TapwrightError('invalid_input', `--scale is one of ${SCALES.join(', ')}, not ${text}`);
  return scale;
}

function seedsOf(text: string): number[] {
  const seeds = list(text).map(Number);
  if (seeds.length > 0 && seeds.every((seed) => Number.isInteger(seed) && seed >= 0)) return seeds;
  throw new TapwrightError('invalid_input', `--seeds are whole numbers with commas between, e.g. 1,2,3, not ${text}`);
}

function countOf(text: string): number {
  const n = Number(text);
  if (Number.isInteger(n) && n >= 1 && n <= 16) return n;
  throw new TapwrightError('invalid_input', `--concurrency is a whole number from 1 to 16, not ${text}`);
}
