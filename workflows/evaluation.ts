import type { EvaluationCell } from '../activities/api.ts';
import { temporalPorts } from './attempt.ts';
import { collectEvaluation, judgeCalls } from './batch.ts';
import { fatal } from './fatal.ts';
import { signalledGate } from './pause.ts';
import { learnActivities } from './proxies.ts';
import type { EvaluationInput } from './types.ts';

/** Greedy attempts of one policy on fixed instances of a suite, and their cells in results.json. */
export async function evaluation(input: EvaluationInput): Promise<(EvaluationCell & { judgeCalls: number })[]> {
  const gate = signalledGate();
  return fatal(async () => {
    const cells = await collectEvaluation(temporalPorts(input.site, input.config, gate), input);
    const { run, policy, suite, label } = input;
    const request = { run, policy, suite, cells, ...(label === undefined ? {} : { schedule: label }) };
    const rows = await learnActivities(input.site).recordEvaluation(request);
    return rows.map((row, i) => ({ ...row, judgeCalls: judgeCalls(cells[i]!.results) }));
  });
}
