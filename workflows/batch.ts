import { episodeId } from '../domain/episode.ts';
import type { EpisodeKey, EpisodeResult, EpisodeSpec, Outcome, TaskInstance } from '../domain/index.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { EvaluationBatch, TaskRequest } from '../activities/api.ts';
import { EVALUATION_SEED, evaluationDraw, taskIndex } from './ids.ts';
import type { EvaluationInput } from './types.ts';

/** Where batches get their work done: Temporal in workflows/, plain calls in bench/bare.ts. */
export interface BatchPorts {
  tasks(request: TaskRequest): Promise<TaskInstance[]>;
  /**
   * One attempt. Masked attempts are values; it throws only for a failure that must stop the run. Once `late` resolves
   * nobody waits for its result any more, and it is to end.
   */
  attempt(spec: EpisodeSpec, late: Promise<void>): Promise<EpisodeResult>;
  /**
   * Several attempts in one call to one device host, results in their order; absent: each goes by itself. `turn` counts the
   * parcels of a batch, so that they go round the hosts.
   */
  parcel?(specs: readonly EpisodeSpec[], turn: number, late: Promise<void>): Promise<EpisodeResult[]>;
  /** Calls `ring` once after so many milliseconds, unless the function it returns is called before. */
  timer(ms: number, ring: () => void): () => void;
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

/** The specification of one attempt: pure, from the config and the key alone. */
export function episodeSpec(
  config: RunConfig,
  key: EpisodeKey,
  task: TaskInstance,
  policy: string,
  seed: number = config.seed,
): EpisodeSpec {
  const evaluating = key.phase === 'eval';
  return {
    key,
    seed,
    task,
    policy,
    temperature: evaluating && config.evaluation.greedy ? 0 : config.agent.temperature,
    maxTokens: config.agent.maxTokens,
    decodeMask: config.agent.decodeMask,
    grounder: config.agent.grounder,
    maxUnparseable: config.agent.maxUnparseable,
    // Faults are for training batches: an evaluation measures the policy.
    faults: evaluating ? {} : config.devices.faults,
    keepScreens: config.devices.keepScreens === 'all' || (evaluating && config.devices.keepScreens === 'eval'),
    deadlineMs: config.rollout.deadlineMs,
    infraTry: 0,
  };
}

export interface RollOutOptions {
  /** Attempts at once. */
  limit: number;
  /** How often a masked attempt is made again. */
  infraRetries: number;
  /** Once half of the attempts are in: the rest is given up when so many milliseconds bring no other one. 0: never. */
  stragglerMs: number;
  /** Attempts sent to a host in one call. Default 1. */
  parcel?: number;
}

/**
 * Runs attempts in the order given; each masked one again up to `infraRetries` times. The result of spec i stands at place
 * i, whatever finished first. Stragglers are masked as `deadline`: one stuck attempt never holds a batch (design.md, 5).
 * The first fatal failure ends it, after all have settled.
 */
export async function rollOut(
  ports: Pick<BatchPorts, 'attempt' | 'parcel' | 'timer'>,
  specs: readonly EpisodeSpec[],
  options: RollOutOptions,
): Promise<EpisodeResult[]> {
  const results = new Array<EpisodeResult>(specs.length);
  const fatal: unknown[] = [];
  const size = ports.parcel ? (options.parcel ?? 1) : 1;
  // A parcel gives up its own stragglers first, so that one of them does not cost the others.
  const quietMs = options.stragglerMs * (size > 1 ? 2 : 1);
  const stragglers = watchStragglers(ports, specs.length, quietMs);
  const send = (some: readonly EpisodeSpec[], turn: number): Promise<EpisodeResult[]> => {
    const givenUp = stragglers.late.then(() => some.map((spec) => straggler(spec, quietMs)));
    // Nothing is begun that nobody will wait for.
    if (stragglers.isLate()) return givenUp;
    const sent =
      some.length > 1 && ports.parcel
        ? ports.parcel(some, turn, stragglers.late)
        : ports.attempt(some[0]!, stragglers.late).then((result) => [result]);
    return Promise.race([sent, givenUp]);
  };
  const settle = async (spec: EpisodeSpec, first: EpisodeResult): Promise<EpisodeResult> => {
    let result = first;
    for (let infraTry = 1; result.kind === 'masked' && infraTry <= options.infraRetries; infraTry++) {
      if (stragglers.isLate()) break;
      [result] = (await send([{ ...spec, infraTry }], 0)) as [EpisodeResult];
    }
    return result;
  };
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < specs.length && fatal.length === 0) {
      const from = next;
      next += size;
      const some = specs.slice(from, next);
      try {
        const sent = await send(some, from / size);
        const settled = await Promise.all(some.map((spec, i) => settle(spec, sent[i]!)));
        settled.forEach((result, i) => (results[from + i] = result));
      } catch (error) {
        fatal.push(error);
      }
      stragglers.finished(some.length);
    }
  };
  const lanes = Math.max(1, Math.floor(Math.min(options.limit, specs.length) / size));
  await Promise.all(Array.from({ length: lanes }, lane));
  stragglers.end();
  if (fatal.length > 0) throw fatal[0];
  return results;
}

