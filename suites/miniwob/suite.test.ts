import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBrowserBackend } from '../../devices/browser/backend.ts';
import { findChromium } from '../../devices/browser/chromium.ts';
import type { DeviceBackend, DeviceHandle } from '../../devices/device.ts';
import type { DeviceAction, Intent, Screen, Split, TaskInstance } from '../../domain/index.ts';
import { recordExpert } from '../baselines.ts';
import { hasMiniwobPages, miniwobPages } from './pages.ts';
import { createMiniwobOracle, createMiniwobSuite } from './suite.ts';
import { CORE_TASKS } from './tasks.ts';
import { EXCLUDED, MINIWOB_TASKS } from './catalogue.ts';

const suite = createMiniwobSuite({ only: ['core'] });
const all = createMiniwobSuite();

describe('miniwob instances', () => {
  it('gives every task the same number of instances and never shares a seed between splits', () => {
    const n = CORE_TASKS.length;
    const train = Array.from({ length: 2 * n }, (_, i) => suite.instance('train', 5, i));
    for (const { name } of CORE_TASKS) expect(train.filter((t) => t.template === name)).toHaveLength(2);
    const held = Array.from({ length: 2 * n }, (_, i) => suite.instance('heldout-params', 5, i));
    const ids = new Set(train.map((t) => t.id));
    expect(held.some((t) => ids.has(t.id))).toBe(false);
    expect(suite.instance('train', 5, 3)).toEqual(train[3]);
  });
  it('names the splits it has when asked for another', () => {
    expect(() => suite.instance('heldout-skin', 1, 0)).toThrow(/miniwob has no split "heldout-skin".*train/);
  });
});

describe('miniwob catalogue', () => {
  const listed = [...MINIWOB_TASKS.map((task) => task.name), ...Object.keys(EXCLUDED)];

  it('names each page once, as a task or with the reason why it is none', () => {
    expect(new Set(listed).size).toBe(listed.length);
    for (const reason of Object.values(EXCLUDED)) expect(reason.length).toBeGreaterThan(10);
  });

  it.runIf(hasMiniwobPages())('covers exactly the pages of the package', () => {
    const pages = readdirSync(join(miniwobPages(), 'miniwob')).filter((file) => file.endsWith('.html'));
    expect([...listed].sort()).toEqual(pages.map((file) => file.slice(0, -'.html'.length)).sort());
  });

  it('holds out tasks, not only instances: no split of training has any of them', () => {
    const names = (split: Split): Set<string> =>
      new Set(Array.from({ length: 200 }, (_, i) => all.instance(split, 5, i).template));
    const held = names('heldout-tasks');
    expect(held).toEqual(new Set(MINIWOB_TASKS.filter((task) => task.heldOut).map((task) => task.name)));
    expect(held.size).toBeGreaterThanOrEqual(15);
    for (const split of ['train', 'validation', 'heldout-params'] as const)
      expect([...names(split)].filter((name) => held.has(name))).toEqual([]);
    expect(() => suite.instance('heldout-tasks', 1, 0)).toThrow(/no task for split heldout-tasks/);
  });

  it('demonstrates only what has an expert, and core tasks as it always did', () => {
    const shown = Array.from({ length: 200 }, (_, i) => all.demonstration(5, i));
    expect(shown.filter((task) => task.tags.includes('no-expert'))).toEqual([]);
    for (let i = 0; i < 40; i++) expect(suite.demonstration(5, i)).toEqual(suite.instance('train', 5, i));
    expect(suite.templates).toHaveLength(15);
    expect(JSON.parse(suite.instance('train', 5, 0).snapshot)).not.toHaveProperty('rich');
    expect(all.templates.length).toBeGreaterThan(60);
    expect(all.templates.slice(0, 15)).toEqual(suite.templates);
  });
});

const can = findChromium() !== null && hasMiniwobPages();

