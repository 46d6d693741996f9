import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { runConfigSchema } from '../configs/schema.ts';
import { createRun, listRuns, openRun } from './run-folder.ts';
import { sampleEpisode, sampleManifest, temporaryFolder } from './testing.ts';

const config = (part: object = {}) => runConfigSchema.parse({ name: 'test', seed: 1, suite: 'sim-phones', ...part });

afterEach(() => vi.unstubAllEnvs());

describe('a run folder', () => {
  it('is made once, opened again, and refuses another config', async () => {
    const home = temporaryFolder();
    await createRun(home, 'a', config(), { node: '20' });
    await createRun(home, 'a', config(), { node: '22' });
    const run = await openRun(home, 'a');
    expect(run.config).toEqual(config());
    expect(await run.header()).toEqual({ node: '20', config: config() });
    await run.updateHeader({ backend: 'native' });
    expect(await run.header()).toMatchObject({ node: '20', backend: 'native' });
    await expect(createRun(home, 'a', config({ learn: { updates: 3 } }), {})).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('learn.updates') as string,
    });
    expect(await listRuns(home)).toEqual(['a']);
  });

  it('does not go on under a config that was edited in its folder, and says what was edited', async () => {
    const home = temporaryFolder();
    const { dir } = await createRun(home, 'a', config(), {});
    const path = join(dir, 'config.yaml');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace('success: 2', 'success: 50'));
    const { config: edited } = await openRun(home, 'a');
    await expect(createRun(home, 'a', edited, {})).rejects.toThrow(
      /config\.yaml was changed after run a began \(rewards\.terminal\.success\): put it back/,
    );
    writeFileSync(path, 'seed: [');
    await expect(openRun(home, 'a')).rejects.toThrow(/config\.yaml does not read as YAML/);
    writeFileSync(path, text);
    await createRun(home, 'a', config(), {});
  });

  it("is no run while it is being prepared, and what a kill left then is nobody's", async () => {
    const home = temporaryFolder();
    const cut = createRun(
      home,
      'a',
      config(),
      {},
      {
        before: async (folder) => {
          await folder.checkpoints.commit(sampleManifest('train', 3), { 'critic.safetensors': Buffer.from('c') });
          await folder.metrics.append({ stage: 'train', update: 3 });
          throw new Error('killed');
        },
      },
    );
    await expect(cut).rejects.toThrow('killed');
    await expect(openRun(home, 'a')).rejects.toMatchObject({ code: 'not_found' });
    const run = await createRun(home, 'a', config(), {});
    expect(await run.checkpoints.list()).toEqual([]);
    expect(await run.metrics.read()).toEqual([]);
  });

  it('that is not there is said with those that are', async () => {
    const home = temporaryFolder();
    await expect(openRun(home, 'b')).rejects.toThrow(/there are no runs yet/);
    await createRun(home, 'a', config(), {});
    await expect(openRun(home, 'b')).rejects.toThrow(/no run b in .*: there are: a/);
    await expect(openRun(home, '../a')).rejects.toMatchObject({ code: 'invalid_input' });
  });

  it('has one digest for equal runs, and another for another bit or metric', async () => {
    const digest = async (id: string, weights: string, success: number, time: number): Promise<string> => {
      const run = await createRun(temporaryFolder(), id, config(), {});
      await run.metrics.append({ stage: 'train', update: 1, 'success/rate': success, 'time/learn': time });
      await run.checkpoints.commit(sampleManifest('train', 1), { 'critic.safetensors': Buffer.from(weights) });
      return run.digest();
    };
    const base = await digest('a', 'w', 0.5, 1);
    expect(base).toMatch(/^[0-9a-f]{64}$/);
    expect(await digest('b', 'w', 0.5, 2)).toBe(base);
    expect(await digest('a', 'v', 0.5, 1)).not.toBe(base);
    expect(await digest('a', 'w', 0.25, 1)).not.toBe(base);
    const empty = await createRun(temporaryFolder(), 'a', config(), {});
    await expect(empty.digest()).rejects.toMatchObject({ code: 'not_found' });

    const damaged = await createRun(temporaryFolder(), 'a', config(), {});
    await damaged.checkpoints.commit(sampleManifest('train', 1), { 'critic.safetensors': Buffer.from('w') });
    await damaged.checkpoints.commit(sampleManifest('train', 2), { 'critic.safetensors': Buffer.from('x') });
    const latest = await damaged.checkpoints.latest();
    writeFileSync(
      join(
        damaged.dir,
        Object.keys(latest!.files).find((name) => /critic/.test(name))!,
      ),
      'y',
    );
    await expect(damaged.digest()).rejects.toThrow(/checkpoint train-2 of run a is not whole/);
  });

  it('keeps results, and replaces a cell that is measured again', async () => {
    const run = await createRun(temporaryFolder(), 'a', config(), {});
    const cell = {
      policy: 'sft',
      checkpoint: 'sft-8',
      suite: 'sim-phones',
      split: 'train' as const,
      n: 1,
      successes: 0,
      masked: {},
      outcomes: {},
      perTask: [{ task: 't', success: false }],
    };
    await run.addResults([cell, { ...cell, policy: 'rl', checkpoint: 'train-2' }]);
    await run.addResults([{ ...cell, successes: 1 }]);
    expect((await run.results()).cells.map((c) => [c.policy, c.successes])).toEqual([
      ['sft', 1],
      ['rl', 0],
    ]);
  });

  it('simulates a full disk at a checkpoint, and only there', async () => {
    vi.stubEnv('TAPWRIGHT_FAULT_DISK_FULL', '3');
    const run = await createRun(temporaryFolder(), 'a', config(), {});
    const file = { 'critic.safetensors': Buffer.from('a') };
    await run.checkpoints.commit(sampleManifest('train', 1), file);
    await expect(run.checkpoints.commit(sampleManifest('train', 2), file)).rejects.toMatchObject({ code: 'disk_full' });
    await run.episodes.put(sampleEpisode(3, 0, 0));
    expect(await run.checkpoints.latest()).toMatchObject({ update: 1 });
  });

  it('has a config that a person can read', async () => {
    const home = temporaryFolder();
    await createRun(home, 'a', config(), {});
    expect(readFileSync(join(home, 'runs', 'a', 'config.yaml'), 'utf8')).toContain('gammaDense: 0.5');
  });
});
