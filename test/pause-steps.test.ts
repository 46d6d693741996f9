import { createHash } from 'node:crypto';
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
import type { RunStatus } from '../workflows/types.ts';
import { config, fakes, openStage, saveHistories, startRun, withWorkers } from './fake-run.ts';
import type { Fakes, Stage } from './fake-run.ts';
import { createToyBackend, toyTask } from './toy-phone.ts';
import { COMPLETED, SCHEDULED, SIGNALED, count, latch, untilIdle, update } from './watch.ts';

/** A pause in the middle of an attempt, grain `step`, on toy phones and a real Temporal server. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

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
