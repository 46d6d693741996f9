import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shownLists } from '../../devices/sim/apps.ts';
import type { SimSnapshot } from '../../devices/sim/backend.ts';
import { goalHolds, witness, type Goal } from '../../devices/sim/goal.ts';
import type { Phone } from '../../devices/sim/model.ts';
import { createNavigator, stateKey } from '../../devices/sim/search.ts';
import { viewOf, type Skin } from '../../devices/sim/skin.ts';
import { apply, home, longPress, scroll, typeText } from '../../devices/sim/transition.ts';
import type { Intent } from '../../domain/index.ts';
import { createRandom, type Random } from '../../rl/random.ts';
import { createSimSuite } from './suite.ts';

/** Everything a thumb can do, wise or not, and the texts and answers the task has to offer. */
function everyMove(phone: Phone, goal: Goal, skin: Skin): Phone[] {
  const view = viewOf(phone, skin);
  const next: (Phone | null)[] = [scroll(phone, view, 'up'), scroll(phone, view, 'down'), home(phone)];
  for (const { item } of view.shown) next.push(apply(phone, item.tap), longPress(phone, item));
  for (const value of Object.values(goal.drafts)) {
    const told = !('fact' in value) || phone.known.includes(value.fact);
    if (told) next.push(typeText(phone, value.text));
    else next.push({ ...phone, known: [...phone.known, value.fact] });
  }
  return next.filter((p): p is Phone => p !== null).map((p) => witness(p, goal, skin));
}

/** Fewest moves to the goal by breadth-first search over everything, up to `limit`; null beyond it. */
function bruteForce(start: Phone, goal: Goal, skin: Skin, limit: number): number | null {
  const seen = new Set([stateKey(start)]);
  let frontier = [start];
  for (let depth = 0; ; depth++) {
    if (frontier.some((phone) => goalHolds(phone, goal))) return depth;
    if (depth === limit) return null;
    const next: Phone[] = [];
    for (const phone of frontier)
      for (const after of everyMove(phone, goal, skin)) {
        const key = stateKey(after);
        if (!seen.has(key)) next.push(after);
        seen.add(key);
      }
    frontier = next;
  }
}

const wander = (start: Phone, goal: Goal, skin: Skin, random: Random, moves: number): Phone => {
  let phone = start;
  for (let i = 0; i < moves; i++) phone = random.pick(everyMove(phone, goal, skin));
  return phone;
};

/** What a move of the expert makes of the phone, by the labels that are on its screen. */
function performed(phone: Phone, move: Intent, skin: Skin): Phone {
  const view = viewOf(phone, skin);
  const item = (label: string) => view.shown.find((shown) => shown.label === label)!.item;
  switch (move.kind) {
    case 'tap':
      return apply(phone, item(move.target).tap);
    case 'long_press':
      return longPress(phone, item(move.target));
    case 'swipe':
      return scroll(phone, view, move.direction === 'up' ? 'up' : 'down');
    case 'text_entry':
      return typeText(phone, move.text)!;
    case 'ask_user':
      return { ...phone, known: [...phone.known, move.question] };
    default:
      return home(phone);
  }
}

