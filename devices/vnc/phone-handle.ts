import { setTimeout as sleep } from 'node:timers/promises';
import { createCanvas } from '@napi-rs/canvas';
import { TapwrightError, asTapwrightError } from '../../domain/index.ts';
import type { ActionReceipt, OutlineElement, Point, Screen } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import type { DeviceHandle, ExpertMove, OpenOptions } from '../device.ts';
import type { GuestState } from './guest-link.ts';
import type { ReadScreen } from './ocr/outline.ts';
import { cleanLabel } from './ocr/outline.ts';
import { editDistance } from './ocr/similar.ts';
import type { PhoneOracle, VncSnapshot } from './oracle.ts';
import type { QemuMachine } from './qemu.ts';
import type { RfbFrame } from './rfb.ts';
import type { SavedState } from './saved-state.ts';
import { markOf } from './snapshots.ts';

interface Options {
  /** The handle has it to itself until close. */
  machine: QemuMachine;
  state: SavedState;
  open: OpenOptions;
  oracle: PhoneOracle;
  /** An outline of a frame; `digest` names its pixels. */
  read(frame: RfbFrame, digest: string): Promise<ReadScreen>;
  /** The digest that a task's first screen had before; the one given is kept when there is none. */
  firstScreen(task: string, digest: string): string;
  /** For a gesture to reach the guest, milliseconds. */
  inputTimeoutMs?: number;
  /** `fit`: the machine may serve another attempt. */
  onClose(fit: boolean): Promise<void>;
}

const FRAME_MS = 5_000;
const INPUT_MS = 3_000;
/** Events of one gesture come close together: none for so long, and it is over. */
const QUIET_MS = 30;
const HOLD_MS = 600;
const SWIPE_MS = 200;
/** Share of letters that may differ before what is read is another text, not a bad reading. */
const MISREAD = 0.4;

