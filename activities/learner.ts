import type { RunConfig } from '../configs/schema.ts';
import type { Episode } from '../domain/index.ts';
import { span } from '../domain/spans.ts';
import { assertFirstEpochRatio, ppoStatistics, tokenWeights } from '../rl/ppo.ts';
import type { PpoStatistics } from '../rl/ppo.ts';
import { createRandom } from '../rl/random.ts';
import type { Metrics } from './api.ts';
import { chunked, policyDatum, trainedTokens } from './datums.ts';
import type { PlainDatum } from './datums.ts';
import type { PolicyTrainer } from './policy-trainer.ts';
import { trainingRows } from './training-rows.ts';
import type { CriticFeatures } from '../engine/critic-features.ts';

/** What the learner asks of the critic; engine/critic.ts behind it. */
export interface CriticPort {
  /** One value a row. */
  values(features: CriticFeatures): Float32Array;
  /** Some epochs over the rows; the mean loss of the last. Row order is drawn from `seedPath`. */
  train(
    features: CriticFeatures,
    returns: Float32Array,
    oldValues: Float32Array,
    seedPath: (number | string)[],
  ): { loss: number; gradNorm: number };
}

export interface LearnOptions {
  config: RunConfig;
  /** The batch's finished attempts; masked ones are not here. */
  episodes: Episode[];
  /** The critic for such features, as the checkpoint before left it. */
  critic(features: CriticFeatures): Promise<CriticPort>;
  /** null: critic warm-up, the policy is not touched (algorithms.md, 7). */
  trainer: PolicyTrainer | null;
  learningRate: number;
  /** Key path of every draw of this update. */
  seedPath: (number | string)[];
}

/**
 * One batch's learning: values, returns, whitened advantages, then the critic's epochs, then the policy's (algorithms.md,
 * 3 to 7 and 10). Null when there is nothing to learn from. Advantages use the critic as it was before this batch.
 */
export async function learnFromBatch(options: LearnOptions): Promise<Metrics | null> {
  const { config, trainer, seedPath } = options;
  const rows = span('assemble', () => trainingRows(options.episodes, config));
  if (rows.samples.length === 0) return null;
  const { features } = rows;
  const critic = features === null ? null : await options.critic(features);
  const values = features === null ? null : span('critic', () => critic!.values(features));
  const batch = span('assemble', () => rows.batch(values));
  if (batch.skip) return null;

  const metrics: Metrics = { ...batch.statistics };
  Object.assign(metrics, judgeMetrics(options.episodes));
  if (rows.dropped > 0) metrics['batch/groups_dropped'] = rows.dropped;
  if (features === null) {
    // Without a critic nothing is said of one, not even that it explains 0.
    for (const key of Object.keys(metrics)) if (key.startsWith('critic/')) delete metrics[key];
  } else {
    const returns = Float32Array.from(batch.rows, (row) => row.ret);
    const trained = span('critic', () => critic!.train(features, returns, values!, [...seedPath, 'critic']));
    metrics['critic/loss'] = trained.loss;
    metrics['critic/grad_norm'] = trained.gradNorm;
    metrics['critic/neighbour_distance'] = rows.neighbourDistance;
  }
  if (trainer === null) return metrics;
  const trained = rows.samples.map((sample) => trainedTokens(sample, config.learn.remainingPlan));
  const data = batch.rows.map((row, i) => policyDatum(rows.samples[i]!, row.advantage, trained[i]!));
  const advantages = batch.rows.map((row) => row.advantage);
  const old = rows.samples.map((sample, i) => sample.logprobs.slice(0, trained[i]!));
  return { ...metrics, ...(await policyEpochs(options, trainer, data, advantages, old)) };
}

/** How often a judge that was asked to be worse than the rules was wrong; nothing where none was. */
function judgeMetrics(episodes: readonly Episode[]): Metrics {
  const steps = episodes.flatMap((episode) => episode.steps).filter(({ trueDense }) => trueDense !== undefined);
  if (steps.length === 0) return {};
  const wrong = steps.filter(({ dense, trueDense }) => dense !== trueDense);
  const believed = steps.filter(({ why }) => why.endsWith('believed_reasoning'));
  return {
    'judge/wrong': wrong.length / steps.length,
    'judge/wrong_steps': wrong.length,
    'judge/believed_reasoning': believed.length / steps.length,
  };
}

