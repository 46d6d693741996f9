import { CancellationScope } from '@temporalio/workflow';
import type { RunConfig } from '../configs/schema.ts';
import type { EpisodePorts } from '../agent/ports.ts';
import type { EpisodeResult, EpisodeSpec } from '../domain/index.ts';
import { fatal } from './fatal.ts';
import { fromFailure } from './failures.ts';
import { judgeActivities, stepActivities } from './proxies.ts';
import type { Site } from './types.ts';

export interface EpisodeInput {
  spec: EpisodeSpec;
  config: RunConfig;
  site: Site;
  host: string;
}

/** Grain `step`: the episode loop of agent/loop.ts with each port an activity on the device host (design.md, 3). */
export async function episode(input: EpisodeInput): Promise<EpisodeResult> {
  return fatal(async () => {
    throw new Error('soon');
  });
}
