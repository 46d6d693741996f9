import type { DemoChunk, EvaluationCell, Metrics, PolicyRef } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { ReplayMode, ReplayResult, Split } from '../domain/index.ts';

/** What a whole run needs to know of its surroundings. */
export interface Site {
  /** Queue prefix of the home. */
  prefix: string;
  /** Device hosts, each with a queue of its own; draws go round. */
  hosts: string[];
}

/** Where a run stands: small plain data, handed on at continue-as-new. */
export interface Cursor {
  stage: 'start' | 'sft' | 'warmup' | 'train' | 'report' | 'done';
  demos: DemoChunk[];
  sftChunks: number;
  warmups: number;
  updates: number;
  /** Updates whose evaluation is done. */
  evaluated: number[];
  evaluations: RunStatus['evaluations'];
  policy: PolicyRef | null;
  /** Batches in a row that taught nothing. */
  skipped: number;
  control: ControlState;
}

/** What a run may use up; null: no bound but the config's. */
export interface Budget {
  updates: number | null;
  /** Wall time at work, pauses left out. */
  minutes: number | null;
  judgeCalls: number | null;
}

/** What was asked of a run while it ran (run-control.ts). */
export interface ControlState {
  paused: boolean;
  budget: Budget;
  /** null: as the config says. */
  evaluationEvery: number | null;
  /** End after this update. */
  stopAfter: number | null;
  /** End after the unit of work in hand. */
  stopping: boolean;
  judgeCalls: number;
  /** Milliseconds at work up to the last pause or continue-as-new. */
  activeMs: number;
}
export const startControl = (): ControlState => ({
  paused: false,
  budget: { updates: null, minutes: null, judgeCalls: null },
  evaluationEvery: null,
  stopAfter: null,
  stopping: false,
  judgeCalls: 0,
  activeMs: 0,
});

/** What a run says of its control. */
export interface ControlView {
  paused: boolean;
  budget: Budget;
  used: { updates: number; minutes: number; judgeCalls: number };
  evaluationEvery: number;
  /** Updates the run will have done at its end, as things stand. */
  updates: number;
  /** Why it ends before its config says; null while it does not. */
  ends: string | null;
}

export const startCursor = (): Cursor => ({
  stage: 'start',
  demos: [],
  sftChunks: 0,
  warmups: 0,
  updates: 0,
  evaluated: [],
  evaluations: [],
  policy: null,
  skipped: 0,
  control: startControl(),
});

export interface TrainingInput {
  run: string;
  config: RunConfig;
  site: Site;
  cursor?: Cursor;
  /** Status at the last continue-as-new. */
  last?: RunStatus;
}

export interface UpdateInput {
  run: string;
  config: RunConfig;
  site: Site;
  phase: 'warmup' | 'train';
  update: number;
  /** Batches of this update that taught nothing so far: each draws other tasks. */
  round: number;
  policy: PolicyRef;
}

export interface EvaluationInput {
  run: string;
  config: RunConfig;
  site: Site;
  policy: PolicyRef;
  suite: string;
  instances: Partial<Record<Split, number>>;
  /** Who asked, when it was not the run: its cells stand beside the run's own. */
  label?: string;
}

export interface ReplayInput {
  run: string;
  config: RunConfig;
  site: Site;
  mode: ReplayMode;
  /** Sampler checkpoint that decides in a live replay; null: the one each attempt was recorded with. */
  policy: string | null;
  /** Ids of what is still to be replayed. */
  episodes: string[];
  /** Handed on at continue-as-new. */
  tally?: ReplayTally;
}

/** How replays stand, and in the end how they came out. */
export interface ReplayTally {
  of: number;
  done: number;
  identical: number;
  different: number;
  failed: number;
  /** What differs first and what failed, by field and by class: how often. */
  why: Record<string, number>;
  /** How they came out, of those that came to an end: `<recorded> > <now>`, how often. */
  outcomes: Record<string, number>;
  /** Those that are not identical, the first ones whole. */
  told: Exclude<ReplayResult, { kind: 'identical' }>[];
}
export const startTally = (of: number): ReplayTally => ({
  of,
  done: 0,
  identical: 0,
  different: 0,
  failed: 0,
  why: {},
  outcomes: {},
  told: [],
});

/** What a schedule starts again and again: of which policy is found out each time. */
export interface ScheduledEvaluationInput {
  run: string;
  config: RunConfig;
  site: Site;
  suite: string;
  split: Split;
  n: number;
  /** When it is to be started: for those who list schedules, the server keeps a cron expression in parts only. */
  cron: string;
  /** Name of the schedule: its cells in results.json bear it. */
  schedule: string;
}

export interface RunStatus {
  run: string;
  stage: Cursor['stage'] | 'evaluation';
  /** Units of the present stage done, and their number. */
  update: number;
  of: number;
  /** Fraction of valid attempts that succeeded in the last batch; null before the first. */
  success: number | null;
  /** Masked attempts of the last batch. */
  masked: number | null;
  lastMetrics: Metrics | null;
  evaluations: { update: number; cells: Omit<EvaluationCell, 'wins'>[] }[];
  report: string | null;
  digest: string | null;
  /** Absent in what a version without live control handed on. */
  control?: ControlView;
}

/** One run of an experiment. */
export interface ExperimentUnit {
  run: string;
  config: RunConfig;
  /** The unit whose imitated policy it begins with; null: it imitates by itself. */
  from: string | null;
}

export interface ExperimentInput {
  experiment: string;
  site: Site;
  /** In the order in which they are begun. */
  units: ExperimentUnit[];
  /** Runs at once. */
  concurrency: number;
  /** What the header of each run says of where it is made. */
  header: Record<string, unknown>;
  /** How units stand; handed on at continue-as-new. */
  states?: Record<string, UnitState>;
}

export interface UnitState {
  state: 'waiting' | 'running' | 'done' | 'failed';
  /** Why it failed. */
  why?: string;
}

export interface ExperimentStatus {
  experiment: string;
  units: ({ run: string } & UnitState)[];
}
