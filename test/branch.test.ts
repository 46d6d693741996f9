import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runBare } from '../bench/bare.ts';
import { main } from '../cli/program.ts';
import { runConfigSchema } from '../configs/schema.ts';
import { createRun, openRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { sha256Hex } from '../store/files.ts';

/** Branches of a real run: engine, simulated phones and learner, without Temporal. */
const config = runConfigSchema.parse({
  name: 'trunk',
  seed: 5,
  suite: 'sim-phones',
  devices: { count: 8 },
  sft: { demonstrations: 40, steps: 20, batch: 16, chunk: 20 },
  learn: { warmup: 1, updates: 4, tasks: 2, attempts: 2, learningRateWarmup: 0 },
  rollout: { maxSteps: 6 },
  evaluation: { instances: { 'heldout-params': 4 } },
  checkpoints: { keepLast: 2, keepEvery: 0 },
});

let home: string;
let trunk: RunFolder;
let before: Record<string, string>;

/** Every file of a run and of the engine's models that are not a branch's. */
async function files(): Promise<Record<string, string>> {
  const out: Record<string, string> = {};
  for (const root of [join(home, 'runs', 'trunk'), join(home, 'engine')]) {
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || path.includes('branch-') || path.includes('.log')) continue;
      out[path] = sha256Hex(await readFile(path));
    }
  }
  return out;
}

async function branch(line: string): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
  vi.stubEnv('TAPWRIGHT_HOME', home);
  try {
    return { code: await main(['branch', ...line.split(' '), '--prepare']), out, err };
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    process.exitCode = undefined;
  }
}
async function digestOf(id: string): Promise<string> {
  const run = await openRun(home, id);
  await runBare(run.config, { run: id, home, onMetrics: () => {} });
  return run.digest();
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tapwright-'));
  trunk = await createRun(home, 'trunk', config, {});
  await runBare(config, { run: 'trunk', home, onMetrics: () => {} });
  before = await files();
}, 180_000);
afterAll(() => rm(home, { recursive: true, force: true }));

describe('a branch', () => {
  it('that changes nothing comes out as the run it came from, and leaves that one alone', async () => {
    expect(await branch('trunk --from-update 3')).toMatchObject({ code: 0 });
    const copy = await openRun(home, 'trunk-u0003');
    expect((await copy.header())['lineage']).toEqual([
      { run: 'trunk', update: 3, config: expect.stringMatching(/^[0-9a-f]{64}$/) as string, changed: [] },
    ]);
    const [ours, theirs] = [await copy.checkpoints.latest(), await trunk.checkpoints.get('train', 3)];
    expect(ours!.weights).not.toBe(theirs!.weights);
    expect(Object.values(ours!.files).sort()).toEqual(Object.values(theirs!.files).sort());
    expect(await digestOf('trunk-u0003')).toBe(await trunk.digest());
    expect((await copy.results()).cells).toEqual((await trunk.results()).cells);
    expect(await files()).toMatchObject(before);
  }, 180_000);

  it('from update 0 does all of reinforcement learning again, and none of what was before', async () => {
    expect((await branch('trunk --from-update 0 --id again')).code).toBe(0);
    expect(await digestOf('again')).toBe(await trunk.digest());
    expect((await (await openRun(home, 'again')).metrics.read()).length).toBe((await trunk.metrics.read()).length);
  }, 180_000);

  it('goes its own way with what is set, and can be branched again', async () => {
    const done = await branch('trunk --from-update 4 --id own --set learn.updates=5 learn.learningRate=0.001 seed=9');
    expect(done).toMatchObject({ code: 0 });
    await digestOf('own');
    const own = await openRun(home, 'own');
    expect((await own.checkpoints.list()).filter(({ stage }) => stage === 'train').map(({ k }) => k)).toEqual([4, 5]);
    const rows = (await own.metrics.read()).filter(({ stage }) => stage === 'train');
    expect(rows.map(({ update }) => update)).toEqual([1, 2, 3, 4, 5]);
    expect((await branch('own --from-update 5 --id twig --set learn.updates=6')).code).toBe(0);
    expect((await (await openRun(home, 'twig')).header())['lineage']).toMatchObject([
      { run: 'trunk', update: 4, changed: ['seed', 'learn.updates', 'learn.learningRate'] },
      { run: 'own', update: 5, changed: ['learn.updates'] },
    ]);
    // What the branches deleted in time was their own.
    expect(await files()).toMatchObject(before);
  }, 180_000);

  it.each([
    ['trunk --from-update 1', /no whole checkpoint of update 1: there are 0, 3, 4 \(checkpoints.keepLast/],
    ['trunk --from-update x', /--from-update is a number of updates/],
    ['trunk --from-update 4', /nothing is left to train[^]*--set learn.updates=54/],
    ['trunk --from-update 3 --set sft.steps=40 critic.hidden=[8]', /sft.steps, critic.hidden cannot change/],
    ['trunk --from-update 3 --set learn.estimator=grpo learn.warmup=0', /cannot change from ppo to grpo in a branch/],
    ['trunk --from-update 3 --set learn.nope=1', /learn.nope: unknown key/],
    ['trunk --from-update 3 --id trunk', /run trunk exists already/],
    ['nope --from-update 3', /no run nope/],
  ])('refuses %s', async (line, sentence) => {
    const { code, err } = await branch(line);
    expect(err).toMatch(sentence);
    expect(code).not.toBe(0);
  });

  it('refuses a checkpoint that has lost a file, and leaves no run behind', async () => {
    const latest = (await trunk.checkpoints.get('train', 4))!;
    const path = join(trunk.dir, Object.keys(latest.files)[0]!);
    const bytes = await readFile(path);
    await rm(path);
    const failed = await branch('trunk --from-update 4 --id torn --set learn.updates=9');
    expect(failed.err).toMatch(/no whole checkpoint of update 4: there are 0, 3/);
    await expect(openRun(home, 'torn')).rejects.toThrow(/no run torn/);
    await writeFile(path, bytes);
  });
});
