import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { StepRequest } from '../agent/ports.ts';

interface Event {
  event: 'host' | 'rollback' | 'step' | 'action' | 'refused' | 'end';
  request?: StepRequest;
  [key: string]: unknown;
}

let home = '';
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'tapwright-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A device host in a process of its own; how it ended. */
function host(infraTry: number, dieAt: number, earlier?: StepRequest): Promise<number | string | null> {
  const script = fileURLToPath(new URL('./crashing-host.ts', import.meta.url));
  const args = ['--import', 'tsx', script, home, String(infraTry), String(dieAt)];
  const child = spawn(process.execPath, earlier === undefined ? args : [...args, JSON.stringify(earlier)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)));
}
const log = (): Event[] =>
  readFileSync(join(home, 'device.log'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Event);
const names = (events: readonly Event[]): string[] => events.map(({ event }) => event);

it('an action issued by a host that died is never repeated: the attempt starts anew on a rolled-back device', async () => {
  expect(await host(0, 2)).toBe('SIGKILL');
  const first = log();
  expect(names(first)).toEqual(['host', 'rollback', 'step', 'action', 'step', 'action']);
  const cut = first[4]!.request!;
  expect(cut.t).toBe(1);

  // Whoever asks the next host for the same step again is refused, and the device hears nothing of it.
  expect(await host(1, 0, cut)).toBe(0);
  const second = log().slice(first.length);
  expect(second[0]).toEqual({ event: 'host', doubtful: [{ t: 1, token: cut.lease.token, action: 'tap' }] });
  expect(second[1]).toEqual({ event: 'refused', code: 'lease_lost' });
  expect(names(second.slice(2))).toEqual(['rollback', 'step', 'action', 'step', 'action', 'step', 'end']);
  const tokens = second.flatMap(({ request }) => (request === undefined ? [] : [request.lease.token]));
  expect(new Set(tokens)).toEqual(new Set([cut.lease.token + 1]));
  expect(second.at(-1)).toMatchObject({ outcome: 'success' });
}, 60_000);
