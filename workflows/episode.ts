import { CancellationScope, isCancellation } from '@temporalio/workflow';
import { runEpisode } from '../agent/loop.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { EpisodePorts } from '../agent/ports.ts';
import type { Episode, EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import { episodeId } from '../domain/episode.ts';
import { TapwrightError, masks } from '../domain/errors.ts';
import { fatal } from './fatal.ts';
import { fromFailure } from './failures.ts';
import { signalledGate, whenOpen } from './pause.ts';
import { judgeActivities, stepActivities } from './proxies.ts';
import type { Site } from './types.ts';

export interface EpisodeInput {
  spec: EpisodeSpec;
  config: RunConfig;
  site: Site;
  host: string;
}

/** The ports of agent/ports.ts as activities; their failures as the loop knows them. */
function activityPorts(input: EpisodeInput): EpisodePorts {
  const device = stepActivities(input.site, input.host, input.config);
  const judge = judgeActivities(input.site, input.host, input.config);
  const known = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (isCancellation(error)) throw error;
      throw fromFailure(error);
    }
  };
  return {
    open: (spec) => known(device.openEpisode(spec)),
    step: (request) => known(device.stepEpisode(request)),
    judgeStep: (spec, evidence, memory) => known(judge.judgeStep(spec, evidence, memory)),
    judgeOutcome: (spec, evidence) => known(judge.judgeOutcome(spec, evidence)),
    // The device comes back whatever happens to the attempt.
    close: (spec, lease) => CancellationScope.nonCancellable(() => known(judge.closeEpisode(spec, lease))),
  };
}

/** Grain `step`: the episode loop of agent/loop.ts with each port an activity on the device host (design.md, 3). */
export async function episode(input: EpisodeInput): Promise<EpisodeResult> {
  const gate = signalledGate();
  return fatal(async () => {
    let step: number | null = null;
    const ports = activityPorts(input);
    const counted: EpisodePorts = {
      ...ports,
      open: (spec) => whenOpen(gate, () => ports.open(spec)),
      step: (request) => whenOpen(gate, () => ((step = request.t), ports.step(request))),
    };
    try {
      // The deadline is the attempt's, not one of each step: it cancels whatever step runs.
      const attempt = (): Promise<Episode> => runEpisode(input.spec, counted);
      const record = await CancellationScope.withTimeout(input.spec.deadlineMs, attempt);
      return await judgeActivities(input.site, input.host, input.config).recordEpisode(record);
    } catch (error) {
      const whole = CancellationScope.current().consideredCancelled;
      if (isCancellation(error) && whole) throw error;
      const failure = isCancellation(error) ? late(input.spec.deadlineMs) : fromFailure(error);
      if (!masks(failure.code)) throw failure;
      return { kind: 'masked', id: episodeId(input.spec.key), failure: failure.code, message: failure.message, step };
    }
  });
}

const late = (ms: number): TapwrightError => new TapwrightError('deadline', `The attempt was not done after ${ms} ms.`);
