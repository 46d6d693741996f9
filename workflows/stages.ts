import type { DemoChunk, DemoRequest, EvaluationCell, LearnActivities, UpdateOutcome } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { PolicyRef } from '../activities/api.ts';
import { evaluates } from './evaluation-plan.ts';
import type { Cursor, RunStatus } from './types.ts';

/**
 * The order of a run, free of Temporal: workflows/training-run.ts and bench/bare.ts drive the same steps. Each step is
 * idempotent below, so doing one again after a crash is always right.
 */
export interface StagePorts {
  openRun: LearnActivities['openRun'];
  demonstrate(request: DemoRequest): Promise<DemoChunk>;
  sftChunk: LearnActivities['sftChunk'];
  /** Rollouts and learning of one batch. */
  update(phase: 'warmup' | 'train', update: number, round: number, policy: PolicyRef): Promise<UpdateOutcome>;
  evaluate(policy: PolicyRef): Promise<EvaluationCell[]>;
  report: LearnActivities['report'];
}

/** Demonstrations an activity makes: small enough to be done again without regret. */
export const DEMOS_PER_CHUNK = 250;
/** Batches in a row that may teach nothing before the run stops and says so. */
const MAX_SKIPPED = 5;

export const sftChunks = (config: RunConfig): number => Math.ceil(config.sft.steps / config.sft.chunk);

/** One line of a status for each stage: what is counted and up to what. */
export function progress(cursor: Cursor, config: RunConfig): Pick<RunStatus, 'stage' | 'update' | 'of'> {
  switch (cursor.stage) {
    case 'start':
    case 'sft':
      return { stage: cursor.stage, update: cursor.sftChunks, of: sftChunks(config) };
    case 'warmup':
      return { stage: 'warmup', update: cursor.warmups, of: config.learn.warmup };
    default:
      return { stage: cursor.stage, update: cursor.updates, of: config.learn.updates };
  }
}

/**
 * Does the next unit of work and moves the cursor: all demonstrations, one SFT chunk, one warm-up, one policy update, one
 * evaluation, or the report. `tell` hears of every result.
 */
export async function advance(
  cursor: Cursor,
  run: string,
  config: RunConfig,
  ports: StagePorts,
  tell: (change: Partial<RunStatus>) => void,
): Promise<void> {
  const evaluateOnce = async (update: number): Promise<boolean> => {
    if (!evaluates(config, update) || cursor.evaluated.includes(update) || cursor.policy === null) return false;
    const cells = await ports.evaluate(cursor.policy);
    cursor.evaluated.push(update);
    const small = cells.map(({ suite, split, n, success, masked, outcomes }) => ({
      suite,
      split,
      n,
      success,
      masked,
      outcomes,
    }));
    cursor.evaluations.push({ update, cells: small });
    tell({ evaluations: cursor.evaluations });
    return true;
  };
  switch (cursor.stage) {
    case 'start': {
      const held = await ports.openRun(run);
      Object.assign(cursor, held, { evaluated: held.evaluations.map((evaluation) => evaluation.update) });
      tell({ evaluations: cursor.evaluations });
      cursor.stage = 'sft';
      if (cursor.sftChunks >= sftChunks(config)) return;
      const requests: DemoRequest[] = [];
      for (let from = 0; from < config.sft.demonstrations; from += DEMOS_PER_CHUNK) {
        requests.push({ run, from, to: Math.min(config.sft.demonstrations, from + DEMOS_PER_CHUNK) });
      }
      cursor.demos = await Promise.all(requests.map((request) => ports.demonstrate(request)));
      return;
    }
    case 'sft': {
      if (cursor.sftChunks < sftChunks(config) || cursor.policy === null) {
        const done = await ports.sftChunk({ run, chunk: cursor.sftChunks, demos: cursor.demos });
        cursor.policy = done.policy;
        cursor.sftChunks += 1;
        tell({ lastMetrics: done.metrics });
        return;
      }
      // A run that came back or branched off later has another policy by now.
      if (cursor.updates === 0 && (await evaluateOnce(0))) return;
      cursor.demos = [];
      cursor.stage = config.learn.warmup > 0 ? 'warmup' : 'train';
      return;
    }
    case 'warmup':
    case 'train': {
      const phase = cursor.stage;
      const done = phase === 'warmup' ? cursor.warmups : cursor.updates;
      const total = phase === 'warmup' ? config.learn.warmup : config.learn.updates;
      if (phase === 'train' && (await evaluateOnce(done))) return;
      if (done >= total) {
        cursor.stage = phase === 'warmup' ? 'train' : 'report';
        return;
      }
      const outcome = await ports.update(phase, done + 1, cursor.skipped, cursor.policy!);
      tell({
        lastMetrics: outcome.metrics,
        success: outcome.metrics['rollout/success'] ?? null,
        masked: outcome.metrics['rollout/masked'] ?? null,
      });
      if (outcome.kind === 'skipped') {
        // An empty batch is logged and does not count as an update (algorithms.md, 2).
        cursor.skipped += 1;
        if (cursor.skipped >= MAX_SKIPPED) {
          throw new TapwrightError(
            'internal',
            `${cursor.skipped} batches in a row had no usable attempt (${outcome.reason}): mend what fails there, and resume the run with the same --id`,
          );
        }
        return;
      }
      cursor.skipped = 0;
      cursor.policy = outcome.policy;
      if (phase === 'warmup') cursor.warmups += 1;
      else cursor.updates += 1;
      return;
    }
    case 'report': {
      const report = await ports.report(run);
      cursor.stage = 'done';
      tell({ report: report.path, digest: report.digest });
      return;
    }
    case 'done':
      return;
  }
}
