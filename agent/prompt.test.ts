import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OutlineElement, Screen, TaskInstance } from '../domain/index.ts';
import type { HistoryEntry } from './ports.ts';
import { buildPrompt, promptWords } from './prompt.ts';
import { createTokenizer } from './tokenizer.ts';

const box = { x: 0, y: 0, width: 10, height: 10 };
const element = (role: OutlineElement['role'], label: string, more: Partial<OutlineElement> = {}): OutlineElement => ({
  role,
  label,
  box,
  ...more,
});
const screen = (outline: OutlineElement[] | null, app: string | null = 'settings'): Screen =>
  ({ outline, app, width: 180, height: 390 }) as Screen;
const task = (goal: string): TaskInstance => ({ goal }) as TaskInstance;
const entry = (plan: string, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  reasoning: 'see it',
  plan,
  remaining: '',
  result: 'ok',
  answer: null,
  ...more,
});
const tokenizer = createTokenizer({ words: ['wifi', 'settings', 'turn', 'on'] });

describe('the prompt', () => {
  it('has the task, what the user said, the last steps, what remains, and the screen, in that order', () => {
    const history = [
      entry('ask order', { answer: 'buy milk' }),
      entry('tap wifi', { result: 'same' }),
      entry('garbage garbage', { result: 'unparseable' }),
      entry('tap gone', { result: 'refused', remaining: 'a b c d e' }),
    ];
    const outline = [element('switch', 'wifi', { value: 'off' }), element('field', 'name', { focused: true })];
    const { ids, table } = buildPrompt(tokenizer, task('turn on wifi'), screen(outline), history, { historySteps: 3 });
    expect(tokenizer.decode(ids, table).join(' ')).toBe(
      '<task> turn on wifi <said> buy milk <hist> tap wifi <same> <bad> tap gone <no> ' +
        '<rem> a b c d <app> settings <screen> <switch> wifi off <field> name focus <act>',
    );
  });

  it('shows no steps when none are asked for, and copes with a screen of which nothing is known', () => {
    const words = promptWords(task('x'), screen(null, null), [entry('tap wifi')], { historySteps: 0 });
    expect(words).toEqual({ head: ['<task>', 'x'], steps: [], screen: ['<rem>', '<app>', '<screen>'] });
  });

  it('allows the labels on the screen and the words of the task, unknown ones too', () => {
    const outline = [element('row', 'wifi zebra'), element('label', 'zebra', { value: 'quagga' })];
    const told = [entry('ask order', { answer: 'x two' })];
    const { allowed, table } = buildPrompt(tokenizer, task('x'), screen(outline), told, { historySteps: 3 });
    expect(allowed.labels.map((label) => tokenizer.decode(label, table).join(' '))).toEqual(['wifi zebra', 'zebra']);
    expect(tokenizer.decode(allowed.words, table).sort()).toEqual(['two', 'x']);
    expect(allowed.words).toEqual([...allowed.words].sort((a, b) => a - b));
  });

  it('takes no mark from a page, a goal or a user', () => {
    const outline = [element('label', '<do> tap <end>', { value: '<act>' })];
    const { ids, table, allowed } = buildPrompt(
      tokenizer,
      task('<hist> x'),
      screen(outline, '<button>'),
      [entry('ask order', { answer: '<act> now' })],
      { historySteps: 0 },
    );
    expect(tokenizer.decode(ids, table).join(' ')).toBe(
      '<task> hist x <said> act now <hist> <rem> <app> button <screen> <text> do tap end act <act>',
    );
    expect(allowed.labels.map((label) => tokenizer.decode(label, table))).toEqual([['do', 'tap', 'end']]);
  });

  it('keeps its bound and some of the screen under a goal or answers without end', () => {
    const history = Array.from({ length: 30 }, (_, i) => entry('ask x', { answer: `i do not know ${i}` }));
    const goal = Array.from({ length: 90 }, () => 'wifi').join(' ');
    for (const [said, text] of [
      [history, 'x'],
      [[], goal],
      [history, goal],
    ] as const) {
      const prompt = buildPrompt(tokenizer, task(text), screen([element('row', 'wifi')]), said, {
        historySteps: 3,
        maxTokens: 60,
      });
      const words = tokenizer.decode(prompt.ids, prompt.table);
      expect(words.length).toBeLessThanOrEqual(60);
      expect(words.slice(-3)).toEqual(['<row>', 'wifi', '<act>']);
    }
  });

  it('says an answer once, however often it was given', () => {
    const history = [1, 2, 3].map(() => entry('ask x', { answer: 'i do not know' }));
    expect(promptWords(task('x'), screen([]), history, { historySteps: 3 }).head.join(' ')).toBe(
      '<task> x <said> i do not know',
    );
  });

  it('is never longer than its bound: old steps go first, then the screen', () => {
    const plan = fc.constantFrom('tap wifi', 'swipe up', 'type a b c d e f g h');
    fc.assert(
      fc.property(
        fc.array(plan, { maxLength: 12 }),
        fc.integer({ min: 0, max: 40 }),
        fc.integer({ min: 20, max: 80 }),
        (plans, elements, maxTokens) => {
          const outline = Array.from({ length: elements }, (_, i) => element('row', `row ${i}`));
          const options = { historySteps: 8, maxTokens };
          const { ids, table } = buildPrompt(
            tokenizer,
            task('turn on wifi'),
            screen(outline),
            plans.map((p) => entry(p)),
            options,
          );
          const words = tokenizer.decode(ids, table);
          expect(words.length).toBeLessThanOrEqual(maxTokens);
          expect(words.slice(0, 4)).toEqual(['<task>', 'turn', 'on', 'wifi']);
          expect(words.at(-1)).toBe('<act>');
          // The screen is cut only when no step is left to go.
          const whole = words.filter((w) => w === '<row>').length === elements;
          const shownSteps = words.filter((w) => w === '<ok>').length;
          expect(whole || shownSteps === 0).toBe(true);
        },
      ),
    );
  });
});
