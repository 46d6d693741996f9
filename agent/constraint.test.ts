import { expect, it, describe } from 'vitest';
import fc from 'fast-check';
import { createTracker } from '../engine/embedded/constraint.ts';
import { decodeConstraint, type DecodeConstraint } from './constraint.ts';
import { parsePlan } from './parser.ts';
import { createTokenizer, wordsOf } from './tokenizer.ts';

const tokenizer = createTokenizer({ words: ['wifi', 'wifi', 'calls', 'settings', 'milk', 'buy', 'order'] });
const ids = (text: string): number[] => tokenizer.encode(wordsOf(text)).ids;
const allowed = { labels: ['wifi', 'wifi calls', 'settings'].map(ids), words: ids('buy milk order') };
const grammar = decodeConstraint(tokenizer, 'grammar', allowed)!;

/** Whether every word of the text is permitted where it stands. */
function permits(constraint: DecodeConstraint, text: string): boolean {
  const tracker = createTracker(constraint);
  return ids(text).every((id) => {
    const ok = tracker.support()?.includes(id) ?? true;
    if (ok) tracker.push(id);
    return ok;
  });
}

describe('the grammar', () => {
  it.each([
    'see wifi <do> tap wifi <rest> pick done <end>',
    'see wifi calls <do> press wifi calls <rest> <end>',
    'write it <do> type buy milk <rest> pick done <end>',
    'need order <do> ask order <rest> write pick done <end>',
    'look more <do> swipe up <rest> pick <end>',
    'go home <do> home <rest> pick <end>',
    'all set <do> done <rest> <end>',
    'not here <do> blocked <rest> <end>',
  ])('permits %s', (text) => {
    expect(permits(grammar, text)).toBe(true);
    expect(parsePlan(text).ok).toBe(true);
  });

  it.each([
    'see calls <do>',
    'see wifi <rest>',
    '<do>',
    'see wifi <do> tap settings wifi',
    'write it <do> type wifi',
    'write it <do> type <rest>',
    'all set <do> done <rest> pick',
    'see wifi <do> tap wifi <rest> pick pick pick pick',
    'look more <do> swipe <rest>',
  ])('forbids %s', (text) => {
    expect(permits(grammar, text)).toBe(false);
  });

  it('lets through only what can be parsed, whatever is drawn', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 40, maxLength: 40 }), (draws) => {
        const tracker = createTracker(grammar);
        const out: number[] = [];
        for (const draw of draws) {
          const support = tracker.support()!;
          const token = support[draw % support.length]!;
          out.push(token);
          tracker.push(token);
          if (token === tokenizer.end) break;
        }
        expect(parsePlan(tokenizer.decode(out, new Map()).join(' ')).ok).toBe(true);
      }),
    );
  });

  it('does without taps where nothing has a label, and without texts where the task has no words', () => {
    const bare = decodeConstraint(tokenizer, 'grammar', { labels: [], words: [] })!;
    expect(permits(bare, 'see')).toBe(false);
    expect(permits(bare, 'write it <do> type')).toBe(false);
    expect(permits(bare, 'look more <do> swipe down <rest> <end>')).toBe(true);
  });
});

describe('the label mask', () => {
  const labels = decodeConstraint(tokenizer, 'labels', allowed)!;
  it('opens after the verbs and `see`, closes at the marks, and leaves all else free', () => {
    expect(permits(labels, 'see calls <do> tap settings <rest> milk milk <end>')).toBe(true);
    expect(permits(labels, 'tap milk')).toBe(false);
    expect(permits(labels, 'press <do>')).toBe(false);
  });
  it('is none without labels, without names, or when it is off', () => {
    expect(decodeConstraint(tokenizer, 'labels', { labels: [], words: [1] })).toBeNull();
    expect(decodeConstraint(tokenizer, 'grammar', null)).toBeNull();
    expect(decodeConstraint(tokenizer, 'none', allowed)).toBeNull();
  });
});
