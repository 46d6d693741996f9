import { MARKS } from '../agent/vocabulary.ts';
import type { AllowedNames, PlannerSample } from '../domain/index.ts';

/**
 * Training examples in the engine's form: inputs are tokens[:-1], targets tokens[1:], shifted here. A row is one planner
 * step. Only response tokens are trained: the weights of prompt targets are 0, and their logprobs and advantages are 0
 * and never looked at (engine.md, 1).
 */
export interface PlainDatum {
  tokens: number[];
  targets: number[];
  weights: number[];
  /** Sampled log-probabilities, aligned with targets; null for cross-entropy. */
  logprobs: number[] | null;
  advantages: number[] | null;
  /** What the row's decode-time mask let the response name; null when off. */
  allowed: AllowedNames | null;
}

/**
 * How many tokens of a response the policy's loss looks at: all, or those up to the end of the step plan. The remaining
 * plan comes after the step's action, and its many likely wordings are mostly noise in the step's gradient.
 */
export function trainedTokens(sample: PlannerSample, remainingPlan: boolean): number {
  const end = remainingPlan ? -1 : sample.responseTokens.indexOf(REST);
  return end < 0 ? sample.responseTokens.length : end + 1;
}
const REST = MARKS.indexOf('<rest>');

/**
 * A datum of one sampled response with its advantage, the same for every token (algorithms.md, 4), or of its first
 * `trained` tokens.
 */
export function policyDatum(
  sample: PlannerSample,
  advantage: number,
  trained: number = sample.responseTokens.length,
): PlainDatum {
  const { promptTokens, responseTokens, logprobs } = sample;
  const head = promptTokens.length - 1;
  const zeros = new Array<number>(head).fill(0);
  const response = responseTokens.slice(0, trained);
  return {
    ...plainDatum(promptTokens, response, sample.allowed),
    logprobs: [...zeros, ...logprobs.slice(0, trained)],
    advantages: [...zeros, ...response.map(() => advantage)],
  };
}

/** A datum that imitates `response`. */
export function plainDatum(
  prompt: readonly number[],
  response: readonly number[],
  allowed: AllowedNames | null,
): PlainDatum {
  const all = [...prompt, ...response];
  const head = prompt.length - 1;
  return {
    tokens: all.slice(0, -1),
    targets: all.slice(1),
    weights: [...new Array<number>(head).fill(0), ...response.map(() => 1)],
    logprobs: null,
    advantages: null,
    allowed,
  };
}

/**
 * Order of rows for the engine: by length, so that rows of one tile need the same padding; ties by place, so that the
 * order is one and the same every time. Returns places.
 */
export function byLength(lengths: readonly number[]): number[] {
  return lengths.map((_, i) => i).sort((a, b) => lengths[a]! - lengths[b]! || a - b);
}

/** Cuts a list into pieces of at most `size`. */
export function chunked<T>(items: readonly T[], size: number): T[][] {
  const out: T[][] = [];
  for (let i = 0; i < items.length; i += size) out.push(items.slice(i, i + size));
  return out;
}