/** One attempt on one virtual phone: seen by VNC and read by OCR, known by its serial port. */
export function createPhoneHandle(options: Options): DeviceHandle {
  const { machine, state, open, oracle, read, inputTimeoutMs = INPUT_MS } = options;
  const { task } = open;
  const snapshot = parseSnapshot(task.snapshot);
  let frames = 0;
  let shown: ReadScreen | null = null;
  let fit = true;
  let closed = false;
  let performed = 0;
  const fault = createRandom(open.seed, task.id, open.infraTry, open.key?.attempt ?? 0, 'vnc-fault');
  const armed = (['hang', 'crash'] as const).find((name) => fault.next() < (open.faults[name] ?? 0));
  const faultAt = fault.int(3);

  /** Whatever fails, the machine does not serve again as it is; a process that ended is what all else comes from. */
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      fit = false;
      throw asTapwrightError(machine.failure() ?? error, 'connection_dropped');
    }
  };

  const look = async (): Promise<{ frame: RfbFrame; mark: ReturnType<typeof markOf> }> => {
    const frame = await machine.rfb.refresh(FRAME_MS);
    const mark = markOf(frame);
    shown = await read(frame, mark.digest);
    return { frame, mark };
  };

  /** A gesture, and the proof that it reached the guest. Error: `input_not_delivered`. */
  const deliver = async (atLeast: number, gesture: () => Promise<unknown>): Promise<void> => {
    const before = await machine.guest.events();
    await gesture();
    const until = performance.now() + inputTimeoutMs;
    for (let count = -1; ;) {
      const now = await machine.guest.events();
      if (now >= before + atLeast && now === count) return;
      count = now;
      if (performance.now() > until) {
        throw new TapwrightError('input_not_delivered', `${now - before} of ${atLeast} events reached the guest`);
      }
      await sleep(QUIET_MS);
    }
  };
  const touch = async (at: Point, gesture: () => Promise<void>): Promise<ActionReceipt> => {
    const { width, height } = machine.rfb;
    if (at.x < 0 || at.y < 0 || at.x >= width || at.y >= height) {
      return { verified: false, strategy: 'touch', note: 'off_screen' };
    }
    await deliver(2, gesture);
    return { verified: true, strategy: 'touch' };
  };

  /** Types over what the focused field holds, and reads it back from the screen. */
  const enter = async (text: string): Promise<ActionReceipt> => {
    const focused = (of: ReadScreen | null): OutlineElement | undefined => of?.elements.find((e) => e.focused === true);
    await look();
    if (focused(shown) === undefined) return { verified: false, strategy: 'keys', note: 'no_focus' };
    let typed = true;
    await machine.rfb.selectAll();
    await deliver(2, async () => {
      typed = await machine.rfb.type(text);
      // Nothing was sent for a text without keys: the guest hears of something all the same.
      if (!typed) await machine.rfb.press('right');
    });
    if (!typed) return { verified: false, strategy: 'keys', note: 'no_key' };
    await look();
    const value = focused(shown)?.value ?? '';
    const [wanted, got] = [cleanLabel(text), cleanLabel(value)];
    if (wanted === got) return { verified: true, strategy: 'keys' };
    if (editDistance(wanted, got) > MISREAD * Math.max(1, wanted.length)) {
      throw new TapwrightError('text_mismatch', `The field reads "${value}" after "${text}" was typed.`);
    }
    return { verified: false, strategy: 'keys', note: 'misread' };
  };

  const applyFault = (): void => {
    if (armed === undefined || performed++ !== faultAt) return;
    if (armed === 'hang') machine.guest.freeze();
    else process.kill(machine.pid, 'SIGKILL');
  };

  const bare = ({ events: _, ...rest }: GuestState): GuestState => ({ ...rest, events: 0 });

  return {
    rollback: () =>
      guarded(async () => {
        await machine.rollback(state.tag, state.mark);
        await machine.guest.reset(snapshot.seed);
        await machine.guest.set(snapshot.set);
        const { mark } = await look();
        const expected = options.firstScreen(task.id, mark.digest);
        if (expected !== mark.digest) {
          throw new TapwrightError('rollback_unverified', 'the first screen is not the one that this task had before');
        }
        frames = 0;
        return { frame: 0, hash: mark.hash };
      }),
    observe: () =>
      guarded(async (): Promise<Screen> => {
        const { frame, mark } = await look();
        return {
          png: open.pixels ? await open.pixels(toPng(frame)) : null,
          width: frame.width,
          height: frame.height,
          scale: 1,
          space: 'pixel',
          frame: frames++,
          hash: mark.hash,
          degenerate: mark.degenerate,
          app: shown!.title,
          outline: shown!.elements,
        };
      }),
    perform: (action) =>
      guarded(async (): Promise<ActionReceipt> => {
        applyFault();
        switch (action.kind) {
          case 'tap':
            return touch(action.at, () => machine.rfb.tap(action.at));
          case 'long_press':
            return touch(action.at, () => machine.rfb.longPress(action.at, HOLD_MS));
          case 'swipe':
            return touch(action.from, () => machine.rfb.swipe(action.from, action.to, SWIPE_MS));
          case 'text_entry':
            return enter(action.text);
          case 'navigate_home':
            await deliver(2, () => machine.rfb.press('home'));
            return { verified: true, strategy: 'button' };
          case 'wait':
            await machine.echo();
            return { verified: true, strategy: 'none' };
        }
      }),
    truth: () => guarded(async () => oracle.truth(task, bare(await machine.guest.state()))),
    expert: () =>
      guarded(async (): Promise<ExpertMove | null> => {
        const move = oracle.expert(task, bare(await machine.guest.state()));
        return move === null ? null : asRead(move, shown?.elements ?? []);
      }),
    noteAnswer: () => undefined,
    close: async () => {
      if (closed) return;
      closed = true;
      await options.onClose(fit && machine.failure() === null);
    },
  };
}

/**
 * An expert's move in the words that were read: it knows labels as they are, and a planner may name only what it sees. Null
 * when the target was not read at all.
 */
export function asRead(move: ExpertMove, elements: readonly OutlineElement[]): ExpertMove | null {
  const { intent } = move;
  if (!('target' in intent) || intent.target === undefined) return move;
  const { target } = intent;
  if (elements.some((e) => e.label === target)) return move;
  const near = elements
    .map(({ label }) => ({ label, distance: editDistance(label, target) }))
    .filter(({ distance }) => distance <= MISREAD * target.length)
    .sort((a, b) => a.distance - b.distance)[0];
  if (near === undefined) return null;
  return {
    ...move,
    intent: { ...intent, target: near.label },
    reasoning: move.reasoning.replace(target, near.label),
  };
}

function parseSnapshot(text: string): VncSnapshot {
  try {
    const snapshot = JSON.parse(text) as VncSnapshot;
    if (Number.isInteger(snapshot.seed) && Array.isArray(snapshot.set)) return snapshot;
  } catch {
    // Said below, with what to do.
  }
  throw new TapwrightError(
    'rollback_failed',
    'The task names no snapshot of a virtual phone; take it from suite vnc-phones.',
  );
}

function toPng({ width, height, pixels }: RfbFrame): Uint8Array {
  const canvas = createCanvas(width, height);
  const g = canvas.getContext('2d');
  const image = g.createImageData(width, height);
  image.data.set(pixels);
  g.putImageData(image, 0, 0);
  return canvas.toBuffer('image/png');
}
