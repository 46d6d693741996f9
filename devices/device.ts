import type {
  ActionReceipt,
  BlobRef,
  DeviceAction,
  EpisodeKey,
  Intent,
  Screen,
  TaskInstance,
  Truth,
} from '../domain/index.ts';

/** What a backend can do; the pipeline asks before it relies on it. */
export interface DeviceCapabilities {
  touch: boolean;
  unicodeText: boolean;
  /** `machine`: whole state rolls back; `application`: page or app state only. */
  snapshot: 'machine' | 'application';
  outline: boolean;
  /** The suite can measure ground truth on the device. */
  groundTruth: boolean;
}

/** Proof that a rollback counts (design.md, 5): a frame newer than the request whose hash equals the snapshot's. */
export interface RollbackProof {
  frame: number;
  hash: string;
  /** The goal in the device's own words, when only the device knows it (a web page that draws its task). */
  instruction?: string;
}

/** One expert decision: what to do, and the planner's few-token words for why and what then remains. */
export interface ExpertMove {
  intent: Intent;
  reasoning: string;
  remaining: string;
}

/** How a device hands its pixels over: PNG bytes in, reference out. Null sink: pixels are not kept. */
export type PixelSink = ((png: Uint8Array) => Promise<BlobRef>) | null;

/** What a device needs to know of the attempt it serves. */
export interface OpenOptions {
  task: TaskInstance;
  /** Identifies the attempt for seeded faults; null outside of runs. */
  key: EpisodeKey | null;
  seed: number;
  /** Fault name -> probability per attempt (crash, hang, frozen_frame, stale_snapshot, dropped_text, slow_answer). */
  faults: Record<string, number>;
  infraTry: number;
  pixels: PixelSink;
  /** False: nobody looks at the screen (demonstrations), so frames are neither drawn nor hashed; their hash is empty. */
  frames?: boolean;
}

/**
 * One device in use by one attempt. Every call has a deadline inside and ends in a value or in a TapwrightError with an
 * infrastructure class. `perform` is never retried.
 */
export interface DeviceHandle {
  rollback(): Promise<RollbackProof>;
  observe(): Promise<Screen>;
  perform(action: DeviceAction): Promise<ActionReceipt>;
  /** Ground truth of the present state; null when the backend has none. */
  truth(): Promise<Truth | null>;
  /** The expert's move for the present state (demonstrations, baselines); null when it has none. */
  expert(): Promise<ExpertMove | null>;
  /** Tells the state machine behind the ground truth that the user answered `fact` (sim: a needed fact is now known). */
  noteAnswer(fact: string | null): void;
  close(): Promise<void>;
}

export interface DeviceBackend {
  readonly name: string;
  readonly capabilities: DeviceCapabilities;
  open(options: OpenOptions): Promise<DeviceHandle>;
  health(): Promise<{ ok: boolean; detail: string }>;
  close(): Promise<void>;
}
