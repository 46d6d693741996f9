import { describe, expect, it } from 'vitest';
import { demonstrate } from '../../agent/demonstrate.ts';
import { groundExactly } from '../../agent/grounder.ts';
import { createTokenizer } from '../../agent/tokenizer.ts';
import { createRuleUser } from '../../agent/user.ts';
import { createSimBackend, type SimSnapshot } from '../../devices/sim/backend.ts';
import { ABSENT, CONCEPTS, HOURS } from '../../devices/sim/concepts.ts';
import * as contents from '../../devices/sim/concepts.ts';
import * as more from '../../devices/sim/concepts-more.ts';
import type { DeviceHandle } from '../../devices/device.ts';
import type { Intent, Screen, TaskInstance, Truth } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import { createSimSuite } from './suite.ts';
import { TEMPLATES } from './templates.ts';

const suite = createSimSuite();
const backend = createSimBackend();
const n = suite.templates.length;
const open = (task: TaskInstance): Promise<DeviceHandle> =>
  backend.open({ task, key: null, seed: 1, faults: {}, infraTry: 0, pixels: null, frames: false });

interface Visit {
  screen: Screen;
  truth: Truth;
  /** What was done there; null: nothing more, or a thumb that was not the expert's. */
  expert: Intent | null;
}

/**
 * Follows the expert through the outline, as an agent with a perfect grounder would; `noise` puts other moves between.
 * Empty where a random thumb deleted what the task needs: distance.test.ts says when that is.
 */
async function walk(task: TaskInstance, noise: number): Promise<Visit[]> {
  const handle = await open(task);
  await handle.rollback();
  const random = createRandom(51, task.id);
  const user = createRuleUser();
  const visits: Visit[] = [];
  for (let t = 0; t < 40; t++) {
    const [screen, truth, move] = [await handle.observe(), (await handle.truth())!, await handle.expert()];
    if (noise > 0 && truth.distance === null) return [];
    if (move === null) throw new Error(`The expert has no move: ${task.goal}`);
    if (move.intent.kind !== 'task_complete' && t < 12 && random.next() < noise) {
      visits.push({ screen, truth, expert: null });
      const { box } = random.pick(screen.outline!);
      await handle.perform({ kind: random.pick(['tap', 'long_press']), at: { x: box.x + 1, y: box.y + 1 } });
      continue;
    }
    visits.push({ screen, truth, expert: move.intent });
    if (move.intent.kind === 'task_complete') return visits;
    if (move.intent.kind === 'ask_user') handle.noteAnswer((await user.answer(task, move.intent.question)).fact);
    const grounding = groundExactly(move.intent, screen);
    if (grounding.kind === 'action') expect((await handle.perform(grounding.action)).note).toBeUndefined();
    else expect(move.intent.kind).toBe('ask_user');
  }
  throw new Error(`The expert does not finish: ${task.goal}`);
}

function check(task: TaskInstance, visits: Visit[]): void {
  for (const [i, { screen, truth, expert }] of visits.entries()) {
    const labels = screen.outline!.map((element) => element.label);
    expect(new Set(labels).size, labels.join()).toBe(labels.length);
    const next = visits[i + 1];
    if (expert && next) expect(next.truth.distance, `${task.goal} at step ${i}`).toBe(truth.distance! - 1);
  }
  const last = visits.at(-1)!;
  expect(last.truth).toMatchObject({ goalHolds: true, distance: 0, needsFact: null });
  expect(last.expert).toEqual({ kind: 'task_complete', claim: task.possible ? 'done' : 'blocked' });
}

describe('the expert, through the outline', () => {
  it.each(suite.splits)('%s: every move is one nearer, whatever a random thumb did before', async (split) => {
    let lost = 0;
    for (let i = 0; i < n; i++) {
      const task = suite.instance(split, 41, i);
      const visits = await walk(task, i % 3 === 0 ? 0 : 0.3);
      if (visits.length > 0) check(task, visits);
      else lost++;
    }
    expect(lost).toBeLessThan(0.03 * n);
  });

  it('needs one move more where a pop-up is in the way', async () => {
    for (let i = 0; i < n; i += 2) {
      const task = suite.instance('train', 42, i);
      const snapshot = JSON.parse(task.snapshot) as SimSnapshot;
      const variant = (popupIn: SimSnapshot['phone']['popupIn']): TaskInstance => ({
        ...task,
        id: `${task.id}/${popupIn}`,
        snapshot: JSON.stringify({ ...snapshot, phone: { ...snapshot.phone, popupIn } }),
      });
      const disturbed = variant(snapshot.goal.apps[0]!);
      const [plain, visits] = [await walk(variant(null), 0), await walk(disturbed, 0)];
      check(disturbed, visits);
      expect(visits, task.goal).toHaveLength(plain.length + 1);
    }
  });

  it('says blocked no sooner than the end of the list was on the screen', async () => {
    const impossible = Array.from({ length: 4 * n }, (_, i) => suite.instance('train', 43, i)).filter(
      (task) => !task.possible,
    );
    const templates = TEMPLATES.filter((template) => template.tags.includes('impossible'));
    expect(templates.length).toBeGreaterThan(10);
    expect(impossible).toHaveLength(4 * templates.length);
    let scrolled = 0;
    for (const task of impossible) {
      const { data } = (JSON.parse(task.snapshot) as SimSnapshot).phone;
      const { contacts, products: shop, songs: music, todo, trips: travel, photos: gallery, dishes: food } = data;
      const people = { contacts, messages: contacts, bank: contacts };
      const lists: Record<string, string | string[] | undefined> = {
        ...people, shop, music, todo, travel, gallery, food, clock: HOURS,
      }; // prettier-ignore
      const list = lists[task.apps[0]!];
      const visits = await walk(task, 0);
      const proof = visits.find((visit) => visit.truth.goalHolds)!;
      expect(proof.screen.outline!.map((element) => element.label)).toContain(list!.at(-1));
      scrolled += visits.some((visit) => visit.expert?.kind === 'swipe') ? 1 : 0;
    }
    expect(scrolled).toBeGreaterThan(0);
  });
});

describe('words', () => {
  it('of impossible tasks are neither labels nor anything a phone can hold', () => {
    const held = Object.entries({ ...contents, ...more }).flatMap(([name, words]) =>
      name !== 'ABSENT' && Array.isArray(words) ? (words as string[]) : [],
    );
    const known = new Set<string>([...held, ...Object.values(CONCEPTS).flat()]);
    expect(ABSENT.filter((word) => known.has(word))).toEqual([]);
  });

  it('of demonstrations all have an id of their own', async () => {
    const tokenizer = createTokenizer({ words: suite.vocabulary() });
    const user = createRuleUser();
    const unknown = new Set<string>();
    let rows = 0;
    for (let i = 0; i < 100; i++) {
      const task = i % 2 === 0 ? suite.instance('train', 44, i) : suite.demonstration(44, i);
      const more = {
        noise: 0.15,
        planNoise: 0.5,
        decodeMask: 'grammar' as const,
        seed: i,
        maxSteps: task.stepBudget,
        historySteps: 3,
      };
      for (const row of await demonstrate({ handle: await open(task), task, tokenizer, user, ...more })) {
        rows++;
        // Without its table a hashed id cannot be read.
        for (const word of tokenizer.decode([...row.prompt, ...row.response], new Map()))
          if (word.startsWith('<unknown')) unknown.add(`${word} in ${task.goal}`);
      }
    }
    expect(rows).toBeGreaterThan(300);
    expect([...unknown]).toEqual([]);
  });
});
