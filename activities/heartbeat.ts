import { Context } from '@temporalio/activity';
import { toApplicationFailure } from '../workflows/failures.ts';

/** The activity this call runs in; null outside of Temporal (bench/bare.ts, tests). */
function context(): Context | null {
  try {
    return Context.current();
  } catch {
    return null;
  }
}

/** Tells the server that the activity lives. A hint; cheap to call often. */
export function beat(): void {
  context()?.heartbeat();
}

/** Aborts when the activity is cancelled or its worker stops; null outside of Temporal. */
export function cancellation(): AbortSignal | null {
  return context()?.cancellationSignal ?? null;
}

const BEAT_MS = 5_000;

/**
 * An activity's body with a heartbeat every few seconds and errors in Temporal's form. Whoever is cancelled in mid-work
 * hears of it by `cancellation()`.
 */
export function asActivity<A extends unknown[], R>(body: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
  return async (...args) => {
    const here = context();
    const timer = here === null ? null : setInterval(() => here.heartbeat(), BEAT_MS);
    try {
      return await body(...args);
    } catch (error) {
      // Plain callers get the error as it is.
      throw here === null || here.cancellationSignal.aborted ? error : toApplicationFailure(error);
    } finally {
      if (timer !== null) clearInterval(timer);
    }
  };
}
