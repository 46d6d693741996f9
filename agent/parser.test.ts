import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Intent } from '../domain/index.ts';
import { formatIntent, formatPlan, parseIntent, parsePlan } from './parser.ts';
import { wordsOf } from './tokenizer.ts';

const words = fc
  .array(fc.stringMatching(/^[a-z0-9'"%$!]{1,8}$/), { minLength: 1, maxLength: 4 })
  .map((all) => all.join(' '));
const direction = fc.constantFrom('up', 'down', 'left', 'right');
const intents: fc.Arbitrary<Intent> = fc.oneof(
  fc.record({ kind: fc.constant('tap'), target: words }),
  fc.record({ kind: fc.constant('long_press'), target: words }),
  fc.record({ kind: fc.constant('swipe'), direction }),
  fc.record({ kind: fc.constant('swipe'), direction, target: words }),
  fc.record({ kind: fc.constant('text_entry'), text: words }),
  fc.constant({ kind: 'navigate_home' }),
  fc.constant({ kind: 'wait' }),
  fc.record({ kind: fc.constant('ask_user'), question: words }),
  fc.record({ kind: fc.constant('task_complete'), claim: fc.constantFrom('done', 'blocked') }),
) as fc.Arbitrary<Intent>;
const maybe = fc.option(words, { nil: '' });

describe('what is written is what is read', () => {
  it('for every intent', () => {
    fc.assert(
      fc.property(intents, (intent) => {
        expect(parseIntent(wordsOf(formatIntent(intent)))).toEqual(intent);
      }),
    );
  });

  it('for every plan, with its end cut off or not', () => {
    fc.assert(
      fc.property(maybe, intents, maybe, fc.boolean(), (reasoning, intent, remaining, cut) => {
        const text = formatPlan({ reasoning, intent, remaining });
        const read = parsePlan(cut ? text.replace(/ <end>$/, '') : text);
        expect(read).toEqual({ ok: true, plan: { reasoning, text: formatIntent(intent), intent, remaining } });
      }),
    );
  });
});

describe('malformed output', () => {
  it.each(['', '   ', '<end>'])('%j is empty', (text) => {
    expect(parsePlan(text)).toEqual({ ok: false, reason: 'empty_output' });
  });

  it.each([
    ['no marks', 'tap wifi <end>'],
    ['no plan mark', 'see wifi tap wifi <rest> done <end>'],
    ['no rest mark', 'see wifi <do> tap wifi <end>'],
    ['marks in the wrong order', 'see wifi <rest> done <do> tap wifi <end>'],
    ['a plan mark twice', '<do> tap <do> wifi <rest> done <end>'],
    ['a rest mark twice', '<do> tap wifi <rest> <rest> done <end>'],
    ['an end twice', '<do> tap wifi <rest> done <end> <end>'],
    ['words after the end', '<do> tap wifi <rest> done <end> tap home'],
    ['a mark of the prompt', '<do> tap <button> wifi <rest> done <end>'],
    ['a token without a word', '<do> tap <unknown:99> <rest> done <end>'],
    ['no step plan', 'see wifi <do> <rest> done <end>'],
    ['no such verb', '<do> destroy wifi <rest> <end>'],
    ['a tap at nothing', '<do> tap <rest> <end>'],
    ['a press at nothing', '<do> press <rest> <end>'],
    ['a swipe nowhere', '<do> swipe <rest> <end>'],
    ['a swipe in no direction', '<do> swipe wifi up <rest> <end>'],
    ['nothing typed', '<do> type <rest> <end>'],
    ['nothing asked', '<do> ask <rest> <end>'],
    ['home with more', '<do> home now <rest> <end>'],
    ['wait with more', '<do> wait long <rest> <end>'],
    ['done with more', '<do> done wifi <rest> <end>'],
    ['blocked with more', '<do> blocked it <rest> <end>'],
  ])('%s', (_, text) => {
    expect(parsePlan(text)).toEqual({ ok: false, reason: 'unparseable_output' });
  });

  it('of any kind ends in a value, never in an exception', () => {
    const piece = fc.constantFrom('<do>', '<rest>', '<end>', '<pad>', 'tap', 'swipe', 'up', 'done', 'wifi', ' ', '<');
    fc.assert(fc.property(fc.array(piece), (pieces) => void parsePlan(pieces.join(' '))));
  });
});
