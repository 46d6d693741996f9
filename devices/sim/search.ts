import { createHash } from 'node:crypto';
import type { Intent } from '../../domain/index.ts';
import { goalHolds, holds, witness, type DraftValue, type Goal } from './goal.ts';
import { shownLists } from './apps.ts';
import { scalar, type Effect, type Phone } from './model.ts';
import { viewOf, type Skin } from './skin.ts';
import { apply, committed, home, longPress, scroll, typeText } from './transition.ts';

/** The first move of a shortest path, and how long the path is. */
export interface Route {
  distance: number;
  moves: Intent[];
}

/** More states than any instance of the suites needs; past it the goal counts as out of reach. */
const MAX_STATES = 4000;

/**
 * What of a phone matters for the way to the goal: states that agree in it have the same distance. `lists` are those that
 * the goal's apps show as scrolling rows: what they hold, in order, decides what is in view and how far to scroll. From
 * any other app the way leads home first, whatever it shows.
 */
function reducedKey(phone: Phone, goal: Goal, lists: readonly string[]): string {
  const { app, stack, scroll: at, focus, menu, popup, popupIn, evidence } = phone;
  const parts: unknown[] = [app, stack, at, focus, menu, popup, popupIn, evidence];
  for (const condition of goal.conditions) parts.push(holds(phone, condition));
  for (const name of lists) parts.push(phone.data[name]);
  for (const [field, value] of Object.entries(goal.drafts)) {
    const typed = phone.draft[field];
    parts.push(typed === undefined || typed === '' ? 0 : typed === value.text ? 1 : 2);
    if ('fact' in value) parts.push(phone.known.includes(value.fact));
  }
  // A search page shows results for exactly what is typed, and a voucher changes what is bought.
  parts.push(phone.draft.query, phone.draft.code);
  return JSON.stringify(parts);
}

/** The next user fact that the way to the goal needs and that was not told yet. */
function missingFact(phone: Phone, goal: Goal): string | null {
  for (const value of Object.values(goal.drafts))
    if ('fact' in value && !phone.known.includes(value.fact)) return value.fact;
  return null;
}

/** Name of the fact that a shortest path asks for, if one does. */
export function neededFact(route: Route | null): string | null {
  const ask = route?.moves.find((move) => move.kind === 'ask_user');
  return ask?.kind === 'ask_user' ? ask.question : null;
}

/** Whether a draft's value is known: from the task, or told by the user. */
const told = (phone: Phone, value: DraftValue | undefined): boolean =>
  value !== undefined && (!('fact' in value) || phone.known.includes(value.fact));

/** Whether an effect can lie on a shortest path: navigation within the task's ground, and data moved towards the goal. */
function relevant(phone: Phone, effect: Effect, goal: Goal): boolean {
  const wanted = goal.conditions.filter((condition) => !holds(phone, condition));
  switch (effect.do) {
    case 'nothing':
      return false;
    case 'launch':
      return goal.apps.includes(effect.app);
    case 'open':
      return !effect.page.startsWith('entry:') || goal.entries.includes(effect.page.slice('entry:'.length));
    case 'back':
    case 'dismiss':
      return true;
    case 'toggle': {
      const now = scalar(phone, effect.key);
      return wanted.some((c) => 'is' in c && c.key === effect.key && c.is !== now);
    }
    case 'set':
      return wanted.some((c) => 'is' in c && c.key === effect.key && c.is === effect.to);
    case 'focus':
      return effect.field in goal.drafts && phone.focus !== effect.field;
    case 'choose':
      return goal.drafts[effect.field]?.text === effect.to && told(phone, goal.drafts[effect.field]);
    case 'commit': {
      const text = committed(phone, effect);
      return (
        wanted.some((c) => 'has' in c && c.list === effect.list && c.has === text) ||
        goal.stops.some((s) => s.list === effect.list && s.has === text)
      );
    }
    case 'add':
      return (
        wanted.some((c) => 'has' in c && c.list === effect.list && c.has === effect.entry) ||
        goal.stops.some((s) => s.list === effect.list && s.has === effect.entry)
      );
    case 'buy':
      return wanted.some((c) => 'has' in c && c.list === effect.bought);
    case 'remove':
      return wanted.some((c) => 'lacks' in c && c.list === effect.list && c.lacks === effect.entry);
  }
}

