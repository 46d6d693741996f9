import type { Planner } from '../agent/planner.ts';
import { recordedPlanner, replayJudge, replayLive, replayRecorded } from '../agent/replay.ts';
import type { RunConfig } from '../configs/schema.ts';
import { asTapwrightError, masks } from '../domain/errors.ts';
import type { FailureClass } from '../domain/errors.ts';
import type { Episode, EpisodeSpec, ReplayResult } from '../domain/index.ts';
import type { Judge } from '../judges/judge.ts';
import type { RunFolder } from '../store/index.ts';
import { EVALUATION_SEED } from '../workflows/ids.ts';
import { episodeSpec } from '../workflows/spec.ts';
import type { ReplayRequest } from './api.ts';
import { untilDeadline } from './deadline.ts';
import type { DirectPorts } from './episode-ports.ts';

export interface ReplayOptions {
  folder(run: string): Promise<RunFolder>;
  judge: Judge;
  /** The planner over a run's engine. */
  planner(run: string): Promise<Planner>;
  /** The body with ports of this host's devices on which that planner decides. */
  withPorts<T>(run: string, suite: string, planner: Planner, body: (ports: DirectPorts) => Promise<T>): Promise<T>;
}

/** Failures that are one record's or one policy's own: others are replayed all the same. */
const OF_ONE: readonly FailureClass[] = ['not_found', 'corrupt_record'];

/** Does one recorded attempt over. Throws when the engine is away, which is tried again, and for what is ours. */
export function createReplay(
  options: ReplayOptions,
): (id: string, how: Omit<ReplayRequest, 'episodes'>, cancelled: AbortSignal | null) => Promise<ReplayResult> {
  return async (id, { run, mode, policy }, cancelled) => {
    try {
      const { config, episodes } = await options.folder(run);
      const recorded = await episodes.get(id);
      const spec = replaySpec(config, recorded, policy);
      return await untilDeadline(spec.deadlineMs, cancelled, async (signal) => {
        if (mode === 'judge') return replayJudge(recorded, spec, options.judge);
        const planner = mode === 'live' ? await options.planner(run) : recordedPlanner(recorded);
        return options.withPorts(run, recorded.task.suite, planner, (direct) => {
          const ports = direct.until(signal);
          if (mode === 'recorded') return replayRecorded(recorded, spec, ports);
          return replayLive(recorded, spec, ports, { bits: spec.policy === recorded.policy });
        });
      });
    } catch (error) {
      if (cancelled?.aborted === true) throw error;
      const { code, message } = asTapwrightError(error);
      const comesBack = code === 'engine_unavailable';
      if (comesBack || !(masks(code) || OF_ONE.includes(code))) throw error;
      return { kind: 'failed', id, failure: code, message };
    }
  };
}

/**
 * What the attempt was made from. Its faults are left out: a fault either ends an attempt, which then has no record, or
 * changes nothing of it (`npm run check:faults` holds the backends to that). Pixels are not kept a second time.
 */
function replaySpec(config: RunConfig, { key, task, policy: own }: Episode, policy: string | null): EpisodeSpec {
  const seed = key.phase === 'eval' ? EVALUATION_SEED : config.seed;
  return { ...episodeSpec(config, key, task, policy ?? own, seed), faults: {}, keepScreens: false };
}
