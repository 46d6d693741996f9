import { CancellationScope, ParentClosePolicy, executeChild, sleep } from '@temporalio/workflow';
import { masks } from '../domain/errors.ts';
import type { EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import { episodeId } from '../domain/episode.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { BatchPorts } from './batch.ts';
import { fromFailure } from './failures.ts';
import { episodeWorkflowId } from './ids.ts';
import { episodeActivities, hostActivities } from './proxies.ts';
import type { episode } from './episode.ts';
import type { Site } from './types.ts';

/** An engine that is away is waited for about this long before its attempts count as masked. */
const ENGINE_OUTAGE_TRIES = 80;
const ENGINE_OUTAGE_WAIT = '15s';

/** The ports of a batch on Temporal: draws go round the hosts, and a retry goes to the next host. */
export function temporalPorts(site: Site, config: RunConfig): BatchPorts {
  const hostOf = (spec: EpisodeSpec): string => site.hosts[(spec.key.draw + spec.infraTry) % site.hosts.length]!;
  return {
    tasks: (request) => hostActivities(site, site.hosts[0]!).tasks(request),
    attempt: (spec, late) => {
      // Cancelling ends the activity or the child, which gives the device back.
      const scope = new CancellationScope();
      void late.then(() => scope.cancel());
      return scope.run(() => attemptOn(site, config, hostOf(spec), spec));
    },
    timer: (ms, ring) => {
      const scope = new CancellationScope();
      scope.run(() => sleep(ms)).then(ring, () => {});
      return () => scope.cancel();
    },
  };
}

async function attemptOn(site: Site, config: RunConfig, host: string, spec: EpisodeSpec): Promise<EpisodeResult> {
  for (let outage = 0; ; outage++) {
    try {
      if (config.rollout.grain === 'episode') return await episodeActivities(site, host, config).runEpisode(spec);
      const result = await executeChild<typeof episode>('episode', {
        workflowId: episodeWorkflowId(spec.key, spec.infraTry),
        args: [{ spec, config, site, host }],
        // A batch may end before one that was given up has closed its device.
        parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
        workflowRunTimeout: 2 * config.rollout.deadlineMs + 600_000,
      });
      // A whole attempt waits for an engine by its activity's retries; one of many steps starts again here.
      const away = result.kind === 'masked' && result.failure === 'engine_unavailable';
      if (!away || outage >= ENGINE_OUTAGE_TRIES) return result;
      await sleep(ENGINE_OUTAGE_WAIT);
    } catch (error) {
      return maskedOrThrow(spec, error);
    }
  }
}

/** A failure of an attempt as a value; a failure of ours goes on and stops the run (design.md, 5). */
function maskedOrThrow(spec: EpisodeSpec, error: unknown): EpisodeResult {
  const known = fromFailure(error);
  if (!masks(known.code)) throw error;
  return { kind: 'masked', id: episodeId(spec.key), failure: known.code, message: known.message, step: null };
}
