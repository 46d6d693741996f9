import type { AllowedNames } from '../domain/index.ts';
import type { Tokenizer } from './tokenizer.ts';

/** What a decode-time mask holds a response to: nothing, on-screen labels, or the whole form of a response as well. */
export type DecodeMask = 'none' | 'labels' | 'grammar';

/** An automaton over token ids, in the engine's wire form: state 0 first; `other` null permits the arcs' tokens only. */
export interface DecodeConstraint {
  states: { arcs: { tokens: number[]; next: number }[]; other: number | null }[];
}

const REASONS = ['write it', 'look more', 'go home', 'all set', 'not here'] as const;
const REMAINING = ['pick', 'hold', 'more', 'write', 'home', 'wait', 'need', 'done', 'blocked'] as const;
/** Longest typed text, question and remaining plan, in words. */
const MAX_TEXT = 6;
const MAX_QUESTION = 2;
const MAX_REMAINING = 3;

/** The constraint of one response; null: none. Pure, so that training rebuilds what sampling used. */
export function decodeConstraint(
  tokenizer: Tokenizer,
  mask: DecodeMask,
  allowed: AllowedNames | null,
): DecodeConstraint | null {
  if (mask === 'none' || allowed === null) return null;
  return mask === 'grammar' ? grammar(tokenizer, allowed) : labelsOnly(tokenizer, allowed);
}

/** `tap`, `press` and `see` are followed by words of labels, until the next mark; all else is free. */
function labelsOnly(tokenizer: Tokenizer, { labels }: AllowedNames): DecodeConstraint | null {
  if (labels.length === 0) return null;
  const ids = (...words: string[]): number[] => words.map((word) => tokenizer.id(word)!);
  const words = [...new Set(labels.flat())];
  return {
    states: [
      { arcs: [{ tokens: ids('tap', 'press', 'see'), next: 1 }], other: 0 },
      { arcs: [{ tokens: words, next: 2 }], other: null },
      {
        arcs: [
          { tokens: words, next: 2 },
          { tokens: ids('<do>', '<rest>', '<end>'), next: 0 },
        ],
        other: null,
      },
    ],
  };
}

/**
 * `<reasoning> <do> <step plan> <rest> <remaining plan> <end>` and nothing else: labels are whole labels of the screen,
 * typed texts and questions words of the task and of the user's answers. Every response can be parsed.
 */
function grammar(tokenizer: Tokenizer, { labels, words }: AllowedNames): DecodeConstraint {
  const states: DecodeConstraint['states'] = [];
  const id = (word: string): number => tokenizer.id(word)!;
  const state = (): number => states.push({ arcs: [], other: null }) - 1;
  /** Where `token` leads from a state; a new state unless it leads somewhere already. */
  const follow = (from: number, token: number, to: number | null = null): number => {
    const known = states[from]!.arcs.find((arc) => arc.tokens.includes(token));
    if (known !== undefined) return known.next;
    const next = to ?? state();
    states[from]!.arcs.push({ tokens: [token], next });
    return next;
  };
  const say = (from: number, text: string): number => text.split(' ').reduce((at, word) => follow(at, id(word)), from);
  /** One to `most` of `tokens`, then `close`, which leads to `to`. */
  const some = (from: number, tokens: readonly number[], most: number, close: string, to: number): void => {
    let at = from;
    for (let i = 0; i < most; i++) {
      const next = state();
      states[at]!.arcs.push({ tokens: [...tokens], next });
      follow(next, id(close), to);
      at = next;
    }
  };
  const oneLabel = (from: number, close: string, to: number): void => {
    for (const label of labels)
      follow(
        label.reduce((at, token) => follow(at, token), from),
        id(close),
        to,
      );
  };

  const reasoning = state();
  const plan = state();
  const remaining = state();
  const finished = state();
  const over = state();
  for (const phrase of REASONS) follow(say(reasoning, phrase), id('<do>'), plan);
  if (labels.length > 0) {
    oneLabel(follow(reasoning, id('see')), '<do>', plan);
    const target = follow(plan, id('tap'));
    follow(plan, id('press'), target);
    oneLabel(target, '<rest>', remaining);
  }
  if (words.length > 0) {
    some(follow(reasoning, id('need')), words, MAX_QUESTION, '<do>', plan);
    some(follow(plan, id('type')), words, MAX_TEXT, '<rest>', remaining);
    some(follow(plan, id('ask')), words, MAX_QUESTION, '<rest>', remaining);
  }
  const swipe = follow(plan, id('swipe'));
  for (const way of ['up', 'down', 'left', 'right']) follow(follow(swipe, id(way)), id('<rest>'), remaining);
  for (const word of ['home', 'wait']) follow(say(plan, word), id('<rest>'), remaining);
  for (const word of ['done', 'blocked']) follow(say(plan, word), id('<rest>'), finished);
  follow(finished, id('<end>'), over);
  follow(remaining, id('<end>'), over);
  some(remaining, REMAINING.map(id), MAX_REMAINING, '<end>', over);
  states[over]!.other = over;
  return { states };
}
