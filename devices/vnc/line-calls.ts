import { connect } from 'node:net';
import { TapwrightError } from '../../domain/errors.ts';

/** Questions and answers as lines over a Unix socket, matched by number. Each ends within its deadline. */
export interface LineCalls {
  /**
   * Sends the line that `compose` makes of the call's number. Errors: `device_hung` when nobody answers in time,
   * `connection_dropped` when the socket is gone, or what `refuse` was given.
   */
  call(what: string, compose: (id: number) => string, timeoutMs: number): Promise<unknown>;
  /** An answer that came; one to a call that was given up is dropped. */
  answer(id: number, value: unknown): void;
  refuse(id: number, why: (what: string) => TapwrightError): void;
  /** Ends the connection and every call on it. */
  fail(error: TapwrightError): void;
  /** Rejects when the connection ends. */
  ended: Promise<never>;
}

/** Longest line that is read: a peer gone wild must not fill our memory. */
const MAX_LINE = 4 * 1024 * 1024;

/** `peer` names the other side in errors; `onLine` hears every line, without its end. */
export function createLineCalls(
  path: string,
  peer: string,
  onLine: (line: string, calls: LineCalls) => void,
): LineCalls {
  const socket = connect({ path });
  const asked = new Map<number, { what: string; resolve(value: unknown): void; reject(error: Error): void }>();
  let failure: TapwrightError | null = null;
  let lastId = 0;
  let rest = '';
  let end: (error: Error) => void = () => {};
  const ended = new Promise<never>((_, reject) => (end = reject));
  ended.catch(() => {});

  const calls: LineCalls = {
    call: (what, compose, timeoutMs) =>
      new Promise((resolve, reject) => {
        if (failure !== null) return reject(failure);
        const id = ++lastId;
        const timer = setTimeout(() => {
          asked.delete(id);
          reject(new TapwrightError('device_hung', `${peer} gave no answer to ${what} within ${timeoutMs} ms`));
        }, timeoutMs);
        const settle =
          <T>(work: (value: T) => void) =>
          (value: T): void => {
            clearTimeout(timer);
            asked.delete(id);
            work(value);
          };
        asked.set(id, { what, resolve: settle(resolve), reject: settle(reject) });
        socket.write(`${compose(id)}\n`);
      }),
    answer: (id, value) => asked.get(id)?.resolve(value),
    refuse: (id, why) => {
      const one = asked.get(id);
      one?.reject(why(one.what));
    },
    fail: (error) => {
      failure ??= error;
      socket.destroy();
      end(failure);
      for (const one of [...asked.values()]) one.reject(failure);
    },
    ended,
  };

  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > MAX_LINE) calls.fail(new TapwrightError('connection_dropped', `${peer} sent a line without end`));
    for (const line of lines) if (line.trim() !== '' && failure === null) onLine(line.trim(), calls);
  });
  const gone = (why: string, cause?: unknown): void =>
    calls.fail(new TapwrightError('connection_dropped', `${peer} ${why}`, { cause }));
  socket.on('error', (cause) => gone(`cannot be reached: ${cause.message}`, cause));
  socket.on('close', () => gone('closed its connection'));
  return calls;
}

/** The value of a text that should be JSON; undefined for any other. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
