import { closeSync, fsync, fsyncSync, ftruncateSync, linkSync, mkdirSync, openSync } from 'node:fs';
import { readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TapwrightError } from '../domain/index.ts';

/** An append-only file of JSON lines with one writer. A line cut short by a crash is dropped when it is opened. */
export interface Journal<T> {
  /** What the file held when it was opened. */
  readonly entries: readonly T[];
  /** With the system when this returns: it survives the death of this process, not yet that of the machine. */
  append(entry: T): void;
  /** Resolves when everything appended so far is on the disk. Callers at the same time share one write. */
  sync(): Promise<void>;
  /** Replaces the whole file, for the day it has grown long. */
  rewrite(entries: readonly T[]): void;
  close(): void;
}

export interface JournalOptions {
  /** How long to wait for a process that still writes the file: one that is draining. */
  patienceMs?: number;
}

const onDisk = promisify(fsync);
const POLL_MS = 100;

/** Opens a journal as its only writer. Errors: `invalid_config` when another living process keeps it. */
export async function openJournal<T>(path: string, options: JournalOptions = {}): Promise<Journal<T>> {
  mkdirSync(dirname(path), { recursive: true });
  const release = await own(`${path}.owner`, options.patienceMs ?? 30_000);
  const { entries, length } = readLines<T>(path);
  let file = openSync(path, 'a');
  ftruncateSync(file, length);
  let syncing: Promise<void> | null = null;
  let queued: Promise<void> | null = null;
  const write = (target: number, all: readonly T[]): void => {
    writeSync(target, all.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  };
  const sync = async (): Promise<void> => {
    // What is being written now may have begun before the caller's entry; the next one has it for sure.
    if (syncing !== null) return (queued ??= syncing.then(sync, sync).finally(() => (queued = null)));
    syncing = onDisk(file);
    try {
      await syncing;
    } finally {
      syncing = null;
    }
  };
  return {
    entries,
    append: (entry) => write(file, [entry]),
    sync,
    rewrite(all) {
      const part = `${path}.part`;
      const fresh = openSync(part, 'w');
      write(fresh, all);
      fsyncSync(fresh);
      renameSync(part, path);
      const old = file;
      file = fresh;
      // A write to the disk that is under way still uses it.
      void (syncing ?? Promise.resolve()).catch(() => undefined).then(() => closeSync(old));
    },
    close() {
      closeSync(file);
      release();
    },
  };
}

/** Whole lines of a file, and the length of what they take. */
function readLines<T>(path: string): { entries: T[]; length: number } {
  const entries: T[] = [];
  let length = 0;
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return { entries, length };
  }
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, length)) {
    try {
      entries.push(JSON.parse(bytes.toString('utf8', length, end)) as T);
    } catch {
      break;
    }
    length = end + 1;
  }
  return { entries, length };
}

interface Owner {
  pid: number;
  /** When the process began, in the system's words: process ids come again. Null where the system does not say. */
  began: string | null;
}

/** Makes this process the owner; waits for an owner that lives. Returns how to end it. */
async function own(path: string, patienceMs: number): Promise<() => void> {
  const me: Owner = { pid: process.pid, began: began(process.pid) };
  const until = performance.now() + patienceMs;
  for (;;) {
    if (create(path, JSON.stringify(me))) return () => rmSync(path, { force: true });
    const other = readOwner(path);
    if (other === null || !lives(other)) {
      rmSync(path, { force: true });
      continue;
    }
    if (performance.now() > until) {
      throw new TapwrightError(
        'invalid_config',
        `Process ${other.pid} keeps ${path.replace(/\.owner$/, '')}: one process serves a host's devices. Stop it, or give this host another name (TAPWRIGHT_HOST).`,
      );
    }
    await sleep(POLL_MS);
  }
}

/** Makes the file with this text in it, unless there is one. */
function create(path: string, text: string): boolean {
  const part = `${path}.${process.pid}.part`;
  writeFileSync(part, text);
  try {
    linkSync(part, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(part, { force: true });
  }
}

function readOwner(path: string): Owner | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Owner;
  } catch {
    // Gone in between.
    return null;
  }
}

function lives(owner: Owner): boolean {
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const now = began(owner.pid);
  return now === null || owner.began === null || now === owner.began;
}

/** Start time of a process (Linux); a zombie has ended. */
function began(pid: number): string | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? null);
  } catch {
    return null;
  }
}
