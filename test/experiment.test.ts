import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runBare } from '../bench/bare.ts';
import type { ExperimentTable } from '../cli/experiment/table.ts';
import { main } from '../cli/program.ts';
import { createRun, openRun } from '../store/index.ts';

/** A whole small experiment by the command line: real server, engine, simulated phones, learner; killed once, and resumed. */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BASE = `
name: base
seed: 1
suite: sim-phones
devices: {count: 8, keepScreens: none}
sft: {demonstrations: 40, steps: 20, batch: 16, chunk: 20}
learn: {estimator: rloo, warmup: 0, updates: 2, tasks: 2, attempts: 2}
rollout: {maxSteps: 6, parcel: 4}
evaluation: {instances: {heldout-params: 6, train: 2}}
`;
const EXPERIMENT = `
id: tiny
seeds: [1, 2]
concurrency: 2
arms:
  rloo: {config: base.yaml}
  ppo: {config: base.yaml, set: [learn.estimator=ppo, learn.warmup=1]}
comparisons:
  - [ppo@0.5, rloo]
`;
/** Comes to the file later. */
const ADDED = '  small: {config: base.yaml, set: [learn.updates=0, agent.grounder=small], reference: ppo}\n';

let folder: string;
let home: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tapwright-'));
  home = join(folder, 'home');
  file = join(folder, 'tiny.yaml');
  await writeFile(join(folder, 'base.yaml'), BASE);
  await writeFile(file, EXPERIMENT);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function start(): { ended: Promise<number | string>; kill: () => void; out: () => string } {
  const env = { ...process.env, TAPWRIGHT_HOME: home };
  delete (env as NodeJS.ProcessEnv)['TEMPORAL_ADDRESS'];
  const child = spawn(process.execPath, ['bin/tapwright.mjs', 'experiment', file], { cwd: ROOT, env });
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data.toString()));
  child.stderr.on('data', (data: Buffer) => (text += data.toString()));
  const ended = new Promise<number | string>((resolve) =>
    child.once('close', (code, how) => resolve(how ?? code ?? -1)),
  );
  return { ended, kill: () => void child.kill('SIGKILL'), out: () => text };
}

async function tapwright(line: string): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
  vi.stubEnv('TAPWRIGHT_HOME', home);
  try {
    return { code: await main(line.split(' ')), out, err };
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    process.exitCode = undefined;
  }
}
const rowsOf = async (run: string): Promise<number> =>
  (
    await openRun(home, run).then(
      (of) => of.metrics.read(),
      () => [],
    )
  ).filter(({ stage }) => stage === 'train').length;
const tableOf = async (): Promise<ExperimentTable> =>
  JSON.parse(await readFile(join(home, 'experiments', 'tiny', 'table.json'), 'utf8')) as ExperimentTable;

describe('an experiment', () => {
  it('survives the death of its command line, and makes an arm that was added meanwhile', async () => {
    const first = start();
    while ((await rowsOf('tiny.rloo.s1')) < 1)
      await Promise.race([
        sleep(50),
        first.ended.then((how) => {
          throw new Error(`${how}: ${first.out()}`);
        }),
      ]);
    // Whatever else dies with it is found dead in half a minute by its heartbeat: more than a test has.
    first.kill();
    expect(await first.ended).toBe('SIGKILL');
    await writeFile(file, EXPERIMENT.replace('comparisons:', `${ADDED}comparisons:`));
    const second = start();
    expect([await second.ended, second.out()]).toEqual([0, expect.stringMatching(/8 runs[^]*report: /)]);

    const { splits, missing } = await tableOf();
    expect(missing).toEqual([]);
    expect(splits.map(({ split }) => split)).toEqual(['heldout-params', 'train']);
    const [heldout] = splits;
    expect(
      heldout!.rows.map(({ arm, updates, seeds, n, paired }) => [
        arm,
        updates,
        seeds.length,
        n,
        paired?.reference,
        paired?.pairs,
      ]),
    ).toEqual([
      ['sft', 0, 2, 12, undefined, undefined],
      ['rloo', 1, 2, 12, 'sft@0', 12],
      ['rloo', 2, 2, 12, 'sft@0', 12],
      ['ppo', 1, 2, 12, 'sft@0', 12],
      ['ppo', 2, 2, 12, 'sft@0', 12],
      ['small', 0, 2, 12, 'ppo@1', 12],
    ]);
    expect(heldout!.comparisons).toMatchObject([{ row: 'ppo@0.5', reference: 'rloo@1', pairs: 12 }]);
  }, 120_000);

  it('gives each run the bits that it has by itself, without a shared beginning', async () => {
    const { config } = await openRun(home, 'tiny.ppo.s2');
    await createRun(home, 'alone', config, {});
    await runBare(config, { run: 'alone', home, onMetrics: () => {} });
    const [shared, alone] = await Promise.all(['tiny.ppo.s2', 'alone'].map((id) => openRun(home, id)));
    expect(await shared!.digest()).toBe(await alone!.digest());
    const results = await Promise.all([shared!.results(), alone!.results()]);
    expect(results[0]).toEqual(results[1]);
  }, 60_000);

  it('is told and written anew without processes, the same table to the byte', async () => {
    const before = await tableOf();
    expect((await tapwright('experiment status tiny')).out).toMatch(/8 of 8 runs done[^]*ppo +seed 2 +done/);
    expect((await tapwright('experiment report tiny')).out).toMatch(/\| ppo at 50 % \| 1 \| 2 \|/);
    expect(await tableOf()).toEqual(before);
    const html = await readFile(join(home, 'experiments', 'tiny', 'report.html'), 'utf8');
    expect(html).not.toMatch(/<script|<link|<img|src=|href=|@import|url\(|https?:|NaN|undefined|Infinity/);
  });

  it('refuses an arm that was edited after it began', async () => {
    await writeFile(file, EXPERIMENT.replace('learn.warmup=1', 'learn.warmup=1, learn.clipLow=0.1'));
    const { code, err } = await tapwright(`experiment ${file}`);
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/arm ppo of experiment tiny was begun with another config \(learn.clipLow\)/),
    ]);
  });
});
