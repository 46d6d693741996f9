// Long steps with a line that says what they are for and how long they have run. Node built-ins only.
import { spawn } from 'node:child_process';

/** A set-up failure with a sentence on what to do. */
export class SetupError extends Error {
  constructor(message, whatToDo) {
    super(message);
    this.whatToDo = whatToDo;
  }
}

/**
 * Shows `title` with its elapsed seconds while `work(note)` runs; `note(text)` adds a detail to the line.
 * On a terminal the line rewrites itself; elsewhere a plain line is written at the start, every 30 s and at the end.
 */
export async function step(title, work, { out = process.stderr, now = () => performance.now() } = {}) {
  const started = now();
  const elapsed = () => `${Math.round((now() - started) / 1000)} s`;
  let detail = '';
  const line = () => `${title} ... ${elapsed()}${detail === '' ? '' : ` (${detail})`}`;
  const draw = () => out.write(out.isTTY ? `\r\x1b[K${line().slice(0, (out.columns ?? 100) - 1)}` : `${line()}\n`);
  if (out.isTTY) draw();
  else out.write(`${title} ...\n`);
  const timer = setInterval(draw, out.isTTY ? 500 : 30_000);
  const finish = (word) => {
    clearInterval(timer);
    out.write(`${out.isTTY ? '\r\x1b[K' : ''}${title}: ${word}, ${elapsed()}\n`);
  };
  try {
    const result = await work((text) => void (detail = text));
    finish('done');
    return result;
  } catch (error) {
    finish('failed');
    throw error;
  }
}

/**
 * Runs a command; resolves to `{ code, output }` with the last 16 KB of stdout and stderr together. Never throws:
 * a command that is missing or ran past `timeoutMs` has code -1. `onLine` sees every line as it comes.
 */
export function run(command, args, { cwd, env, uid, gid, timeoutMs, onLine } = {}) {
  return new Promise((resolve) => {
    const options = { cwd, uid, gid, env: env ?? process.env, stdio: ['ignore', 'pipe', 'pipe'] };
    const child = spawn(command, args, options);
    let output = '';
    let rest = '';
    const take = (chunk) => {
      output = (output + chunk).slice(-16_384);
      if (onLine === undefined) return;
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const text of lines) onLine(text);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    const timer = timeoutMs && setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const end = (code, extra = '') => {
      clearTimeout(timer);
      resolve({ code: code ?? -1, output: (output + extra).trim() });
    };
    child.on('error', (error) => end(-1, error.message));
    child.on('close', (code, signal) => end(code, signal === null ? '' : `\nstopped by ${signal}`));
  });
}

/** The last lines of a command's output, for a message. */
export function tail(output, lines = 5) {
  return output.split('\n').slice(-lines).join('\n');
}
