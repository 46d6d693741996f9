import { z } from 'zod';
import { TapwrightError } from '../../domain/errors.ts';
import type { OutlineElement } from '../../domain/index.ts';
import { createLineCalls, tryJson } from './line-calls.ts';

const named = z.array(z.object({ name: z.string(), on: z.number() }));
/** What the guest tells of itself: all that a rollback brings back (guest/phone.h). */
export const guestState = z.object({
  app: z.string(),
  page: z.enum(['list', 'detail', 'edit', 'confirm', 'cart', 'ordered']),
  draft: z.string(),
  index: z.number(),
  scroll: z.number(),
  focused: z.number(),
  quantity: z.number(),
  orders: z.number(),
  /** Which contact was called last; -1: none. */
  called: z.number(),
  counter: z.number(),
  theme: z.number(),
  /** Input events that have reached the guest since it started. */
  events: z.number(),
  settings: z.record(z.string(), z.number()),
  contacts: z.array(z.object({ name: z.string(), number: z.string(), last: z.string(), favorite: z.number() })),
  notes: named,
  tasks: named,
  alarms: named,
  items: z.array(z.object({ name: z.string(), price: z.number(), cart: z.number(), ordered: z.number() })),
});
export type GuestState = z.output<typeof guestState>;

/** The guest's serial port: privileged, never seen by an agent. */
export interface GuestLink {
  /** Resolves when the guest has said that it is up. */
  ready(timeoutMs: number): Promise<void>;
  state(): Promise<GuestState>;
  /** The elements that are drawn, from the program that draws them: what a reading of the pixels is measured by. */
  outline(): Promise<OutlineElement[]>;
  /** Input events so far; an echo of what was sent. */
  events(): Promise<number>;
  /** Everything anew from a number. */
  reset(seed: number): Promise<void>;
  /** `set` lines (guest/contents.c), in order. Error: `invalid_input` with the guest's words. */
  set(lines: readonly string[]): Promise<void>;
  /** For tests: the guest stands still for ever while QEMU lives. */
  freeze(): void;
  close(): void;
}

/** Lines on their way at once: a serial port has no flow control, and the kernel behind it keeps 4 KiB. */
const AT_ONCE = 16;

/** Errors of every call: `device_hung` after `timeoutMs`, `connection_dropped`, `frame_blank` for nonsense. */
export function connectGuest(path: string, timeoutMs = 3_000): GuestLink {
  const peer = `the guest behind ${path}`;
  let up: () => void = () => {};
  const said = new Promise<void>((resolve) => (up = resolve));
  const calls = createLineCalls(path, peer, (line) => {
    const space = line.indexOf(' ');
    const id = Number(line.slice(0, space));
    const value = tryJson(line.slice(space + 1));
    if (line.startsWith('fatal ')) {
      calls.fail(new TapwrightError('boot_timeout', `${peer} gave up: ${line.slice(6)}`));
    } else if (id === 0) up();
    else if (typeof value === 'object' && value !== null && 'error' in value) {
      const why = String(value.error);
      calls.refuse(id, (what) => new TapwrightError('invalid_input', `${peer} refused "${what}": ${why}`));
    } else calls.answer(id, value);
  });
  const ask = (command: string): Promise<unknown> => calls.call(command, (id) => `${id} ${command}`, timeoutMs);
  return {
    ready: async (timeout) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        const error = new TapwrightError('boot_timeout', `${peer} was not up within ${timeout} ms`);
        timer = setTimeout(() => reject(error), timeout);
      });
      await Promise.race([said, calls.ended, late]).finally(() => clearTimeout(timer));
    },
    state: async () => guestState.parse(await ask('state')),
    outline: async () => (await ask('outline')) as OutlineElement[],
    events: async () => z.object({ events: z.number() }).parse(await ask('ping')).events,
    reset: async (seed) => void (await ask(`reset ${seed}`)),
    set: async (lines) => {
      for (const line of lines) {
        // The serial port reads ASCII lines; a longer one would be cut silently.
        if (!/^[\x20-\x7e]{1,200}$/.test(line))
          throw new TapwrightError('invalid_input', `not a line for a guest: ${line}`);
      }
      for (let at = 0; at < lines.length; at += AT_ONCE) {
        await Promise.all(lines.slice(at, at + AT_ONCE).map((line) => ask(`set ${line}`)));
      }
    },
    freeze: () => void ask('freeze').catch(() => undefined),
    close: () => calls.fail(new TapwrightError('connection_dropped', `the connection to ${path} was closed here`)),
  };
}
