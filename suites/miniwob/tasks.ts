import type { PageView } from '../../devices/browser/view.ts';
import type { Intent } from '../../domain/index.ts';

/** Moves that remain, in order; null when the page gives no way to say. Pure. */
export type Oracle = (view: PageView) => Intent[] | null;

export const tap = (target: string): Intent => ({ kind: 'tap', target });
export const type = (text: string): Intent => ({ kind: 'text_entry', text });

/** The part of the instruction between two phrases. */
export function between(view: PageView, before: RegExp): string | null {
  return before.exec(view.instruction)?.[1]?.trim() ?? null;
}

/** Fills fields one after another, then presses the button. A focused field needs no tap; a filled one is skipped. */
export function fillThen(view: PageView, wanted: (string | null)[], button: string): Intent[] | null {
  const fields = view.elements.filter((e) => e.role === 'field');
  const moves: Intent[] = [];
  for (const [i, text] of wanted.entries()) {
    const field = fields[i];
    if (!field || !text) return null;
    if (field.value === text) continue;
    if (!field.focused) moves.push(tap(field.label));
    moves.push(type(text));
  }
  return [...moves, tap(button)];
}

export const tapNamed =
  (pattern: RegExp): Oracle =>
  (view) => {
    const label = between(view, pattern);
    return label && view.elements.some((e) => e.label === label) ? [tap(label)] : null;
  };

export const select =
  (role: 'checkbox' | 'radio'): Oracle =>
  (view) => {
    const words = between(view, /^Select (.*) and click Submit$/)?.split(' ') ?? [];
    const wanted = new Set(words.filter((w) => w !== 'nothing'));
    const boxes = view.elements.filter((e) => e.role === role);
    const wrong = boxes.filter((b) => (b.value === 'on') !== wanted.has(b.label.split(' ')[0]!));
    // Choosing one radio button clears the others.
    const moves = role === 'radio' ? wrong.filter((b) => b.value === 'off') : wrong;
    return [...moves.map((b) => tap(b.label)), tap('Submit')];
  };

export const enterText: Oracle = (view) => fillThen(view, [between(view, /^Enter (.+) into the text field/)], 'Submit');

export interface CoreTask {
  name: string;
  /** Shortest solution, Task_Complete not counted; used for the step budget. */
  moves: number;
  oracle: Oracle;
}

/** The first tasks, whose outlines and instances stay as they are; catalogue.ts has all. */
export const CORE_TASKS: readonly CoreTask[] = [
  { name: 'click-test', moves: 1, oracle: () => [tap('Click Me')] },
  { name: 'click-button', moves: 1, oracle: tapNamed(/^Click on the (.+) button$/) },
  { name: 'click-link', moves: 1, oracle: tapNamed(/^Click on the link (.+)$/) },
  { name: 'click-tab', moves: 1, oracle: tapNamed(/^Click on (Tab \d)$/) },
  { name: 'click-dialog', moves: 1, oracle: () => [tap('x')] },
  { name: 'click-dialog-2', moves: 1, oracle: tapNamed(/labeled (.+)$/) },
  { name: 'focus-text', moves: 1, oracle: (v) => v.elements.slice(0, 1).map((e) => tap(e.label)) },
  {
    name: 'focus-text-2',
    moves: 1,
    oracle: (view) => {
      const n = Number(/(\d)(st|nd|rd)/.exec(view.instruction)?.[1]);
      const field = view.elements.filter((e) => e.role === 'field')[n - 1];
      return field ? [tap(field.label)] : null;
    },
  },
  {
    name: 'click-collapsible',
    moves: 2,
    oracle: (view) => {
      const section = view.elements.find((e) => e.role === 'row');
      if (!section) return null;
      return section.value === 'on' ? [tap('Submit')] : [tap(section.label), tap('Submit')];
    },
  },
  { name: 'click-option', moves: 2, oracle: select('radio') },
  { name: 'click-checkboxes', moves: 4, oracle: select('checkbox') },
  { name: 'enter-text', moves: 3, oracle: enterText },
  { name: 'enter-text-dynamic', moves: 3, oracle: enterText },
  {
    name: 'enter-password',
    moves: 5,
    oracle: (view) => {
      const word = between(view, /^Enter the password (.+) into both/);
      return fillThen(view, [word, word], 'Submit');
    },
  },
  {
    name: 'login-user',
    moves: 5,
    oracle: (view) => {
      const parts = /username (.+) and the password (.+) into the/.exec(view.instruction);
      return fillThen(view, [parts?.[1] ?? null, parts?.[2] ?? null], 'Login');
    },
  },
];
