import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import type { DeviceActivities, LearnActivities, PolicyRef } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { EpisodeResult, EpisodeSpec, TaskInstance } from '../domain/index.ts';
import { workflowBundle } from '../workers/bundle.ts';
import { dataConverter } from '../workers/claim-check.ts';
import { queues } from '../workflows/queues.ts';
import type { TrainingInput } from '../workflows/types.ts';
import { localTemporal } from './local-temporal.ts';

/** Orchestration on a real Temporal server with activities that do nothing: what tests of workflows share. */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const HISTORIES = fileURLToPath(new URL('./histories', import.meta.url));

export const config = (set: object = {}): RunConfig =>
  runConfigSchema.parse({
    name: 'orchestration',
    seed: 1,
    suite: 'sim-phones',
    sft: { demonstrations: 300, steps: 100, chunk: 50 },
    learn: { warmup: 2, updates: 4, tasks: 3, attempts: 2 },
    evaluation: { instances: { train: 4 } },
    workflow: { continueAsNewEvery: 3 },
    ...set,
  });
export const finished = (spec: EpisodeSpec): EpisodeResult => ({
  kind: 'finished',
  id: `${spec.key.draw}/${spec.key.attempt}`,
  ref: 'sha256:x',
  outcome: 'success',
  steps: 1,
  dense: { success: 1, fail: 0, overcomplete: 0 },
});
export const ref = (stage: PolicyRef['stage'], index: number): PolicyRef => ({
  stage,
  index,
  sampler: `${stage}${index}`,
});

export interface Fakes {
  device: Pick<DeviceActivities, 'tasks' | 'demonstrate' | 'runEpisode'> & Partial<DeviceActivities>;
  learn: LearnActivities;
}
export function fakes(log: string[] = []): Fakes {
  return {
    device: {
      tasks: async ({ indices }) => indices.map((seed) => ({ id: String(seed), seed }) as TaskInstance),
      demonstrate: async ({ from, to }) => ({ ref: 'sha256:d', demonstrations: to - from, rows: 1 }),
      runEpisode: async (spec) => finished(spec),
    },
    learn: {
      openRun: async () => ({ sftChunks: 0, warmups: 0, updates: 0, policy: null, evaluations: [] }),
      sftChunk: async ({ chunk }) => (log.push(`sft ${chunk}`), { policy: ref('sft', chunk + 1), metrics: {} }),
      learn: async ({ phase, update, results }) => {
        log.push(`${phase} ${update} ${results.length}`);
        return { kind: 'done', policy: ref(phase, update), metrics: { 'rollout/success': 0.5, 'rollout/masked': 0 } };
      },
      evaluationDue: async () => ref('train', 1),
      recordEvaluation: async ({ policy, suite, cells }) => {
        log.push(`evaluation ${policy.sampler}`);
        return cells.map(({ split, results }) => {
          const n = results.length;
          return { suite, split, n, success: n, masked: {}, outcomes: {}, wins: results.map(() => 1 as const) };
        });
      },
      report: async () => ({ path: 'report.html', digest: 'abc' }),
    },
  };
}

export interface Stage {
  env: TestWorkflowEnvironment;
  /** Home of the workflow bundle. */
  home: string;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const home = await mkdtemp(join(tmpdir(), 'tapwright-'));
  const env = await localTemporal();
  return {
    env,
    home,
    close: async () => {
      await env.teardown();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The body with workers of all roles beside it. `workflow`: options of the workflow worker. */
export async function withWorkers<T>(
  { env, home }: Stage,
  prefix: string,
  activities: Fakes,
  body: () => Promise<T>,
  workflow: Partial<WorkerOptions> = {},
): Promise<T> {
  const names = queues(prefix);
  const common = { connection: env.nativeConnection, dataConverter: dataConverter(home) };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      taskQueue: names.workflow,
      workflowBundle: { codePath: await workflowBundle(home) },
      ...workflow,
    }),
    Worker.create({ ...common, taskQueue: names.device('here'), activities: { ...activities.device } }),
    Worker.create({ ...common, taskQueue: names.learn, activities: { ...activities.learn } }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  try {
    return await body();
  } finally {
    for (const worker of workers) worker.shutdown();
    await running;
  }
}

/** A run's workflow, just started. */
export function startRun({ env }: Stage, run: string, runConfig: RunConfig): Promise<WorkflowHandle> {
  const input: TrainingInput = { run, config: runConfig, site: { prefix: run, hosts: ['here'] } };
  return env.client.workflow.start('trainingRun', {
    workflowId: run,
    taskQueue: queues(run).workflow,
    args: [input],
  });
}

export interface SavedHistory {
  workflowId: string;
  /** Default: the last of its chain. */
  runId?: string;
}

/** With TAPWRIGHT_SAVE_HISTORIES=1 the histories of a test become the saved ones that later versions are held to. */
export async function saveHistories({ env }: Stage, histories: Record<string, SavedHistory>): Promise<void> {
  if (process.env['TAPWRIGHT_SAVE_HISTORIES'] !== '1') return;
  for (const [scenario, { workflowId, runId }] of Object.entries(histories)) {
    const history = await env.client.workflow.getHandle(workflowId, runId).fetchHistory();
    // Stack traces name the folder that the project lies in.
    const text = historyToJSON(history).replaceAll(ROOT, '');
    await writeFile(historyFile(scenario), `${text}\n`);
  }
}

export const historyFile = (scenario: string): string => join(HISTORIES, `${scenario}-sdk-1.24.0.json`);

export async function readHistory(file: string): Promise<unknown> {
  return JSON.parse(await readFile(file, 'utf8'));
}
