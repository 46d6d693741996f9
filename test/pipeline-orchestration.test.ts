import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeviceActivities, LearnActivities, PolicyRef } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { EpisodeResult, EpisodeSpec, TaskInstance } from '../domain/index.ts';
import { workflowBundle } from '../workers/bundle.ts';
import { queues } from '../workflows/queues.ts';
import type { RunStatus, TrainingInput } from '../workflows/types.ts';
import { localTemporal } from './local-temporal.ts';

/** Orchestration on a real Temporal server, with activities that do nothing: what runs, how often, in what order. */
const HISTORIES = fileURLToPath(new URL('./histories', import.meta.url));
let env: TestWorkflowEnvironment;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tapwright-'));
  env = await localTemporal();
}, 60_000);
afterAll(async () => {
  await env.teardown();
  await rm(home, { recursive: true, force: true });
});

const config = (set: object = {}): RunConfig =>
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
const finished = (spec: EpisodeSpec): EpisodeResult => ({
  kind: 'finished',
  id: `${spec.key.draw}/${spec.key.attempt}`,
  ref: 'sha256:x',
  outcome: 'success',
  steps: 1,
  dense: { success: 1, fail: 0, overcomplete: 0 },
});
const ref = (stage: PolicyRef['stage'], index: number): PolicyRef => ({ stage, index, sampler: `${stage}${index}` });

