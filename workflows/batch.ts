import type { EpisodeResult, EpisodeSpec, Outcome, TaskInstance } from '../domain/index.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { EvaluationBatch, TaskRequest } from '../activities/api.ts';
import { teachesNothing } from '../rl/dapo.ts';
import { attemptScore } from '../rl/rewards.ts';
import { EVALUATION_SEED, evaluationDraw, taskIndex } from './ids.ts';
import { rollOut } from './roll-out.ts';
import type { AttemptPorts, RollOutOptions } from './roll-out.ts';
import { episodeSpec } from './spec.ts';
import { instancesAt } from './evaluation-plan.ts';
import type { EvaluationInput } from './types.ts';

/** Where batches get their work done. */
export interface BatchPorts extends AttemptPorts {
  tasks(request: TaskRequest): Promise<TaskInstance[]>;
}

export const isValid = (result: EpisodeResult): boolean => result.kind === 'finished';

/** Calls of judges behind these attempts: one a step, and one for a claim to have finished. */
export function judgeCalls(results: readonly EpisodeResult[]): number {
  let calls = 0;
  for (const result of results) {
    if (result.kind === 'masked') calls += result.step ?? 0;
    else calls += result.steps + (UNJUDGED.includes(result.outcome) ? 0 : 1);
  }
  return calls;
}
/** Outcomes that no terminal judge is asked about. */
const UNJUDGED: readonly Outcome[] = ['step_limit', 'unparseable'];

const rollOutOptions = ({ workflow, rollout }: RunConfig): RollOutOptions => ({
  limit: workflow.maxConcurrentEpisodes,
  infraRetries: rollout.infraRetries,
  // A run that was started before there were such keys has none.
  stragglerMs: (rollout as Partial<RunConfig['rollout']>).stragglerMs ?? 0,
  parcel: (rollout as Partial<RunConfig['rollout']>).parcel ?? 1,
});

/**
 * One training batch: `learn.tasks` draws x `learn.attempts`, topped up with fresh attempts of the same tasks while fewer
 * than `learn.minValidFraction` are valid, at most `learn.maxTopUps` times (algorithms.md, 2). For DAPO other tasks are
 * then drawn for groups whose scores are equal, at most `learn.dapo.maxRedraws` times (algorithms.md, 8). `round` counts
 * batches of this update that taught nothing: each round draws other tasks.
 */
export async function collectBatch(
  ports: BatchPorts,
  config: RunConfig,
  where: { run: string; phase: 'warmup' | 'train'; update: number; round: number; policy: string },
): Promise<EpisodeResult[]> {
  const { tasks: draws, attempts, minValidFraction, maxTopUps, estimator, dapo } = config.learn;
  const redraws = estimator === 'dapo' ? (dapo?.maxRedraws ?? DEFAULT_REDRAWS) : 0;
  const first = where.round * draws * (1 + redraws);
  const options = rollOutOptions(config);
  /** So many groups from draw `from` on, each with its results. */
  const collect = async (from: number, groups: number): Promise<EpisodeResult[][]> => {
    const indices = Array.from({ length: groups }, (_, i) => taskIndex(where.phase, where.update, from + i));
    const tasks = await ports.tasks({
      run: where.run,
      suite: config.suite,
      split: 'train',
      seed: config.seed,
      indices,
    });
    const specs = (low: number, high: number): EpisodeSpec[] => {
      const out: EpisodeSpec[] = [];
      tasks.forEach((task, i) => {
        for (let attempt = low; attempt < high; attempt++) {
          const key = { run: where.run, phase: where.phase, update: where.update, draw: from + i, attempt };
          out.push(episodeSpec(config, key, task, where.policy));
        }
      });
      return out;
    };
    const batches = [await rollOut(ports, specs(0, attempts), options)];
    for (let extra = 1; extra <= maxTopUps; extra++) {
      if (batches.flat().filter(isValid).length >= minValidFraction * groups * attempts) break;
      batches.push(await rollOut(ports, specs(attempts * extra, attempts * (extra + 1)), options));
    }
    // In the order in which they were made: all first attempts, then all top-ups.
    return batches.flatMap((batch) => tasks.map((_, i) => batch.slice(i * attempts, (i + 1) * attempts)));
  };
  let made = await collect(first, draws);
  const all = made.flat();
  for (let redraw = 1; redraw <= redraws; redraw++) {
    const lost = groupsOf(made).filter((group) => teachesNothing(...scored(group, config))).length;
    if (lost === 0) break;
    made = await collect(first + draws * redraw, lost);
    all.push(...made.flat());
  }
  return all;
}
const DEFAULT_REDRAWS = 2;

/** The attempts of each draw together, its top-ups among them. */
function groupsOf(parts: readonly EpisodeResult[][]): EpisodeResult[][] {
  const byDraw = new Map<string, EpisodeResult[]>();
  for (const part of parts) {
    const draw = part[0]!.id.slice(0, part[0]!.id.lastIndexOf('/'));
    byDraw.set(draw, [...(byDraw.get(draw) ?? []), ...part]);
  }
  return [...byDraw.values()];
}

function scored(group: readonly EpisodeResult[], { rewards }: RunConfig): [number[], Uint8Array] {
  const scores = group.map((result) => (result.kind === 'finished' ? attemptScore(result, rewards) : NaN));
  return [scores, Uint8Array.from(group, (result) => (result.kind === 'finished' ? 1 : 0))];
}

/** All attempts of an evaluation, cell by cell: one attempt an instance, the same instances for every run. */
export async function collectEvaluation(ports: BatchPorts, input: EvaluationInput): Promise<EvaluationBatch[]> {
  const cells: EvaluationBatch[] = [];
  const options = rollOutOptions(input.config);
  const update = input.policy.stage === 'train' ? input.policy.index : 0;
  // What somebody else asks for is evaluated as asked.
  const instances = input.label === undefined ? instancesAt(input.config, update, input.instances) : input.instances;
  for (const split of ['validation', 'heldout-params', 'heldout-skin', 'heldout-tasks', 'train'] as const) {
    const n = instances[split] ?? 0;
    if (n === 0) continue;
    const cell: EvaluationBatch = { split, tasks: [], results: [] };
    // Windows bound the size of one answer of `tasks`, not the concurrency.
    for (let from = 0; from < n; from += TASK_WINDOW) {
      const indices = Array.from({ length: Math.min(TASK_WINDOW, n - from) }, (_, i) => from + i);
      const tasks = await ports.tasks({
        run: input.run,
        suite: input.suite,
        split,
        seed: EVALUATION_SEED,
        indices,
      });
      const specs = tasks.map((task, i) => {
        const key = {
          run: input.run,
          phase: 'eval' as const,
          update,
          draw: evaluationDraw(split, from + i),
          attempt: 0,
        };
        return episodeSpec(input.config, key, task, input.policy.sampler, EVALUATION_SEED);
      });
      cell.tasks.push(...tasks.map((task) => task.id));
      cell.results.push(...(await rollOut(ports, specs, options)));
    }
    cells.push(cell);
  }
  return cells;
}
const TASK_WINDOW = 400;
