import type { AllowedNames, Screen, TaskInstance } from '../domain/index.ts';
import type { HistoryEntry } from './ports.ts';
import type { Tokenizer, WordTable } from './tokenizer.ts';
import { wordsOf } from './tokenizer.ts';
import { MARKS, ROLE_WORD, type Mark } from './vocabulary.ts';

export interface PromptOptions {
  /** How many earlier steps are shown. */
  historySteps: number;
  /** Longest prompt in tokens: the oldest steps go first, then the end of the screen. */
  maxTokens?: number;
}

export interface Prompt {
  ids: number[];
  table: WordTable;
  /** What a decode-time mask lets the response name. */
  allowed: AllowedNames;
}

/** Longest label that a mask permits, in words: a longer one does not fit a response. */
const MAX_LABEL = 8;

const RESULT: Record<HistoryEntry['result'], Mark> = {
  ok: '<ok>',
  same: '<same>',
  refused: '<no>',
  unparseable: '<bad>',
};

const RESERVED: ReadonlySet<string> = new Set([...MARKS, ...Object.values(ROLE_WORD)]);

/** Words of a text from outside. A page that shows `<act>` writes no mark into the prompt. */
const plainWords = (text: string): string[] =>
  wordsOf(text).map((word) => (RESERVED.has(word) ? word.slice(1, -1) : word));

/** One earlier step: its plan with what came of it. Its reasoning names the plan's target again, so it stays short. */
function historyWords(entry: HistoryEntry): string[] {
  if (entry.result === 'unparseable') return ['<bad>'];
  return [...wordsOf(entry.plan).slice(0, 6), RESULT[entry.result]];
}

/**
 * The planner's prompt, in words: task, what the user said (kept for the whole episode), the last steps, the previous
 * remaining plan, then the screen, `<act>` last. The text form of facts.md, "The agent", for a text-only planner.
 */
export function promptWords(
  task: TaskInstance,
  screen: Screen,
  history: readonly HistoryEntry[],
  options: PromptOptions,
): { head: string[]; steps: string[][]; screen: string[] } {
  // The same answer once, however often the question was put.
  const answers = new Set(history.flatMap((entry) => (entry.answer ? [entry.answer] : [])));
  const said = [...answers].flatMap((answer) => ['<said>', ...plainWords(answer)]);
  const last = history.at(-1);
  const recent = options.historySteps > 0 ? history.slice(-options.historySteps) : [];
  const elements = (screen.outline ?? []).flatMap((e) => [
    ROLE_WORD[e.role],
    ...plainWords(e.label),
    ...plainWords(e.value ?? '').slice(0, 6),
    ...(e.focused ? ['focus'] : []),
  ]);
  return {
    head: ['<task>', ...plainWords(task.goal), ...said],
    steps: recent.map(historyWords),
    screen: [
      '<rem>',
      ...wordsOf(last?.remaining ?? '').slice(0, 4),
      '<app>',
      ...plainWords(screen.app ?? ''),
      '<screen>',
      ...elements,
    ],
  };
}

/** The prompt as ids. Pure. */
export function buildPrompt(
  tokenizer: Tokenizer,
  task: TaskInstance,
  screen: Screen,
  history: readonly HistoryEntry[],
  options: PromptOptions,
): Prompt {
  const max = options.maxTokens ?? 160;
  const parts = promptWords(task, screen, history, options);
  let steps = parts.steps;
  // A goal or an answer without end leaves room for the screen.
  const head = parts.head.slice(0, Math.floor(max * 0.75));
  const length = (): number => head.length + steps.flat().length + parts.screen.length + 2;
  while (steps.length > 0 && length() > max) steps = steps.slice(1);
  const room = max - head.length - steps.flat().length - 2;
  const words = [...head, '<hist>', ...steps.flat(), ...parts.screen.slice(0, Math.max(room, 0)), '<act>'];
  const { ids, table } = tokenizer.encode(words);
  const idsOf = (text: readonly string[]): number[] => tokenizer.encode(text, table).ids;
  const labels = (screen.outline ?? []).map((e) => idsOf(plainWords(e.label)));
  const known = idsOf(parts.head.filter((word) => !RESERVED.has(word)));
  return {
    ids,
    table,
    allowed: {
      labels: labels.filter((label) => label.length > 0 && label.length <= MAX_LABEL),
      words: [...new Set(known)].sort((a, b) => a - b),
    },
  };
}
