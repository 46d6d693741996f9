import { createCanvas } from '@napi-rs/canvas';
import { describe, expect, it } from 'vitest';
import { TapwrightError } from '../../domain/errors.ts';
import type { Intent, OutlineElement, TaskInstance } from '../../domain/index.ts';
import type { DeviceHandle } from '../device.ts';
import { editDistance } from './ocr/similar.ts';
import { asRead, createPhoneHandle } from './phone-handle.ts';
import type { QemuMachine } from './qemu.ts';
import { markOf } from './snapshots.ts';

const [WIDTH, HEIGHT] = [40, 80];
const field = (value: string, focused = true): OutlineElement => ({
  role: 'field',
  label: 'text',
  value,
  box: { x: 0, y: 30, width: 40, height: 10 },
  ...(focused ? { focused } : {}),
});

/** A machine whose field drops letters as told; what it shows is a shade, what is read of it the test's. */
function phone({ snapshot = '{"seed":1,"set":["counter 3"]}', faults = {} as Record<string, number> } = {}) {
  const at = {
    shade: 10,
    value: '',
    focused: true,
    drops: 0,
    deaf: false,
    failure: null as TapwrightError | null,
    asked: [] as string[],
    closed: null as boolean | null,
  };
  let events = 0;
  let sequence = 0;
  const frame = () => {
    const g = createCanvas(WIDTH, HEIGHT).getContext('2d');
    g.fillStyle = `rgb(${at.shade} 0 0)`;
    g.fillRect(0, 0, WIDTH, HEIGHT);
    const { data } = g.getImageData(0, 0, WIDTH, HEIGHT);
    return { sequence: ++sequence, width: WIDTH, height: HEIGHT, pixels: new Uint8Array(data.buffer) };
  };
  const gesture = (name: string) => (): Promise<void> => {
    at.asked.push(name);
    if (!at.deaf) events += 3;
    return Promise.resolve();
  };
  const machine = {
    pid: 1,
    failure: () => at.failure,
    echo: gesture('echo'),
    rollback: () => Promise.resolve(frame()).then((seen) => (at.asked.push('loadvm'), seen)),
    rfb: {
      width: WIDTH,
      height: HEIGHT,
      refresh: () => Promise.resolve(frame()),
      tap: gesture('tap'),
      longPress: gesture('long press'),
      swipe: gesture('swipe'),
      press: gesture('press'),
      selectAll: gesture('select all'),
      type: async (text: string) => {
        if (/[^\x20-\x7e]/.test(text)) return false;
        await gesture('type')();
        at.value = text.slice(at.drops);
        return true;
      },
    },
    guest: {
      events: () => Promise.resolve(events),
      reset: (seed: number) => Promise.resolve(void at.asked.push(`reset ${seed}`)),
      set: (lines: string[]) => Promise.resolve(void at.asked.push(`set ${lines.join(', ')}`)),
      state: () => Promise.resolve({ events }),
      freeze: () => void (at.deaf = true),
    },
  } as unknown as QemuMachine;
  const firstScreens = new Map<string, string>();
  const open = (): DeviceHandle =>
    createPhoneHandle({
      machine,
      state: { tag: 'base', mark: markOf(frame()), disk: '', machine: null as never },
      open: {
        task: { id: 't', snapshot } as TaskInstance,
        ...{ key: null, seed: 1, faults, infraTry: 0, pixels: null },
      },
      oracle: {
        truth: () => ({ key: 'k', goalHolds: false, distance: 1, needsFact: null }),
        expert: () => ({ intent: { kind: 'tap', target: 'wifi' }, reasoning: '', remaining: '' }),
      },
      read: () => Promise.resolve({ title: 'notes', elements: [field(at.value, at.focused)] }),
      firstScreen: (task, digest) => {
        if (!firstScreens.has(task)) firstScreens.set(task, digest);
        return firstScreens.get(task)!;
      },
      inputTimeoutMs: 50,
      onClose: (fit) => Promise.resolve(void (at.closed = fit)),
    });
  return { at, open };
}

