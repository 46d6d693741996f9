import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { troubleOf, troubleText } from '../cli/trouble.ts';
import type { RunStatus } from '../workflows/types.ts';
import { config, fakes, openStage, startRun, withWorkers } from './fake-run.ts';
import type { Stage } from './fake-run.ts';
import { toyRooms } from './toy-rooms.ts';

/** What Temporal bounds, met on a real server: the cache of workflows, the size of a payload, names of activities. */
const BURST = Number(process.env['TAPWRIGHT_BURST'] ?? 64);
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());
afterEach(() => vi.restoreAllMocks());

const stepwise = (tasks: number, attempts: number) =>
  config({
    sft: { demonstrations: 0, steps: 0 },
    learn: { warmup: 0, updates: 1, tasks, attempts },
    rollout: { grain: 'step', infraRetries: 1 },
    evaluation: { instances: {} },
    workflow: { maxConcurrentEpisodes: 600 },
  });

describe('the limits of Temporal', () => {
  it('a burst of attempts, each a workflow, many more than the cache holds: all come through', async () => {
    const [tasks, attempts] = [Math.ceil(BURST / 8), 8];
    const { activities, records } = toyRooms(tasks * attempts);
    const run = 'burst';
    const body = async (): Promise<RunStatus> =>
      (await (await startRun(stage, run, stepwise(tasks, attempts))).result()) as RunStatus;
    const status = await withWorkers(stage, run, activities, body, { maxCachedWorkflows: Math.ceil(BURST / 12) });
    expect(status).toMatchObject({ stage: 'done', update: 1, masked: 0 });
    expect(records.size).toBe(tasks * attempts);
  }, 600_000);

  it('a step whose answer is 3 MB travels by reference and is recorded as it is', async () => {
    const { activities, records } = toyRooms(2);
    const long = 'x'.repeat(3 * 1024 * 1024);
    const { recordEpisode, stepEpisode } = activities.device;
    const recorded: (string | null)[] = [];
    activities.device.stepEpisode = async (request) => ({ ...(await stepEpisode!(request)), answer: long });
    activities.device.recordEpisode = (episode) => {
      recorded.push(...episode.steps.map((step) => step.answer));
      return recordEpisode!(episode);
    };
    const body = async (): Promise<unknown> => (await startRun(stage, 'large', stepwise(2, 1))).result();
    expect(await withWorkers(stage, 'large', activities, body)).toMatchObject({ stage: 'done', update: 1, masked: 0 });
    expect(records.size).toBe(2);
    expect(recorded.every((answer) => answer === long)).toBe(true);
    const { events } = await stage.env.client.workflow.getHandle('large/u0001/t00/a0').fetchHistory();
    const bytes = events!.map((event) => event.activityTaskCompletedEventAttributes?.result?.payloads?.[0]?.data);
    expect(Math.max(...bytes.map((data) => data?.byteLength ?? 0))).toBeLessThan(10_000);
  }, 120_000);

  it('an activity that no worker knows: the run waits, and says for what', async () => {
    const activities = fakes();
    const { report, ...others } = activities.learn;
    const short = config({ learn: { warmup: 0, updates: 1, tasks: 1, attempts: 2 } });
    const run = 'unknown';
    const handle = await withWorkers(
      stage,
      run,
      { ...activities, learn: others as typeof activities.learn },
      async () => {
        const started = await startRun(stage, run, short);
        for (;;) {
          const [trouble] = await troubleOf(stage.env.client, run);
          if (trouble !== undefined) {
            expect(troubleText(trouble)).toMatch(/^waiting: report has failed .* is not registered on this Worker/);
            return started;
          }
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
    );
    // A worker that knows it comes, and the run ends as if nothing had been.
    const status = await withWorkers(stage, run, { ...activities, learn: { ...others, report } }, () =>
      handle.result(),
    );
    expect(status).toMatchObject({ stage: 'done', digest: 'abc' });
    expect(await troubleOf(stage.env.client, run)).toEqual([]);
  }, 120_000);
});