interface Fakes {
  device: Pick<DeviceActivities, 'tasks' | 'demonstrate' | 'runEpisode'>;
  learn: LearnActivities;
}
function fakes(log: string[]): Fakes {
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

async function withWorkers<T>(prefix: string, activities: Fakes, body: () => Promise<T>): Promise<T> {
  const names = queues(prefix);
  const connection = env.nativeConnection;
  const workers = await Promise.all([
    Worker.create({
      connection,
      taskQueue: names.workflow,
      workflowBundle: { codePath: await workflowBundle(home) },
    }),
    Worker.create({ connection, taskQueue: names.device('here'), activities: { ...activities.device } }),
    Worker.create({ connection, taskQueue: names.learn, activities: { ...activities.learn } }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  try {
    return await body();
  } finally {
    for (const worker of workers) worker.shutdown();
    await running;
  }
}

/** With TAPWRIGHT_SAVE_HISTORIES=1 the histories of a run become the saved ones that later versions are held to. */
async function saveHistories(ids: Record<string, string>): Promise<void> {
  if (process.env['TAPWRIGHT_SAVE_HISTORIES'] !== '1') return;
  for (const [scenario, workflowId] of Object.entries(ids)) {
    const history = await env.client.workflow.getHandle(workflowId).fetchHistory();
    await writeFile(join(HISTORIES, `${scenario}-sdk-1.24.0.json`), `${historyToJSON(history)}\n`);
  }
}

const start = (run: string, runConfig: RunConfig): Promise<RunStatus> => {
  const input: TrainingInput = { run, config: runConfig, site: { prefix: run, hosts: ['here'] } };
  return env.client.workflow.execute('trainingRun', {
    workflowId: run,
    taskQueue: queues(run).workflow,
    args: [input],
  }) as Promise<RunStatus>;
};

describe('saved histories', () => {
  it('replay with the workflows of today', async () => {
    const histories = async function* (): AsyncGenerator<{ workflowId: string; history: unknown }> {
      for (const file of await readdir(HISTORIES)) {
        yield { workflowId: file, history: JSON.parse(await readFile(join(HISTORIES, file), 'utf8')) };
      }
    };
    const names: string[] = [];
    const codePath = await workflowBundle(home);
    for await (const result of Worker.runReplayHistories({ workflowBundle: { codePath } }, histories())) {
      names.push(result.workflowId);
      // A break is reported, not thrown.
      expect(result.error, result.workflowId).toBeUndefined();
    }
    expect(names.length).toBeGreaterThanOrEqual(3);
  }, 60_000);
});

describe('a run on Temporal', () => {
  it('goes through every stage once, across continue-as-new, and says so', async () => {
    const log: string[] = [];
    const status = await withWorkers('whole', fakes(log), () => start('whole', config()));
    await saveHistories({ 'training-run': 'whole', 'policy-update': 'whole/u0002', evaluation: 'whole/eval/u0004' });
    expect(log).toEqual([
      'sft 0',
      'sft 1',
      'evaluation sft2',
      'warmup 1 6',
      'warmup 2 6',
      'train 1 6',
      'train 2 6',
      'train 3 6',
      'train 4 6',
      'evaluation train4',
    ]);
    expect(status).toMatchObject({
      stage: 'done',
      update: 4,
      of: 4,
      success: 0.5,
      report: 'report.html',
      digest: 'abc',
    });
    expect(status.evaluations.map((e) => [e.update, e.cells[0]!.n])).toEqual([
      [0, 4],
      [4, 4],
    ]);
  }, 60_000);

  it('rides out an engine outage and masks what stays broken', async () => {
    const log: string[] = [];
    const activities = fakes(log);
    const tries = new Map<string, number>();
    const seen: EpisodeResult[] = [];
    activities.device.runEpisode = async (spec) => {
      const id = `${spec.key.phase}${spec.key.update}/${spec.key.draw}/${spec.key.attempt}`;
      const n = (tries.get(id) ?? 0) + 1;
      tries.set(id, n);
      if (spec.key.phase === 'train' && spec.key.attempt === 0 && n === 1) {
        throw ApplicationFailure.create({ type: 'engine_unavailable', message: 'connection refused' });
      }
      if (spec.key.phase === 'train' && spec.key.draw === 1 && spec.key.attempt === 1) {
        return { kind: 'masked', id, failure: 'device_hung', message: 'no frame', step: 2 };
      }
      return finished(spec);
    };
    const learn = activities.learn.learn;
    activities.learn.learn = async (request) => (seen.push(...request.results), learn(request));
    const short = config({ learn: { warmup: 0, updates: 1, tasks: 3, attempts: 2 }, evaluation: { instances: {} } });
    const status = await withWorkers('outage', activities, () => start('outage', short));
    expect(status.stage).toBe('done');
    expect(seen.map((r) => r.kind)).toEqual(['finished', 'finished', 'finished', 'masked', 'finished', 'finished']);
    // Two infrastructure retries after the first try.
    expect(tries.get('train1/1/1')).toBe(3);
  }, 60_000);

  it('is not held by an attempt that never ends: it is cancelled and masked', async () => {
    const log: string[] = [];
    const activities = fakes(log);
    const seen: EpisodeResult[] = [];
    let cancelled = 0;
    activities.device.runEpisode = async (spec) => {
      if (spec.key.phase !== 'train' || spec.key.draw !== 1) return finished(spec);
      const beat = setInterval(() => Context.current().heartbeat(), 100);
      try {
        return await Context.current().cancelled;
      } finally {
        clearInterval(beat);
        cancelled += 1;
      }
    };
    const learn = activities.learn.learn;
    activities.learn.learn = async (request) => (seen.push(...request.results), learn(request));
    const learnt = { warmup: 0, updates: 1, tasks: 3, attempts: 1 };
    const short = config({ learn: learnt, rollout: { stragglerMs: 500 }, evaluation: { instances: {} } });
    const status = await withWorkers('stuck', activities, () => start('stuck', short));
    expect(status.stage).toBe('done');
    expect(seen.map((r) => (r.kind === 'masked' ? r.failure : r.kind))).toEqual(['finished', 'deadline', 'finished']);
    // The worker waits for its activities: the stuck one has heard of its end.
    expect(cancelled).toBe(1);
  }, 60_000);

  it('stops with the clear error when the failure is ours', async () => {
    const activities = fakes([]);
    activities.learn.learn = async () => {
      throw ApplicationFailure.create({
        type: 'disk_full',
        message: 'no space left while writing checkpoint 1: free some and resume',
        nonRetryable: true,
      });
    };
    const failure = await withWorkers('full', activities, () =>
      start('full', config()).then(
        () => null,
        (error: unknown) => error as Error & { cause?: Error & { cause?: Error } },
      ),
    );
    const messages: string[] = [];
    for (let e: unknown = failure; e instanceof Error; e = e.cause) messages.push(e.message);
    expect(messages.join(' | ')).toContain('free some and resume');
  }, 60_000);
});
