import { ActivityFailure, ApplicationFailure, ChildWorkflowFailure, TimeoutFailure } from '@temporalio/common';
import type { FailureClass } from '../domain/index.ts';
import {
  INFRASTRUCTURE_CLASSES,
  JUDGE_CLASSES,
  OWN_CLASSES,
  TapwrightError,
  asTapwrightError,
} from '../domain/errors.ts';

/** The one way an error of ours crosses Temporal: type = failure class, non-retryable unless it says so (design.md, 8). */
export function toApplicationFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const known = asTapwrightError(error);
  return ApplicationFailure.create({
    type: known.code,
    message: known.message,
    nonRetryable: !known.retryable,
    ...(error instanceof Error ? { cause: error } : {}),
  });
}

const CLASSES: ReadonlySet<string> = new Set([...INFRASTRUCTURE_CLASSES, ...JUDGE_CLASSES, ...OWN_CLASSES]);

/** The way back: what a failed activity or child workflow says, as a TapwrightError. Timeouts have classes of their own. */
export function fromFailure(error: unknown): TapwrightError {
  if (error instanceof TapwrightError) return error;
  if (error instanceof ActivityFailure || error instanceof ChildWorkflowFailure) {
    return fromFailure(error.cause ?? new Error(error.message));
  }
  if (error instanceof ApplicationFailure) {
    const type = error.type ?? '';
    const code = (CLASSES.has(type) ? type : 'internal') as FailureClass;
    return new TapwrightError(code, error.message, { retryable: !error.nonRetryable, cause: error });
  }
  if (error instanceof TimeoutFailure) {
    const lost = error.timeoutType === 'HEARTBEAT';
    return new TapwrightError(
      lost ? 'worker_lost' : 'deadline',
      lost ? 'the worker stopped answering in mid-work' : `no answer within the time limit (${error.timeoutType})`,
      { cause: error },
    );
  }
  return asTapwrightError(error);
}
