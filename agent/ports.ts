import type { EpisodeSpec, Lease, Screen, Step, TerminalVerdict, Truth } from '../domain/index.ts';
import type { JudgeMemory, OutcomeEvidence, StepEvidence, StepVerdict } from '../judges/judge.ts';

/** What the planner is told of an earlier step. Small: it travels with every step of a grain-`step` episode. */
export interface HistoryEntry {
  reasoning: string;
  /** The step plan in words, or the raw text when it could not be parsed. */
  plan: string;
  remaining: string;
  /** `ok` the screen changed, `same` it did not, `refused` the grounder found no such label, `unparseable`. */
  result: 'ok' | 'same' | 'refused' | 'unparseable';
  /** The user's answer, when this step asked. */
  answer: string | null;
}

export interface Opened {
  lease: Lease;
  /** The goal in the device's own words, when only the device knew it. */
  goal?: string;
  screen: Screen;
  truth: Truth | null;
}

export interface StepRequest {
  spec: EpisodeSpec;
  lease: Lease;
  t: number;
  screen: Screen;
  truth: Truth | null;
  history: HistoryEntry[];
}

/**
 * The outside world of an episode. Direct calls for grain `episode`, Temporal activities for grain `step`.
 * A port fails with a TapwrightError whose class masks the attempt or stops the run (design.md, 5).
 */
export interface EpisodePorts {
  /** Lease a device, roll it back and verify, observe. */
  open(spec: EpisodeSpec): Promise<Opened>;
  /** Observe, plan, ground, act, observe: one fused step. */
  step(request: StepRequest): Promise<Step>;
  judgeStep(spec: EpisodeSpec, evidence: StepEvidence, memory: JudgeMemory): Promise<StepVerdict>;
  judgeOutcome(spec: EpisodeSpec, evidence: OutcomeEvidence): Promise<{ verdict: TerminalVerdict; why: string }>;
  /** Give the device back. Idempotent; called in every case. */
  close(spec: EpisodeSpec, lease: Lease): Promise<void>;
}
