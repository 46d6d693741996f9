import { loadImage } from '@napi-rs/canvas';
import { describe, expect, it } from 'vitest';
import type { DeviceAction, Screen, TaskInstance } from '../../domain/index.ts';
import type { DeviceHandle, OpenOptions } from '../device.ts';
import type { Concept } from './concepts.ts';
import type { Goal } from './goal.ts';
import { freshPhone, type Phone } from './model.ts';
import { createSimBackend } from './backend.ts';
import { word, type Skin } from './skin.ts';

const backend = createSimBackend();
const skin: Skin = { family: 'ios', seed: 2, layout: 0 };

const CONTENTS: Phone['data'] = {
  contacts: ['alice', 'bruno', 'chen', 'dora', 'emil', 'farah', 'gita', 'hugo', 'ines'],
  notes: ['buy milk'],
  alarms: ['six'],
};
function task(goal: Partial<Goal>, phone: Partial<Phone> = {}, more: Partial<TaskInstance> = {}): TaskInstance {
  const whole: Goal = { conditions: [], drafts: {}, stops: [], apps: [], entries: [], evidence: null, ...goal };
  return {
    id: `test/${JSON.stringify([goal, phone])}`,
    suite: 'test',
    template: 'test',
    split: 'train',
    goal: 'test',
    params: {},
    apps: whole.apps,
    category: 'test',
    tags: [],
    snapshot: JSON.stringify({ skin, goal: whole, phone: { ...freshPhone(CONTENTS), ...phone } }),
    stepBudget: 30,
    optimalSteps: null,
    userFacts: {},
    possible: true,
    seed: 1,
    ...more,
  };
}
const open = async (of: TaskInstance, more: Partial<OpenOptions> = {}): Promise<DeviceHandle> => {
  const handle = await backend.open({ task: of, key: null, seed: 1, faults: {}, infraTry: 0, pixels: null, ...more });
  await handle.rollback();
  return handle;
};
const at = (screen: Screen, label: string): { x: number; y: number } => {
  const box = screen.outline!.find((e) => e.label === label)?.box;
  if (!box) throw new Error(`no ${label} among ${screen.outline!.map((e) => e.label).join()}`);
  return { x: box.x + Math.floor(box.width / 2), y: box.y + Math.floor(box.height / 2) };
};
const up: DeviceAction = { kind: 'swipe', from: { x: 90, y: 300 }, to: { x: 90, y: 100 } };

/** Taps by what things mean. */
async function tap(handle: DeviceHandle, label: string, kind: 'tap' | 'long_press' = 'tap'): Promise<Screen> {
  await handle.perform({ kind, at: at(await handle.observe(), label) });
  return handle.observe();
}
async function expertOnce(handle: DeviceHandle): Promise<string> {
  const { intent } = (await handle.expert())!;
  if (intent.kind === 'tap' || intent.kind === 'long_press') await tap(handle, intent.target, intent.kind);
  else if (intent.kind === 'text_entry') await handle.perform(intent);
  else if (intent.kind === 'swipe') await handle.perform(up);
  else if (intent.kind === 'ask_user') handle.noteAnswer(intent.question);
  return intent.kind;
}
const labels = (screen: Screen): string[] => screen.outline!.map((e) => e.label);
const inApp = (app: Concept, page = 'root', more: Partial<Phone> = {}): Partial<Phone> => ({
  app,
  stack: page === 'root' ? ['root'] : ['root', page],
  ...more,
});

const wifi = task({ conditions: [{ key: 'wifi', is: 'on' }], apps: ['settings'] });
const note = task({
  conditions: [{ list: 'notes', has: 'paint lamp' }],
  drafts: { text: { text: 'paint lamp' } },
  apps: ['notes'],
});

describe('snapshot and rollback', () => {
  it('bring back the very state and screen, whatever was done', async () => {
    const handle = await open(wifi);
    const [screen, truth] = [await handle.observe(), await handle.truth()];
    while ((await handle.truth())!.distance! > 0) await expertOnce(handle);
    expect((await handle.truth())!.goalHolds).toBe(true);
    const proof = await handle.rollback();
    expect(await handle.truth()).toEqual(truth);
    expect(await handle.observe()).toEqual(screen);
    expect(proof).toEqual({ frame: 0, hash: screen.hash });
  });

  it('do not leak from one handle to another of the same task', async () => {
    const [one, other] = [await open(wifi), await open(wifi)];
    while ((await one.truth())!.distance! > 0) await expertOnce(one);
    expect((await other.truth())!.distance).toBe(3);
  });

  it('refuse a snapshot that is none', async () => {
    await expect(open({ ...wifi, snapshot: 'x' })).rejects.toMatchObject({ code: 'rollback_failed' });
  });
});

