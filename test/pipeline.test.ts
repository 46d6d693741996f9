import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDeviceActivities } from '../activities/device.ts';
import { createLearnActivities } from '../activities/learn.ts';
import { runBare } from '../bench/bare.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import { createRun, openRun } from '../store/index.ts';
import { workflowBundle } from '../workers/bundle.ts';
import { keepChild } from '../workers/child.ts';
import type { Kept } from '../workers/child.ts';
import { engineArgs, usablePort } from '../workers/engine-process.ts';
import { queues } from '../workflows/queues.ts';
import type { EpisodeInput } from '../workflows/episode.ts';
import { episodeSpec } from '../workflows/spec.ts';
import type { RunStatus, TrainingInput } from '../workflows/types.ts';
import { localTemporal } from './local-temporal.ts';

/** The whole pipeline, small: real server, engine process, simulated phones, learner. */
const config = runConfigSchema.parse({
  name: 'pipeline',
  seed: 3,
  suite: 'sim-phones',
  devices: { count: 16, faults: { crash: 0.1 } },
  sft: { demonstrations: 60, steps: 40, batch: 16, chunk: 20 },
  learn: { warmup: 2, updates: 2, tasks: 3, attempts: 3 },
  evaluation: { instances: { 'heldout-params': 6 } },
  rollout: { parcel: 3 },
  workflow: { continueAsNewEvery: 3 },
});
const RUN = 'pipeline';
const PREFIX = 'pipeline';
const site = { prefix: PREFIX, hosts: ['here'] };

let env: TestWorkflowEnvironment;
let home: string;
let engine: Kept;
let device: Awaited<ReturnType<typeof createDeviceActivities>>;
let learn: Awaited<ReturnType<typeof createLearnActivities>>;
let workers: Worker[];
let running: Promise<unknown>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tapwright-'));
  const port = await usablePort(undefined);
  const engineUrl = `http://127.0.0.1:${port}`;
  engine = keepChild({
    role: 'engine',
    script: 'engine/embedded/main.ts',
    args: engineArgs(home, port, config),
    env: { TF_CPP_MIN_LOG_LEVEL: '2' },
    logFile: join(home, 'engine.log'),
    onPid: () => {},
    onGiveUp: () => {},
    readyLine: (line) => line.startsWith('{'),
  });
  [env] = await Promise.all([localTemporal(), engine.ready]);
  await createRun(home, RUN, config, {});
  device = await createDeviceActivities({ home, engineUrl });
  learn = await createLearnActivities({ home, engineUrl });
  const names = queues(PREFIX);
  const connection = env.nativeConnection;
  workers = await Promise.all([
    Worker.create({
      connection,
      taskQueue: names.workflow,
      workflowBundle: { codePath: await workflowBundle(home) },
    }),
    Worker.create({ connection, taskQueue: names.device('here'), activities: { ...device.activities } }),
    Worker.create({ connection, taskQueue: names.learn, activities: { ...learn.activities } }),
  ]);
  running = Promise.all(workers.map((worker) => worker.run()));
}, 120_000);

afterAll(async () => {
  for (const worker of workers) worker.shutdown();
  await running;
  await device.close();
  await learn.close();
  await engine.stop();
  await env.teardown();
  await rm(home, { recursive: true, force: true });
}, 60_000);

