/** Failure classes of devices.md, in one place. The class of a failure decides what the pipeline does with it (design.md 5). */
export const INFRASTRUCTURE_CLASSES = [
  'lease_lost',
  'rollback_failed',
  'rollback_unverified',
  'boot_timeout',
  'app_never_loaded',
  'app_crashed',
  'connection_dropped',
  'device_hung',
  'frame_stale',
  'frame_blank',
  'input_not_delivered',
  'text_mismatch',
  'clock_skew',
  'os_dialog',
  'engine_unavailable',
  'grounder_unavailable',
  'user_unavailable',
  'worker_lost',
  'deadline',
] as const;
export const JUDGE_CLASSES = ['judge_unavailable', 'judge_unparseable', 'judge_blocked'] as const;
/** Ours: the run stops with a clear error; nothing already earned is lost. */
export const OWN_CLASSES = [
  'invalid_config',
  'invalid_input',
  'corrupt_checkpoint',
  'corrupt_record',
  'determinism_broken',
  'engine_refused',
  'disk_full',
  'not_found',
  'internal',
] as const;

export type InfrastructureClass = (typeof INFRASTRUCTURE_CLASSES)[number];
export type JudgeClass = (typeof JUDGE_CLASSES)[number];
export type OwnClass = (typeof OWN_CLASSES)[number];
export type FailureClass = InfrastructureClass | JudgeClass | OwnClass;

/** True for a failure that masks its attempt (infrastructure or judge), false for one that must stop the run. */
export function masks(code: FailureClass): code is InfrastructureClass | JudgeClass {
  return (
    (INFRASTRUCTURE_CLASSES as readonly string[]).includes(code) || (JUDGE_CLASSES as readonly string[]).includes(code)
  );
}

/** The one error of the project: `code` is its failure class, `retryable` says whether the same call may be made again. */
export class TapwrightError extends Error {
  override readonly name = 'TapwrightError';
  readonly code: FailureClass;
  readonly retryable: boolean;
  constructor(code: FailureClass, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? masks(code);
  }
}

/** The error as a TapwrightError: itself, or `internal` around anything else. */
export function asTapwrightError(error: unknown, fallback: FailureClass = 'internal'): TapwrightError {
  if (error instanceof TapwrightError) return error;
  return new TapwrightError(fallback, error instanceof Error ? error.message : String(error), { cause: error });
}
