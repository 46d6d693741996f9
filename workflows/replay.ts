import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  isCancellation,
  setHandler,
} from '@temporalio/workflow';
import type { ReplayRequest } from '../activities/api.ts';
import type { ReplayResult } from '../domain/index.ts';
import { masks } from '../domain/errors.ts';
import { fromFailure } from './failures.ts';
import { fatal } from './fatal.ts';
import { replayActivities } from './proxies.ts';
import type { ReplayInput, ReplayTally } from './types.ts';
import { startTally } from './types.ts';

export const replayedQuery = defineQuery<ReplayTally>('replayed');

/** Replays before it continues as new: at most 6 events each, below the bound on a history (temporal.md, "Limits"). */
const WINDOW = 400;
/** Results that are told whole; beyond them they are only counted, so that what travels stays small. */
const MAX_TOLD = 200;

/** Recorded attempts of a run done over on the device hosts, and what differs. Learns nothing, records nothing. */
export async function replay(input: ReplayInput): Promise<ReplayTally> {
  const before = input.tally ?? startTally(input.episodes.length);
  let tally = before;
  setHandler(replayedQuery, () => tally);
  return fatal(async () => {
    const window = input.episodes.slice(0, WINDOW);
    const results = await inLanes(input, window, (result) => (tally = counted(tally, result)));
    // What is told comes in the order of the ids, whichever was done first.
    tally = results.reduce(counted, before);
    const rest = input.episodes.slice(WINDOW);
    if (rest.length === 0) return tally;
    await condition(allHandlersFinished);
    return continueAsNew<typeof replay>({ ...input, episodes: rest, tally });
  });
}

/** Parcels to the hosts in turn, no more at once than there are devices. Results stand in the order of the ids. */
async function inLanes(
  input: ReplayInput,
  ids: readonly string[],
  tell: (result: ReplayResult) => void,
): Promise<ReplayResult[]> {
  const { site, config } = input;
  const size = config.rollout.parcel;
  const atOnce = Math.min(config.workflow.maxConcurrentEpisodes, config.devices.count * site.hosts.length);
  const results = new Array<ReplayResult>(ids.length);
  const fatal: unknown[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < ids.length && fatal.length === 0) {
      const from = next;
      next += size;
      try {
        const some = ids.slice(from, next);
        const sent = await ask(input, some, from / size);
        await Promise.all(
          sent.map(async (first, i) => {
            const result = await settle(input, first, from / size);
            results[from + i] = result;
            tell(result);
          }),
        );
      } catch (error) {
        fatal.push(error);
      }
    }
  };
  const lanes = Math.max(1, Math.floor(Math.min(atOnce, ids.length) / size));
  await Promise.all(Array.from({ length: lanes }, lane));
  if (fatal.length > 0) throw fatal[0];
  return results;
}

async function ask(input: ReplayInput, episodes: string[], turn: number): Promise<ReplayResult[]> {
  const { run, mode, policy, site, config } = input;
  const host = site.hosts[turn % site.hosts.length]!;
  const request: ReplayRequest = { run, mode, policy, episodes };
  try {
    return await replayActivities(site, host, config).replayEpisodes(request);
  } catch (error) {
    // A host that died or an engine that stays away is a failure of these replays, not of all.
    const { code, message } = fromFailure(error);
    if (isCancellation(error) || !masks(code)) throw error;
    return episodes.map((id) => ({ kind: 'failed', id, failure: code, message }));
  }
}

/** A device or a judge that failed says nothing of the record: the replay is made again, on the next host. */
async function settle(input: ReplayInput, first: ReplayResult, turn: number): Promise<ReplayResult> {
  let result = first;
  for (let again = 1; again <= input.config.rollout.infraRetries; again++) {
    if (result.kind !== 'failed' || !masks(result.failure)) break;
    [result] = (await ask(input, [result.id], turn + again)) as [ReplayResult];
  }
  return result;
}

/** Plain data, made anew: a query may be looking at the old one. */
function counted(tally: ReplayTally, result: ReplayResult): ReplayTally {
  const next = { ...tally, done: tally.done + 1, [result.kind]: tally[result.kind] + 1 };
  const ended = result.kind === 'identical' ? result.outcome : result.kind === 'different' ? result.ended : null;
  if (result.kind !== 'failed' && ended !== null) {
    const pair = `${result.outcome} > ${ended}`;
    next.outcomes = { ...tally.outcomes, [pair]: (tally.outcomes[pair] ?? 0) + 1 };
  }
  if (result.kind === 'identical') return next;
  const why = result.kind === 'different' ? result.field : result.failure;
  next.why = { ...tally.why, [why]: (tally.why[why] ?? 0) + 1 };
  if (tally.told.length < MAX_TOLD) next.told = [...tally.told, result];
  return next;
}
