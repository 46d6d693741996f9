import { ScheduleOverlapPolicy } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLearnActivities } from '../activities/learn.ts';
import { main } from '../cli/program.ts';
import { createRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { sampleManifest } from '../store/testing.ts';
import { config, fakes, openStage, withWorkers } from './fake-run.ts';
import type { Fakes, Stage } from './fake-run.ts';

/** `tapwright schedule` on a real server: the store and the learner's activities are real, the attempts are not. */
let stage: Stage;
let run: RunFolder;
let learn: Awaited<ReturnType<typeof createLearnActivities>>;
const NAME = 'watched/sim-phones/heldout-params';
const ID = `watched/evaluate/${NAME}`;

beforeAll(async () => {
  stage = await openStage();
  run = await createRun(stage.home, 'watched', config(), {});
  learn = await createLearnActivities({ home: stage.home, engineUrl: 'http://127.0.0.1:9' });
}, 180_000);
afterAll(async () => {
  await learn.close();
  await stage.close();
});

let out = '';
let err = '';
beforeEach(() => {
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
  vi.stubEnv('TAPWRIGHT_HOME', stage.home);
  vi.stubEnv('TAPWRIGHT_QUEUES', 'watched');
  vi.stubEnv('TAPWRIGHT_HOST', 'here');
  vi.stubEnv('TEMPORAL_ADDRESS', stage.env.address);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});
async function schedule(...args: string[]): Promise<string> {
  out = '';
  err = '';
  const code = await main(['schedule', ...args]);
  return code === 0 ? out : `${code} ${err}`;
}
const handle = () => stage.env.client.schedule.getHandle(ID);
/** A list says what the server's index knows by then. */
async function listed(test: (text: string) => boolean): Promise<string> {
  for (;;) {
    const text = await schedule('list');
    if (test(text)) return text;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
/** Fires the schedule now; the result of what it starts. */
async function fire(): Promise<unknown> {
  const known = new Set(
    (await handle().describe()).info.recentActions.map((a) => a.action.workflow.firstExecutionRunId),
  );
  await handle().trigger();
  for (;;) {
    const { recentActions } = (await handle().describe()).info;
    const fresh = recentActions.map((a) => a.action.workflow).find((w) => !known.has(w.firstExecutionRunId));
    if (fresh !== undefined) return stage.env.client.workflow.getHandle(fresh.workflowId).result();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('a schedule', () => {
  it('is made, listed, changed when it is made again, paused, resumed, deleted', async () => {
    const made = await schedule('create', 'watched', '--cron', '0 3 * * *', '--n', '5');
    expect(made).toMatch(
      /schedule watched\/sim-phones\/heldout-params is made\n.*"0 3 \* \* \*" {2}n 5 {2}next \S+T03:00:00Z/,
    );
    expect(made).toMatch(/fires only while both are up/);
    expect((await handle().describe()).policies).toMatchObject({
      overlap: ScheduleOverlapPolicy.SKIP,
      catchupWindow: 600_000,
    });
    expect(await listed((text) => text.includes(NAME))).toContain('"0 3 * * *"  n 5');
    expect(await schedule('pause', NAME)).toBe(`schedule ${NAME} is paused\n`);
    const again = await schedule('create', 'watched', '--cron', '30 4 * * *', '--n', '6');
    // Changed, it stays paused.
    expect(again).toMatch(/is changed\n.*"30 4 \* \* \*" {2}n 6 {2}paused/);
    expect(await schedule('resume', NAME)).toContain('is resumed');
    expect(await listed(() => true)).toMatch(/"30 4 \* \* \*" {2}n 6 {2}next \S+T04:30:00Z/);
    expect(await schedule('delete', NAME)).toContain('is deleted');
    expect(await listed((text) => !text.includes(NAME))).toMatch(/there are no schedules/);
  }, 180_000);

  it('evaluates the newest checkpoint, each once, beside the results of the run itself', async () => {
    const activities: Fakes = fakes();
    const { evaluationDue, recordEvaluation } = learn.activities;
    activities.learn = { ...activities.learn, evaluationDue, recordEvaluation };
    await schedule('create', 'watched', '--cron', '0 3 * * *', '--n', '5');
    await withWorkers(stage, 'watched', activities, async () => {
      expect(await fire()).toBeNull();
      await run.checkpoints.commit(sampleManifest('train', 2), { 'critic.safetensors': Buffer.from('a') });
      // The run's own evaluation of that checkpoint stays what it is.
      const request = {
        run: 'watched',
        suite: 'sim-phones',
        cells: [{ split: 'heldout-params' as const, tasks: [], results: [] }],
      };
      await recordEvaluation({ ...request, policy: { stage: 'train', index: 2, sampler: '' } });
      expect(await fire()).toMatchObject([{ split: 'heldout-params', n: 5, success: 5 }]);
      expect(await fire()).toBeNull();
      await run.checkpoints.commit(sampleManifest('train', 3), { 'critic.safetensors': Buffer.from('b') });
      expect(await fire()).toMatchObject([{ n: 5 }]);
    });
    const { cells } = await run.results();
    expect(cells.map((cell) => [cell.checkpoint, cell.schedule, cell.n])).toEqual([
      ['train-2', undefined, 0],
      ['train-2', NAME, 5],
      ['train-3', NAME, 5],
    ]);
    expect(cells[1]!.perTask).toHaveLength(5);
    await schedule('delete', NAME);
  }, 180_000);

  it('takes the next checkpoint when its own is thinned out meanwhile', async () => {
    const activities = fakes();
    const due = ['train7', 'train9', 'train9'];
    const used: string[] = [];
    activities.learn.evaluationDue = async () => ({ stage: 'train', index: 1, sampler: due.shift()! });
    const { runEpisode } = activities.device;
    activities.device.runEpisode = async (spec) => {
      used.push(spec.policy);
      if (spec.policy !== 'train7') return runEpisode(spec);
      const { ApplicationFailure } = await import('@temporalio/common');
      throw ApplicationFailure.create({ type: 'not_found', message: 'no such sampler', nonRetryable: true });
    };
    await schedule('create', 'watched', '--cron', '0 3 * * *', '--n', '1');
    const cells = await withWorkers(stage, 'watched', activities, fire);
    expect(cells).toMatchObject([{ n: 1 }]);
    expect(used).toEqual(['train7', 'train9']);
    await schedule('delete', NAME);
  }, 180_000);

  it('that cannot be is refused with a sentence', async () => {
    expect(await schedule('create', 'watched', '--cron', 'at noon')).toMatch(
      /^2 error: "at noon" is no cron expression/,
    );
    expect(await schedule('create', 'nope', '--cron', '0 3 * * *')).toMatch(/^2 .*no run nope/);
    expect(await schedule('create', 'watched', '--cron', '0 3 * * *', '--split', 'x')).toMatch(/^2 .*has no split x/);
    expect(await schedule('create', 'watched', '--cron', '0 3 * * *', '--n', '0')).toMatch(
      /^2 .*positive whole number/,
    );
    expect(await schedule('pause', 'nope')).toMatch(/^2 .*no schedule nope: there are none/);
    vi.stubEnv('TEMPORAL_ADDRESS', '127.0.0.1:1');
    expect(await schedule('list')).toMatch(/^2 .*no Temporal server answers/);
  }, 180_000);
});
