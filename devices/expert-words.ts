import type { Intent } from '../domain/index.ts';

/**
 * How a remaining plan names a move in one word. Not the step plan's own verbs: those open a label in the decode-time
 * mask, and a remaining plan names no labels.
 */
const REMAINING_WORD: Record<Intent['kind'], string> = {
  tap: 'pick',
  long_press: 'hold',
  swipe: 'more',
  text_entry: 'write',
  navigate_home: 'home',
  wait: 'wait',
  ask_user: 'need',
  task_complete: 'done',
};

/** An expert's remaining plan: the next moves, at most three words, `end` last. */
export function remainingWords(moves: readonly Intent[], end: 'done' | 'blocked'): string {
  return [...moves.map((move) => REMAINING_WORD[move.kind]), end].slice(0, 3).join(' ');
}
