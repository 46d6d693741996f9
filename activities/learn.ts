import { join } from 'node:path';
import type { DemonstrationRow } from '../agent/demonstrate.ts';
import { createTokenizer } from '../agent/tokenizer.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError, asTapwrightError } from '../domain/errors.ts';
import type { Checkpoint, Episode, EpisodeResult } from '../domain/index.ts';
import { learningRateAt } from '../rl/schedule.ts';
import { sha256File } from '../store/files.ts';
import { checkpointIndex, configHash, openRun } from '../store/index.ts';
import type { MetricsRow, RunFolder } from '../store/index.ts';
import type { ExperimentActivities, LearnActivities, Metrics, PolicyRef, Progress } from './api.ts';
import { evaluationCell, rolloutMetrics } from './batch-metrics.ts';
import { createLearnerCritic } from './critic.ts';
import type { LearnerCritic } from './critic.ts';
import { createTrainingEngine } from './engine.ts';
import type { LearnerEngine } from './engine.ts';
import { beginRun } from './experiment.ts';
import { asActivity, beat } from './heartbeat.ts';
import { imitate } from './imitation.ts';
import { learnFromBatch } from './learner.ts';
import { createPolicyTrainer } from './policy-trainer.ts';
import type { PolicyTrainer, SavedPolicy } from './policy-trainer.ts';
import { remember } from './remember.ts';
import { createRooms } from './rooms.ts';

export interface LearnOptions {
  home: string;
  /** URL of the engine; null: the one of each run's config. */
  engineUrl: string | null;
}

interface Learner {
  folder: RunFolder;
  config: RunConfig;
  engine: LearnerEngine;
  trainer: PolicyTrainer;
}

const CRITIC_FILE = 'critic.safetensors';

/**
 * Activities of the learner. Every one is idempotent: what was committed is returned, what was not is done again from the
 * checkpoint before it, with the same bytes (design.md, 4).
 */
