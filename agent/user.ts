import type { TaskInstance } from '../domain/index.ts';
import { wordsOf } from './tokenizer.ts';

export interface UserAnswer {
  text: string;
  /** The fact that was told; null when the user could not help. */
  fact: string | null;
  /** Facts in the answer that were not asked for: always 0 here, counted so that a model user can be held to it. */
  leaks: number;
}

export interface SimulatedUser {
  answer(task: TaskInstance, question: string): Promise<UserAnswer>;
}

/**
 * Answers only what was asked, only from the task's `userFacts`: the fact whose name the question holds; of several the
 * longest name, so that `user name` is not answered with `name`.
 */
export function createRuleUser(): SimulatedUser {
  return {
    answer(task, question) {
      const asked = new Set(wordsOf(question.toLowerCase()));
      const fact = Object.keys(task.userFacts)
        .sort((a, b) => wordsOf(b).length - wordsOf(a).length || (a < b ? -1 : 1))
        .find((name) => wordsOf(name).every((word) => asked.has(word)));
      if (fact === undefined) return Promise.resolve({ text: 'i do not know', fact: null, leaks: 0 });
      return Promise.resolve({ text: task.userFacts[fact]!, fact, leaks: leaksIn(task, fact) });
    },
  };
}

/** Other facts whose value the answer gives away although only `fact` was asked for. */
function leaksIn(task: TaskInstance, fact: string): number {
  const told = task.userFacts[fact]!;
  return Object.entries(task.userFacts).filter(
    ([name, value]) => name !== fact && value !== told && ` ${told} `.includes(` ${value} `),
  ).length;
}
