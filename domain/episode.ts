import type { ActionReceipt, Grounding, Intent } from './action.ts';
import type { FailureClass } from './errors.ts';
import type { Screen } from './screen.ts';
import type { TaskInstance, Truth } from './task.ts';

/** Dense verdict of one step. */
export type DenseVerdict = 'success' | 'fail' | 'overcomplete';

export const OUTCOMES = [
  'success',
  'blocked_complete',
  'failure',
  'step_limit',
  'false_completion',
  'unparseable',
] as const;
/** How an attempt ended, as the reward sees it (algorithms.md, 1). */
export type Outcome = (typeof OUTCOMES)[number];

/** The terminal judge's own three values; the loop combines them with the agent's claim into an Outcome. */
export type TerminalVerdict = 'success' | 'fail' | 'blocked_complete';

/** What the planner wrote, parsed. `text` is the step plan in words, as a grounder model would read it. */
export interface StepPlan {
  reasoning: string;
  text: string;
  intent: Intent;
  remaining: string;
}

/** What a masked response may name, in token ids. */
export interface AllowedNames {
  /** Labels on the screen, word by word, in screen order. */
  labels: number[][];
  /** Words of the task and of the user's answers, ascending: what may be typed or asked for. */
  words: number[];
}

/** One planner call: the tokens that were sampled are the tokens that are trained (algorithms.md, 6). */
export interface PlannerSample {
  promptTokens: number[];
  responseTokens: number[];
  /** log p of each response token under the sampling policy, untempered. */
  logprobs: number[];
  /** Hidden state at the last prompt token, base64 float32 little-endian; null when the engine gives none. */
  hidden: string | null;
  /** What the decode-time mask let the response name; null when the mask is off. */
  allowed: AllowedNames | null;
  /** The response as text. */
  text: string;
}

/** Where a step stands in its run: every random draw of the step comes from these (design.md, 4). */
export interface EpisodeKey {
  run: string;
  phase: 'warmup' | 'train' | 'eval' | 'demo';
  /** Update k of the run (eval: the checkpoint's k). */
  update: number;
  /** Which task draw of the batch. */
  draw: number;
  attempt: number;
}

/** Everything an attempt needs, and nothing else. Travels through Temporal. */
export interface EpisodeSpec {
  key: EpisodeKey;
  /** Run seed. */
  seed: number;
  task: TaskInstance;
  /** Sampler checkpoint to sample from, `tinker://...`. */
  policy: string;
  temperature: number;
  maxTokens: number;
  /** Decode-time mask: none, on-screen labels, or the whole form of a response. */
  decodeMask: 'none' | 'labels' | 'grammar';
  grounder: 'small' | 'large' | 'hybrid';
  maxUnparseable: number;
  /** Faults to inject (tests and experiments). */
  faults: Record<string, number>;
  /** A dense judge that is worse than the rules; absent: the rules. Experiments on what its quality is worth. */
  judge?: {
    dense: 'rule' | 'gullible';
    /** False: a reasoning may claim what the screen does not show. */
    hallucination: boolean;
    /** How often a verdict of each class comes out wrong. */
    noise: Record<DenseVerdict, number>;
  };
  keepScreens: boolean;
  deadlineMs: number;
  /** 0 for the first try; seeds do not depend on it. */
  infraTry: number;
}

/** One step of an attempt. */
export interface Step {
  t: number;
  sample: PlannerSample;
  /** null: the response could not be parsed. */
  plan: StepPlan | null;
  grounding: Grounding;
  receipt: ActionReceipt | null;
  /** The simulated user's answer to an Ask_User. */
  answer: string | null;
  /** The screen and ground truth before the action. */
  before: Screen;
  truthBefore: Truth | null;
  after: Screen;
  truthAfter: Truth | null;
}

/** A step with its verdict, as recorded. */
export interface JudgedStep extends Step {
  dense: DenseVerdict;
  /** What the rules say, where the judge was asked to be worse than they are. */
  trueDense?: DenseVerdict;
  /** Why, in a few words: `progress`, `hallucinated_reasoning`, `repeated_failure`, ... */
  why: string;
}

/** A finished attempt. Contains no clock: same seeds, same bytes (design.md, 3). */
export interface Episode {
  id: string;
  key: EpisodeKey;
  task: TaskInstance;
  policy: string;
  steps: JudgedStep[];
  /** The agent's own claim and the terminal verdict are two fields. */
  claim: 'done' | 'blocked' | null;
  terminal: TerminalVerdict | null;
  outcome: Outcome;
}

/** What travels back through Temporal for one attempt. */
export type EpisodeResult =
  | {
      kind: 'finished';
      id: string;
      /** Content address of the record. */
      ref: string;
      outcome: Outcome;
      steps: number;
      dense: Record<DenseVerdict, number>;
    }
  | { kind: 'masked'; id: string; failure: FailureClass; message: string; step: number | null };

/** `u0123/t07/a3`: the stable name of an attempt inside its run. */
export function episodeId(key: EpisodeKey): string {
  const n = (value: number, width: number): string => String(value).padStart(width, '0');
  const stage = { warmup: 'w', train: 'u', eval: 'e', demo: 'd' }[key.phase];
  return `${stage}${n(key.update, 4)}/t${n(key.draw, 2)}/a${key.attempt}`;
}
