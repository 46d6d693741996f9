import { z } from 'zod';
import { TapwrightError } from '../../domain/errors.ts';
import { createLineCalls, tryJson } from './line-calls.ts';

/** A client of QEMU's control socket (QMP). Every call ends within its deadline. */
export interface QmpClient {
  /**
   * One command's return value. Errors: `device_hung` when there is no answer in time, `connection_dropped` when the socket
   * is gone, `internal` when QEMU refuses the command, with its words.
   */
  execute(command: string, args?: Record<string, unknown>, timeoutMs?: number): Promise<unknown>;
  /** One line for the human monitor and what it prints. It tells failures only in what it prints: check that. Errors as above. */
  human(line: string, timeoutMs?: number): Promise<string>;
  /** Names of the events so far, newest last, at most 64. */
  events(): readonly string[];
  close(): void;
}

export interface QmpOptions {
  /** Path of the Unix socket. */
  path: string;
  /** For connecting and greeting, milliseconds. */
  connectTimeoutMs?: number;
  /** For a command that names none, milliseconds. */
  timeoutMs?: number;
}

const message = z.union([
  z.object({ QMP: z.looseObject({}) }),
  z.object({ return: z.unknown(), id: z.number() }),
  z.object({ error: z.object({ desc: z.string() }), id: z.number().optional() }),
  z.object({ event: z.string() }),
]);

const MAX_EVENTS = 64;

/** Connects, greets and negotiates. Errors: `connection_dropped`, `device_hung`. */
export async function connectQmp(options: QmpOptions): Promise<QmpClient> {
  const { path, connectTimeoutMs = 5_000, timeoutMs = 5_000 } = options;
  const peer = `QEMU at ${path}`;
  const events: string[] = [];
  let greet: () => void = () => {};
  const greeting = new Promise<void>((resolve) => (greet = resolve));
  const calls = createLineCalls(path, peer, (line) => {
    const read = message.safeParse(tryJson(line)).data;
    if (read === undefined) {
      calls.fail(new TapwrightError('connection_dropped', `${peer} does not speak QMP: ${line.slice(0, 80)}`));
    } else if ('QMP' in read) greet();
    else if ('event' in read) {
      events.push(read.event);
      if (events.length > MAX_EVENTS) events.shift();
    } else if ('error' in read) {
      const { desc } = read.error;
      calls.refuse(read.id ?? -1, (what) => new TapwrightError('internal', `QEMU refused ${what}: ${desc}`));
    } else calls.answer(read.id, read.return);
  });

  const late = setTimeout(() => {
    calls.fail(new TapwrightError('device_hung', `${peer} did not greet within ${connectTimeoutMs} ms`));
  }, connectTimeoutMs);
  await Promise.race([greeting, calls.ended]).finally(() => clearTimeout(late));

  const execute: QmpClient['execute'] = (command, args, timeout = timeoutMs) =>
    calls.call(command, (id) => JSON.stringify({ execute: command, ...(args && { arguments: args }), id }), timeout);
  await execute('qmp_capabilities', undefined, connectTimeoutMs);
  return {
    execute,
    human: async (line, timeout) => {
      const said = await execute('human-monitor-command', { 'command-line': line }, timeout);
      return typeof said === 'string' ? said.trim() : '';
    },
    events: () => events,
    close: () => calls.fail(new TapwrightError('connection_dropped', `the connection to ${path} was closed here`)),
  };
}
