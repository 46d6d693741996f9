import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTokenizer, wordsOf } from './tokenizer.ts';
import { MARKS, PLAN_WORDS, ROLE_WORD } from './vocabulary.ts';

const tokenizer = createTokenizer({ words: ['wifi', 'settings', 'buy', 'milk'] });
const word = fc.stringMatching(/^[a-z0-9']{1,12}$/);

describe('the vocabulary', () => {
  it('is a multiple of 64 whatever the suite says, with room for unknown words', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 200 }), fc.integer({ min: 1, max: 100 }), (words, hashed) => {
        const made = createTokenizer({ words, hashed });
        expect(made.size % 64).toBe(0);
        const known = new Set([...MARKS, ...Object.values(ROLE_WORD), ...PLAN_WORDS, ...words]);
        expect(made.size).toBeGreaterThanOrEqual(known.size + hashed);
      }),
      { numRuns: 50 },
    );
  });

  it('gives marks and plan words the same ids in every suite, and one id to each word', () => {
    const other = createTokenizer({ words: ['something', 'else', 'tap', ''] });
    for (const mark of [...MARKS, ...PLAN_WORDS]) expect(other.id(mark)).toBe(tokenizer.id(mark));
    expect(MARKS.map((mark) => tokenizer.id(mark))).toEqual(MARKS.map((_, i) => i));
    expect(other.id('')).toBeUndefined();
    expect(tokenizer.end).toBe(tokenizer.id('<end>'));
  });

  it('has a version that changes with the words and not with their order', () => {
    expect(createTokenizer({ words: ['milk', 'buy', 'settings', 'wifi', 'buy'] }).version).toBe(tokenizer.version);
    expect(createTokenizer({ words: ['wifi', 'settings', 'buy'] }).version).not.toBe(tokenizer.version);
  });
});

describe('unknown words', () => {
  it('come back by the table, and two of one prompt never share an id', () => {
    fc.assert(
      fc.property(fc.uniqueArray(word, { maxLength: 90 }), (words) => {
        const { ids, table } = tokenizer.encode(words);
        expect(new Set(ids).size).toBe(words.length);
        expect(ids.every((id) => id >= 0 && id < tokenizer.size)).toBe(true);
        expect(tokenizer.decode(ids, table)).toEqual(words);
      }),
    );
  });

  it('keep their id in a table that is used again', () => {
    const { ids, table } = tokenizer.encode(['zebra', 'quagga', 'zebra']);
    expect(ids[0]).toBe(ids[2]);
    const more = Array.from({ length: 60 }, (_, i) => `w${i}`);
    tokenizer.encode(more, table);
    expect(tokenizer.encode(['quagga'], table).ids).toEqual([ids[1]]);
  });

  it('share ids only when there are more of them than ids, and then decode to the first of each id', () => {
    const small = createTokenizer({ words: [], hashed: 1 });
    const words = Array.from({ length: small.size }, (_, i) => `w${i}`);
    const { ids, table } = small.encode(words);
    expect(new Set(ids)).toEqual(new Set(table.keys()));
    for (const [id, word] of table) expect(small.encode([word], table).ids).toEqual([id]);
    expect(small.decode(ids, table)).toEqual(ids.map((id) => table.get(id)));
  });

  it('that no prompt held decode to something no plan can hold', () => {
    expect(tokenizer.decode([tokenizer.size - 1], new Map())).toEqual([`<unknown:${tokenizer.size - 1}>`]);
  });
});

it('splits text at any white space', () => {
  expect(wordsOf('  a\tb \n c ')).toEqual(['a', 'b', 'c']);
  expect(wordsOf('')).toEqual([]);
});
