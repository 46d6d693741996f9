import type {
  ActionReceipt,
  DenseVerdict,
  EpisodeSpec,
  Grounding,
  Screen,
  StepPlan,
  TaskInstance,
  TerminalVerdict,
  Truth,
} from '../domain/index.ts';

/** What a dense judge remembers between the steps of one attempt. Plain data: it travels through workflows. */
export interface JudgeMemory {
  /** Lowest ground-truth distance so far (high-water mark of progress); null before the first step. */
  best: number | null;
  /** `state|action` keys that were judged fail. */
  failed: string[];
}
export const freshMemory = (): JudgeMemory => ({ best: null, failed: [] });

export interface StepEvidence {
  task: TaskInstance;
  t: number;
  /** null: unparseable output. */
  plan: StepPlan | null;
  grounding: Grounding;
  receipt: ActionReceipt | null;
  answer: string | null;
  before: Screen;
  after: Screen;
  truthBefore: Truth | null;
  truthAfter: Truth | null;
}

export interface OutcomeEvidence {
  task: TaskInstance;
  claim: 'done' | 'blocked';
  /** The last three screens. */
  screens: Screen[];
  actions: string[];
  verdicts: DenseVerdict[];
  truth: Truth | null;
}

/** A dense verdict, and what is remembered of it. */
export interface StepVerdict {
  verdict: DenseVerdict;
  why: string;
  memory: JudgeMemory;
  /** The rule judge's verdict, where another one was asked for. */
  truly?: DenseVerdict;
}

/** A judge throws a TapwrightError of a judge class when it has no verdict; a failure is never a verdict. */
export interface Judge {
  readonly name: string;
  /** `spec`: the attempt that the step is of; without one it is judged by the rules. */
  judgeStep(evidence: StepEvidence, memory: JudgeMemory, spec?: EpisodeSpec): Promise<StepVerdict>;
  judgeOutcome(evidence: OutcomeEvidence): Promise<{ verdict: TerminalVerdict; why: string }>;
}
