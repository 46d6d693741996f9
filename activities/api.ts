import type { EpisodePorts } from '../agent/ports.ts';
import type { RunConfig } from '../configs/schema.ts';
import type {
  BlobRef,
  Episode,
  EpisodeResult,
  EpisodeSpec,
  ReplayMode,
  ReplayResult,
  Split,
  TaskInstance,
} from '../domain/index.ts';

/** Types only: what workflows see of the activities. Payloads are small; everything large travels by reference. */

export interface TaskRequest {
  run: string;
  suite: string;
  split: Split;
  seed: number;
  indices: number[];
}

export interface DemoRequest {
  run: string;
  /** Demonstrations `from`..`to`-1 of the run. */
  from: number;
  to: number;
}
/** One chunk of demonstrations in the store. */
export interface DemoChunk {
  ref: BlobRef;
  demonstrations: number;
  rows: number;
}

/** Recorded attempts of a run that are to be done over, side by side. */
export interface ReplayRequest {
  run: string;
  mode: ReplayMode;
  /** Sampler checkpoint of a live replay; null: each attempt's own. */
  policy: string | null;
  /** Ids; the records are read from the store. */
  episodes: string[];
}

/** On `<prefix>-device-<host>`. */
export interface DeviceActivities {
  tasks(request: TaskRequest): Promise<TaskInstance[]>;
  demonstrate(request: DemoRequest): Promise<DemoChunk>;
  /** Grain `episode`: the whole attempt. A masked attempt is a value; only an engine outage or our own faults throw. */
  runEpisode(spec: EpisodeSpec): Promise<EpisodeResult>;
  /** Several of them side by side, in one call; results in their order. `stragglerMs`: see RollOutOptions. */
  runEpisodes(specs: EpisodeSpec[], stragglerMs: number): Promise<EpisodeResult[]>;
  /** Grain `step`: the ports of agent/ports.ts, one activity each, and the record at the end. */
  openEpisode: EpisodePorts['open'];
  stepEpisode: EpisodePorts['step'];
  judgeStep: EpisodePorts['judgeStep'];
  judgeOutcome: EpisodePorts['judgeOutcome'];
  closeEpisode: EpisodePorts['close'];
  recordEpisode(episode: Episode): Promise<EpisodeResult>;
  /** Results in the order of the ids; what fails on a device, at a judge or in the store is a value. */
  replayEpisodes(request: ReplayRequest): Promise<ReplayResult[]>;
}

/** What the workflow needs to know of a checkpoint. */
export interface PolicyRef {
  stage: 'sft' | 'warmup' | 'train';
  /** SFT chunks done, warm-ups done or updates done, by stage. */
  index: number;
  /** Sampler checkpoint, `tinker://...`. */
  sampler: string;
}

export interface SftRequest {
  run: string;
  /** 0-based; chunk i commits `sft` checkpoint i + 1. */
  chunk: number;
  demos: DemoChunk[];
}

export interface BatchRequest {
  run: string;
  phase: 'warmup' | 'train';
  /** 1-based. */
  update: number;
  results: EpisodeResult[];
  /** How long the attempts took; for `time/rollout` of the metrics. */
  rolloutSeconds?: number;
}

/** One row of metrics.jsonl: keys are paths, values finite numbers or null. */
export type Metrics = Record<string, number | null>;

export type UpdateOutcome =
  { kind: 'done'; policy: PolicyRef; metrics: Metrics } | { kind: 'skipped'; reason: string; metrics: Metrics };

export interface EvaluationCell {
  suite: string;
  split: Split;
  n: number;
  success: number;
  masked: Record<string, number>;
  /** Outcomes by name, masked ones left out. */
  outcomes: Record<string, number>;
  /** By instance, in index order: 1 success, 0 not, null masked. For paired tests. */
  wins: (0 | 1 | null)[];
}
/** The attempts of one split, in instance order, with the ids of their tasks. */
export interface EvaluationBatch {
  split: Split;
  tasks: string[];
  results: EpisodeResult[];
}
export interface EvaluationRequest {
  run: string;
  policy: PolicyRef;
  suite: string;
  cells: EvaluationBatch[];
  /** The schedule or the person that asked for it; absent: the run. */
  schedule?: string;
}
/** Asks for the newest policy, unless this schedule has evaluated it on this split already. */
export interface DueRequest {
  run: string;
  suite: string;
  split: Split;
  schedule: string;
}

/** What a run's folder already holds: a run whose workflow was lost goes on from there. */
export interface Progress {
  sftChunks: number;
  warmups: number;
  updates: number;
  policy: PolicyRef | null;
  evaluations: { update: number; cells: Omit<EvaluationCell, 'wins'>[] }[];
}

/** On `<prefix>-learn`. */
export interface LearnActivities {
  /** Probes the engine, writes header.json; refuses an engine that answers wrongly. Says what the run's folder holds. */
  openRun(run: string): Promise<Progress>;
  sftChunk(request: SftRequest): Promise<{ policy: PolicyRef; metrics: Metrics }>;
  learn(request: BatchRequest): Promise<UpdateOutcome>;
  recordEvaluation(request: EvaluationRequest): Promise<EvaluationCell[]>;
  evaluationDue(request: DueRequest): Promise<PolicyRef | null>;
  /** `ends`: why the run ends before its config says, for its header. */
  report(run: string, ends?: string | null): Promise<{ path: string; digest: string }>;
}

/** A run of an experiment that is to begin, or to go on. */
export interface BeginRequest {
  run: string;
  config: RunConfig;
  /** The run whose imitated policy it begins with; null: it imitates by itself. */
  from: string | null;
  /** What its header says of where it is made. */
  header: Record<string, unknown>;
}

/** On `<prefix>-learn`: what an experiment needs of the home that its runs lie in. */
export interface ExperimentActivities {
  /** Makes the run's folder unless it is there; says whether the run came to its end before. */
  beginRun(request: BeginRequest): Promise<{ finished: boolean }>;
  /** Nobody learns in this run any more: its model leaves the engine. */
  endRun(run: string): Promise<void>;
}
