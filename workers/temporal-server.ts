import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { TapwrightError } from '../domain/errors.ts';
import { findTemporal as find, TEMPORAL_HELP } from '../scripts/lib/places.mjs';
import type { FoundTemporal } from '../scripts/lib/places.mjs';

export type { FoundTemporal };

export interface TemporalServerOptions {
  /** The server's SQLite database: every run of this home. Kept from one start to the next. */
  dbFile: string;
  /** Its output is appended here. */
  logFile: string;
  /** Port on 127.0.0.1; default: a free one. */
  port?: number;
  /** Start it again, on the same port and database, when it dies by itself. Default true. */
  keep?: boolean;
  /** Hears of every new pid, and null when the process has ended. */
  onPid?(pid: number | null): void;
  /** Hears how it ended when it is started again. */
  onRestart?(message: string): void;
  /** Hears that it ended too often in a row to go on. */
  onGiveUp?(message: string): void;
}

export interface TemporalServer {
  address: string;
  /** Process id of the running server (the latest, when it had to be started again). */
  readonly pid: number;
  /** Stops the server and waits until it is gone. Idempotent. */
  stop(): Promise<void>;
}

/** How long a start may take; a restart on a large database replays nothing, so this is generous. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
/** Restarts in a row after which it is given up, and the time alive that ends a row. */
const RESTARTS = 20;
const ALIVE_MS = 60_000;
const HOST = '127.0.0.1';

/**
 * The Temporal server to use: TEMPORAL_ADDRESS, `temporal` on PATH, the cached build, the SDK's download (temporal.md).
 * Throws `not_found` with what to do when there is none.
 */
export function findTemporal(env: NodeJS.ProcessEnv = process.env): FoundTemporal {
  const found = find(env);
  if (found === null)
    throw new TapwrightError('not_found', `There is no Temporal server on this machine. ${TEMPORAL_HELP}`);
  return found;
}

/**
 * Starts a Temporal server of our own on loopback and waits until it answers.
 * Throws `not_found` (no binary), `invalid_config` (port taken), `internal` (it did not come up; with its last words).
 */
export async function startTemporalServer(options: TemporalServerOptions): Promise<TemporalServer> {
  const { dbFile, logFile, keep = true, onPid = () => {}, onRestart = () => {}, onGiveUp = () => {} } = options;
  const found = findTemporal({ ...process.env, TEMPORAL_ADDRESS: undefined });
  if (found.kind !== 'binary') throw new TapwrightError('internal', 'expected a binary');
  const port = await freePort(options.port);
  const address = `${HOST}:${port}`;
  for (const file of [dbFile, logFile]) mkdirSync(dirname(file), { recursive: true });

  let stopping = false;
  let restarts = 0;
  let child = launch(found.path, port, dbFile, logFile);

  const watch = (running: ChildProcess): void => {
    onPid(running.pid ?? null);
    const startedAt = performance.now();
    running.once('exit', (code, signal) => {
      onPid(null);
      if (stopping || !keep) return;
      const how = `the Temporal server ended (${signal ?? `code ${code}`})`;
      if (performance.now() - startedAt > ALIVE_MS) restarts = 0;
      if (restarts++ >= RESTARTS) {
        onGiveUp(`${how}, ${restarts} times in a row. ${lastWords(logFile)}`);
        return;
      }
      onRestart(`${how}: it is started again, and the run waits for it`);
      void sleep(Math.min(5_000, 100 * 2 ** restarts)).then(() => {
        if (stopping) return;
        child = launch(found.path, port, dbFile, logFile);
        watch(child);
      });
    });
  };

  const killNow = (): void => void child.kill('SIGKILL');
  const stop = async (): Promise<void> => {
    stopping = true;
    process.removeListener('exit', killNow);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => void child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const timer = setTimeout(killNow, STOP_TIMEOUT_MS);
    await gone;
    clearTimeout(timer);
  };
  // If this process ends without stop(), the server must not stay behind.
  process.once('exit', killNow);

  try {
    await answering(address, child, logFile);
  } catch (error) {
    await stop();
    throw error;
  }
  watch(child);
  return {
    address,
    get pid() {
      return child.pid ?? -1;
    },
    stop,
  };
}

