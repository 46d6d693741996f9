import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openJournal } from './journal.ts';

let home = '';
const file = (): string => join(home, 'a', 'b.journal');
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'tapwright-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe('a journal', () => {
  it('gives back what was appended', async () => {
    const first = await openJournal<number>(file());
    expect(first.entries).toEqual([]);
    for (const n of [1, 2, 3]) first.append(n);
    await Promise.all([first.sync(), first.sync(), first.sync()]);
    first.close();
    const second = await openJournal<number>(file());
    expect(second.entries).toEqual([1, 2, 3]);
    second.append(4);
    second.close();
    const third = await openJournal<number>(file());
    expect(third.entries).toEqual([1, 2, 3, 4]);
    third.close();
  });

  it('drops a line that a crash cut short, and goes on after the last whole one', async () => {
    (await openJournal<string>(file())).close();
    writeFileSync(file(), '"one"\n"two"\n"thr');
    const torn = await openJournal<string>(file());
    expect(torn.entries).toEqual(['one', 'two']);
    torn.append('three');
    torn.close();
    appendFileSync(file(), '{"half": \n"after"\n');
    const broken = await openJournal<string>(file());
    expect(broken.entries).toEqual(['one', 'two', 'three']);
    broken.close();
  });

  it('is rewritten in one piece, also while it is being synced', async () => {
    const journal = await openJournal<number>(file());
    for (let n = 0; n < 100; n++) journal.append(n);
    const syncing = journal.sync();
    journal.rewrite([99]);
    journal.append(100);
    await syncing;
    await journal.sync();
    journal.close();
    expect(readFileSync(file(), 'utf8')).toBe('99\n100\n');
  });
});

describe('its one writer', () => {
  it('is waited for while it lives, and no longer than said', async () => {
    const first = await openJournal<number>(file());
    await expect(openJournal<number>(file(), { patienceMs: 0 })).rejects.toMatchObject({ code: 'invalid_config' });
    const waiting = openJournal<number>(file());
    first.append(7);
    first.close();
    const second = await waiting;
    expect(second.entries).toEqual([7]);
    second.close();
  });

  it('is replaced at once when its process has ended, also when its id is in use again', async () => {
    const gone = spawn(process.execPath, ['-e', '']);
    await new Promise((resolve) => gone.once('exit', resolve));
    (await openJournal<number>(file())).close();
    writeFileSync(`${file()}.owner`, JSON.stringify({ pid: gone.pid, began: null }));
    (await openJournal<number>(file(), { patienceMs: 0 })).close();
    if (process.platform !== 'linux') return;
    writeFileSync(`${file()}.owner`, JSON.stringify({ pid: process.pid, began: '1' }));
    (await openJournal<number>(file(), { patienceMs: 0 })).close();
  });
});
