import type { RunConfig } from '../configs/schema.ts';
import { OUTCOMES } from '../domain/index.ts';
import type { EpisodeResult, Outcome } from '../domain/index.ts';
import type { EvaluationCell, Metrics } from './api.ts';

/** An attempt that did what was asked, also where that was to say that it cannot be done. */
export const succeeded = (outcome: Outcome): boolean => outcome === 'success' || outcome === 'blocked_complete';

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;

/** What a batch of attempts says by itself. Masked attempts are counted by class and left out of every mean. */
export function rolloutMetrics(results: readonly EpisodeResult[], rewards: RunConfig['rewards']): Metrics {
  const valid = results.filter((r) => r.kind === 'finished');
  const metrics: Metrics = {
    'rollout/attempts': results.length,
    'rollout/valid': valid.length,
    'rollout/masked': results.length - valid.length,
    'rollout/success': mean(valid.map((r) => (succeeded(r.outcome) ? 1 : 0))),
    'episode/steps_mean': mean(valid.map((r) => r.steps)),
    'episode/dense_mean': mean(
      valid.map(
        (r) =>
          r.dense.success * rewards.dense.success +
          r.dense.fail * rewards.dense.fail +
          r.dense.overcomplete * rewards.dense.overcomplete,
      ),
    ),
  };
  for (const outcome of OUTCOMES) {
    metrics[`outcome/${outcome}`] = mean(valid.map((r) => (r.outcome === outcome ? 1 : 0)));
  }
  for (const result of results) {
    if (result.kind === 'masked') metrics[`mask/${result.failure}`] = (metrics[`mask/${result.failure}`] ?? 0) + 1;
  }
  return metrics;
}

/** One cell of an evaluation: success with its denominator and its masked attempts by class (algorithms.md, 14). */
export function evaluationCell(
  suite: string,
  split: EvaluationCell['split'],
  results: readonly EpisodeResult[],
): EvaluationCell {
  const masked: Record<string, number> = {};
  const outcomes: Record<string, number> = {};
  const wins = results.map((result): 0 | 1 | null => {
    if (result.kind === 'masked') {
      masked[result.failure] = (masked[result.failure] ?? 0) + 1;
      return null;
    }
    outcomes[result.outcome] = (outcomes[result.outcome] ?? 0) + 1;
    return succeeded(result.outcome) ? 1 : 0;
  });
  return {
    suite,
    split,
    n: wins.filter((win) => win !== null).length,
    success: wins.filter((win) => win === 1).length,
    masked,
    outcomes,
    wins,
  };
}