export async function createLearnActivities(
  options: LearnOptions,
): Promise<{ activities: LearnActivities & ExperimentActivities; close: () => Promise<void> }> {
  const rooms = createRooms();
  const engines = new Map<string, LearnerEngine>();
  const learners = remember(async (run: string): Promise<Learner> => {
    const folder = await openRun(options.home, run);
    const { config } = folder;
    const tokenizer = createTokenizer({ words: (await rooms.suite(config.suite, config)).vocabulary() });
    const engine = createTrainingEngine(options, config, tokenizer);
    engines.set(run, engine);
    return { folder, config, engine, trainer: createPolicyTrainer({ engine: engine.training, beat }) };
  });

  const activities: LearnActivities & ExperimentActivities = {
    openRun: asActivity(async (run) => {
      const { folder, engine } = await learners(run);
      await folder.updateHeader({ engine: await engine.probe() });
      return progressOf(folder);
    }),

    sftChunk: asActivity(async ({ run, chunk, demos }) => {
      const learner = await learners(run);
      const { folder, config, trainer } = learner;
      const done = chunk + 1;
      const held = await folder.checkpoints.get('sft', done);
      if (held !== null) return { policy: refOf(held), metrics: await metricsOf(folder, 'sft', done) };
      const previous = chunk === 0 ? null : await required(folder, 'sft', chunk);
      await trainer.at(previous);
      const rows = (await Promise.all(demos.map(async ({ ref }) => readRows(folder, ref)))).flat();
      const from = chunk * config.sft.chunk;
      const to = Math.min(config.sft.steps, from + config.sft.chunk);
      const metrics = rows.length === 0 ? {} : await imitate(rows, config, trainer, from, to);
      const saved = await trainer.save(`${run}-sft-${done}`);
      await appendMetrics(folder, 'sft', done, metrics);
      const checkpoint = await commit(learner, { stage: 'sft', sftChunks: done, warmup: 0, update: 0 }, saved, {});
      return { policy: refOf(checkpoint), metrics };
    }),

    learn: asActivity(async ({ run, phase, update, results, rolloutSeconds = null }) => {
      const began = performance.now();
      const learner = await learners(run);
      const { folder, config, trainer } = learner;
      const held = await folder.checkpoints.get(phase, update);
      if (held !== null) {
        return { kind: 'done', policy: refOf(held), metrics: await metricsOf(folder, phase, update) };
      }
      const previous = await before(folder, phase, update);
      const episodes = await readEpisodes(folder, results);
      const warmup = phase === 'warmup';
      // Another objective: the moments of imitation say nothing about its gradients.
      if (!warmup) await trainer.at(previous, update === 1);
      const state = await criticState(folder, previous);
      let critic: LearnerCritic | null = null;
      const summary = rolloutMetrics(results, config.rewards);
      const learned = await learnFromBatch({
        config,
        episodes,
        critic: async (features) => (critic = await createLearnerCritic({ config, features, state })),
        trainer: warmup ? null : trainer,
        learningRate: learningRateAt(update - 1, {
          learningRate: config.learn.learningRate,
          warmup: config.learn.learningRateWarmup,
          updates: config.learn.updates,
          end: config.learn.learningRateEnd,
        }),
        seedPath: [config.seed, phase, update],
      });
      if (learned === null) {
        const masks = Object.entries(summary).filter(([key]) => key.startsWith('mask/'));
        const classes = masks.map(([key, n]) => `${key.slice('mask/'.length)} ${n}`).join(', ');
        const masked = summary['rollout/masked'] === results.length;
        const what = masked
          ? `all ${results.length} attempts of ${episodeGroup(results)} are masked: ${classes}`
          : `every group of ${episodeGroup(results)} has equal scores or a single valid attempt`;
        const reason = masked || classes === '' ? what : `${what}; masked: ${classes}`;
        process.stderr.write(`${run}: ${phase} ${update} skipped: ${reason}\n`);
        return { kind: 'skipped', reason, metrics: summary };
      }
      const saved = warmup ? previous : await trainer.save(`${run}-u${String(update).padStart(4, '0')}`);
      const metrics: Metrics = { ...learned, ...summary };
      if (warmup && update === config.learn.warmup) {
        metrics['warmup/policy_unchanged'] = (await policyUnchanged(learner, previous)) ? 1 : 0;
      }
      metrics['time/rollout'] = rolloutSeconds;
      metrics['time/learn'] = (performance.now() - began) / 1000;
      await appendMetrics(folder, phase, update, metrics);
      const at = warmup
        ? { stage: phase, sftChunks: previous.sftChunks, warmup: update, update: 0 }
        : { stage: phase, sftChunks: previous.sftChunks, warmup: previous.warmup, update };
      const checkpoint = await commit(
        learner,
        at,
        saved,
        critic === null ? {} : { [CRITIC_FILE]: (critic as LearnerCritic).save() },
      );
      return { kind: 'done', policy: refOf(checkpoint), metrics };
    }),

    evaluationDue: asActivity(async ({ run, suite, split, schedule }) => {
      const { folder } = await learners(run);
      const latest = await folder.checkpoints.latest();
      if (latest === null) return null;
      const policy = refOf(latest);
      const { cells } = await folder.results();
      const done = cells.some(
        (cell) =>
          cell.schedule === schedule &&
          cell.checkpoint === nameOf(policy) &&
          cell.suite === suite &&
          cell.split === split,
      );
      return done ? null : policy;
    }),

    recordEvaluation: asActivity(async ({ run, policy, suite, cells, schedule }) => {
      const { folder } = await learners(run);
      const rows = cells.map(({ split, results }) => evaluationCell(suite, split, results));
      await folder.addResults(
        rows.map((row, i) => ({
          policy: policy.stage === 'train' ? 'rl' : 'sft',
          checkpoint: nameOf(policy),
          suite,
          split: row.split,
          n: row.n,
          successes: row.success,
          masked: row.masked,
          outcomes: row.outcomes,
          ...(schedule === undefined ? {} : { schedule }),
          perTask: row.wins.map((win, j) => ({ task: cells[i]!.tasks[j]!, success: win === null ? null : win === 1 })),
        })),
      );
      return rows;
    }),

    report: asActivity(async (run, ends = null) => {
      const { folder } = await learners(run);
      // Also null: a run that was stopped and then went on to its end says so no longer.
      await folder.updateHeader({ ended: ends });
      return { path: join(folder.dir, 'report.html'), digest: await folder.digest() };
    }),

    beginRun: asActivity((request) => beginRun(options.home, request)),

    endRun: asActivity(async (run) => {
      learners.forget(run);
      // Without its client's heartbeats the engine unloads the model.
      await engines.get(run)?.close();
      engines.delete(run);
    }),
  };
  return {
    activities,
    close: async () => {
      await Promise.all([...engines.values()].map((engine) => engine.close()));
      await rooms.close();
    },
  };
}

const refOf = (checkpoint: Checkpoint): PolicyRef => ({
  stage: checkpoint.stage,
  index: checkpointIndex(checkpoint),
  sampler: checkpoint.sampler,
});

const nameOf = (policy: PolicyRef): string => `${policy.stage}-${policy.index}`;

