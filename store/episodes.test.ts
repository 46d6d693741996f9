import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createEpisodeStore } from './episodes.ts';
import { createFiles } from './files.ts';
import { sampleEpisode, temporaryFolder } from './testing.ts';

const store = () => {
  const dir = temporaryFolder();
  return { dir, episodes: createEpisodeStore({ dir, files: createFiles() }) };
};

describe('episodes', () => {
  it('come back as they were, and have the same ref in every store', async () => {
    const [a, b] = [store(), store()];
    const episode = sampleEpisode(1, 2, 3);
    const { ref } = await a.episodes.put(episode);
    const turned = Object.fromEntries(Object.entries(episode).reverse()) as unknown as typeof episode;
    expect((await b.episodes.put(turned)).ref).toBe(ref);
    expect(await a.episodes.get('u0001/t02/a3')).toEqual(episode);
    expect(await a.episodes.get('u0001/t02/a3', ref)).toEqual(episode);
  });

  it('put again is the same record; another record of the same id is kept beside it', async () => {
    const { episodes } = store();
    const first = sampleEpisode(1, 0, 0);
    const second = { ...first, outcome: 'failure' as const };
    const one = await episodes.put(first);
    expect(await episodes.put(first)).toEqual(one);
    const two = await episodes.put(second);
    expect(await episodes.get(first.id)).toEqual(first);
    expect(await episodes.get(first.id, one.ref)).toEqual(first);
    expect(await episodes.get(first.id, two.ref)).toEqual(second);
    expect(await episodes.list()).toEqual([first.id]);
  });

  it('are listed by prefix, in order', async () => {
    const { episodes } = store();
    for (const [u, t, a] of [
      [2, 0, 0],
      [1, 1, 1],
      [1, 1, 0],
      [1, 10, 0],
    ] as const) {
      await episodes.put(sampleEpisode(u, t, a, 1));
    }
    expect(await episodes.list()).toEqual(['u0001/t01/a0', 'u0001/t01/a1', 'u0001/t10/a0', 'u0002/t00/a0']);
    expect(await episodes.list('u0001/t01')).toEqual(['u0001/t01/a0', 'u0001/t01/a1']);
    expect(await episodes.list('u0002/')).toEqual(['u0002/t00/a0']);
    expect(await episodes.list('e')).toEqual([]);
  });

  it('that are missing, damaged or badly named say so', async () => {
    const { dir, episodes } = store();
    await expect(episodes.get('u0001/t00/a0')).rejects.toMatchObject({ code: 'not_found' });
    await expect(episodes.get('../../x')).rejects.toMatchObject({ code: 'invalid_input' });
    mkdirSync(join(dir, 'u0001/t00'), { recursive: true });
    writeFileSync(join(dir, 'u0001/t00/a0.json.gz'), 'torn');
    await expect(episodes.get('u0001/t00/a0')).rejects.toMatchObject({ code: 'corrupt_record' });
    const episode = sampleEpisode(1, 0, 0);
    await episodes.put(episode);
    expect(await episodes.get(episode.id)).toEqual(episode);
  });

  it('that were changed after they were written are told from what was written, to the byte', async () => {
    const { dir, episodes } = store();
    const episode = sampleEpisode(1, 0, 0);
    await episodes.put(episode);
    const path = join(dir, 'u0001/t00/a0.json.gz');
    const whole = readFileSync(path);
    const text = gunzipSync(whole).toString('utf8');
    expect(text).toContain('"distance":2');
    writeFileSync(path, gzipSync(text.replace('"distance":2', '"distance":3')));
    await expect(episodes.get(episode.id)).rejects.toMatchObject({
      code: 'corrupt_record',
      message: expect.stringMatching(/u0001\/t00\/a0 was changed after it was written/) as string,
    });
    // Put again, the record is kept beside what stands in its place.
    const { ref } = await episodes.put(episode);
    expect(await episodes.get(episode.id, ref)).toEqual(episode);
    writeFileSync(path, whole);
    expect(await episodes.get(episode.id)).toEqual(episode);
    // A list that is torn or missing (an older run) proves nothing, and keeps nobody from reading.
    writeFileSync(join(dir, 'u0001/refs'), 'abc');
    expect(await episodes.get(episode.id)).toEqual(episode);
  });

  it('are listed with their hashes once, however often they are put', async () => {
    const { dir, episodes } = store();
    for (const attempt of [0, 0, 1, 0]) await episodes.put(sampleEpisode(1, 0, attempt, 1));
    const lines = readFileSync(join(dir, 'u0001/refs'), 'utf8').trim().split('\n');
    expect(lines.map((line) => line.split(' ')[1])).toEqual(['u0001/t00/a0', 'u0001/t00/a1']);
    await Promise.all(Array.from({ length: 40 }, (_, draw) => episodes.put(sampleEpisode(2, draw, 0, 1))));
    expect(new Set(readFileSync(join(dir, 'u0002/refs'), 'utf8').trim().split('\n')).size).toBe(40);
    // A kill between record and line: the next one who puts it adds the line.
    writeFileSync(join(dir, 'u0001/refs'), '');
    const { ref } = await episodes.put(sampleEpisode(1, 0, 0, 1));
    expect(readFileSync(join(dir, 'u0001/refs'), 'utf8')).toBe(`${ref.slice(7)} u0001/t00/a0\n`);
    // Or another record of a live device: the first one is as good as before.
    writeFileSync(join(dir, 'u0001/refs'), '');
    await episodes.put({ ...sampleEpisode(1, 0, 0, 1), outcome: 'failure' });
    expect(await episodes.get('u0001/t00/a0')).toMatchObject({ outcome: 'success' });
  });
});
