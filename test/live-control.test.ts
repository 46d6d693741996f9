import { createHash } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDirectPorts } from '../activities/episode-ports.ts';
import { asActivity } from '../activities/heartbeat.ts';
import { createGrounderRouter } from '../agent/grounder.ts';
import type { Planner } from '../agent/planner.ts';
import { createRuleUser } from '../agent/user.ts';
import { createLeaseTable } from '../devices/leases.ts';
import type { EpisodeResult, Intent } from '../domain/index.ts';
import { createRuleJudge } from '../judges/rule.ts';
import { canonicalJson } from '../store/canonical-json.ts';
import { workflowBundle } from '../workers/bundle.ts';
import { fromFailure } from '../workflows/failures.ts';
import type { ControlView, RunStatus } from '../workflows/types.ts';
import { config, fakes, finished, openStage, saveHistories, startRun, withWorkers } from './fake-run.ts';
import type { Fakes, Stage } from './fake-run.ts';
import { createToyBackend, toyTask } from './toy-phone.ts';

/** Control of running runs, on a real Temporal server. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

const update = (handle: WorkflowHandle, name: string, ...args: unknown[]): Promise<ControlView> =>
  handle.executeUpdate<ControlView, [unknown]>(name, { args: args as [unknown] });
const statusOf = (handle: WorkflowHandle): Promise<RunStatus> => handle.query<RunStatus>('status');

const { EventType } = temporal.api.enums.v1;
type Kind = keyof typeof EventType;
type History = temporal.api.history.v1.IHistory;
const historyOf = (workflowId: string, runId?: string): Promise<History> =>
  stage.env.client.workflow.getHandle(workflowId, runId).fetchHistory();
const kindsOf = (history: History): Kind[] =>
  (history.events ?? []).map((event) => EventType[event.eventType!] as Kind);
/** Kinds of the events of a workflow so far, in order; none before it was started. */
const events = (workflowId: string): Promise<Kind[]> => historyOf(workflowId).then(kindsOf, () => []);
/** All executions of a run, from continue-as-new to continue-as-new. */
async function chainOf(handle: WorkflowHandle): Promise<History[]> {
  const chain: History[] = [];
  for (let runId: string | null | undefined = firstRunId(handle); typeof runId === 'string';) {
    const history = await historyOf(handle.workflowId, runId);
    chain.push(history);
    runId = history.events!.at(-1)!.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return chain;
}
const SIGNALED: Kind = 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED';
const SCHEDULED: Kind = 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED';
const COMPLETED: Kind = 'EVENT_TYPE_ACTIVITY_TASK_COMPLETED';
const TASK_DONE: Kind = 'EVENT_TYPE_WORKFLOW_TASK_COMPLETED';
const count = (kinds: Kind[], kind: Kind): number => kinds.filter((other) => other === kind).length;
/** Waits until the events of a workflow are as said. */
async function until(workflowId: string, test: (kinds: Kind[]) => boolean): Promise<Kind[]> {
  for (;;) {
    const kinds = await events(workflowId);
    if (test(kinds)) return kinds;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
/** The same, and it has dealt with the last of them and had nothing to do. */
const untilIdle = (workflowId: string, test: (kinds: Kind[]) => boolean): Promise<Kind[]> =>
  until(workflowId, (kinds) => kinds.at(-1) === TASK_DONE && test(kinds));

/** Something that a test lets happen. */
function latch(): { wait: Promise<void>; open: () => void } {
  let open = (): void => {};
  const wait = new Promise<void>((resolve) => (open = resolve));
  return { wait, open };
}

/** First execution of a run's chain. */
const firstRunId = (handle: WorkflowHandle): string =>
  (handle as { firstExecutionRunId?: string }).firstExecutionRunId!;

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
      await until(batch, (kinds) => count(kinds, SCHEDULED) === 3);
      expect(await update(handle, 'pause')).toMatchObject({ paused: true });
      expect((await statusOf(handle)).control!.paused).toBe(true);
      await untilIdle(batch, (kinds) => count(kinds, SIGNALED) === 1);
      held.open();
      const kinds = await untilIdle(batch, (all) => count(all, COMPLETED) === 3);
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
      chain = await chainOf(handle);
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

/** Two toy phones that are driven step by step, and what is recorded of them. */
function toyRooms(): { activities: Fakes; records: Map<string, string>; pass: (ms: number) => void } {
  let time = 0;
  const records = new Map<string, string>();
  const results: string[] = [];
  const intentOf = (app: string, wifi: boolean): Intent => {
    if (app === 'phone') return { kind: 'tap', target: 'settings' };
    return wifi ? { kind: 'task_complete', claim: 'done' } : { kind: 'tap', target: 'wifi' };
  };
  const planner: Planner = {
    plan: async (spec, _t, _task, screen) => {
      const on = screen.outline!.some((element) => element.label === 'wifi' && element.value === 'on');
      // Every other attempt gives up at once, so that records differ.
      const lazy: Intent = { kind: 'task_complete', claim: 'done' };
      const intent = spec.key.attempt % 2 === 1 ? lazy : intentOf(screen.app ?? '', on);
      const sample = { promptTokens: [1], responseTokens: [2], logprobs: [-1], hidden: null, allowed: null, text: '' };
      return { sample, plan: { reasoning: '', text: JSON.stringify(intent), intent, remaining: '' } };
    },
  };
  const ports = createDirectPorts({
    backend: createToyBackend(),
    leases: createLeaseTable({ devices: 2, ttlMs: 1000, now: () => time }),
    planner,
    grounder: createGrounderRouter(),
    user: createRuleUser(),
    judge: createRuleJudge(),
    pixels: null,
  });
  const activities = fakes();
  activities.device = {
    ...activities.device,
    tasks: async ({ indices }) => indices.map((seed) => ({ ...toyTask('wifi'), id: `toy/wifi/${seed}`, seed })),
    openEpisode: asActivity(ports.open),
    stepEpisode: asActivity(ports.step),
    judgeStep: asActivity(ports.judgeStep),
    judgeOutcome: asActivity(ports.judgeOutcome),
    closeEpisode: asActivity(ports.close),
    recordEpisode: async (episode): Promise<EpisodeResult> => {
      const bytes = canonicalJson({ ...episode, key: { ...episode.key, run: '' } });
      const ref = createHash('sha256').update(bytes).digest('hex');
      records.set(episode.id, ref);
      const dense = { success: 0, fail: 0, overcomplete: 0 };
      for (const step of episode.steps) dense[step.dense] += 1;
      const { id, outcome, steps } = episode;
      return { kind: 'finished', id, ref, outcome, steps: steps.length, dense };
    },
  };
  const { learn } = activities.learn;
  activities.learn.learn = async (request) => {
    results.push(canonicalJson(request.results));
    return learn(request);
  };
  activities.learn.report = async () => ({
    path: '',
    digest: createHash('sha256').update(results.join('\n')).digest('hex'),
  });
  return { activities, records, pass: (ms) => void (time += ms) };
}

describe('an attempt of many steps', () => {
  const stepwise = config({
    sft: { demonstrations: 0, steps: 0 },
    learn: { warmup: 0, updates: 2, tasks: 2, attempts: 2 },
    rollout: { grain: 'step', infraRetries: 0 },
    evaluation: { instances: {} },
    workflow: { maxConcurrentEpisodes: 2 },
  });

  it.each([
    ['shorter than its lease', 0, 1],
    ['longer than its lease: it starts again, and nothing is masked', 60_000, 2],
  ])(
    'comes out the same after a pause %s',
    async (_how, pauseMs, openings) => {
      const whole = toyRooms();
      const quiet = `quiet-${pauseMs}`;
      const expected = (await withWorkers(stage, quiet, whole.activities, async () =>
        (await startRun(stage, quiet, stepwise)).result(),
      )) as RunStatus;

      const { activities, records, pass } = toyRooms();
      const [reached, held] = [latch(), latch()];
      const { stepEpisode, openEpisode } = activities.device;
      let opened = 0;
      const watched = (key: { update: number; draw: number; attempt: number }): boolean =>
        key.update === 1 && key.draw === 0 && key.attempt === 0;
      activities.device.openEpisode = (spec) => {
        if (watched(spec.key)) opened += 1;
        return openEpisode!(spec);
      };
      activities.device.stepEpisode = async (request) => {
        if (watched(request.spec.key) && request.t === 1) {
          reached.open();
          await held.wait;
        }
        return stepEpisode!(request);
      };
      const run = `disturbed-${pauseMs}`;
      const status = await withWorkers(stage, run, activities, async () => {
        const handle = await startRun(stage, run, stepwise);
        await reached.wait;
        const attempt = `${run}/u0001/t00/a0`;
        await update(handle, 'pause');
        await untilIdle(attempt, (kinds) => count(kinds, SIGNALED) === 1);
        held.open();
        // Open, steps 0 and 1 and their verdicts are done, and no third step began.
        const kinds = await untilIdle(attempt, (all) => count(all, COMPLETED) === 5);
        expect(count(kinds, SCHEDULED)).toBe(5);
        pass(pauseMs);
        await update(handle, 'resume');
        const result = (await handle.result()) as RunStatus;
        if (pauseMs === 0) await saveHistories(stage, { 'episode-paused': { workflowId: attempt } });
        return result;
      });
      expect(records).toEqual(whole.records);
      expect(records.size).toBe(8);
      expect(status.digest).toBe(expected.digest);
      expect(status.masked).toBe(0);
      expect(opened).toBe(openings);
    },
    60_000,
  );
});