// Searches without pruning are slow on a busy machine.
describe('ground truth by search on relevant moves', { timeout: 60_000 }, () => {
  const suite = createSimSuite();

  it('is the shortest over all moves, from the start and from where a random thumb ends up', () => {
    const depths: number[] = [];
    for (let i = 0; i < suite.templates.length; i += 4) {
      const task = suite.instance('train', 31, i);
      const { goal, skin, phone } = JSON.parse(task.snapshot) as SimSnapshot;
      const navigator = createNavigator(goal, skin);
      const random = createRandom(31, 'wander', i);
      const moves = [3, 0, 6, 4][(i / 4) % 4]!;
      // Half of the walks begin near the end: from the start the goal is too far away for a search without pruning.
      let begin = phone;
      while (i % 8 === 4 && navigator.route(begin)!.distance > 3)
        begin = witness(performed(begin, navigator.route(begin)!.moves[0]!, skin), goal, skin);
      const state = wander(begin, goal, skin, random, i % 8 === 4 ? moves % 3 : moves);
      const distance = navigator.route(state)?.distance ?? null;
      // Three moves ahead are some hundred to some thousand states.
      const limit = 3;
      const expected = distance !== null && distance <= limit ? distance : null;
      expect(bruteForce(state, goal, skin, limit), `${task.goal} after ${moves} moves`).toBe(expected);
      if (expected !== null) depths.push(expected);
    }
    expect(depths.length).toBeGreaterThan(10);
    expect(new Set(depths).size).toBeGreaterThan(2);
  });

  it('never changes by more than one with a move, and goes down by one along the route', () => {
    for (let i = 0; i < suite.templates.length; i += 8) {
      const task = suite.instance('heldout-skin', 32, i);
      const { goal, skin, phone } = JSON.parse(task.snapshot) as SimSnapshot;
      const navigator = createNavigator(goal, skin);
      let state = phone;
      const random = createRandom(32, 'wander', i);
      for (let t = 0; t < 4; t++) {
        const distance = navigator.route(state)?.distance;
        if (distance === undefined) break;
        const around = everyMove(state, goal, skin).map((next) => navigator.route(next)?.distance ?? Infinity);
        expect(Math.min(...around), task.goal).toBeGreaterThanOrEqual(distance - 1);
        if (distance > 0) expect(Math.min(...around), task.goal).toBe(distance - 1);
        state = wander(state, goal, skin, random, 1);
      }
    }
  });

  it('does not mix up states: a navigator that has seen much says what a fresh one says', () => {
    for (let i = 0; i < suite.templates.length; i += 4) {
      const task = suite.instance('train', 33, i);
      const { goal, skin, phone } = JSON.parse(task.snapshot) as SimSnapshot;
      const used = createNavigator(goal, skin);
      const random = createRandom(33, 'wander', i);
      for (let walk = 0; walk < 4; walk++) {
        const state = wander(phone, goal, skin, random, 2 + walk);
        used.route(state);
        expect(used.route(state)?.distance, task.goal).toBe(createNavigator(goal, skin).route(state)?.distance);
      }
    }
  });

  it('leads to the goal from wherever a random thumb ends up, unless the thumb deleted what the task is about', () => {
    let lost = 0;
    const runs = 300;
    const draw = fc.record({
      split: fc.constantFrom(...suite.splits),
      index: fc.nat(4 * suite.templates.length),
      moves: fc.nat(15),
    });
    fc.assert(
      fc.property(draw, ({ split, index, moves }) => {
        const task = suite.instance(split, 34, index);
        const { goal, skin, phone } = JSON.parse(task.snapshot) as SimSnapshot;
        const navigator = createNavigator(goal, skin);
        const random = createRandom(34, 'property', split, index);
        const lists = goal.apps.flatMap(shownLists);
        const entries = (state: Phone): string[] => lists.flatMap((name) => state.data[name] ?? []);
        const had = new Set(entries(phone));
        let state = phone;
        for (let i = 0; i < moves; i++) {
          state = random.pick(everyMove(state, goal, skin));
          entries(state).forEach((entry) => had.add(entry));
        }
        const route = navigator.route(state);
        if (route === null) {
          const gone = [...had].filter((entry) => !entries(state).includes(entry));
          expect(
            gone.filter((entry) => task.goal.includes(entry)),
            task.goal,
          ).not.toEqual([]);
          lost++;
          return;
        }
        for (let left = route.distance; left > 0; left--) {
          const next = navigator.route(state)!;
          expect(next.distance, task.goal).toBe(left);
          state = witness(performed(state, next.moves[0]!, skin), goal, skin);
        }
        expect(goalHolds(state, goal), task.goal).toBe(true);
      }),
      { seed: 34, numRuns: runs },
    );
    expect(lost).toBeLessThan(0.05 * runs);
  });
});
