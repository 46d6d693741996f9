import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { main } from '../cli/program.ts';
import { createRun } from '../store/index.ts';
import { config, fakes, openStage, startRun, withWorkers } from './fake-run.ts';
import type { Stage } from './fake-run.ts';

/** `tapwright pause|resume|set|stop|status` against a real server. */
let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
}, 180_000);
afterAll(() => stage.close());

let out = '';
let err = '';
beforeEach(() => {
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
  vi.stubEnv('TAPWRIGHT_HOME', stage.home);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});
async function tapwright(line: string): Promise<{ code: number; out: string; err: string }> {
  out = '';
  err = '';
  const code = await main(line.split(' '));
  return { code, out, err };
}

describe('control from the command line', () => {
  it('steers a running run and says how it stands', async () => {
    const activities = fakes();
    let go = (): void => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    const { sftChunk } = activities.learn;
    activities.learn.sftChunk = async (request) => (await held, sftChunk(request));
    const long = config({ learn: { warmup: 0, updates: 9, tasks: 1, attempts: 2 } });
    await createRun(stage.home, 'cli', long, {});
    await withWorkers(stage, 'cli', activities, async () => {
      vi.stubEnv('TEMPORAL_ADDRESS', stage.env.address);
      const handle = await startRun(stage, 'cli', long);

      expect(await tapwright('pause cli')).toMatchObject({
        code: 0,
        out: expect.stringMatching(/is paused; go on/) as string,
      });
      expect((await tapwright('status cli')).out).toMatch(
        /control +paused\nbudget +0 of 9 updates, 0.* minutes, 0 judge/,
      );
      const json = JSON.parse((await tapwright('status cli --json')).out) as unknown;
      expect(json).toMatchObject({ control: { paused: true, updates: 9 } });
      expect(await tapwright('pause cli')).toMatchObject({
        code: 2,
        err: expect.stringMatching(/paused already/) as string,
      });
      expect((await tapwright('resume cli')).out).toMatch(/goes on\ncontrol +running/);

      const set = await tapwright('set cli --updates 3 --minutes 90 --judge-calls 1000 --evaluate-every 2');
      expect(set.out).toMatch(
        /new budget\n.*\nbudget +0 of 3 updates, \S+ of 90 minutes, 0 of 1000 judge calls\nevaluation every 2 updates/,
      );
      expect((await tapwright('set cli --minutes none')).out).toMatch(/0 of 3 updates, \S+ minutes, 0 of 1000/);
      expect((await tapwright('set cli')).err).toMatch(/nothing to set/);
      expect((await tapwright('set cli --updates many')).err).toMatch(/--updates is a number, not "many"/);
      expect((await tapwright('stop cli --after 77')).err).toMatch(/ends after update 3 anyway/);
      expect((await tapwright('stop cli --after 2')).out).toMatch(/ends after update 2/);
      go();
      expect(await handle.result()).toMatchObject({ stage: 'done', update: 2 });
      const over = await tapwright('pause cli');
      expect(over.code).toBe(2);
      expect(over.err).toMatch(/does not run, its end was COMPLETED: go on with it by tapwright run .*--id cli/);
      expect((await tapwright('status cli --json')).out).toContain('"control": null');
    });
  }, 180_000);

  it('says what to do when the run or the server is not there', async () => {
    await createRun(stage.home, 'idle', config(), {});
    vi.stubEnv('TEMPORAL_ADDRESS', stage.env.address);
    expect((await tapwright('pause nope')).err).toMatch(/no run nope in .*there are/);
    expect((await tapwright('pause idle')).err).toMatch(/run idle does not run: go on with it by tapwright run/);
    vi.stubEnv('TEMPORAL_ADDRESS', '127.0.0.1:1');
    const away = await tapwright('stop idle');
    expect(away.code).toBe(2);
    expect(away.err).toMatch(/no Temporal server answers at 127.0.0.1:1, so nothing runs there: start the run/);
    expect((await tapwright('status idle')).code).toBe(0);
    vi.stubEnv('TEMPORAL_ADDRESS', undefined);
    expect((await tapwright('resume idle')).err).toMatch(/no Temporal server keeps /);
  }, 180_000);
});