describe('actions', () => {
  it('hit an element anywhere inside its box: corners and centre', async () => {
    for (const e of (await (await open(wifi)).observe()).outline!)
      for (const [fx, fy] of [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]] as const) {
        const handle = await open(wifi, { frames: false });
        const point = {
          x: e.box.x + Math.floor(fx * (e.box.width - 1)),
          y: e.box.y + Math.floor(fy * (e.box.height - 1)),
        };
        await handle.perform({ kind: 'tap', at: point });
        expect((await handle.observe()).app).toBe(e.label);
      } // prettier-ignore
  });

  it('beside everything and off the screen change nothing and say so', async () => {
    const handle = await open(wifi);
    const { key } = (await handle.truth())!;
    expect(await handle.perform({ kind: 'tap', at: { x: 194, y: 421 } })).toMatchObject({ note: 'nothing_there' });
    const off = await handle.perform({ kind: 'tap', at: { x: 195, y: 10 } });
    expect(off).toMatchObject({ verified: false, note: 'off_screen' });
    expect(await handle.perform({ kind: 'wait' })).toMatchObject({ verified: true });
    expect((await handle.truth())!.key).toBe(key);
  });

  it('type into the focused field only; a second text replaces the first', async () => {
    const handle = await open(note);
    expect(await handle.perform({ kind: 'text_entry', text: 'x' })).toMatchObject({
      verified: false,
      note: 'no_focus',
    });
    await expertOnce(handle);
    await expertOnce(handle);
    const field = async () => (await handle.observe()).outline!.find((e) => e.role === 'field')!;
    expect(await field()).toMatchObject({ focused: true, value: '' });
    const odd = `it's "50 %", $HOME! 🙂 %s`;
    for (const text of ['first', odd]) {
      expect(await handle.perform({ kind: 'text_entry', text })).toMatchObject({ verified: true });
      expect((await field()).value).toBe(text);
    }
  });

  it('swipe through a list that is longer than the screen, and not past its ends', async () => {
    const handle = await open(task({ apps: ['contacts'] }, inApp('contacts')));
    const first = labels(await handle.observe());
    expect(first).not.toContain('ines');
    await handle.perform(up);
    await handle.perform(up);
    const last = await handle.observe();
    expect(labels(last)).toContain('ines');
    await handle.perform(up);
    expect((await handle.observe()).hash).toBe(last.hash);
    for (let i = 0; i < 4; i++) await handle.perform({ ...up, from: up.to, to: up.from });
    expect(labels(await handle.observe())).toEqual(first);
  });

  it('open a menu by long press, close it by back, and delete from it', async () => {
    const handle = await open(
      task({ conditions: [{ list: 'notes', lacks: 'buy milk' }], apps: ['notes'] }, inApp('notes')),
    );
    const before = labels(await handle.observe());
    const menu = await tap(handle, 'buy milk', 'long_press');
    expect(labels(menu)).toHaveLength(2);
    expect(labels(await tap(handle, labels(menu)[0]!))).toEqual(before);
    expect([await expertOnce(handle), await expertOnce(handle)]).toEqual(['long_press', 'tap']);
    expect(labels(await handle.observe())).not.toContain('buy milk');
    expect((await handle.truth())!.goalHolds).toBe(true);
  });

  it('go home from anywhere and forget what was not saved', async () => {
    const handle = await open(note);
    while ((await handle.truth())!.distance! > 1) await expertOnce(handle);
    await handle.perform({ kind: 'navigate_home' });
    expect((await handle.observe()).app).toBe('home');
    expect((await handle.truth())!.distance).toBe(4);
  });

  it('keep an entry once, however often it is saved, and show a new contact among the others', async () => {
    const add = task(
      {
        conditions: [{ list: 'contacts.added', has: 'zoe 5501' }],
        drafts: { name: { text: 'zoe' }, number: { text: '5501' } },
        apps: ['contacts'],
      },
      inApp('contacts', 'root', { data: { contacts: ['alice'] } }),
    );
    const handle = await open(add);
    while ((await handle.truth())!.distance! > 0) await expertOnce(handle);
    expect(labels(await handle.observe()).filter((label) => label === 'zoe')).toHaveLength(1);
    expect(labels(await tap(handle, 'zoe'))).toContain('5501');
  });
});

