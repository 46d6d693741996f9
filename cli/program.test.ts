import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SUITE_IDS, getSuite } from '../suites/index.ts';
import { KNOWN_SUITES } from './known-suites.ts';
import { errorText, main } from './program.ts';
import { sampleRun } from './sample-run.ts';

let out = '';
let err = '';
beforeEach(() => {
  out = '';
  err = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

describe('the command line', () => {
  it('shows a run: status, digest, episodes', async () => {
    const { home, run } = await sampleRun();
    vi.stubEnv('TAPWRIGHT_HOME', home);
    await run.write(
      'processes.json',
      JSON.stringify([
        { role: 'engine', pid: process.pid },
        { role: 'learn', pid: null },
      ]),
    );
    expect(await main(['status', 'sample', '--json'])).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      run: 'sample',
      stage: 'done',
      update: 40,
      of: 40,
      processes: [
        { role: 'engine', pid: process.pid, alive: true },
        { role: 'learn', pid: null, alive: false },
      ],
    });
    out = '';
    expect(await main(['status', 'sample'])).toBe(0);
    expect(out).toMatch(/policy update 40 of 40[^]*engine +pid \d+\n[^]*McNemar/);
    out = '';
    expect(await main(['digest', 'sample'])).toBe(0);
    expect(out).toMatch(/^[0-9a-f]{64}\n$/);
    out = '';
    expect(await main(['episode', 'sample'])).toBe(0);
    expect(out).toBe('u0040/t00/a0\nu0040/t01/a0\n');
    out = '';
    expect(await main(['episode', 'sample', 'u0040/t01/a0'])).toBe(0);
    // Verdicts success, success, fail: d = 1, 1, 0; Z = 2; D0 = 1.5, R0 = 3.5 (algorithms.md, 3).
    expect(out).toMatch(/step 0\n {2}screen[^]*plan +tap row 1[^]*D \+1\.500 {3}R \+3\.500/);
    expect(out).toContain('tap at (180, 88) by small');
    expect(out).toMatch(/fail: no_progress, 2 -> 1 steps to go/);
  });

  it('answers bad input with one sentence and code 2', async () => {
    vi.stubEnv('TAPWRIGHT_HOME', (await sampleRun()).home);
    expect(await main(['status', 'nope'])).toBe(2);
    expect(err).toMatch(/^error: no run nope in .*: there are: sample\n$/);
    err = '';
    expect(await main(['episode', 'sample', 'u9999/t00/a0'])).toBe(2);
    expect(err).toMatch(/no record of episode u9999\/t00\/a0/);
    err = '';
    expect(await main(['episode', 'sample', 'w'])).toBe(2);
    expect(await main(['digest'])).toBe(2);
    expect(await main(['status', 'a', '--nope'])).toBe(2);
  });

  it('helps, and shows stacks only when asked', async () => {
    expect(await main(['status', '--help'])).toBe(0);
    expect(out).toContain('--json');
    const error = new Error('outer', { cause: new Error('inner') });
    expect(errorText(error, false)).toBe('error: outer');
    expect(errorText(error, true)).toMatch(/outer\n[^]*at [^]*caused by Error: inner/);
  });

  it('knows the suites that there are', () => {
    expect(KNOWN_SUITES.map(({ id }) => id)).toEqual([...SUITE_IDS]);
    for (const { id, splits } of KNOWN_SUITES) expect([...getSuite(id).splits].sort()).toEqual([...splits].sort());
  });
});
