import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunConfig } from '../configs/schema.ts';
import type { EpisodeResult } from '../domain/index.ts';
import type { BeginRequest } from '../activities/api.ts';
import type { ExperimentInput, ExperimentStatus, ExperimentUnit, RunStatus } from '../workflows/types.ts';
import { config, fakes, finished, openStage, saveHistories, startRun, withWorkers } from './fake-run.ts';
import type { Stage } from './fake-run.ts';

/** Orchestration on a real Temporal server, with activities that do nothing: what runs, how often, in what order. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 60_000);
afterAll(() => stage.close());

const start = async (run: string, runConfig: RunConfig): Promise<RunStatus> =>
  (await (await startRun(stage, run, runConfig)).result()) as RunStatus;

describe('a run on Temporal', () => {
  it('goes through every stage once, across continue-as-new, and says so', async () => {
    const log: string[] = [];
    const status = await withWorkers(stage, 'whole', fakes(log), () => start('whole', config()));
    await saveHistories(stage, {
      'training-run': { workflowId: 'whole' },
      'policy-update': { workflowId: 'whole/u0002' },
      evaluation: { workflowId: 'whole/eval/u0004' },
    });
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
    const status = await withWorkers(stage, 'outage', activities, () => start('outage', short));
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
    const status = await withWorkers(stage, 'stuck', activities, () => start('stuck', short));
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
    const failure = await withWorkers(stage, 'full', activities, () =>
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

describe('an experiment on Temporal', () => {
  it('makes its runs in order, tells what failed and takes up what is added, across continue-as-new', async () => {
    const made: string[] = [];
    const ended: string[] = [];
    const activities = fakes();
    // More than one history holds; all but the last of these came to their end before.
    const before = Array.from({ length: 44 }, (_, i) => `before-${i}`);
    Object.assign(activities.learn, {
      beginRun: async ({ run }: BeginRequest): Promise<{ finished: boolean }> => {
        made.push(run);
        if (run === 'torn') throw ApplicationFailure.create({ type: 'disk_full', message: 'full', nonRetryable: true });
        return { finished: before.includes(run) };
      },
      endRun: async (run: string): Promise<void> => void ended.push(run),
    });
    const unit = (run: string, from: string | null): ExperimentUnit => ({ run, from, config: config() });
    const input: ExperimentInput = {
      ...{ experiment: 'many', site: { prefix: 'many', hosts: ['here'] }, concurrency: 2, header: {} },
      units: [
        ...before.map((run) => unit(run, null)),
        unit('torn', null),
        unit('after-torn', 'torn'),
        unit('arm', 'before-0'),
      ],
    };
    const status = await withWorkers(stage, 'many', activities, async () => {
      const options = { workflowId: 'experiment/many', taskQueue: 'many-workflow', args: [input] };
      const handle = await stage.env.client.workflow.start('experiment', options);
      await handle.signal('wanted', [...input.units, unit('added', 'before-1')]);
      return (await handle.result()) as ExperimentStatus;
    });
    await saveHistories(stage, { experiment: { workflowId: 'experiment/many' } });
    const state = Object.fromEntries(status.units.map(({ run, state: of, why }) => [run, why ?? of]));
    expect(state).toMatchObject({ 'before-43': 'done', arm: 'done', added: 'done', torn: 'disk_full: full' });
    expect(state['after-torn']).toBe('the run torn that it begins with has failed');
    expect([...made].sort()).toEqual([...before, 'torn', 'arm', 'added'].sort());
    expect(ended.sort()).toEqual(['added', 'arm']);
  }, 60_000);
});