describe('ground truth', () => {
  it('tells a state by what it is, not by how it came about', async () => {
    const handle = await open(task({ apps: ['settings'] }, inApp('settings', 'network')));
    const { key } = (await handle.truth())!;
    const switches = (await handle.observe()).outline!.filter((e) => e.role === 'switch').map((e) => e.label);
    await tap(handle, switches[0]!);
    await tap(handle, switches[1]!);
    const forwards = (await handle.truth())!.key;
    await handle.rollback();
    await tap(handle, switches[1]!);
    expect((await handle.truth())!.key).not.toBe(key);
    await tap(handle, switches[0]!);
    expect((await handle.truth())!.key).toBe(forwards);
    await tap(handle, switches[0]!);
    await tap(handle, switches[1]!);
    expect((await handle.truth())!.key).toBe(key);
    expect(key).toMatch(/^[0-9a-f]{16}$/);
  });

  it('counts the question that must be asked, names its fact, and is nearer once it is answered', async () => {
    const ask = task(
      {
        conditions: [{ list: 'messages.alice', has: 'fetch rope' }],
        drafts: { text: { fact: 'order', text: 'fetch rope' } },
        apps: ['messages'],
        entries: ['alice'],
      },
      inApp('messages', 'entry:alice', { focus: 'text' }),
      { userFacts: { order: 'fetch rope' } },
    );
    const handle = await open(ask);
    expect(await handle.truth()).toMatchObject({ distance: 3, needsFact: 'order' });
    expect(await handle.expert()).toMatchObject({
      intent: { kind: 'ask_user', question: 'order' },
      reasoning: 'need order',
    });
    handle.noteAnswer(null);
    expect((await handle.truth())!.distance).toBe(3);
    handle.noteAnswer('order');
    expect(await handle.truth()).toMatchObject({ distance: 2, needsFact: null });
  });

  it('of an impossible task holds when the place was seen to its end', async () => {
    const none = task({ apps: ['contacts'], evidence: { app: 'contacts', page: 'root' } }, {}, { possible: false });
    const handle = await open(none);
    const kinds: string[] = [];
    while (!(await handle.truth())!.goalHolds) kinds.push(await expertOnce(handle));
    expect(kinds).toEqual(['tap', 'swipe']);
    await handle.perform({ kind: 'navigate_home' });
    expect(await handle.expert()).toEqual({
      intent: { kind: 'task_complete', claim: 'blocked' },
      reasoning: 'not here',
      remaining: '',
    });
  });

  it('goes on past a pop-up, which comes once', async () => {
    const handle = await open(
      task({ conditions: [{ key: 'wifi', is: 'on' }], apps: ['settings'] }, { popupIn: 'settings' }),
    );
    expect((await handle.truth())!.distance).toBe(4);
    await expertOnce(handle);
    expect(labels(await handle.observe())).toHaveLength(2);
    expect((await handle.expert())!.reasoning).toBe(`see ${word(skin, 'later')}`);
    await expertOnce(handle);
    await handle.perform({ kind: 'navigate_home' });
    expect((await handle.truth())!.distance).toBe(3);
  });

  it('says so when the goal is out of reach', async () => {
    const call = task({ conditions: [{ key: 'called', is: 'zoe' }], apps: ['contacts'], entries: ['zoe'] });
    const handle = await open(call);
    expect(await handle.truth()).toMatchObject({ goalHolds: false, distance: null, needsFact: null });
    expect(await handle.expert()).toBeNull();
  });
});

describe('pixels', () => {
  it('are a decodable PNG of the screen, the same bytes for the same screen', async () => {
    const kept: Uint8Array[] = [];
    const pixels = (png: Uint8Array) => {
      kept.push(png);
      return Promise.resolve('sha256:00' as const);
    };
    for (const each of [backend, createSimBackend()]) {
      const handle = await each.open({ task: wifi, key: null, seed: 1, faults: {}, infraTry: 0, pixels });
      await handle.rollback();
      const screen = await handle.observe();
      expect(screen).toMatchObject({ png: 'sha256:00', width: 195, height: 422, space: 'pixel', degenerate: false });
      expect(screen.hash).toMatch(/^[0-9a-f]{16}$/);
    }
    expect(kept[0]).toEqual(kept[1]);
    const image = await loadImage(Buffer.from(kept[0]!));
    expect([image.width, image.height]).toEqual([195, 422]);
  });

  it('hash apart screens that differ', async () => {
    const handle = await open(wifi);
    const hashes = new Set<string>();
    for (let i = 0; i < 3; i++) {
      hashes.add((await handle.observe()).hash);
      await expertOnce(handle);
    }
    expect(hashes.size).toBe(3);
  });
});

describe('injected faults', () => {
  /** Everything an attempt does, to its first error. */
  async function attempt(faults: Record<string, number>, infraTry = 0): Promise<string> {
    const key = { run: 'r', phase: 'train', update: 1, draw: 2, attempt: 3 } as const;
    const handle = await open(note, { faults, key, infraTry });
    const first = await handle.observe();
    if ((await handle.rollback()).hash !== first.hash) return 'unverified';
    try {
      for (let i = 0; i < 4; i++) {
        await expertOnce(handle);
        await handle.observe();
      }
      return 'none';
    } catch (error) {
      return (error as { code: string }).code;
    }
  }

  it.each([
    ['crash', 'app_crashed'],
    ['hang', 'device_hung'],
    ['slow_answer', 'deadline'],
    ['frozen_frame', 'frame_stale'],
    ['dropped_text', 'text_mismatch'],
    ['stale_snapshot', 'unverified'],
  ])('%s ends in %s', async (name, code) => {
    expect(await attempt({ [name]: 1 })).toBe(code);
    expect(await attempt({ [name]: 0 })).toBe('none');
  });

  it('are drawn anew for another try, at the rate asked for', async () => {
    const ends = await Promise.all(Array.from({ length: 120 }, (_, i) => attempt({ crash: 0.25 }, i)));
    const crashed = ends.filter((end) => end === 'app_crashed').length;
    expect(crashed).toBeGreaterThan(15);
    expect(crashed).toBeLessThan(48);
    expect(await attempt({ crash: 0.25 }, 5)).toBe(ends[5]);
  });
});
