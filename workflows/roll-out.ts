import { episodeId } from '../domain/episode.ts';
import type { EpisodeResult, EpisodeSpec } from '../domain/index.ts';

/** Where attempts are made: Temporal in workflows/, plain calls in bench/bare.ts, a device host for a parcel of its own. */
export interface AttemptPorts {
  /**
   * One attempt. Masked attempts are values; it throws only for a failure that must stop the run. Once `late` resolves
   * nobody waits for its result any more, and it is to end.
   */
  attempt(spec: EpisodeSpec, late: Promise<void>): Promise<EpisodeResult>;
  /**
   * Several attempts in one call to one device host, results in their order; absent: each goes by itself. `turn` counts the
   * parcels of a batch, so that they go round the hosts.
   */
  parcel?(specs: readonly EpisodeSpec[], turn: number, late: Promise<void>): Promise<EpisodeResult[]>;
  /** Calls `ring` once after so many milliseconds, unless the function it returns is called before. */
  timer(ms: number, ring: () => void): () => void;
}

export interface RollOutOptions {
  /** Attempts at once. */
  limit: number;
  /** How often a masked attempt is made again. */
  infraRetries: number;
  /** Once half of the attempts are in: the rest is given up when so many milliseconds bring no other one. 0: never. */
  stragglerMs: number;
  /** Attempts sent to a host in one call. Default 1. */
  parcel?: number;
}

/**
 * Runs attempts in the order given; each masked one again up to `infraRetries` times. The result of spec i stands at place
 * i, whatever finished first. Stragglers are masked as `deadline`: one stuck attempt never holds a batch (design.md, 5).
 * The first fatal failure ends it, after all have settled.
 */
export async function rollOut(
  ports: AttemptPorts,
  specs: readonly EpisodeSpec[],
  options: RollOutOptions,
): Promise<EpisodeResult[]> {
  const results = new Array<EpisodeResult>(specs.length);
  const fatal: unknown[] = [];
  const size = ports.parcel ? (options.parcel ?? 1) : 1;
  // A parcel gives up its own stragglers first, so that one of them does not cost the others.
  const quietMs = options.stragglerMs * (size > 1 ? 2 : 1);
  const stragglers = watchStragglers(ports, specs.length, quietMs);
  const send = (some: readonly EpisodeSpec[], turn: number): Promise<EpisodeResult[]> => {
    const givenUp = stragglers.late.then(() => some.map((spec) => straggler(spec, quietMs)));
    // Nothing is begun that nobody will wait for.
    if (stragglers.isLate()) return givenUp;
    const sent =
      some.length > 1 && ports.parcel
        ? ports.parcel(some, turn, stragglers.late)
        : ports.attempt(some[0]!, stragglers.late).then((result) => [result]);
    return Promise.race([sent, givenUp]);
  };
  const settle = async (spec: EpisodeSpec, first: EpisodeResult): Promise<EpisodeResult> => {
    let result = first;
    for (let infraTry = 1; result.kind === 'masked' && infraTry <= options.infraRetries; infraTry++) {
      if (stragglers.isLate()) break;
      [result] = (await send([{ ...spec, infraTry }], 0)) as [EpisodeResult];
    }
    return result;
  };
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < specs.length && fatal.length === 0) {
      const from = next;
      next += size;
      const some = specs.slice(from, next);
      try {
        const sent = await send(some, from / size);
        const settled = await Promise.all(some.map((spec, i) => settle(spec, sent[i]!)));
        settled.forEach((result, i) => (results[from + i] = result));
      } catch (error) {
        fatal.push(error);
      }
      stragglers.finished(some.length);
    }
  };
  const lanes = Math.max(1, Math.floor(Math.min(options.limit, specs.length) / size));
  await Promise.all(Array.from({ length: lanes }, lane));
  stragglers.end();
  if (fatal.length > 0) throw fatal[0];
  return results;
}

function straggler(spec: EpisodeSpec, ms: number): EpisodeResult {
  const message = `Given up: no attempt of the batch had finished for ${ms} ms (rollout.stragglerMs).`;
  return { kind: 'masked', id: episodeId(spec.key), failure: 'deadline', message, step: null };
}

/**
 * Notices that a batch stands still. The clock starts when half of it is in, so that an outage of everything (an engine,
 * a host) is waited for as long as its retries say; one timer a quiet period, not one an attempt.
 */
function watchStragglers(ports: Pick<AttemptPorts, 'timer'>, total: number, ms: number) {
  let markLate = (): void => {};
  const late = new Promise<void>((resolve) => {
    markLate = resolve;
  });
  let isLate = false;
  let done = 0;
  let cancel: (() => void) | null = null;
  const arm = (): void => {
    const before = done;
    cancel = ports.timer(ms, () => {
      if (done > before) return arm();
      isLate = true;
      markLate();
    });
  };
  return {
    late,
    isLate: () => isLate,
    finished: (attempts: number) => {
      done += attempts;
      if (ms > 0 && cancel === null && 2 * done >= total && done < total) arm();
    },
    end: () => cancel?.(),
  };
}
