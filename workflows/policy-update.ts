import type { UpdateOutcome } from '../activities/api.ts';
import { temporalPorts } from './attempt.ts';
import { collectBatch, judgeCalls } from './batch.ts';
import { workflowTime } from './clock.ts';
import { fatal } from './fatal.ts';
import { signalledGate } from './pause.ts';
import { learnActivities } from './proxies.ts';
import type { UpdateInput } from './types.ts';

/**
 * One batch of attempts and what is learned from it; also a critic warm-up, which differs in the learner only. Its own
 * workflow, so that the history of one batch ends with it.
 */
export async function policyUpdate(input: UpdateInput): Promise<UpdateOutcome & { judgeCalls: number }> {
  const gate = signalledGate();
  return fatal(async () => {
    const { run, config, site, phase, update, round, policy } = input;
    const ports = temporalPorts(site, config, gate);
    const began = workflowTime();
    const results = await collectBatch(ports, config, { run, phase, update, round, policy: policy.sampler });
    const rolloutSeconds = (workflowTime() - began) / 1000;
    const outcome = await learnActivities(site).learn({ run, phase, update, results, rolloutSeconds });
    return { ...outcome, judgeCalls: judgeCalls(results) };
  });
}
