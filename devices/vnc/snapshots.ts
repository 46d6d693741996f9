import { createHash } from 'node:crypto';
import { readFile, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TapwrightError, asTapwrightError } from '../../domain/errors.ts';
import { hashHex, screenHash } from '../../rl/index.ts';
import type { GuestLink } from './guest-link.ts';
import { RAM_MB } from './machine.ts';
import type { QmpClient } from './qmp.ts';
import type { RfbClient, RfbFrame } from './rfb.ts';

/** Rows that a phone keeps for its status bar; they are cropped before hashing. */
export const STATUS_BAR = 28;

/** How a screen is told from others: `digest` of every pixel below the status bar, `hash` the perceptual one. */
export interface ScreenMark {
  digest: string;
  hash: string;
  degenerate: boolean;
}

/** A frame's mark (algorithms.md, 11). */
export function markOf({ pixels, width, height }: Pick<RfbFrame, 'pixels' | 'width' | 'height'>): ScreenMark {
  const body = pixels.subarray(STATUS_BAR * width * 4);
  const { hash, degenerate } = screenHash(pixels, width, height, { top: STATUS_BAR, bottom: 0 }, 4);
  return { digest: createHash('sha256').update(body).digest('hex'), hash: hashHex(hash), degenerate };
}

type Pixels = Pick<RfbFrame, 'pixels' | 'width' | 'height'>;

/** What can be done with a machine that runs. */
export interface MachineControl {
  /** Saves the whole machine. Errors: `rollback_failed`, `disk_full`, and those of a machine that is gone or hung. */
  save(tag: string): Promise<ScreenMark>;
  /**
   * Loads a state and proves it: the machine runs, a frame newer than the load, an input that reaches the guest, every
   * pixel as in `mark` (design.md, 5). Errors: `rollback_failed`, `rollback_unverified`, `device_hung`, `connection_dropped`.
   */
  rollback(tag: string, mark: ScreenMark): Promise<RfbFrame>;
  /** An input that changes nothing reaches the guest: more than a port that answers. Error: `device_hung`. */
  echo(timeoutMs?: number): Promise<void>;
  /** The screen by QEMU itself, past VNC: RGB as RGBA. */
  screendump(): Promise<Pick<RfbFrame, 'pixels' | 'width' | 'height'>>;
}

export interface ControlOptions {
  qmp: QmpClient;
  rfb: RfbClient;
  guest: Pick<GuestLink, 'events'>;
  /** The machine's private folder. */
  folder: string;
  rollbackTimeoutMs: number;
}

const ECHO_MS = 2_000;
const FRAME_MS = 2_000;
const POLL_MS = 5;

/** Saving, loading and proving, over a machine's three connections. One save or load at a time. */
export function controlMachine({ qmp, rfb, guest, folder, rollbackTimeoutMs }: ControlOptions): MachineControl {
  let busy: string | null = null;
  const alone = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    if (busy !== null) {
      throw new TapwrightError('rollback_failed', `${what} was refused: ${busy} is not over`);
    }
    busy = what;
    try {
      return await work();
    } finally {
      busy = null;
    }
  };

  /** A command to the monitor: what it prints is its failure. */
  const monitor = async (line: string): Promise<void> => {
    const said = await qmp.human(line, rollbackTimeoutMs);
    if (said === '') return;
    // QEMU may call a full disk an input/output error.
    const full = /No space left|File too large/i.test(said) || (line.startsWith('savevm') && (await isFull(folder)));
    throw new TapwrightError(full ? 'disk_full' : 'rollback_failed', `${line}: ${said}`);
  };
  const running = async (): Promise<boolean> =>
    z.object({ running: z.boolean() }).parse(await qmp.execute('query-status')).running;
  /** A load that failed, now or earlier, has left the machine standing. */
  const goOn = async (): Promise<void> => {
    if (await running()) return;
    await qmp.execute('cont');
    if (!(await running())) throw new TapwrightError('rollback_failed', 'the machine does not run after `cont`');
  };

  const echo: MachineControl['echo'] = async (timeoutMs = ECHO_MS) => {
    const before = await guest.events();
    const until = performance.now() + timeoutMs;
    // The kernel drops a move to where the pointer is, so it is moved twice.
    for (let i = 0; ; i++) {
      rfb.hover({ x: 1 + (i % 2) * 2, y: 1 });
      if (i === 0) continue;
      await sleep(POLL_MS);
      if ((await guest.events()) !== before) return;
      if (performance.now() > until) {
        throw new TapwrightError('device_hung', `no input reached the guest within ${timeoutMs} ms`);
      }
    }
  };

  /** Frames until one is as `mark` says. */
  const proven = async (mark: ScreenMark, timeout: number): Promise<RfbFrame> => {
    const until = performance.now() + timeout;
    let frame = await rfb.refresh(timeout);
    for (;;) {
      const seen = markOf(frame);
      if (seen.digest === mark.digest) return frame;
      const left = until - performance.now();
      const unlike = new TapwrightError(
        'rollback_unverified',
        `after the load the screen's hash is ${seen.hash}, the state's ${mark.hash}`,
      );
      if (left <= 0) throw unlike;
      frame = await rfb.observe({ newerThan: frame.sequence, timeout: left }).catch((error: unknown) => {
        throw asTapwrightError(error).code === 'frame_stale' ? unlike : error;
      });
    }
  };

  return {
    save: (tag) =>
      alone(`savevm ${tag}`, async () => {
        checkTag(tag);
        rfb.lift();
        await goOn();
        // What was done a moment ago is in the state: the guest has answered since.
        await echo();
        const mark = markOf(await rfb.refresh(FRAME_MS));
        await monitor(`savevm ${tag}`);
        await goOn();
        return mark;
      }),
    rollback: (tag, mark) =>
      alone(`loadvm ${tag}`, async () => {
        checkTag(tag);
        // A finger that is down before the load would be down after it.
        rfb.lift();
        const before = rfb.sequence();
        await monitor(`loadvm ${tag}`);
        await goOn();
        await echo();
        const frame = await proven(mark, FRAME_MS);
        if (frame.sequence <= before)
          throw new TapwrightError('rollback_unverified', 'no frame is newer than the load');
        return frame;
      }),
    echo,
    screendump: async () => {
      const file = join(folder, 'screen.ppm');
      await qmp.execute('screendump', { filename: file });
      const bytes = await readFile(file);
      await rm(file);
      return readPpm(bytes);
    },
  };
}

/** There is no room for a machine's memory. */
async function isFull(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize < RAM_MB * 1024 * 1024;
}

/** A tag goes into a line for the monitor as it is. */
function checkTag(tag: string): void {
  if (!/^[\w-]{1,40}$/.test(tag)) throw new TapwrightError('invalid_input', `"${tag}" is no name for a state`);
}

/** A binary PPM (P6, 255) as RGBA. Error: `frame_blank` for anything else. */
export function readPpm(bytes: Buffer): Pixels {
  const head = /^P6\s(\d+)\s(\d+)\s255\s/.exec(bytes.toString('latin1', 0, 40));
  if (head === null) throw new TapwrightError('frame_blank', 'QEMU wrote no picture');
  const [width, height] = [Number(head[1]), Number(head[2])];
  const pixels = new Uint8Array(width * height * 4).fill(255);
  for (let i = 0, at = head[0].length; i < width * height; i++, at += 3) pixels.set(bytes.subarray(at, at + 3), i * 4);
  return { pixels, width, height };
}