/** Where a run stands, from its newest whole checkpoint and its results. */
async function progressOf(folder: RunFolder): Promise<Progress> {
  const latest = await folder.checkpoints.latest();
  const { cells } = await folder.results();
  const evaluations = new Map<number, Progress['evaluations'][number]['cells']>();
  for (const cell of cells) {
    const [stage, k] = cell.checkpoint.split('-');
    // A schedule's evaluations stand in for none of the run's own.
    if (cell.schedule !== undefined || cell.suite !== folder.config.suite || (stage !== 'sft' && stage !== 'train'))
      continue;
    // A run stopped in mid-SFT was evaluated there: that is not the SFT policy yet.
    if (stage === 'sft' && Number(k) < Math.ceil(folder.config.sft.steps / folder.config.sft.chunk)) continue;
    const update = stage === 'train' ? Number(k) : 0;
    const { suite, split, n, masked } = cell;
    const row = { suite, split, n, success: cell.successes, masked, outcomes: { ...cell.outcomes } };
    evaluations.set(update, [...(evaluations.get(update) ?? []), row]);
  }
  return {
    sftChunks: latest?.sftChunks ?? 0,
    warmups: latest?.warmup ?? 0,
    updates: latest?.update ?? 0,
    policy: latest === null ? null : refOf(latest),
    evaluations: [...evaluations].map(([update, rows]) => ({ update, cells: rows })),
  };
}

/** The checkpoint that an update starts from. */
async function before(folder: RunFolder, phase: 'warmup' | 'train', update: number): Promise<Checkpoint> {
  if (update > 1) return required(folder, phase, update - 1);
  const all = await folder.checkpoints.list();
  const last = all.filter(({ stage }) => (phase === 'warmup' ? stage === 'sft' : stage !== 'train')).at(-1);
  return required(folder, last?.stage ?? 'sft', last?.k ?? 0);
}

async function required(folder: RunFolder, stage: Checkpoint['stage'], k: number): Promise<Checkpoint> {
  const checkpoint = await folder.checkpoints.get(stage, k);
  if (checkpoint !== null) return checkpoint;
  throw new TapwrightError(
    'corrupt_checkpoint',
    `checkpoint ${stage}-${k} of run ${folder.id} is missing or not whole, so its successor cannot be made: stop the run and resume it with the same --id; it goes on from the newest whole one`,
  );
}

async function commit(
  learner: Learner,
  at: Pick<Checkpoint, 'stage' | 'sftChunks' | 'warmup' | 'update'>,
  saved: SavedPolicy,
  files: Record<string, Uint8Array>,
): Promise<Checkpoint> {
  const { folder, config, engine } = learner;
  const manifest = {
    version: 1 as const,
    run: folder.id,
    ...at,
    weights: saved.weights,
    sampler: saved.sampler,
    config: configHash(config),
    producer: await engine.producer(),
  };
  return folder.checkpoints.commit(manifest, files, engine.filesOf(saved));
}

/** The live policy after the warm-up, saved once more: are its bytes those that SFT ended with? (algorithms.md, 7) */
async function policyUnchanged({ folder, trainer, engine }: Learner, previous: Checkpoint): Promise<boolean> {
  await trainer.at(previous);
  const again = await trainer.save(`${folder.id}-after-warmup`);
  const [before, after] = await Promise.all(
    [previous, again].map((saved) => Promise.all(engine.filesOf(saved).map(sha256File))),
  );
  return before!.every((hash, i) => hash !== null && hash === after![i]);
}

async function criticState(folder: RunFolder, previous: Checkpoint): Promise<Uint8Array | null> {
  // Files are named by their path in the run's folder. Estimators without a critic save none.
  const saved = Object.keys(previous.files).some((name) => name.endsWith(`/${CRITIC_FILE}`));
  return saved ? folder.checkpoints.read(previous, CRITIC_FILE) : null;
}

/** Records of the finished attempts, in the order of the results. */
async function readEpisodes(folder: RunFolder, results: readonly EpisodeResult[]): Promise<Episode[]> {
  const finished = results.filter((result) => result.kind === 'finished');
  return Promise.all(
    finished.map((result) =>
      folder.episodes.get(result.id, result.ref as `sha256:${string}`).catch((error: unknown) => {
        const { code, message } = asTapwrightError(error);
        throw new TapwrightError(code, `${message}: start the run again with the same --id, which makes it anew`, {
          cause: error,
        });
      }),
    ),
  );
}

async function readRows(folder: RunFolder, ref: `sha256:${string}`): Promise<DemonstrationRow[]> {
  const bytes = await folder.blobs.get(ref);
  beat();
  return JSON.parse(Buffer.from(bytes).toString('utf8')) as DemonstrationRow[];
}

async function appendMetrics(
  folder: RunFolder,
  stage: MetricsRow['stage'],
  update: number,
  metrics: Metrics,
): Promise<void> {
  await folder.metrics.append({ ...metrics, stage, update } as MetricsRow);
}

async function metricsOf(folder: RunFolder, stage: MetricsRow['stage'], update: number): Promise<Metrics> {
  const row = (await folder.metrics.read()).find((other) => other.stage === stage && other.update === update);
  if (row === undefined) return {};
  const { stage: _stage, update: _update, ...metrics } = row;
  return metrics as Metrics;
}

const episodeGroup = (results: readonly EpisodeResult[]): string => results[0]?.id.split('/')[0] ?? 'an empty batch';
