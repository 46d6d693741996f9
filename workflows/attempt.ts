import { CancellationScope, ParentClosePolicy, sleep } from '@temporalio/workflow';
import { masks } from '../domain/errors.ts';
import type { EpisodeResult, EpisodeSpec, FailureClass } from '../domain/index.ts';
import { episodeId } from '../domain/episode.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { BatchPorts } from './batch.ts';
import { fromFailure } from './failures.ts';
import { episodeWorkflowId } from './ids.ts';
import { executePausableChild, whenOpen } from './pause.ts';
import type { Gate } from './pause.ts';
import { episodeActivities, hostActivities } from './proxies.ts';
import type { EpisodeInput, episode } from './episode.ts';
import type { Site } from './types.ts';

/** An engine that is away is waited for about this long before its attempts count as masked. */
const ENGINE_OUTAGE_TRIES = 80;
const ENGINE_OUTAGE_WAIT = '15s';

/**
 * The ports of a batch on Temporal: draws go round the hosts, a retry goes to the next host, none starts while paused.
 * `under`: where the ids of its episode workflows begin, when that is not the run.
 */
export function temporalPorts(site: Site, config: RunConfig, gate: Gate, under?: string): BatchPorts {
  const hostOf = (spec: EpisodeSpec): string => site.hosts[(spec.key.draw + spec.infraTry) % site.hosts.length]!;
  const whole = (spec: EpisodeSpec): Promise<EpisodeResult> =>
    whenOpen(gate, () => episodeActivities(site, hostOf(spec), config).runEpisode(spec));
  /** An attempt of many steps may be held up in mid-way: its lease runs out, and it starts again as if for the first time. */
  const stepwise = async (spec: EpisodeSpec): Promise<EpisodeResult> => {
    for (let outage = 0; ;) {
      const { pauses } = gate;
      const result = await whenOpen(gate, () => episodeChild({ spec, config, site, host: hostOf(spec) }, gate, under));
      if (result.kind === 'masked' && HELD_UP.includes(result.failure) && gate.pauses !== pauses) continue;
      // A whole attempt waits for an engine by its activity's retries; one of many steps starts again here.
      const away = result.kind === 'masked' && result.failure === 'engine_unavailable';
      if (!away || outage++ >= ENGINE_OUTAGE_TRIES) return result;
      await sleep(ENGINE_OUTAGE_WAIT);
    }
  };
  const parcel: BatchPorts['parcel'] = (specs, turn, late) =>
    until(late, async () => {
      const host = episodeActivities(site, site.hosts[turn % site.hosts.length]!, config);
      try {
        return await whenOpen(gate, () => host.runEpisodes([...specs], config.rollout.stragglerMs));
      } catch (error) {
        return specs.map((spec) => maskedOrThrow(spec, error));
      }
    });
  return {
    tasks: (request) => hostActivities(site, site.hosts[0]!).tasks(request),
    attempt: (spec, late) =>
      until(late, async () => {
        try {
          return await (config.rollout.grain === 'episode' ? whole(spec) : stepwise(spec));
        } catch (error) {
          return maskedOrThrow(spec, error);
        }
      }),
    ...(config.rollout.grain === 'episode' ? { parcel } : {}),
    timer: (ms, ring) => {
      const scope = new CancellationScope();
      // Time that a pause took says nothing of an attempt: it is waited for anew.
      const quiet = async (): Promise<void> => {
        for (;;) {
          const { pauses } = gate;
          await whenOpen(gate, () => sleep(ms));
          if (!gate.paused && gate.pauses === pauses) return;
        }
      };
      scope.run(quiet).then(ring, () => {});
      return () => scope.cancel();
    },
  };
}

/** Cancelling ends the activity or the child, which gives the device back. */
function until<T>(late: Promise<void>, work: () => Promise<T>): Promise<T> {
  const scope = new CancellationScope();
  void late.then(() => scope.cancel());
  return scope.run(work);
}

/** What becomes of an attempt that a pause holds up for longer than its lease or its time limit. */
const HELD_UP: readonly FailureClass[] = ['lease_lost', 'deadline'];

async function episodeChild(input: EpisodeInput, gate: Gate, under?: string): Promise<EpisodeResult> {
  const { spec, config } = input;
  try {
    return await executePausableChild<typeof episode>(gate, 'episode', {
      workflowId: episodeWorkflowId(spec.key, spec.infraTry, under),
      args: [input],
      // A batch may end before one that was given up has closed its device.
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      workflowRunTimeout: 2 * config.rollout.deadlineMs + 600_000,
    });
  } catch (error) {
    return maskedOrThrow(spec, error);
  }
}

/** A failure of an attempt as a value; a failure of ours goes on and stops the run (design.md, 5). */
function maskedOrThrow(spec: EpisodeSpec, error: unknown): EpisodeResult {
  const known = fromFailure(error);
  if (!masks(known.code)) throw error;
  return { kind: 'masked', id: episodeId(spec.key), failure: known.code, message: known.message, step: null };
}
