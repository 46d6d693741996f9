// Long-running processes that belong together: started one after another, taken down in the reverse order.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { SetupError } from './steps.mjs';

/** After a member's own signal; a database writes out what it holds before it goes. */
const STOP_TIMEOUT_MS = 30_000;

export function createCrew() {
  const members = [];
  let closing = null;
  let tellEnd = () => {};
  const ended = new Promise((resolve) => void (tellEnd = resolve));
  // If this process ends in a way that nobody foresaw, nothing stays behind.
  const killAll = () => members.forEach(({ child, lastSignal }) => child.kill(lastSignal));
  process.once('exit', killAll);

  const end = async ({ child, gone, stopSignal, lastSignal }) => {
    child.kill(stopSignal);
    const timer = setTimeout(() => child.kill(lastSignal), STOP_TIMEOUT_MS);
    await gone;
    clearTimeout(timer);
  };

  return {
    /**
     * Starts a program in a process group of its own (Ctrl-C in a terminal reaches us alone) and appends its output to
     * `logFile`. Returns `{ pid, isGone, gone }`. `lastSignal` is for when `stopSignal` was of no use.
     */
    start({ name, command, args, logFile, stopSignal, lastSignal = 'SIGKILL', ...options }) {
      if (closing !== null) throw new SetupError('It was told to stop.', 'Start it again.');
      const log = openSync(logFile, 'a');
      const child = spawn(command, args, { ...options, stdio: ['ignore', log, log], detached: true });
      closeSync(log);
      const member = { name, child, stopSignal, lastSignal, gone: null, over: false };
      member.gone = new Promise((resolve) => {
        const over = (how) => {
          member.over = true;
          members.splice(members.indexOf(member), 1);
          resolve(how);
        };
        child.once('error', (error) => over(error.message));
        child.once('exit', (code, signal) => over(signal ?? `exit code ${code}`));
      });
      members.push(member);
      return { pid: child.pid ?? null, gone: member.gone, isGone: () => member.over };
    },
    /** From now on the end of this process, when nobody asked for it, is told by `ended`. */
    mind(name, { gone }) {
      void gone.then((how) => closing === null && tellEnd({ name, how }));
    },
    ended,
    isStopping: () => closing !== null,
    /** Resolves to how many there were to take down. */
    stop() {
      closing ??= (async () => {
        const present = [...members].reverse();
        for (const member of present) await end(member);
        process.removeListener('exit', killAll);
        return present.length;
      })();
      return closing;
    },
  };
}

/** Process ids come again: true only when the command line of this one holds `word` (Linux; elsewhere never). */
export function runs(pid, word) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
  } catch {
    return false;
  }
}

/** Ends a process whose command line holds `word`, by SIGTERM, and waits for it. False: there was none. */
export async function endLeftBehind(pid, word) {
  if (!runs(pid, word)) return false;
  for (let waited = 0; runs(pid, word); waited += 100) {
    try {
      process.kill(pid, waited < STOP_TIMEOUT_MS ? 'SIGTERM' : 'SIGKILL');
    } catch {
      break;
    }
    await sleep(100);
  }
  return true;
}

/** The last lines of a log, as a sentence. */
export function lastWords(logFile, lines = 5) {
  let text = '';
  try {
    text = readFileSync(logFile, 'utf8').trim().split('\n').slice(-lines).join('\n');
  } catch {
    // No log: nothing to quote.
  }
  return text === '' ? `Its log ${logFile} is empty.` : `Its log ${logFile} ends with:\n${text}`;
}

/** True when nobody listens on this port of loopback and we may. */
export function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/**
 * So many free ports of loopback, none of `taken`. Below those that the system gives to outgoing connections, so that one
 * that is kept in a file is still free at the next start.
 */
export async function freePorts(count, taken = []) {
  const ports = [];
  for (let port = 20_000 + Math.floor(Math.random() * 8_000); ports.length < count; port++) {
    if (port > 32_000) throw new SetupError('There are no free ports on 127.0.0.1.', 'End some of the servers there.');
    if (!taken.includes(port) && (await isFree(port))) ports.push(port);
  }
  return ports;
}
