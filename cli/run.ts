import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Command } from 'commander';
import type { EvaluationCell } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { Split } from '../domain/index.ts';
import { TapwrightError } from '../domain/errors.ts';
import { connectClient, createClient } from '../workers/connect.ts';
import { settings } from '../workers/settings.ts';
import { refuseSecondSupervisor, startSupervisor } from '../workers/supervisor.ts';
import type { Supervisor, SupervisorOptions } from '../workers/supervisor.ts';
import { evaluationId } from '../workflows/ids.ts';
import { requireEngine } from '../workers/engine-process.ts';
import { queues } from '../workflows/queues.ts';
import type { EvaluationInput, RunStatus, TrainingInput } from '../workflows/types.ts';
import { fromFailure } from '../workflows/failures.ts';
import { openHomeRun } from './home.ts';
import { createProgress, duration } from './progress.ts';
import { writeReport } from './report/command.ts';
import { resultsTable } from './results-table.ts';
import { openRunFolder } from './run-folder.ts';
import { troubleOf, troubleText } from './trouble.ts';
import type { Trouble } from './trouble.ts';
import type { OpenedRun } from './run-folder.ts';

/** A status is asked for so often, in milliseconds. */
const POLL_MS = 500;
/** What a run is trying again, so often. */
const TROUBLE_MS = 5_000;

interface RunOptions {
  id?: string;
  set: string[];
}

/** `tapwright run <config> [--id ID] [--set k=v]`. */
export function registerRun(program: Command): void {
  program
    .command('run')
    .description('train a policy as a config says; the same --id goes on where the run stands')
    .argument('<config>', 'YAML file, e.g. configs/smoke.yaml')
    .option('--id <id>', 'name of the run (default: from the config name)')
    .option('--set <key=value...>', 'change one key of the config, e.g. --set learn.updates=50', [])
    .action(async (config: string, options: RunOptions) => {
      await run(config, options);
    });
}

/** `tapwright eval <id> --suite S --split P --n N`. */
export function registerEval(program: Command): void {
  program
    .command('eval')
    .description("evaluate a run's latest policy on a suite")
    .argument('<id>', 'the run')
    .option('--suite <suite>', 'suite (default: the one it was trained on)')
    .option('--split <split>', 'train, heldout-params, heldout-skin, heldout-tasks or validation', 'heldout-params')
    .option('--n <n>', 'task instances', '200')
    .action(async (id: string, options: { suite?: string; split: string; n: string }) => {
      await evaluate(id, options);
    });
}

/** `tapwright worker --role R`: one worker in the foreground, for machines that join a run's site. */
export function registerWorker(program: Command): void {
  program
    .command('worker')
    .description('run one worker (workflow, device or learn) against TEMPORAL_ADDRESS')
    .requiredOption('--role <role>', 'workflow, device or learn')
    .option('--slots <n>', 'activities at once', '128')
    .action(async (options: { role: string; slots: string }) => {
      const { runWorker } = await import('../workers/worker.ts');
      await runWorker(options.role, Number(options.slots));
    });
}

async function run(configPath: string, options: RunOptions): Promise<void> {
  const opened = await openRunFolder({
    configPath,
    sets: options.set,
    before: async ({ engine }) => {
      await refuseSecondSupervisor();
      await requireEngine(engine.url);
    },
    ...(options.id === undefined ? {} : { id: options.id }),
  });
  const { id, folder, resumed } = opened;
  say(resumed ? `resuming run ${id} in ${folder}` : `run ${id} in ${folder}`);
  await train(opened);
}

/** Runs what a folder holds to its end: starts its processes, follows it, says how it came out. */
export async function train({ id, config, folder }: Pick<OpenedRun, 'id' | 'config' | 'folder'>): Promise<void> {
  await supervised(id, config, folder, async (client, supervisor) => {
    const site = settings();
    const names = queues(site.prefix);
    const input: TrainingInput = { run: id, config, site: { prefix: site.prefix, hosts: [site.host] } };
    const handle = await startOrAttach(client, 'trainingRun', id, names.workflow, [input]);
    const status = (await Promise.race([follow(client, handle), supervisor.failed])) as RunStatus;
    process.stdout.write(`\n${await resultsTable(folder)}\n`);
    say(`report: ${await writeReport(await openHomeRun(id))}`);
    if (status.digest !== null) say(`digest: ${status.digest}`);
  });
}

async function evaluate(id: string, options: { suite?: string; split: string; n: string }): Promise<void> {
  const n = Number(options.n);
  if (!Number.isInteger(n) || n < 1) {
    throw new TapwrightError('invalid_input', `--n is a positive whole number of task instances, not ${options.n}`);
  }
  const splits: readonly string[] = ['train', 'heldout-params', 'heldout-skin', 'heldout-tasks', 'validation'];
  if (!splits.includes(options.split)) {
    throw new TapwrightError('invalid_input', `--split is one of ${splits.join(', ')}, not ${options.split}`);
  }
  const { config, folder, policy } = await openRunFolder({ id });
  if (policy === null) {
    throw new TapwrightError(
      'not_found',
      `run ${id} has no checkpoint yet: go on with it first (tapwright run --id ${id})`,
    );
  }
  await supervised(id, config, folder, async (client, supervisor) => {
    const site = settings();
    const suite = options.suite ?? config.suite;
    const input: EvaluationInput = {
      run: id,
      config,
      site: { prefix: site.prefix, hosts: [site.host] },
      policy,
      suite,
      instances: { [options.split as Split]: n },
      label: `eval, n ${n}`,
    };
    const label = `${suite}-${options.split}-${n}`;
    const workflowId = evaluationId(id, policy.index, label);
    const handle = await startOrAttach(client, 'evaluation', workflowId, queues(site.prefix).workflow, [input]);
    const cells = (await Promise.race([handle.result(), supervisor.failed])) as EvaluationCell[];
    process.stdout.write(`${cellsTable(cells)}\n`);
    say(`of checkpoint ${policy.stage}-${policy.index}; kept in ${folder}/results.json beside the run's own results`);
  });
}

