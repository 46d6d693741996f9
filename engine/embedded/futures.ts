import { randomUUID } from 'node:crypto';

export interface FutureReply {
  future_id: string;
  request_id: string;
  status: 'pending';
}

export type Settled = { ok: true; value: unknown } | { ok: false; error: unknown };

export interface Futures {
  /** Registers work under a new id; its result is kept for a while after it settled. */
  start(work: Promise<unknown>): FutureReply;
  /** The result, `pending` after `waitMs`, or `unknown` for an id never given or forgotten. */
  wait(id: string, waitMs: number): Promise<Settled | 'pending' | 'unknown'>;
}

/**
 * Results wait to be fetched; the oldest settled ones are forgotten beyond `keep`. One that was fetched is asked for again
 * only when its reply was lost, and so soon: of these `keepFetched` stay, because a batch's results are megabytes.
 */
export function createFutures(options: { keep: number; keepFetched: number }): Futures {
  const fetched = new Set<string>();
  const entries = new Map<string, { settled: Settled | null; done: Promise<Settled> }>();

  function trim(): void {
    if (entries.size <= options.keep) return;
    for (const [id, entry] of entries) {
      if (entry.settled === null) continue;
      entries.delete(id);
      if (entries.size <= options.keep) return;
    }
  }

  function give(id: string, settled: Settled): Settled {
    fetched.delete(id);
    fetched.add(id);
    if (fetched.size > options.keepFetched) {
      const [oldest] = fetched;
      fetched.delete(oldest!);
      entries.delete(oldest!);
    }
    return settled;
  }

  return {
    start: (work) => {
      const id = randomUUID();
      const entry: { settled: Settled | null; done: Promise<Settled> } = {
        settled: null,
        done: work.then(
          (value): Settled => (entry.settled = { ok: true, value }),
          (error: unknown): Settled => (entry.settled = { ok: false, error }),
        ),
      };
      entries.set(id, entry);
      trim();
      return { future_id: id, request_id: id, status: 'pending' };
    },
    wait: async (id, waitMs) => {
      const entry = entries.get(id);
      if (entry === undefined) return 'unknown';
      if (entry.settled !== null) return give(id, entry.settled);
      let timer: NodeJS.Timeout | undefined;
      const timeout = new Promise<'pending'>((resolve) => {
        timer = setTimeout(() => resolve('pending'), waitMs);
      });
      try {
        const result = await Promise.race([entry.done, timeout]);
        return result === 'pending' ? result : give(id, result);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
