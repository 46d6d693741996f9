import type { EvaluationCell, PolicyRef } from '../activities/api.ts';
import { temporalPorts } from './attempt.ts';
import { collectEvaluation } from './batch.ts';
import { fatal } from './fatal.ts';
import { signalledGate } from './pause.ts';
import { learnActivities } from './proxies.ts';
import type { ScheduledEvaluationInput } from './types.ts';

/** A checkpoint may be thinned out while it is evaluated: then the newest one is taken up, so often at most. */
const CHECKPOINTS = 3;

/** What a schedule starts: its attempts on the newest checkpoint of a run. Null when it has evaluated that one before. */
export async function scheduledEvaluation(input: ScheduledEvaluationInput): Promise<EvaluationCell[] | null> {
  const { run, config, site, suite, split, n, schedule } = input;
  const learner = learnActivities(site);
  const ports = temporalPorts(site, config, signalledGate(), `${run}/scheduled/${suite}-${split}`);
  const due = (): Promise<PolicyRef | null> => learner.evaluationDue({ run, suite, split, schedule });
  return fatal(async () => {
    let policy = await due();
    for (let tried = 1; policy !== null; tried++) {
      try {
        const cells = await collectEvaluation(ports, { run, config, site, policy, suite, instances: { [split]: n } });
        return await learner.recordEvaluation({ run, policy, suite, cells, schedule });
      } catch (error) {
        const newest = await due();
        if (newest === null || newest.sampler === policy.sampler || tried >= CHECKPOINTS) throw error;
        policy = newest;
      }
    }
    return null;
  });
}
