import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { doctor, printDoctor } from './doctor.ts';
import type { Part } from './doctor.ts';

const bare = mkdtempSync(join(tmpdir(), 'tapwright-doctor-'));
afterAll(() => rmSync(bare, { recursive: true, force: true }));

it('says of every missing part what to do about it', async () => {
  mkdirSync(join(bare, 'cache'));
  const parts = await doctor({ PATH: join(bare, 'bin'), XDG_CACHE_HOME: join(bare, 'cache') });
  const state = Object.fromEntries(parts.map((part) => [part.name, part.state]));
  expect(state).toMatchObject({
    node: 'ok',
    'npm packages': 'ok',
    'Temporal server': 'missing',
    Chromium: 'optional',
    go: 'optional',
  });
  for (const part of parts) if (part.state !== 'ok') expect(part.whatToDo).toMatch(/\w+/);
  expect(printDoctor(parts)).toMatch(
    /MISSING +Temporal server.*\n +-> Run `npm run setup`[^]*Not ready: Temporal server\.\n$/,
  );
});

it('takes a server by its address', async () => {
  const parts = await doctor({ PATH: bare, XDG_CACHE_HOME: bare, TEMPORAL_ADDRESS: 'farm:7233' });
  expect(parts.find((part) => part.name === 'Temporal server')).toMatchObject({ state: 'ok', where: 'farm:7233' });
});

it('prints one line for what is there', () => {
  const part: Part = { name: 'node', state: 'ok', where: '/n', version: '20', use: 'runs', whatToDo: null };
  expect(printDoctor([part])).toBe('ok        node  20  /n\n\nReady to run.\n');
});
