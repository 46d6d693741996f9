import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBlobStore } from './blobs.ts';
import { createFiles } from './files.ts';
import { temporaryFolder } from './testing.ts';

const store = (maxBytes?: number) => {
  const dir = temporaryFolder();
  return {
    dir,
    blobs: createBlobStore({ dir, files: createFiles(), ...(maxBytes === undefined ? {} : { maxBytes }) }),
  };
};

describe('blobs', () => {
  it('are named by their hash, in sharded folders, once', async () => {
    const { dir, blobs } = store();
    const ref = await blobs.put(Buffer.from('abc'));
    expect(ref).toBe('sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(await blobs.put(Buffer.from('abc'))).toBe(ref);
    expect(readdirSync(join(dir, 'ba'))).toHaveLength(1);
    expect(Buffer.from(await blobs.get(ref)).toString()).toBe('abc');
    expect(await blobs.has(ref)).toBe(true);
  });

  it('refuse to give bytes that are not theirs, and heal a torn file', async () => {
    const { dir, blobs } = store();
    const ref = await blobs.put(Buffer.from('abc'));
    const path = join(dir, ref.slice(7, 9), ref.slice(9));
    writeFileSync(path, 'abd');
    await expect(blobs.get(ref)).rejects.toMatchObject({ code: 'corrupt_record' });
    writeFileSync(path, '');
    await blobs.put(Buffer.from('abc'));
    expect(readFileSync(path, 'utf8')).toBe('abc');
  });

  it('have a bound, and references a form', async () => {
    const { blobs } = store(4);
    await expect(blobs.put(Buffer.from('12345'))).rejects.toThrow(/over the bound of 4/);
    await expect(blobs.get('sha256:../../etc/passwd')).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(blobs.get(`sha256:${'0'.repeat(64)}`)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('written at once by many come out whole', async () => {
    const { dir, blobs } = store();
    const refs = await Promise.all(Array.from({ length: 30 }, (_, i) => blobs.put(Buffer.from(`blob ${i % 3}`))));
    expect(new Set(refs).size).toBe(3);
    const files = readdirSync(dir, { recursive: true }).map(String);
    expect(files.filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});