function straggler(spec: EpisodeSpec, ms: number): EpisodeResult {
  const message = `Given up: no attempt of the batch had finished for ${ms} ms (rollout.stragglerMs).`;
  return { kind: 'masked', id: episodeId(spec.key), failure: 'deadline', message, step: null };
}

/**
 * Notices that a batch stands still. The clock starts when half of it is in, so that an outage of everything (an engine,
 * a host) is waited for as long as its retries say; one timer a quiet period, not one an attempt.
 */
function watchStragglers(ports: Pick<BatchPorts, 'timer'>, total: number, ms: number) {
  let markLate = (): void => {};
  const late = new Promise<void>((resolve) => {
    markLate = resolve;
  });
  let isLate = false;
  let done = 0;
  let cancel: (() => void) | null = null;
  const arm = (): void => {
    const before = done;
    cancel = ports.timer(ms, () => {
      if (done > before) return arm();
      isLate = true;
      markLate();
    });
  };
  return {
    late,
    isLate: () => isLate,
    finished: (attempts: number) => {
      done += attempts;
      if (ms > 0 && cancel === null && 2 * done >= total && done < total) arm();
    },
    end: () => cancel?.(),
  };
}

const rollOutOptions = ({ workflow, rollout }: RunConfig): RollOutOptions => ({
  limit: workflow.maxConcurrentEpisodes,
  infraRetries: rollout.infraRetries,
  // A run that was started before there were such keys has none.
  stragglerMs: (rollout as Partial<RunConfig['rollout']>).stragglerMs ?? 0,
  parcel: (rollout as Partial<RunConfig['rollout']>).parcel ?? 1,
});

/**
 * One training batch: `learn.tasks` draws x `learn.attempts`, topped up with fresh attempts of the same tasks while fewer
 * than `learn.minValidFraction` are valid, at most `learn.maxTopUps` times (algorithms.md, 2). `round` counts batches of
 * this update that taught nothing: each round draws other tasks.
 */
export async function collectBatch(
  ports: BatchPorts,
  config: RunConfig,
  where: { run: string; phase: 'warmup' | 'train'; update: number; round: number; policy: string },
): Promise<EpisodeResult[]> {
  const { tasks: draws, attempts, minValidFraction, maxTopUps } = config.learn;
  const first = where.round * draws;
  const indices = Array.from({ length: draws }, (_, i) => taskIndex(where.phase, where.update, first + i));
  const tasks = await ports.tasks({
    run: where.run,
    suite: config.suite,
    split: 'train',
    seed: config.seed,
    indices,
  });
  const specs = (from: number, to: number): EpisodeSpec[] => {
    const out: EpisodeSpec[] = [];
    tasks.forEach((task, i) => {
      for (let attempt = from; attempt < to; attempt++) {
        const key = { run: where.run, phase: where.phase, update: where.update, draw: first + i, attempt };
        out.push(episodeSpec(config, key, task, where.policy));
      }
    });
    return out;
  };
  const options = rollOutOptions(config);
  let results = await rollOut(ports, specs(0, attempts), options);
  for (let extra = 1; extra <= maxTopUps; extra++) {
    if (results.filter(isValid).length >= minValidFraction * draws * attempts) break;
    const more = await rollOut(ports, specs(attempts * extra, attempts * (extra + 1)), options);
    results = [...results, ...more];
  }
  return results;
}

/** All attempts of an evaluation, cell by cell: one attempt an instance, the same instances for every run. */
export async function collectEvaluation(ports: BatchPorts, input: EvaluationInput): Promise<EvaluationBatch[]> {
  const cells: EvaluationBatch[] = [];
  const options = rollOutOptions(input.config);
  for (const split of ['validation', 'heldout-params', 'heldout-skin', 'train'] as const) {
    const n = input.instances[split] ?? 0;
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
      const update = input.policy.stage === 'train' ? input.policy.index : 0;
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