describe('the pipeline', () => {
  let status: RunStatus;

  it('goes from demonstrations to the evaluation of the trained policy', async () => {
    const input: TrainingInput = { run: RUN, config, site };
    status = await env.client.workflow.execute('trainingRun', {
      workflowId: RUN,
      taskQueue: queues(PREFIX).workflow,
      args: [input],
    });
    expect(status).toMatchObject({ stage: 'done', update: 2, of: 2 });
    expect(status.evaluations.map((e) => e.update)).toEqual([0, 2]);
    const { cells } = await (await openRun(home, RUN)).results();
    expect(cells.map((cell) => [cell.policy, cell.checkpoint, cell.perTask.length])).toEqual([
      ['sft', 'sft-2', 6],
      ['rl', 'train-2', 6],
    ]);
  }, 180_000);

  it('leaves the policy alone in warm-up, to the bit, and trains on what was sampled (algorithms.md, 6 and 7)', async () => {
    const folder = await openRun(home, RUN);
    const rows = await folder.metrics.read();
    expect(rows.map((row) => [row.stage, row.update])).toEqual([
      ['sft', 1],
      ['sft', 2],
      ['warmup', 1],
      ['warmup', 2],
      ['train', 1],
      ['train', 2],
    ]);
    expect(rows[3]!['warmup/policy_unchanged']).toBe(1);
    for (const row of rows.slice(4)) expect(Math.abs(Number(row['ppo/ratio_mean_first']) - 1)).toBeLessThan(1e-5);
    const [before, after] = [await folder.checkpoints.get('sft', 2), await folder.checkpoints.get('warmup', 2)];
    expect(after!.weights).toBe(before!.weights);
  });

  it('trains one critic from the first warm-up to the last update', async () => {
    const folder = await openRun(home, RUN);
    const steps: number[] = [];
    for (const [stage, k] of [
      ['warmup', 1],
      ['warmup', 2],
      ['train', 1],
      ['train', 2],
    ] as const) {
      const bytes = Buffer.from(
        await folder.checkpoints.read((await folder.checkpoints.get(stage, k))!, 'critic.safetensors'),
      );
      const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))).toString('utf8');
      steps.push(Number((JSON.parse(header) as { __metadata__: { step: string } }).__metadata__.step));
    }
    // Adam's count of steps goes on: a critic that began anew would stand at the same few every time.
    const { epochs } = config.critic;
    steps.forEach((step, i) => expect(step).toBeGreaterThanOrEqual((steps[i - 1] ?? 0) + epochs));
  });

  it('comes out the same without Temporal, from an empty home and another engine process', async () => {
    const other = await mkdtemp(join(tmpdir(), 'tapwright-'));
    try {
      await createRun(other, 'another-name', config, {});
      await runBare(config, { run: 'another-name', home: other, onMetrics: () => {} });
      expect(await (await openRun(other, 'another-name')).digest()).toBe(status.digest);
    } finally {
      await rm(other, { recursive: true, force: true });
    }
  }, 180_000);

  it('goes on from its folder when its workflow is gone', async () => {
    const input: TrainingInput = { run: RUN, config, site };
    const again: RunStatus = await env.client.workflow.execute('trainingRun', {
      workflowId: `${RUN}-again`,
      taskQueue: queues(PREFIX).workflow,
      args: [input],
    });
    expect(again.digest).toBe(status.digest);
    expect(again.evaluations).toEqual(status.evaluations);
  }, 60_000);
});

describe('the two grains of durability', () => {
  it('write the same episode bytes for the same seeds (design.md, 3)', async () => {
    const { activities } = device;
    const policy = (await (await openRun(home, RUN)).checkpoints.latest())!.sampler;
    const indices = [11, 12, 13, 14];
    const tasks = await activities.tasks({ run: RUN, suite: config.suite, split: 'train', seed: 1, indices });
    const specs = tasks.map((task, draw): EpisodeSpec => {
      const key = { run: RUN, phase: 'train' as const, update: 900, draw, attempt: 0 };
      const spec = episodeSpec({ ...config, devices: { ...config.devices, faults: {} } }, key, task, policy);
      // A policy this young writes much that cannot be read: it gets more than one try.
      return { ...spec, temperature: 0, maxUnparseable: 4 };
    });
    const whole = await Promise.all(specs.map((spec) => activities.runEpisode(spec)));
    const stepwise = await Promise.all(
      specs.map((spec): Promise<EpisodeResult> => {
        const input: EpisodeInput = { spec, config, site, host: 'here' };
        const { draw } = spec.key;
        return env.client.workflow.execute('episode', {
          workflowId: `${RUN}/grain/${draw}`,
          taskQueue: queues(PREFIX).workflow,
          args: [input],
        });
      }),
    );
    expect(stepwise).toEqual(whole);
    expect(whole.every((result) => result.kind === 'finished')).toBe(true);
    expect(Math.max(...whole.map((result) => (result.kind === 'finished' ? result.steps : 0)))).toBeGreaterThan(1);
  }, 120_000);
});