/** Every relevant move from a state with what it leads to. Order breaks ties: what is in view comes first. */
function moves(phone: Phone, goal: Goal, skin: Skin): { intent: Intent; next: Phone }[] {
  const out: { intent: Intent; next: Phone }[] = [];
  const push = (intent: Intent, next: Phone): void => {
    out.push({ intent, next: witness(next, goal, skin) });
  };
  const fact = missingFact(phone, goal);
  const view = viewOf(phone, skin);
  if (phone.focus !== null) {
    const value = goal.drafts[phone.focus];
    if (value && told(phone, value) && phone.draft[phone.focus] !== value.text) {
      const next = typeText(phone, value.text);
      if (next) push({ kind: 'text_entry', text: value.text }, next);
    }
  }
  if (fact !== null) push({ kind: 'ask_user', question: fact }, { ...phone, known: [...phone.known, fact] });
  for (const { item, label } of view.shown) {
    if (relevant(phone, item.tap, goal)) push({ kind: 'tap', target: label }, apply(phone, item.tap));
    const unwanted = goal.conditions.some((c) => 'lacks' in c && c.lacks === item.menu && !holds(phone, c));
    if (item.menu !== undefined && unwanted) push({ kind: 'long_press', target: label }, longPress(phone, item));
  }
  if (view.canScrollDown) push({ kind: 'swipe', direction: 'up' }, scroll(phone, view, 'up'));
  if (view.canScrollUp) push({ kind: 'swipe', direction: 'down' }, scroll(phone, view, 'down'));
  if (phone.app !== null) push({ kind: 'navigate_home' }, home(phone));
  return out;
}

export interface Navigator {
  /** A shortest way to the goal; null when there is none any more. */
  route(phone: Phone): Route | null;
}

/**
 * Ground truth of one task on one phone by breadth-first search over the real transitions, on relevant moves only.
 * Distances are kept by reduced state, and a found path fills in every state on it.
 */
export function createNavigator(goal: Goal, skin: Skin): Navigator {
  const known = new Map<string, Route | null>();
  const lists = [...new Set(goal.apps.flatMap(shownLists))];
  const keyOf = (phone: Phone): string => reducedKey(phone, goal, lists);
  return {
    route(start) {
      const startKey = keyOf(start);
      const found = known.get(startKey);
      if (found !== undefined) return found;
      if (known.size > 20_000) known.clear();

      interface Node {
        phone: Phone;
        key: string;
        from: Node | null;
        intent: Intent | null;
      }
      const seen = new Set([startKey]);
      let frontier: Node[] = [{ phone: start, key: startKey, from: null, intent: null }];
      while (frontier.length > 0 && seen.size < MAX_STATES) {
        const next: Node[] = [];
        for (const node of frontier) {
          if (goalHolds(node.phone, goal)) return remember(node);
          for (const { intent, next: phone } of moves(node.phone, goal, skin)) {
            const key = keyOf(phone);
            if (seen.has(key)) continue;
            seen.add(key);
            next.push({ phone, key, from: node, intent });
          }
        }
        frontier = next;
      }
      known.set(startKey, null);
      return null;

      function remember(end: Node): Route {
        let route: Route = { distance: 0, moves: [] };
        known.set(end.key, route);
        for (let node = end; node.from; node = node.from) {
          route = { distance: route.distance + 1, moves: [node.intent!, ...route.moves] };
          known.set(node.from.key, route);
        }
        return route;
      }
    },
  };
}

/**
 * Identity of a state for judges and records: everything but pixels. Sixteen hex digits, whatever the order in which
 * the phone came to it: a switch turned on and off again is as it was.
 */
export function stateKey(phone: Phone): string {
  const held = (object: Record<string, string | string[]>): unknown[] =>
    Object.entries(object)
      .filter(([, value]) => value !== 'off' && value.length > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1));
  const { data, draft, known, ...rest } = phone;
  const text = JSON.stringify([Object.entries(rest).sort(), held(data), held(draft), [...known].sort()]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
