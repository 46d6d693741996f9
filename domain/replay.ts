import type { Outcome } from './episode.ts';
import type { FailureClass } from './errors.ts';

/** How a recorded attempt is done over: with the decisions of the record, with a policy's own, or only judged. */
export type ReplayMode = 'recorded' | 'live' | 'judge';

/** What is compared: of each step in this order, then of the whole attempt. */
export type ReplayField =
  | 'goal'
  | 'screen_before'
  | 'truth_before'
  | 'prompt'
  | 'decision'
  | 'logprobs'
  | 'hidden'
  | 'grounding'
  | 'receipt'
  | 'answer'
  | 'screen_after'
  | 'truth_after'
  | 'dense'
  | 'steps'
  | 'claim'
  | 'terminal'
  | 'outcome';

/** The first thing in which a replay is not what was recorded. */
export interface ReplayDifference {
  /** null: not of one step, but of the attempt. */
  step: number | null;
  field: ReplayField;
  /** In short, for a table. */
  recorded: string;
  now: string;
  /** The same for a person. */
  sentence: string;
}

/** What became of one replay. Small: hundreds travel through Temporal. */
export type ReplayResult =
  | { kind: 'identical'; id: string; outcome: Outcome; steps: number }
  /** `ended`: how it came out this time; null when it was ended at the difference. */
  | ({ kind: 'different'; id: string; outcome: Outcome; ended: Outcome | null } & ReplayDifference)
  /** Nothing can be said: the device, judge or engine failed, or the record is damaged. */
  | { kind: 'failed'; id: string; failure: FailureClass; message: string };
