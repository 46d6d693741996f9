import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { ApplicationFailure } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ReplayRequest } from '../activities/api.ts';
import { createDeviceActivities } from '../activities/device.ts';
import { createLearnActivities } from '../activities/learn.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { ReplayResult } from '../domain/index.ts';
import { createRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { workflowBundle } from '../workers/bundle.ts';
import { keepChild } from '../workers/child.ts';
import type { Kept } from '../workers/child.ts';
import { engineArgs, usablePort } from '../workers/engine-process.ts';
import { writeHomeState } from '../workers/home-state.ts';
import { EVALUATION_SEED, taskIndex } from '../workflows/ids.ts';
import { queues } from '../workflows/queues.ts';
import { episodeSpec } from '../workflows/spec.ts';
import type { ReplayInput, ReplayTally } from '../workflows/types.ts';
import { config, fakes, openStage, saveHistories, withWorkers } from './fake-run.ts';
import type { Fakes, Stage } from './fake-run.ts';

/** Replays on a real Temporal server: first how they are orchestrated, then `tapwright replay` of real attempts. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

describe('the workflow of replays', () => {
  const identical = (id: string): ReplayResult => ({ kind: 'identical', id, outcome: 'success', steps: 1 });
  const failed = (id: string): ReplayResult => ({ kind: 'failed', id, failure: 'device_hung', message: 'no frame' });
  const replays = async (
    prefix: string,
    episodes: string[],
    device: Fakes['device']['replayEpisodes'],
    set: object,
  ) => {
    const activities = fakes();
    activities.device.replayEpisodes = device!;
    const site = { prefix, hosts: ['here'] };
    const input: ReplayInput = { run: prefix, config: config(set), site, mode: 'recorded', policy: null, episodes };
    const start = { workflowId: prefix, taskQueue: queues(prefix).workflow, args: [input] as [ReplayInput] };
    return withWorkers(stage, prefix, activities, async () => {
      const tally = (await stage.env.client.workflow.execute('replay', start)) as ReplayTally;
      if (prefix === 'broken') await saveHistories(stage, { replay: { workflowId: prefix } });
      return tally;
    });
  };

  it('goes in parcels, no more at once than devices, across continue-as-new', async () => {
    let [now, most] = [0, 0];
    const seen: string[] = [];
    const ids = Array.from({ length: 900 }, (_, i) => `u0001/t${i}/a0`);
    const device = async ({ episodes }: ReplayRequest): Promise<ReplayResult[]> => {
      most = Math.max(most, (now += episodes.length));
      await new Promise((resolve) => setTimeout(resolve, 5));
      now -= episodes.length;
      seen.push(...episodes);
      return episodes.map(identical);
    };
    const set = { devices: { count: 40 }, rollout: { parcel: 10 } };
    expect(await replays('many', ids, device, set)).toMatchObject({ of: 900, done: 900, identical: 900, told: [] });
    expect(seen.sort()).toEqual([...ids].sort());
    expect(most).toBeLessThanOrEqual(40);
  }, 60_000);

  it('makes what failed on a device again, so often and no more; a host that breaks fails its own', async () => {
    const tries = new Map<string, number>();
    const device = async ({ episodes }: ReplayRequest): Promise<ReplayResult[]> => {
      for (const id of episodes) tries.set(id, (tries.get(id) ?? 0) + 1);
      if (episodes.includes('u0001/t04/a0')) {
        throw ApplicationFailure.create({ type: 'deadline', message: 'too late', nonRetryable: true });
      }
      return episodes.map((id) => {
        if (id === 'u0001/t01/a0') return failed(id);
        return id === 'u0001/t02/a0' && tries.get(id) === 1 ? failed(id) : identical(id);
      });
    };
    const ids = [0, 1, 2, 3, 4, 5].map((i) => `u0001/t0${i}/a0`);
    const tally = await replays('broken', ids, device, { rollout: { parcel: 2, infraRetries: 2 } });
    expect(tally).toMatchObject({ of: 6, done: 6, identical: 4, different: 0, failed: 2 });
    expect(tally.why).toEqual({ device_hung: 1, deadline: 1 });
    expect(tally.told.map(({ id }) => id)).toEqual(['u0001/t01/a0', 'u0001/t04/a0']);
    expect(tries.get('u0001/t01/a0')).toBe(3);
    expect(tries.get('u0001/t02/a0')).toBe(2);
  }, 60_000);
});

describe('tapwright replay', () => {
  const RUN = 'replayed';
  const small = runConfigSchema.parse({
    name: RUN,
    seed: 3,
    suite: 'sim-phones',
    devices: { count: 16 },
    sft: { demonstrations: 120, steps: 60, batch: 16, chunk: 60 },
    learn: { warmup: 0, updates: 1 },
    rollout: { parcel: 4 },
    evaluation: { instances: {} },
  });
  let engine: Kept;
  let run: RunFolder;
  const closing: (() => Promise<unknown>)[] = [];
  let ids: string[];
  let main: (args: string[]) => Promise<number>;
  let out = '';
  let err = '';

  /** A device host with its worker. */
  const deviceHost = async (host: string, engineUrl: string) => {
    const device = await createDeviceActivities({ home: stage.home, engineUrl, host });
    const worker = await Worker.create({
      connection: stage.env.nativeConnection,
      taskQueue: queues(RUN).device(host),
      activities: { ...device.activities },
    });
    const running = worker.run();
    closing.push(async () => {
      worker.shutdown();
      await running;
      await device.close();
    });
    return device.activities;
  };

  beforeAll(async () => {
    const port = await usablePort(undefined);
    const engineUrl = `http://127.0.0.1:${port}`;
    engine = keepChild({
      role: 'engine',
      script: 'engine/embedded/main.ts',
      args: engineArgs(stage.home, port, small),
      env: { TF_CPP_MIN_LOG_LEVEL: '2' },
      logFile: join(stage.home, 'engine.log'),
      onPid: () => {},
      onGiveUp: () => {},
      readyLine: (line) => line.startsWith('{'),
    });
    await engine.ready;
    closing.push(() => engine.stop());
    run = await createRun(stage.home, RUN, small, {});
    const workflows = await Worker.create({
      connection: stage.env.nativeConnection,
      taskQueue: queues(RUN).workflow,
      workflowBundle: { codePath: await workflowBundle(stage.home) },
    });
    const running = workflows.run();
    closing.push(async () => {
      workflows.shutdown();
      await running;
    });
    const device = await deviceHost('here', engineUrl);

    // A young policy, and what it does in training and when it is evaluated.
    const learn = await createLearnActivities({ home: stage.home, engineUrl });
    closing.push(() => learn.close());
    await learn.activities.openRun(RUN);
    const demos = [await device.demonstrate({ run: RUN, from: 0, to: small.sft.demonstrations })];
    const { policy } = await learn.activities.sftChunk({ run: RUN, chunk: 0, demos });
    const draws = Array.from({ length: 12 }, (_, i) => i);
    const request = { run: RUN, suite: small.suite };
    const [tasks, evaluated] = await Promise.all([
      device.tasks({
        ...request,
        ...{ split: 'train', seed: small.seed, indices: draws.map((draw) => taskIndex('train', 1, draw)) },
      }),
      device.tasks({ ...request, split: 'heldout-params', seed: EVALUATION_SEED, indices: draws }),
    ]);
    const specs = draws.flatMap((draw) => {
      const key = { run: RUN, phase: 'train' as const, update: 1, draw, attempt: 0 };
      const greedy = { ...key, phase: 'eval' as const };
      return [
        episodeSpec(small, key, tasks[draw]!, policy.sampler),
        episodeSpec(small, { ...key, attempt: 1 }, tasks[draw]!, policy.sampler),
        episodeSpec(small, greedy, evaluated[draw]!, policy.sampler, EVALUATION_SEED),
      ];
    });
    await device.runEpisodes(specs, 60_000);
    ids = await run.episodes.list();
    // Somebody keeps the workers up: this process.
    await writeHomeState(stage.home, { supervisor: process.pid });

    // Another host, whose apps greet whoever opens them with a pop-up.
    vi.resetModules();
    vi.doMock('../devices/sim/transition.ts', async (original) => {
      const real = await original<typeof import('../devices/sim/transition.ts')>();
      const apply: typeof real.apply = (phone, effect) => ({
        ...real.apply(phone, effect),
        ...(effect.do === 'launch' ? { popup: true } : {}),
      });
      return { ...real, apply };
    });
    const changed = await deviceHost('changed', engineUrl);
    await changed.replayEpisodes({ run: RUN, mode: 'recorded', policy: null, episodes: [ids[0]!] });
    vi.doUnmock('../devices/sim/transition.ts');
    // What was loaded before knows other classes of errors than what is loaded from now on.
    ({ main } = await import('../cli/program.ts'));
  }, 120_000);
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
  }, 60_000);

  beforeEach(() => {
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
    vi.stubEnv('TAPWRIGHT_HOME', stage.home);
    vi.stubEnv('TAPWRIGHT_QUEUES', RUN);
    vi.stubEnv('TAPWRIGHT_HOST', 'here');
    vi.stubEnv('TEMPORAL_ADDRESS', stage.env.address);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    process.exitCode = undefined;
  });
  async function replay(line: string): Promise<{ code: number; out: string; err: string }> {
    out = '';
    err = '';
    process.exitCode = undefined;
    const code = await main(['replay', ...line.split(' ')]);
    return { code, out, err };
  }
  type Said = ReplayTally & { policy: string | null };
  const json = async (line: string): Promise<Said> => JSON.parse((await replay(`${line} --json`)).out) as Said;

  it('of all that was recorded is identical: by its decisions, by its policy to the bit, by its judge', async () => {
    expect(ids.length).toBe(36);
    const said = await replay(`${RUN} --limit 1000`);
    expect(said).toMatchObject({ code: 0, err: '' });
    expect(said.out).toContain('36 identical, 0 different, 0 failed');
    expect(await json(`${RUN} --limit 1000 --live`)).toMatchObject({ identical: 36, told: [] });
    expect(await json(`${RUN} u --live --update recorded`)).toMatchObject({ of: 24, identical: 24, policy: null });
    expect((await replay(`${RUN} e0001/ --judge`)).out).toMatch(/judged again\n\n12 identical, 0 different/);
  }, 120_000);

  it('of one attempt, and of those of an outcome', async () => {
    const id = ids.at(-1)!;
    expect((await replay(`${RUN} ${id}`)).out).toMatch(/^1 recorded attempt of run replayed, on fresh devices/);
    const outcomes = await Promise.all(ids.map(async (one) => (await run.episodes.get(one)).outcome));
    const failures = outcomes.filter((outcome) => outcome !== 'success').length;
    expect(failures).toBeGreaterThan(0);
    expect(await json(`${RUN} --where outcome=failure`)).toMatchObject({ of: failures, identical: failures });
  }, 60_000);

  it('on phones whose apps have changed names the first step that differs, and why', async () => {
    vi.stubEnv('TAPWRIGHT_HOST', 'changed');
    const said = await replay(`${RUN} u0001/`);
    expect(said.code).toBe(1);
    expect(said.out).toMatch(
      /u0001\/t\d+\/a\d {2}differs in screen_after\n {2}step \d+ \(tap [^)]+\): the screen after it is another one: hash [0-9a-f]{16} was recorded, now it is hash [0-9a-f]{16}; /,
    );
    expect(said.out).toMatch(/\n\d+ identical, [1-9]\d* different, 0 failed\n$/);
    const before = await run.episodes.get(ids[0]!);
    expect(before.steps.length).toBeGreaterThan(0);
  }, 60_000);

  it('of a record that was changed afterwards says so', async () => {
    const path = join(run.dir, 'episodes', `${ids[0]!}.json.gz`);
    const whole = await readFile(path);
    const text = gunzipSync(whole).toString('utf8');
    const at = text.indexOf('"logprobs":[-') + '"logprobs":[-'.length;
    const digit = text[at] === '1' ? '2' : '1';
    await writeFile(path, gzipSync(`${text.slice(0, at)}${digit}${text.slice(at + 1)}`));
    const said = await replay(`${RUN} ${ids[0]!}`);
    expect(said.code).toBe(1);
    expect(said.out).toMatch(/failed: corrupt_record\n {2}the record of \S+ was changed after it was written/);
    await writeFile(path, whole);
    expect((await replay(`${RUN} ${ids[0]!}`)).code).toBe(0);
  }, 60_000);

  it.each([
    ['nope u0001/t00/a0', /no run nope/],
    [RUN, /which attempts\?/],
    [`${RUN} u0009/t00/a0`, /no recorded attempt u0009\/t00\/a0: tapwright episode replayed lists them/],
    [`${RUN} --where phase=warmup`, /no recorded attempt phase=warmup/],
    [`${RUN} --where colour=red`, /with a key of outcome, phase, update, split, task, suite/],
    [`${RUN} --where outcome=good`, /outcome is one of success/],
    [`${RUN} --limit none`, /--limit is a positive whole number/],
    [`${RUN} u --live --judge`, /give one of them/],
    [`${RUN} u --update 1`, /needs --live/],
    [`${RUN} u --live --update 7`, /no whole checkpoint of update 7: there are 0/],
  ])('refuses %s', async (line, sentence) => {
    const said = await replay(line);
    expect(said.code).toBe(2);
    expect(said.err).toMatch(sentence);
  });
});
