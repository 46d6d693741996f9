import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { TapwrightError, asTapwrightError } from '../../domain/errors.ts';
import type { Point } from '../../domain/index.ts';
import { createByteStream } from './byte-stream.ts';
import type { ByteStream } from './byte-stream.ts';
import { createFramebuffer } from './framebuffer.ts';
import { handshake } from './handshake.ts';
import { KEYS, keyOf } from './keys.ts';
import type { Key } from './keys.ts';
import { createUpdateReader } from './updates.ts';

export interface RfbOptions {
  /** Where the server listens: an address, or the path of a Unix socket. */
  at: { host: string; port: number } | { path: string };
  /** For VncAuth; null when there is none. */
  password?: string | null;
  /** For connecting and greeting, milliseconds. */
  connectTimeoutMs?: number;
}

/** A copy of the server's screen: RGBA, row-major. */
export interface RfbFrame {
  /** Grows by one with every update of the screen's content. */
  sequence: number;
  width: number;
  height: number;
  pixels: Uint8Array;
}

export interface ObserveOptions {
  /** Only a frame of a larger sequence counts. -1: any. */
  newerThan?: number;
  /** The screen must have stayed the same for so many milliseconds. 0: the first frame counts. */
  stableFor?: number;
  /** Milliseconds. */
  timeout: number;
}

/** One connection to a VNC server. Every call ends within its time, in a value or a TapwrightError. */
export interface RfbClient {
  readonly width: number;
  readonly height: number;
  readonly name: string;
  /** The newest frame's sequence; -1 before the first. */
  sequence(): number;
  /**
   * A frame newer than `newerThan` after which nothing changed for `stableFor`. Errors: `frame_stale` when there is none in
   * time, `connection_dropped`.
   */
  observe(options: ObserveOptions): Promise<RfbFrame>;
  /** Asks for the whole screen anew and waits for it: proof that the server lives. Errors as `observe`. */
  refresh(timeout: number): Promise<RfbFrame>;
  /** Moves the pointer without touching. */
  hover(at: Point): void;
  tap(at: Point): Promise<void>;
  longPress(at: Point, ms: number): Promise<void>;
  /** From one point to the other, through points between. */
  swipe(from: Point, to: Point, ms: number): Promise<void>;
  /** Types; false, with nothing sent, when a character has no key. */
  type(text: string): Promise<boolean>;
  press(key: keyof typeof KEYS): Promise<void>;
  /** Control and A: what is typed next takes the place of what a field holds. */
  selectAll(): Promise<void>;
  /** Puts Latin-1 text on the server's clipboard; false, with nothing sent, for any other. */
  clipboard(text: string): boolean;
  /** Lifts what is held down: pointer and keys. */
  lift(): void;
  close(): void;
}

const CONNECT_MS = 5_000;
/** Between two events of one gesture: guests that poll their devices miss what is over at once. */
const EVENT_MS = 20;
const SWIPE_STEPS = 10;
const ZRLE = 16;
const ENCODINGS = [ZRLE, 1, 0, -223, -308, -224, -239, -258];

/**
 * Connects, greets and keeps reading (devices.md, VNC). One reader; one incremental request outstanding, asked again when
 * an update has been read, so that the sequence follows the screen and not our questions.
 * Errors: `connection_dropped`, `invalid_config` (password).
 */
export async function connectRfb(options: RfbOptions): Promise<RfbClient> {
  const { at, password = null, connectTimeoutMs = CONNECT_MS } = options;
  const peer = 'path' in at ? at.path : `${at.host}:${at.port}`;
  const socket = connect({ ...at, noDelay: true });
  const stream = createByteStream(socket, peer);
  const late = setTimeout(() => {
    stream.fail(new TapwrightError('connection_dropped', `${peer} did not greet within ${connectTimeoutMs} ms`));
  }, connectTimeoutMs);
  try {
    const init = await handshake(stream, peer, password);
    clearTimeout(late);
    return startClient(stream, peer, init);
  } catch (error) {
    clearTimeout(late);
    stream.fail(asTapwrightError(error, 'connection_dropped'));
    throw error;
  }
}

