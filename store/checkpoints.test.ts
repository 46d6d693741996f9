import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createCheckpointStore } from './checkpoints.ts';
import type { CheckpointOptions } from './checkpoints.ts';
import { createFiles } from './files.ts';
import type { WriteBytes } from './files.ts';
import { sampleManifest, temporaryFolder } from './testing.ts';

const store = (options: Partial<CheckpointOptions> = {}) => {
  const run = temporaryFolder();
  const warnings: string[] = [];
  const checkpoints = createCheckpointStore({
    run,
    files: createFiles(),
    warn: (message) => warnings.push(message),
    ...options,
  });
  const engine = (name: string): string => {
    const path = join(run, 'checkpoints', 'engine', name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `weights of ${name}`);
    return path;
  };
  return { run, warnings, checkpoints, engine };
};
const bytes = (text: string): Record<string, Uint8Array> => ({ 'critic.safetensors': Buffer.from(text) });

describe('checkpoints', () => {
  it('name what they hold with its hash, and the newest whole one is the latest', async () => {
    const { checkpoints, engine } = store();
    expect(await checkpoints.latest()).toBeNull();
    await checkpoints.commit(sampleManifest('train', 1), bytes('a'), [engine('w1')]);
    await checkpoints.commit(sampleManifest('warmup', 15), bytes('b'));
    await checkpoints.commit(sampleManifest('sft', 8), {});
    const latest = await checkpoints.latest();
    expect(latest).toMatchObject({ stage: 'train', update: 1 });
    expect(Object.keys(latest!.files).sort()).toEqual([
      'checkpoints/engine/w1',
      'checkpoints/train-00001/critic.safetensors',
    ]);
    expect(await checkpoints.verify(latest!)).toEqual([]);
    expect(Buffer.from(await checkpoints.read(latest!, 'critic.safetensors')).toString()).toBe('a');
    expect(await checkpoints.get('warmup', 15)).toMatchObject({ warmup: 15 });
    expect(await checkpoints.get('train', 7)).toBeNull();
  });

  it('committed again are returned as they are', async () => {
    const { checkpoints } = store();
    const first = await checkpoints.commit(sampleManifest('train', 1), bytes('a'));
    expect(await checkpoints.commit(sampleManifest('train', 1), bytes('other'))).toEqual(first);
  });

  it('that are torn or corrupt are passed over with a warning, and can be committed anew', async () => {
    const { run, warnings, checkpoints, engine } = store();
    await checkpoints.commit(sampleManifest('train', 1), bytes('a'));
    await checkpoints.commit(sampleManifest('train', 2), bytes('b'), [engine('w2')]);
    writeFileSync(join(run, 'checkpoints', 'engine', 'w2'), 'bits have flipped');
    expect(await checkpoints.latest()).toMatchObject({ update: 1 });
    expect(warnings[0]).toMatch(/train-2 is not whole \(checkpoints\/engine\/w2 has another sha256/);
    rmSync(join(run, 'checkpoints', 'engine', 'w2'));
    expect(await checkpoints.get('train', 2)).toBeNull();
    await checkpoints.commit(sampleManifest('train', 2), bytes('b'), [engine('w2')]);
    expect(await checkpoints.latest()).toMatchObject({ update: 2 });
    // A kill before the manifest leaves a folder that is no checkpoint.
    mkdirSync(join(run, 'checkpoints', 'train-00003'));
    writeFileSync(join(run, 'checkpoints', 'train-00003', 'critic.safetensors'), 'half');
    expect(await checkpoints.latest()).toMatchObject({ update: 2 });
  });

  it('on a full disk say so and leave the earlier ones whole', async () => {
    let room = Infinity;
    const writeBytes: WriteBytes = async (handle, data) => {
      if (room-- <= 0) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      await handle.writeFile(data);
    };
    const { run, checkpoints } = store({ files: createFiles({ writeBytes }) });
    await checkpoints.commit(sampleManifest('train', 1), bytes('a'));
    for (const left of [0, 1]) {
      room = left;
      await expect(checkpoints.commit(sampleManifest('train', 2), bytes('b'))).rejects.toMatchObject({
        code: 'disk_full',
        message: expect.stringMatching(/the disk is full: .* free some space/) as string,
      });
      expect(await checkpoints.latest()).toMatchObject({ update: 1 });
    }
    room = Infinity;
    await checkpoints.commit(sampleManifest('train', 2), bytes('b'));
    expect(await checkpoints.latest()).toMatchObject({ update: 2 });
    const parts = readdirSync(run, { recursive: true }).filter((name) => String(name).endsWith('.part'));
    expect(parts).toEqual([]);
  });

  it('are pruned: the last ones, every n-th, and the last of each stage stay, with the files they share', async () => {
    const { run, checkpoints, engine } = store({ keepLast: 2, keepEvery: 3 });
    const sft = engine('sft');
    await checkpoints.commit(sampleManifest('sft', 8), {}, [sft]);
    for (let k = 1; k <= 3; k++) await checkpoints.commit(sampleManifest('warmup', k), bytes(`w${k}`), [sft]);
    for (let k = 1; k <= 7; k++)
      await checkpoints.commit(sampleManifest('train', k), bytes(`c${k}`), [engine(`w${k}`)]);
    expect((await checkpoints.list()).map(({ stage, k }) => `${stage}-${k}`)).toEqual([
      'sft-8',
      'warmup-2',
      'warmup-3',
      'train-3',
      'train-6',
      'train-7',
    ]);
    expect(readdirSync(join(run, 'checkpoints', 'engine')).sort()).toEqual(['sft', 'w3', 'w6', 'w7']);
    expect(existsSync(join(run, 'checkpoints', 'train-00001'))).toBe(false);
  });

  it('need the files that they name', async () => {
    const { checkpoints } = store();
    await expect(checkpoints.commit(sampleManifest('train', 1), {}, ['checkpoints/engine/none'])).rejects.toMatchObject(
      {
        code: 'not_found',
      },
    );
    expect(await checkpoints.latest()).toBeNull();
  });
});
