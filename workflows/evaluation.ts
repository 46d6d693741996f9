import type { EvaluationCell } from '../activities/api.ts';
import { temporalPorts } from './attempt.ts';
import { collectEvaluation } from './batch.ts';
import { fatal } from './fatal.ts';
import { learnActivities } from './proxies.ts';
import type { EvaluationInput } from './types.ts';

/** Greedy attempts of one policy on fixed instances of a suite, and their cells in results.json. */
export async function evaluation(input: EvaluationInput): Promise<EvaluationCell[]> {
  return fatal(async () => {
    const cells = await collectEvaluation(temporalPorts(input.site, input.config), input);
    const { run, policy, suite } = input;
    return learnActivities(input.site).recordEvaluation({ run, policy, suite, cells });
  });
}
