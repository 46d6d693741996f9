import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Episode } from '../domain/episode.ts';
import { createEpisodeStore } from './episodes.ts';
import type { EpisodeStore } from './episodes.ts';
import { createFiles } from './files.ts';
import { parseWhere, selectEpisodes } from './select-episodes.ts';
import { sampleEpisode, temporaryFolder } from './testing.ts';

let dir: string;
let episodes: EpisodeStore;
beforeAll(async () => {
  dir = temporaryFolder();
  episodes = createEpisodeStore({ dir, files: createFiles() });
  const put = async (update: number, draw: number, more: Partial<Episode> = {}): Promise<void> => {
    const sample = sampleEpisode(update, draw, 0, 1);
    await episodes.put({ ...sample, task: { ...sample.task, tags: draw === 1 ? ['ask'] : [] }, ...more });
  };
  await put(1, 0);
  await put(1, 1, { outcome: 'step_limit' });
  await put(2, 0, { outcome: 'failure' });
  const { task } = sampleEpisode(0, 0, 0, 1);
  await put(2, 0, {
    ...{ id: 'e0002/t00/a0', key: { run: 'r', phase: 'eval', update: 2, draw: 0, attempt: 0 } },
    task: { ...task, split: 'heldout-skin', template: 'form', id: 'miniwob/form/1', suite: 'miniwob' },
  });
});
const select = (...where: string[]): Promise<string[]> => selectEpisodes(episodes, { where: parseWhere(where) });

describe('recorded attempts', () => {
  it.each([
    [[], ['e0002/t00/a0', 'u0001/t00/a0', 'u0001/t01/a0', 'u0002/t00/a0']],
    [['outcome=success'], ['e0002/t00/a0', 'u0001/t00/a0']],
    [['outcome=failure'], ['u0001/t01/a0', 'u0002/t00/a0']],
    [
      ['outcome=step_limit', 'outcome=success', 'phase=train'],
      ['u0001/t00/a0', 'u0001/t01/a0'],
    ],
    [['update=2'], ['e0002/t00/a0', 'u0002/t00/a0']],
    [['phase=eval'], ['e0002/t00/a0']],
    [['split=heldout-skin'], ['e0002/t00/a0']],
    [
      ['task=switch', 'update=1'],
      ['u0001/t00/a0', 'u0001/t01/a0'],
    ],
    [['task=ask'], ['u0001/t01/a0']],
    [['task=miniwob/form', 'suite=miniwob'], ['e0002/t00/a0']],
    [['phase=warmup'], []],
  ])('%j', async (where, ids) => {
    expect(await select(...where)).toEqual(ids);
  });

  it('are cut at a limit and by the beginning of their ids', async () => {
    expect(await selectEpisodes(episodes, { limit: 2 })).toEqual(['e0002/t00/a0', 'u0001/t00/a0']);
    const where = parseWhere(['outcome=failure']);
    expect(await selectEpisodes(episodes, { where, limit: 1 })).toEqual(['u0001/t01/a0']);
    expect(await selectEpisodes(episodes, { where, prefix: 'u0002/' })).toEqual(['u0002/t00/a0']);
  });

  it.each([
    ['colour=red', 'expected key=value with a key of outcome, phase, update, split, task, suite'],
    ['outcome', 'expected key=value'],
    ['outcome=good', 'outcome is one of success, blocked_complete, failure,'],
    ['phase=demo', 'phase is one of warmup, train, eval'],
    ['update=last', 'update is a number'],
    ['split=test', 'split is one of train, validation, heldout-params, heldout-skin, heldout-tasks'],
    ['toString=1', 'with a key of'],
  ])('refuse %s', (condition, sentence) => {
    expect(() => parseWhere([condition])).toThrow(sentence);
  });

  it('that are damaged are not passed over', async () => {
    writeFileSync(join(dir, 'u0002/t00/a0.json.gz'), 'torn');
    expect(await select('outcome=step_limit')).toEqual(['u0001/t01/a0', 'u0002/t00/a0']);
    // Nor those that are gone: they were written, and are asked for.
    rmSync(join(dir, 'u0002/t00/a0.json.gz'));
    expect(await episodes.lost()).toEqual(['u0002/t00/a0']);
    expect(await episodes.lost('u0001/')).toEqual([]);
    expect(await select('phase=train')).toContain('u0002/t00/a0');
  });
});
