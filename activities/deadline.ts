import { TapwrightError } from '../domain/errors.ts';

/** The work, or the signal's reason as soon as it aborts. What the work comes to afterwards is of no interest. */
export async function cutShort<T>(signal: AbortSignal | null, work: Promise<T>): Promise<T> {
  if (signal === null) return work;
  work.catch(() => undefined);
  signal.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Runs `work` with a signal that aborts with a `deadline` failure after so many milliseconds, or with `parent`'s reason.
 * The work itself must end on it: only then is what it holds given back.
 */
export async function untilDeadline<T>(
  deadlineMs: number,
  parent: AbortSignal | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(parent?.reason);
  if (parent?.aborted === true) onAbort();
  parent?.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => {
    controller.abort(new TapwrightError('deadline', `The attempt was not done after ${deadlineMs} ms.`));
  }, deadlineMs);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    parent?.removeEventListener('abort', onAbort);
  }
}

/** Aborts with `parent`, with its reason, or once `late` resolves. */
export function either(parent: AbortSignal | null, late: Promise<void>): AbortSignal {
  const controller = new AbortController();
  void late.then(() => controller.abort(new TapwrightError('deadline', 'Nobody waits for this attempt any more.')));
  return parent === null ? controller.signal : AbortSignal.any([parent, controller.signal]);
}

/** Calls `ring` once after so many milliseconds, unless the function it returns is called before. */
export function ringAfter(ms: number, ring: () => void): () => void {
  const timer = setTimeout(ring, ms);
  return () => clearTimeout(timer);
}
