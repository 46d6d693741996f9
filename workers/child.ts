import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

export interface KeptOptions {
  role: string;
  /** Script relative to the project, run by tsx. */
  script: string;
  args: string[];
  env: Record<string, string>;
  logFile: string;
  /** Hears of every new pid, and null when it ends. */
  onPid(pid: number | null): void;
  /** Hears how it ended when it is started again. */
  onRestart?(message: string): void;
  /** Hears that it was started too often to go on. */
  onGiveUp(message: string): void;
  /** True when a line of its standard output says that it is ready. Default: a message `{ ready }` over the channel. */
  readyLine?: (line: string) => boolean;
}

export interface Kept {
  readonly role: string;
  ready: Promise<void>;
  stop(): Promise<void>;
}

/** Restarts in a row after which a child is given up, and the time alive that ends a row. */
const MAX_RESTARTS = 20;
const ALIVE_MS = 60_000;
/** After SIGTERM, before SIGKILL. */
const KILL_AFTER_MS = 15_000;

/** Keeps one child process alive: starts it, starts it again with growing delay when it dies, stops it for good. */
export function keepChild(options: KeptOptions): Kept {
  let child: ChildProcess | null = null;
  let stopping = false;
  let restarts = 0;
  let ended: Promise<void> = Promise.resolve();
  let markReady = (): void => {};
  let markFailed = (_error: Error): void => {};
  const ready = new Promise<void>((resolve, reject) => {
    markReady = resolve;
    markFailed = reject;
  });
  // Somebody may stop it before anybody waits for it.
  ready.catch(() => {});

  const start = (): void => {
    const log = createWriteStream(options.logFile, { flags: 'a' });
    const startedAt = Date.now();
    // A process group of its own: Ctrl-C reaches the supervisor alone, which stops its children in order.
    const running = spawn(process.execPath, ['--import', TSX, options.script, ...options.args], {
      cwd: ROOT,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: true,
    });
    child = running;
    options.onPid(running.pid ?? null);
    running.stderr!.pipe(log, { end: false });
    let rest = '';
    running.stdout!.on('data', (data: Buffer) => {
      log.write(data);
      rest += data.toString('utf8');
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      if (options.readyLine !== undefined && lines.some(options.readyLine)) markReady();
    });
    running.on('message', (message) => {
      if (typeof message === 'object' && message !== null && 'ready' in message) markReady();
    });
    running.on('error', (error) => log.write(`could not start: ${error.message}\n`));
    ended = new Promise((resolve) => {
      running.once('close', (code, signal) => {
        log.write(`ended: ${signal ?? code}\n`);
        log.end();
        child = null;
        options.onPid(null);
        resolve();
        if (stopping) return;
        if (Date.now() - startedAt > ALIVE_MS) restarts = 0;
        restarts += 1;
        if (restarts > MAX_RESTARTS) {
          const message = `the ${options.role} process ended ${restarts} times in a row, last with ${signal ?? code}: see ${options.logFile}`;
          markFailed(new Error(message));
          options.onGiveUp(message);
          return;
        }
        options.onRestart?.(`the ${options.role} process ended (${signal ?? `code ${code}`}): it is started again`);
        const delay = Math.min(10_000, 250 * 1.5 ** restarts);
        void sleep(delay).then(() => {
          if (!stopping) start();
        });
      });
    });
  };
  start();

  return {
    role: options.role,
    ready,
    stop: async () => {
      stopping = true;
      markFailed(new Error(`the ${options.role} process was stopped`));
      const running = child;
      if (running === null) return;
      running.kill('SIGTERM');
      const timer = setTimeout(() => running.kill('SIGKILL'), KILL_AFTER_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}
