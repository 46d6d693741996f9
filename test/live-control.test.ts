import { WorkflowUpdateFailedError } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowBundle } from '../workers/bundle.ts';
import { fromFailure } from '../workflows/failures.ts';
import type { RunStatus } from '../workflows/types.ts';
import { config, fakes, finished, openStage, saveHistories, startRun, withWorkers } from './fake-run.ts';
import type { Stage } from './fake-run.ts';
import {
  COMPLETED,
  SCHEDULED,
  SIGNALED,
  chainOf,
  count,
  firstRunId,
  kindsOf,
  latch,
  statusOf,
  until,
  untilIdle,
  update,
} from './watch.ts';
import type { History } from './watch.ts';

/** Control of running runs, on a real Temporal server. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

describe('a paused run', () => {
  it('starts no attempt, and goes on where it was', async () => {
    const log: string[] = [];
    const activities = fakes(log);
    const held = latch();
    let begun = 0;
    activities.device.runEpisode = async (spec) => {
      if (spec.key.phase === 'train') {
        begun += 1;
        await held.wait;
      }
      return finished(spec);
    };
    const small = config({
      learn: { warmup: 0, updates: 2, tasks: 3, attempts: 2 },
      workflow: { maxConcurrentEpisodes: 2, continueAsNewEvery: 100 },
    });
    const status = await withWorkers(stage, 'paused', activities, async () => {
      const handle = await startRun(stage, 'paused', small);
      const batch = 'paused/u0001';
      // The tasks, and two attempts in flight.
      await until(stage.env.client, batch, (kinds) => count(kinds, SCHEDULED) === 3);
      expect(await update(handle, 'pause')).toMatchObject({ paused: true });
      expect((await statusOf(handle)).control!.paused).toBe(true);
      await untilIdle(stage.env.client, batch, (kinds) => count(kinds, SIGNALED) === 1);
      held.open();
      const kinds = await untilIdle(stage.env.client, batch, (all) => count(all, COMPLETED) === 3);
      // Both attempts came back and none took their place.
      expect(count(kinds, SCHEDULED)).toBe(3);
      expect(begun).toBe(2);
      expect(await update(handle, 'resume')).toMatchObject({ paused: false });
      const result = (await handle.result()) as RunStatus;
      await saveHistories(stage, {
        'pause-resume': { workflowId: 'paused' },
        'policy-update-paused': { workflowId: batch },
      });
      return result;
    });
    expect(status.stage).toBe('done');
    expect(begun).toBe(12);
    expect(log).toEqual(['sft 0', 'sft 1', 'evaluation sft2', 'train 1 6', 'train 2 6', 'evaluation train2']);
  }, 180_000);
});

describe('a budget', () => {
  it('holds across continue-as-new, and ends the run with an evaluation', async () => {
    const log: string[] = [];
    const activities = fakes(log);
    const held = latch();
    activities.learn.sftChunk = async () => {
      await held.wait;
      return { policy: { stage: 'sft', index: 1, sampler: 'sft' }, metrics: {} };
    };
    const reports: unknown[] = [];
    activities.learn.report = async (_run, ends) => (reports.push(ends), { path: 'report.html', digest: 'abc' });
    const long = config({
      learn: { warmup: 1, updates: 50, tasks: 1, attempts: 2 },
      workflow: { continueAsNewEvery: 1 },
    });
    const status = await withWorkers(stage, 'budget', activities, async () => {
      const handle = await startRun(stage, 'budget', long);
      await update(handle, 'setBudget', { updates: 4, minutes: 500 });
      await update(handle, 'setEvaluationEvery', 2);
      held.open();
      const result = (await handle.result()) as RunStatus;
      await saveHistories(stage, { 'continue-as-new': { workflowId: 'budget', runId: firstRunId(handle) } });
      return result;
    });
    expect(log.filter((line) => line.startsWith('evaluation'))).toEqual([
      'evaluation sft',
      'evaluation train2',
      'evaluation train4',
    ]);
    expect(status).toMatchObject({ stage: 'done', update: 4, of: 4 });
    // Warm-up and updates of two attempts each, evaluations of four: a step and a claim an attempt.
    expect(status.control).toMatchObject({
      budget: { updates: 4, minutes: 500, judgeCalls: null },
      used: { updates: 4, judgeCalls: 2 * (5 * 2 + 3 * 4) },
      ends: 'the budget of 4 updates is spent',
    });
    expect(reports).toEqual(['the budget of 4 updates is spent']);
  }, 180_000);

  it('that makes no sense is refused with a sentence, and changes nothing', async () => {
    const activities = fakes();
    const held = latch();
    activities.learn.sftChunk = async () => {
      await held.wait;
      return { policy: { stage: 'sft', index: 1, sampler: 'sft' }, metrics: {} };
    };
    await withWorkers(stage, 'refused', activities, async () => {
      const handle = await startRun(stage, 'refused', config());
      const before = (await statusOf(handle)).control!;
      const refusal = async (name: string, ...args: unknown[]): Promise<unknown> =>
        update(handle, name, ...args).then(
          () => null,
          (error: unknown) => {
            expect(error).toBeInstanceOf(WorkflowUpdateFailedError);
            return fromFailure((error as Error).cause);
          },
        );
      expect(await refusal('setBudget', { updates: 0 })).toMatchObject({
        code: 'invalid_input',
        message: expect.stringMatching(/positive whole number/) as string,
      });
      expect(await refusal('resume')).toMatchObject({ message: 'the run is not paused' });
      expect(await refusal('stopAfterUpdate', 99)).toMatchObject({ code: 'invalid_input' });
      const after = (await statusOf(handle)).control!;
      expect({ ...after, used: null }).toEqual({ ...before, used: null });
      await update(handle, 'stopAfterUpdate', null);
      held.open();
      expect(await handle.result()).toMatchObject({ stage: 'done', update: 0, control: { ends: 'stopped as asked' } });
    });
  }, 180_000);
});

describe('two hundred updates of control', () => {
  it('break nothing when no workflow stays in the cache', async () => {
    const log: string[] = [];
    const long = config({
      sft: { demonstrations: 0, steps: 0 },
      learn: { warmup: 0, updates: 5000, tasks: 2, attempts: 2 },
      evaluation: { instances: {} },
      workflow: { continueAsNewEvery: 7 },
    });
    let sent = 0;
    let chain: History[] = [];
    const body = async (): Promise<RunStatus> => {
      const handle = await startRun(stage, 'evicted', long);
      while (sent < 200) {
        await update(handle, 'pause');
        await update(handle, 'setBudget', { updates: 4000 + sent, judgeCalls: 1e6 });
        await update(handle, 'setEvaluationEvery', sent);
        await update(handle, 'resume');
        sent += 4;
      }
      await update(handle, 'stopAfterUpdate', null);
      const result = (await handle.result()) as RunStatus;
      chain = await chainOf(stage.env.client, handle);
      return result;
    };
    // One workflow of the two that are open at a time: each task starts with a replay.
    const status = await withWorkers(stage, 'evicted', fakes(log), body, { maxCachedWorkflows: 1 });
    expect(status.control).toMatchObject({ paused: false, budget: { updates: 4196 }, evaluationEvery: 196 });
    const updates = log.filter((line) => line.startsWith('train'));
    expect(updates).toEqual(updates.map((_, i) => `train ${i + 1} 4`));
    expect(updates.length).toBe(status.update);

    let accepted = 0;
    for (const history of chain) {
      const kinds = kindsOf(history);
      expect(count(kinds, 'EVENT_TYPE_WORKFLOW_TASK_FAILED')).toBe(0);
      accepted += count(kinds, 'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED');
    }
    expect(accepted).toBe(201);
    const codePath = await workflowBundle(stage.home);
    const histories = chain.map((history, i) => ({ workflowId: String(i), history }));
    for await (const result of Worker.runReplayHistories({ workflowBundle: { codePath } }, histories)) {
      expect(result.error).toBeUndefined();
    }
  }, 180_000);
});
