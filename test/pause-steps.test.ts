import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunStatus } from '../workflows/types.ts';
import { config, openStage, saveHistories, startRun, withWorkers } from './fake-run.ts';
import type { Stage } from './fake-run.ts';
import { toyRooms } from './toy-rooms.ts';
import { COMPLETED, SCHEDULED, SIGNALED, count, latch, untilIdle, update } from './watch.ts';

/** A pause in the middle of an attempt, grain `step`, on toy phones and a real Temporal server. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

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
        await untilIdle(stage.env.client, attempt, (kinds) => count(kinds, SIGNALED) === 1);
        held.open();
        // Open, steps 0 and 1 and their verdicts are done, and no third step began.
        const kinds = await untilIdle(stage.env.client, attempt, (all) => count(all, COMPLETED) === 5);
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
