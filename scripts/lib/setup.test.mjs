import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { packagesMismatch } from './packages.mjs';
import { cacheDir, findChromium } from './places.mjs';
import { run, step } from './steps.mjs';

const dir = mkdtempSync(join(tmpdir(), 'tapwright-setup-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const lock = (path, packages) => {
  mkdirSync(join(dir, path, '..'), { recursive: true });
  writeFileSync(join(dir, path), JSON.stringify({ packages }));
};

describe('packagesMismatch', () => {
  it('compares the lock file with what npm wrote last', () => {
    lock('package-lock.json', {
      '': { version: '1.0.0' },
      'node_modules/a': { version: '1.0.0' },
      'node_modules/b': { version: '2.0.0', optional: true },
    });
    expect(packagesMismatch(dir)).toBe('no packages are installed');
    lock('node_modules/.package-lock.json', { 'node_modules/a': { version: '0.9.0' } });
    expect(packagesMismatch(dir)).toBe('node_modules/a 1.0.0 is not installed');
    lock('node_modules/.package-lock.json', { 'node_modules/a': { version: '1.0.0' } });
    expect(packagesMismatch(dir)).toBeNull();
  });
});

describe('places', () => {
  it('puts the cache where the user wants it', () => {
    expect(cacheDir({ XDG_CACHE_HOME: '/c' })).toBe('/c/tapwright');
    expect(cacheDir({ HOME: '/home/u' })).toBe('/home/u/.cache/tapwright');
  });
  it('takes TAPWRIGHT_CHROMIUM or nothing', () => {
    expect(findChromium({ TAPWRIGHT_CHROMIUM: process.execPath })).toBe(process.execPath);
    expect(findChromium({ TAPWRIGHT_CHROMIUM: join(dir, 'none'), PATH: process.env.PATH })).toBeNull();
  });
});

describe('steps', () => {
  const out = (isTTY) => ({
    isTTY,
    columns: 80,
    text: '',
    write(chunk) {
      this.text += chunk;
    },
  });
  let clock = 0;
  const now = () => (clock += 1000);
  it('writes plain lines where there is no terminal', async () => {
    const plain = out(false);
    expect(await step('a thing (for x)', async () => 7, { out: plain, now })).toBe(7);
    expect(plain.text).toBe('a thing (for x) ...\na thing (for x): done, 1 s\n');
  });
  it('passes a failure on after saying so', async () => {
    const terminal = out(true);
    const failing = step('a thing', () => Promise.reject(new Error('no')), { out: terminal, now });
    await expect(failing).rejects.toThrow('no');
    expect(terminal.text.endsWith('\r\x1b[Ka thing: failed, 2 s\n')).toBe(true);
  });
  it('runs commands without throwing', async () => {
    const lines = [];
    const ok = await run(process.execPath, ['-e', 'console.log("a"); console.log("b"); process.exit(3)'], {
      onLine: (l) => lines.push(l),
    });
    expect(ok).toEqual({ code: 3, output: 'a\nb' });
    expect(lines).toEqual(['a', 'b']);
    expect(await run(join(dir, 'none'), [])).toMatchObject({ code: -1, output: expect.stringContaining('ENOENT') });
  });
});