/** Ends a server of this database that nobody keeps any more. False: the process is gone, or is another's by now. */
export async function endServerLeftBehind(pid: number, dbFile: string): Promise<boolean> {
  if (!isServerOf(pid, dbFile)) return false;
  for (let waited = 0; isServerOf(pid, dbFile); waited += 50) {
    try {
      process.kill(pid, waited < STOP_TIMEOUT_MS ? 'SIGTERM' : 'SIGKILL');
    } catch {
      break;
    }
    await sleep(50);
  }
  return true;
}

/** Processes that are a server of this database (Linux; elsewhere none is found). */
export function serversOf(dbFile: string): number[] {
  let names: string[] = [];
  try {
    names = readdirSync('/proc');
  } catch {
    // No such folder on this system.
  }
  return names.filter((name) => /^\d+$/.test(name) && isServerOf(Number(name), dbFile)).map(Number);
}

/** Process ids come again: what a process is, its command line tells (Linux); elsewhere nothing is ended on suspicion. */
function isServerOf(pid: number, dbFile: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(dbFile);
  } catch {
    return false;
  }
}

function launch(binary: string, port: number, dbFile: string, logFile: string): ChildProcess {
  const log = openSync(logFile, 'a');
  const args = ['server', 'start-dev', '--headless', '--ip', HOST, '--port', String(port), '--log-level', 'error'];
  // WAL and NORMAL: 108 episodes/s against 31 on a plain file, and safe against the death of every process (temporal.md).
  const pragmas = ['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'];
  // A process group of its own: Ctrl-C in the terminal reaches only us, and we stop the server last.
  const child = spawn(binary, [...args, '--db-filename', dbFile, ...pragmas], {
    stdio: ['ignore', log, log],
    detached: true,
  });
  // Without a listener a spawn error would be thrown; answering() sees that there is no pid.
  child.on('error', () => {});
  closeSync(log);
  return child;
}

/** Waits until the server and its default namespace answer. */
async function answering(address: string, child: ChildProcess, logFile: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (let delay = 50; ; delay = Math.min(500, delay * 1.5)) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      throw new TapwrightError('internal', `The Temporal server ended at once. ${lastWords(logFile)}`);
    }
    try {
      const connection = await Connection.connect({ address, connectTimeout: '1s' });
      try {
        await connection.workflowService.describeNamespace({ namespace: 'default' });
        return;
      } finally {
        await connection.close();
      }
    } catch (error) {
      if (performance.now() > deadline) {
        throw new TapwrightError(
          'internal',
          `The Temporal server at ${address} does not answer after ${START_TIMEOUT_MS / 1000} s. ${lastWords(logFile)}`,
          { cause: error },
        );
      }
    }
    await sleep(delay);
  }
}

function lastWords(logFile: string): string {
  let text = '';
  try {
    text = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
  } catch {
    // No log: nothing to quote.
  }
  return text === '' ? `Its log ${logFile} is empty.` : `Its log ${logFile} ends with:\n${text}`;
}

/** `wanted` when it is free, or a free port chosen by the system. */
function freePort(wanted?: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE';
      const what = taken ? 'is taken by another program' : `cannot be used (${error.message})`;
      reject(
        new TapwrightError(
          'invalid_config',
          `Port ${wanted ?? 0} on ${HOST} ${what}: choose another port, or set TEMPORAL_ADDRESS if a Temporal server runs there.`,
          { cause: error },
        ),
      );
    });
    probe.listen(wanted ?? 0, HOST, () => {
      const bound = probe.address();
      probe.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : 0));
    });
  });
}