/** The policy's epochs over the batch; monitors are those of the first epoch's first mini-batch and of the last one. */
async function policyEpochs(
  options: LearnOptions,
  trainer: PolicyTrainer,
  data: PlainDatum[],
  advantages: number[],
  old: number[][],
): Promise<Metrics> {
  const { learn } = options.config;
  const size = learn.minibatch === 0 ? data.length : learn.minibatch;
  let first: PpoStatistics | null = null;
  let last: PpoStatistics | null = null;
  const sums: Record<string, number> = {};
  let steps = 0;
  for (let epoch = 0; epoch < learn.epochs; epoch++) {
    const places = data.map((_, i) => i);
    // A whole batch needs no shuffling, and its rows stay in key order.
    const order =
      size >= data.length ? places : createRandom(...options.seedPath, 'policy-rows', epoch).shuffle(places);
    for (const part of chunked(order, size)) {
      const { rows, denominator } = weighted(
        part.map((i) => data[i]!),
        learn.aggregation,
      );
      const config: Record<string, number> = {
        clip_low_threshold: 1 - learn.clipLow,
        clip_high_threshold: 1 + learn.clipHigh,
        denominator,
        entropy: learn.entropy,
        ...(learn.dualClip === null ? {} : { dual_clip: learn.dualClip }),
      };
      const result = await trainer.gradients(rows, 'ppo', config);
      last = ppoStatistics({
        logpNew: part.map((i, at) => responsePart(result.logprobs[at]!, old[i]!.length)),
        logpOld: part.map((i) => old[i]!),
        advantages: part.map((i) => advantages[i]!),
        mask: part.map(() => 1),
        aggregation: learn.aggregation,
        clipLow: learn.clipLow,
        clipHigh: learn.clipHigh,
        dualClip: learn.dualClip,
      });
      if (first === null && last !== null) {
        first = last;
        assertFirstEpochRatio(first.meanRatio, learn.maxRatioDrift);
      }
      const step = await trainer.step({
        learningRate: options.learningRate,
        beta1: learn.beta1,
        beta2: learn.beta2,
        eps: learn.adamEps,
        gradClip: learn.gradClip,
      });
      steps += 1;
      for (const [key, value] of Object.entries({ ...result.metrics, ...step })) sums[key] = (sums[key] ?? 0) + value;
    }
  }
  return {
    'ppo/loss': last?.loss ?? null,
    'ppo/clip_fraction': last?.clipFraction ?? null,
    'ppo/drift': last?.drift ?? null,
    'ppo/ratio_mean_first': first?.meanRatio ?? null,
    'ppo/logp_difference': first?.meanLogpDifference ?? null,
    'ppo/entropy': per(sums, 'entropy:sum', sums['tokens:sum']),
    'ppo/grad_norm': per(sums, 'grad_norm', steps),
    'ppo/steps': steps,
    'learn/rate': options.learningRate,
  };
}

function per(sums: Record<string, number>, key: string, n: number | undefined): number | null {
  return sums[key] === undefined || n === undefined || n === 0 ? null : sums[key] / n;
}

/**
 * Rows with the weights of an aggregation, and the one denominator of the mini-batch (algorithms.md, 6): token-mean keeps
 * weights 1 over the number of tokens, so that an engine which takes weights as a mask does the same.
 */
function weighted(
  rows: PlainDatum[],
  aggregation: RunConfig['learn']['aggregation'],
): { rows: PlainDatum[]; denominator: number } {
  const lengths = rows.map((row) => row.weights.reduce((a, b) => a + b, 0));
  const tokens = lengths.reduce((a, b) => a + b, 0);
  if (aggregation === 'token-mean') return { rows, denominator: tokens };
  const weights = tokenWeights(lengths, new Uint8Array(rows.length).fill(1), aggregation);
  return {
    rows: rows.map((row, i) => ({ ...row, weights: row.weights.map((w) => w * weights[i]!) })),
    denominator: 1,
  };
}

/** Log-probabilities of the response: the last `length` of a row's targets. */
function responsePart(logprobs: ArrayLike<number>, length: number): number[] {
  return Array.from({ length }, (_, j) => logprobs[logprobs.length - length + j]!);
}