describe.runIf(can)('miniwob pages in a real browser', () => {
  let backend: DeviceBackend;
  beforeAll(() => {
    backend = createBrowserBackend({
      pages: miniwobPages(),
      oracle: createMiniwobOracle(),
      maxPages: 2,
      callTimeoutMs: 30_000,
    });
  });
  afterAll(() => backend.close());

  const open = (task: TaskInstance, faults: Record<string, number> = {}): Promise<DeviceHandle> =>
    backend.open({ task, key: null, seed: 1, faults, infraTry: 0, pixels: null });

  const toAction = (intent: Intent, screen: Screen): DeviceAction => {
    if (intent.kind === 'text_entry') return intent;
    if (intent.kind !== 'tap') throw new Error(`no action for ${intent.kind}`);
    const box = screen.outline!.find((e) => e.label === intent.target)!.box;
    return { kind: 'tap', at: { x: box.x + box.width / 2, y: box.y + box.height / 2 } };
  };
  const find = (template: string, from = 0): TaskInstance => {
    for (let i = from; ; i++) {
      const task = suite.instance('train', 11, i);
      if (task.template === template) return task;
    }
  };

  it.each(CORE_TASKS.map((t) => t.name))(
    '%s: false at reset, and the expert finishes it within the step budget',
    async (name) => {
      for (const from of [0, 64]) {
        const task = find(name, from);
        const handle = await open(task);
        try {
          const proof = await handle.rollback();
          expect(proof.instruction).not.toBe('');
          let screen = await handle.observe();
          expect(screen.hash).toBe(proof.hash);
          expect((await handle.truth())!.goalHolds).toBe(false);
          let steps = 0;
          let before = (await handle.truth())!.distance!;
          for (; steps < task.stepBudget; steps++) {
            const move = (await handle.expert())!;
            if (move.intent.kind === 'task_complete') break;
            await handle.perform(toAction(move.intent, screen));
            screen = await handle.observe();
            const now = (await handle.truth())!.distance;
            expect(now).toBeLessThan(before);
            before = now!;
          }
          expect((await handle.truth())!.goalHolds).toBe(true);
        } finally {
          await handle.close();
        }
      }
    },
    120_000,
  );

  // A sample of the others; npm run check:miniwob goes through all.
  it.each(['click-shape', 'enter-date', 'use-spinner', 'login-user-popup'])(
    '%s: the same seed is the same page, and the expert finishes it within the step budget',
    async (name) => {
      const one = createMiniwobSuite({ only: [name] });
      const split: Split = MINIWOB_TASKS.find((task) => task.name === name)!.heldOut ? 'heldout-tasks' : 'train';
      const task = one.instance(split, 77, 1);
      const first: unknown[] = [];
      for (let i = 0; i < 2; i++) {
        const handle = await open(task);
        const { instruction } = await handle.rollback();
        first.push([instruction, (await handle.observe()).outline]);
        expect((await handle.truth())!.goalHolds).toBe(false);
        if (i === 1) {
          const moves = await recordExpert(handle, task);
          expect(moves.at(-1)).toEqual({ kind: 'task_complete', claim: 'done' });
          expect((await handle.truth())!.goalHolds).toBe(true);
        }
        await handle.close();
      }
      expect(first[0]).toEqual(first[1]);
    },
    120_000,
  );

  it('gives the same instruction and first frame for the same seed', async () => {
    const task = find('click-button');
    const first: unknown[] = [];
    for (let i = 0; i < 2; i++) {
      const handle = await open(task);
      first.push(await handle.rollback());
      await handle.close();
    }
    expect(first[0]).toEqual(first[1]);
  }, 120_000);

  it('calls a wrong end no success, and a partly right one neither', async () => {
    const task = find('click-checkboxes');
    const handle = await open(task);
    await handle.rollback();
    const screen = await handle.observe();
    await handle.perform(toAction({ kind: 'tap', target: 'Submit' }, screen));
    await handle.observe();
    const truth = (await handle.truth())!;
    expect(truth.goalHolds).toBe(false);
    expect(truth.distance).toBeNull();
    await handle.close();
  }, 120_000);

  it('types without a focused field as a fact, not as a failure', async () => {
    const handle = await open(find('enter-text'));
    await handle.rollback();
    await expect(handle.perform({ kind: 'text_entry', text: 'a "b" %s $! é' })).resolves.toMatchObject({
      note: 'no_focus',
    });
    const screen = await handle.observe();
    await handle.perform(toAction({ kind: 'tap', target: 'field' }, screen));
    await handle.perform({ kind: 'text_entry', text: 'a "b" %s $! é' });
    expect((await handle.observe()).outline!.find((e) => e.role === 'field')!.value).toBe('a "b" %s $! é');
    await handle.close();
  }, 120_000);

  it('turns a hung page into device_hung and a crashed one into app_crashed, and goes on with the next attempt', async () => {
    const quick = createBrowserBackend({
      pages: miniwobPages(),
      oracle: createMiniwobOracle(),
      maxPages: 1,
      callTimeoutMs: 6000,
    });
    const screenOf = async (faults: Record<string, number>): Promise<unknown> => {
      const handle = await quick.open({
        task: find('enter-text'),
        key: null,
        seed: 1,
        faults,
        infraTry: 0,
        pixels: null,
      });
      try {
        await handle.rollback();
        for (let i = 0; i < 4; i++) await handle.perform({ kind: 'tap', at: { x: 5, y: 800 } });
        return (await handle.observe()).hash;
      } finally {
        await handle.close();
      }
    };
    await expect(screenOf({ hang: 1 })).rejects.toMatchObject({ code: 'device_hung' });
    await expect(screenOf({ crash: 1 })).rejects.toMatchObject({ code: 'app_crashed' });
    await expect(screenOf({})).resolves.toMatch(/^[0-9a-f]{16}$/);
    await quick.close();
  }, 180_000);

  it('hits calibration points at the page scale', async () => {
    const handle = await open(find('click-test'));
    await handle.rollback();
    const screen = await handle.observe();
    const one = screen.outline!.find((e) => e.label === 'Click Me')!.box;
    // A corner inside the button, not its middle: the scale must be right, not only about right.
    await handle.perform({ kind: 'tap', at: { x: one.x + one.width - 4, y: one.y + one.height - 4 } });
    await handle.observe();
    expect((await handle.truth())!.goalHolds).toBe(true);
    await handle.close();
  }, 120_000);
});