function startClient(
  stream: ByteStream,
  peer: string,
  init: { width: number; height: number; name: string },
): RfbClient {
  const screen = createFramebuffer(init.width, init.height, peer);
  let sequence = -1;
  let changedAt = performance.now();
  /** Full frames that were asked for and are not there yet. */
  let full = 0;
  let fullDone = 0;
  let held: { at: Point; buttons: number } | null = null;
  const down = new Set<Key>();
  const watchers = new Set<() => void>();
  const tell = (): void => {
    for (const watcher of [...watchers]) watcher();
  };

  /** Whether the newest request was for changes only. */
  let incremental = false;
  const request = (changesOnly: boolean): void => {
    incremental = changesOnly;
    const bytes = Buffer.alloc(10);
    bytes[0] = 3;
    bytes[1] = changesOnly ? 1 : 0;
    bytes.writeUInt16BE(screen.width, 6);
    bytes.writeUInt16BE(screen.height, 8);
    stream.write(bytes);
  };
  const reader = createUpdateReader(stream, screen, peer);

  const read = async (): Promise<void> => {
    for (;;) {
      const kind = await reader.next();
      if (kind === 'other') continue;
      if (kind === 'drawn') {
        sequence += 1;
        changedAt = performance.now();
        fullDone = full;
      }
      // TigerVNC answers a full request with a notice alone, and has its pixels ready for the incremental one after it.
      // Whoever answers that with nothing too is asked for everything again.
      if (kind === 'new size') full += 1;
      request(kind !== 'new size' && (fullDone >= full || !incremental));
      tell();
    }
  };

  setPixelFormat(stream);
  setEncodings(stream);
  full = 1;
  request(false);
  read().catch((error: unknown) => {
    stream.fail(asTapwrightError(error, 'connection_dropped'));
    reader.close();
    tell();
  });

  const frame = (): RfbFrame => ({
    sequence,
    width: screen.width,
    height: screen.height,
    pixels: screen.pixels.slice(),
  });

  /** Resolves when `ready` says 0; a number is the milliseconds until it may. */
  const until = (ready: () => number, timeout: number, what: () => string): Promise<RfbFrame> =>
    new Promise((resolve, reject) => {
      const end = performance.now() + timeout;
      let timer: NodeJS.Timeout | undefined;
      const settle = (work: () => void): void => {
        clearTimeout(timer);
        watchers.delete(look);
        work();
      };
      const look = (): void => {
        clearTimeout(timer);
        const failure = stream.failure();
        if (failure !== null) return settle(() => reject(failure));
        const wait = ready();
        if (wait <= 0) return settle(() => resolve(frame()));
        const left = end - performance.now();
        if (left <= 0) return settle(() => reject(new TapwrightError('frame_stale', what())));
        timer = setTimeout(look, Math.min(wait, left));
      };
      watchers.add(look);
      look();
    });

  const pointer = (at: Point, buttons: number): void => {
    const x = Math.min(Math.max(0, Math.round(at.x)), screen.width - 1);
    const y = Math.min(Math.max(0, Math.round(at.y)), screen.height - 1);
    held = buttons === 0 ? null : { at, buttons };
    const bytes = Buffer.alloc(6);
    bytes[0] = 5;
    bytes[1] = buttons;
    bytes.writeUInt16BE(x, 2);
    bytes.writeUInt16BE(y, 4);
    send(bytes);
  };
  const key = (of: Key, pressed: boolean): void => {
    if (pressed) down.add(of);
    else down.delete(of);
    const extended = reader.extendedKeys() && of.scancode !== 0;
    const bytes = Buffer.alloc(extended ? 12 : 8);
    if (extended) {
      bytes[0] = 255;
      bytes.writeUInt16BE(pressed ? 1 : 0, 2);
      bytes.writeUInt32BE(of.keysym, 4);
      bytes.writeUInt32BE(of.scancode, 8);
    } else {
      bytes[0] = 4;
      bytes[1] = pressed ? 1 : 0;
      bytes.writeUInt32BE(of.keysym, 4);
    }
    send(bytes);
  };
  const send = (bytes: Uint8Array): void => {
    const failure = stream.failure();
    if (failure !== null) throw failure;
    stream.write(bytes);
  };
  const stroke = async (of: Key, held: Key | null): Promise<void> => {
    if (held !== null) key(held, true);
    key(of, true);
    await sleep(EVENT_MS);
    key(of, false);
    if (held !== null) key(held, false);
    await sleep(EVENT_MS);
  };
  /** A gesture's events; what lifts the pointer, or another gesture, ends it. */
  let gestures = 0;
  const gesture = (): ((at: Point, buttons: number) => void) => {
    const own = ++gestures;
    return (at, buttons) => {
      if (own === gestures) pointer(at, buttons);
    };
  };
  const hold = async (at: Point, ms: number): Promise<void> => {
    const touch = gesture();
    touch(at, 0);
    await sleep(EVENT_MS);
    touch(at, 1);
    await sleep(ms);
    touch(at, 0);
  };

  return {
    get width() {
      return screen.width;
    },
    get height() {
      return screen.height;
    },
    name: init.name,
    sequence: () => sequence,
    observe: ({ newerThan = -1, stableFor = 0, timeout }) =>
      until(
        () => {
          if (sequence <= newerThan || fullDone === 0) return Infinity;
          return stableFor - (performance.now() - changedAt);
        },
        timeout,
        () =>
          sequence <= newerThan
            ? `${peer} drew nothing new within ${timeout} ms`
            : `the screen of ${peer} did not hold still for ${stableFor} ms within ${timeout} ms`,
      ),
    refresh: (timeout) => {
      full += 1;
      const wanted = full;
      request(false);
      return until(
        () => (fullDone >= wanted ? 0 : Infinity),
        timeout,
        () => `${peer} sent no whole frame within ${timeout} ms: its machine may hang`,
      );
    },
    hover: (at) => pointer(at, 0),
    tap: (at) => hold(at, 3 * EVENT_MS),
    longPress: hold,
    swipe: async (from, to, ms) => {
      const touch = gesture();
      touch(from, 0);
      await sleep(EVENT_MS);
      touch(from, 1);
      for (let i = 1; i <= SWIPE_STEPS; i++) {
        await sleep(ms / SWIPE_STEPS);
        const part = i / SWIPE_STEPS;
        touch({ x: from.x + part * (to.x - from.x), y: from.y + part * (to.y - from.y) }, 1);
      }
      await sleep(EVENT_MS);
      touch(to, 0);
    },
    type: async (text) => {
      const keys = [...text].map(keyOf);
      if (keys.includes(null)) return false;
      for (const each of keys) await stroke(each!.key, each!.shift ? KEYS.shift : null);
      return true;
    },
    press: (name) => stroke(KEYS[name], null),
    selectAll: () => stroke(keyOf('a')!.key, KEYS.control),
    clipboard: (text) => {
      if (!isLatin1(text)) return false;
      const bytes = Buffer.from(text, 'latin1');
      const head = Buffer.alloc(8);
      head[0] = 6;
      head.writeUInt32BE(bytes.length, 4);
      send(Buffer.concat([head, bytes]));
      return true;
    },
    lift: () => {
      gestures += 1;
      if (stream.failure() !== null) return;
      if (held !== null) pointer(held.at, 0);
      for (const each of [...down]) key(each, false);
    },
    close: () => {
      stream.fail(new TapwrightError('connection_dropped', `the connection to ${peer} was closed here`));
    },
  };
}

const isLatin1 = (text: string): boolean => [...text].every((char) => char.codePointAt(0)! < 256);

/** Four bytes a pixel, R first: what our framebuffer holds, and what ZRLE sends as three bytes. */
function setPixelFormat(stream: ByteStream): void {
  const bytes = Buffer.alloc(20);
  bytes[4] = 32;
  bytes[5] = 24;
  bytes[7] = 1;
  for (const at of [8, 10, 12]) bytes.writeUInt16BE(255, at);
  [bytes[14], bytes[15], bytes[16]] = [0, 8, 16];
  stream.write(bytes);
}

function setEncodings(stream: ByteStream): void {
  const bytes = Buffer.alloc(4 + 4 * ENCODINGS.length);
  bytes[0] = 2;
  bytes.writeUInt16BE(ENCODINGS.length, 2);
  ENCODINGS.forEach((encoding, i) => bytes.writeInt32BE(encoding, 4 + 4 * i));
  stream.write(bytes);
}