describe('an attempt on a virtual phone', () => {
  it('rolls back, sets what the task wants, and finds the first screen it had before', async () => {
    const { at, open } = phone();
    const handle = open();
    const proof = await handle.rollback();
    expect(at.asked).toEqual(['loadvm', 'reset 1', 'set counter 3']);
    const screen = await handle.observe();
    expect([screen.hash, screen.frame, screen.app]).toEqual([proof.hash, 0, 'notes']);
    await handle.close();
    expect(at.closed).toBe(true);
    at.shade = 200;
    const again = open();
    await expect(again.rollback()).rejects.toMatchObject({ code: 'rollback_unverified' });
    await again.close();
    expect(at.closed).toBe(false);
  });

  it('refuses a snapshot that is none, and counts a tap beside the screen as a fact', async () => {
    expect(() => phone({ snapshot: '{"phone":{}}' }).open()).toThrow('take it from suite vnc-phones');
    const { at, open } = phone();
    const outside = await open().perform({ kind: 'tap', at: { x: WIDTH, y: 5 } });
    expect([outside, at.asked]).toEqual([{ verified: false, strategy: 'touch', note: 'off_screen' }, []]);
  });

  it('reads back what it typed', async () => {
    const { at, open } = phone();
    const handle = open();
    const enter = (text: string) => handle.perform({ kind: 'text_entry', text });
    expect(await enter('buy milk')).toEqual({ verified: true, strategy: 'keys' });
    expect(await enter('naïve')).toMatchObject({ verified: false, note: 'no_key' });
    at.drops = 1;
    expect(await enter('buy milk')).toMatchObject({ verified: false, note: 'misread' });
    at.focused = false;
    expect(await enter('buy milk')).toMatchObject({ verified: false, note: 'no_focus' });
    at.focused = true;
    at.drops = 6;
    await expect(enter('buy milk')).rejects.toMatchObject({ code: 'text_mismatch' });
    await handle.close();
    expect(at.closed).toBe(false);
  });

  it('fails when input does not arrive, or as the process that ended does', async () => {
    const hung = phone({ faults: { hang: 1 } });
    const handle = hung.open();
    const tap = { kind: 'tap', at: { x: 5, y: 5 } } as const;
    await expect(
      (async () => {
        for (let i = 0; i < 3; i++) await handle.perform(tap);
      })(),
    ).rejects.toMatchObject({ code: 'input_not_delivered' });
    const dead = phone();
    dead.at.failure = new TapwrightError('connection_dropped', 'QEMU ended (SIGKILL)');
    dead.at.deaf = true;
    await expect(dead.open().perform(tap)).rejects.toMatchObject({ code: 'connection_dropped' });
  });
});

it('names what an expert means by what was read of it', () => {
  const elements = ['wi fi', 'bluetooth', 'back'].map((label) => ({ ...field(''), label }));
  const read = (intent: Intent) => asRead({ intent, reasoning: 'see wifi', remaining: 'done' }, elements);
  expect(read({ kind: 'tap', target: 'wifi' })).toEqual({
    intent: { kind: 'tap', target: 'wi fi' },
    reasoning: 'see wi fi',
    remaining: 'done',
  });
  expect(read({ kind: 'tap', target: 'bluetooth' })?.intent).toEqual({ kind: 'tap', target: 'bluetooth' });
  expect(read({ kind: 'tap', target: 'airplane mode' })).toBeNull();
  expect(read({ kind: 'swipe', direction: 'up' })?.intent).toEqual({ kind: 'swipe', direction: 'up' });
  expect([editDistance('wifi', 'wi fi'), editDistance('', 'abc'), editDistance('kitten', 'sitting')]).toEqual([
    1, 3, 3,
  ]);
});