/** Starts what is missing, runs the body, takes all down again; on Ctrl-C the run stays where it is, resumable. */
export async function supervised(
  id: string,
  config: RunConfig,
  folder: string,
  body: (client: Client, supervisor: Supervisor) => Promise<void>,
  options: { goOn?: string; tell?: (line: string) => void } & Pick<SupervisorOptions, 'without'> = {},
): Promise<void> {
  const { without = [], tell = say, goOn = `tapwright run ${folder}/config.yaml --id ${id}` } = options;
  if (!without.includes('engine')) await requireEngine(config.engine.url);
  await mkdir(folder, { recursive: true });
  let supervisor: Supervisor | null = null;
  let interrupted = false;
  const onSignal = (): void => {
    if (interrupted) return;
    interrupted = true;
    tell(`\nstopping the processes; the run is kept: go on with  ${goOn}`);
    // One that is still starting is stopped when it has started: what it has begun is not left behind.
    if (supervisor !== null) void supervisor.stop().then(() => process.exit(130));
  };
  // From the first process on.
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    supervisor = await startSupervisor({ run: id, config, folder, say: tell, without });
    if (interrupted) {
      await supervisor.stop();
      process.exit(130);
    }
    const connection = await connectClient(supervisor.address);
    try {
      await Promise.race([supervisor.ready, supervisor.failed]);
      await body(createClient(connection), supervisor);
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (interrupted && supervisor !== null) await new Promise(() => {});
    throw fromFailure((error as { cause?: unknown }).cause instanceof Error ? (error as Error).cause : error);
  } finally {
    if (!interrupted) await supervisor?.stop();
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
}

/** The workflow of this id: the open one, or a new one. A closed one may be started again: its steps find their work done. */
export async function startOrAttach(
  client: Client,
  type: string,
  workflowId: string,
  taskQueue: string,
  args: unknown[],
): Promise<WorkflowHandle> {
  try {
    return await client.workflow.start(type, { workflowId, taskQueue, args, workflowIdReusePolicy: 'ALLOW_DUPLICATE' });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return client.workflow.getHandle(workflowId);
  }
}

/** How a workflow ends. A server that is away is waited for: its supervisor starts it again. */
export async function resultOf(handle: WorkflowHandle): Promise<unknown> {
  for (;;) {
    try {
      return await handle.result();
    } catch (error) {
      if (!unreachable(error)) throw error;
      await sleep(1_000);
    }
  }
}

/** Shows progress, or why there is none, until the run has ended; waits for a server that is away. */
async function follow(client: Client, handle: WorkflowHandle): Promise<unknown> {
  const tty = process.stdout.isTTY;
  const progress = createProgress({ tty, write: (text) => process.stdout.write(text), now: () => Date.now() });
  const startedAt = Date.now();
  let last: RunStatus | null = null;
  let trouble: Trouble | undefined;
  let askedAt = startedAt;
  let ended = false;
  const result = resultOf(handle).finally(() => {
    ended = true;
  });
  result.catch(() => {});
  while (!ended) {
    try {
      last = await handle.query<RunStatus>('status');
      if (Date.now() - askedAt >= TROUBLE_MS) {
        [trouble] = await troubleOf(client, handle.workflowId);
        askedAt = Date.now();
      }
      progress.show(last, trouble && troubleText(trouble));
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) break;
      if (last !== null && unreachable(error)) progress.show(last, 'waiting for the Temporal server');
    }
    await Promise.race([sleep(POLL_MS), result.catch(() => {})]);
  }
  progress.end();
  const status = (await result) as RunStatus;
  say(`done in ${duration((Date.now() - startedAt) / 1000)}`);
  return status;
}

/** True when an error says that the server is away. */
export function unreachable(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    // gRPC: 14 unavailable, 4 deadline exceeded, 1 cancelled with the connection.
    if (code === 14 || code === 4 || code === 1 || e.name === 'ServiceError') return true;
  }
  return false;
}

function cellsTable(cells: readonly EvaluationCell[]): string {
  return cells
    .map((cell) => {
      const masked = Object.values(cell.masked).reduce((a, b) => a + b, 0);
      const rate = cell.n === 0 ? '-' : `${((100 * cell.success) / cell.n).toFixed(1)} %`;
      return `${cell.suite} ${cell.split}: ${rate} (${cell.success} of ${cell.n}, ${masked} masked)`;
    })
    .join('\n');
}

/** A line of a command's output. */
export function say(line: string): void {
  // A line of progress may stand there.
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[2K' : ''}${line}\n`);
}
