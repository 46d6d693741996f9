import { TapwrightError } from '../domain/errors.ts';
import { byLength, chunked } from './datums.ts';
import type { PlainDatum } from './datums.ts';

/** What the learner asks of an engine; engine/client.ts behind it. */
export interface TrainingEngine {
  /** A fresh training model; its id. */
  createModel(): Promise<string>;
  /** Must be the model's first request. */
  loadWeights(model: string, path: string, optimizer: boolean): Promise<void>;
  forwardBackward(
    model: string,
    data: PlainDatum[],
    loss: 'cross_entropy' | 'ppo',
    config: Record<string, number>,
  ): Promise<{ logprobs: ArrayLike<number>[]; metrics: Record<string, number> }>;
  optimStep(model: string, adam: AdamParams): Promise<Record<string, number>>;
  /** `tinker://...` of weights and moments. */
  saveWeights(model: string, name: string): Promise<string>;
  saveSampler(model: string, name: string): Promise<string>;
}

export interface AdamParams {
  learningRate: number;
  beta1: number;
  beta2: number;
  eps: number;
  gradClip: number;
}

/** Weights as they were saved: what a later step starts from. */
export interface SavedPolicy {
  weights: string;
  sampler: string;
}

export interface PolicyTrainer {
  /**
   * Makes the live model exactly that of `from` (null: freshly initialised), loading it when it is not known to be.
   * `freshMoments`: its weights only, with an optimiser that starts anew.
   */
  at(from: SavedPolicy | null, freshMoments?: boolean): Promise<void>;
  /**
   * Accumulates gradients of the rows in micro-batches of like length. The denominator is one number for all of them, so
   * the split does not matter (algorithms.md, 6). Log-probabilities come back in the order of `rows`.
   */
  gradients(
    rows: PlainDatum[],
    loss: 'cross_entropy' | 'ppo',
    config: Record<string, number>,
  ): Promise<{ logprobs: ArrayLike<number>[]; metrics: Record<string, number> }>;
  step(adam: AdamParams): Promise<Record<string, number>>;
  /** Saves weights and sampler; afterwards the live model is known to be these. */
  save(name: string): Promise<SavedPolicy>;
}

/** Rows of one request to the engine. */
const MICRO_BATCH = 256;

/**
 * Owns the engine's live training model. The model is dirty from the first gradient until it is saved: whatever fails in
 * between, the next step starts from a fresh model and the last checkpoint.
 */
export function createPolicyTrainer(options: { engine: TrainingEngine; beat: () => void }): PolicyTrainer {
  const { engine, beat } = options;
  let live: { model: string; weights: string | null } | null = null;
  let dirty = false;

  const model = (): string => {
    if (live === null) throw new TapwrightError('internal', 'the training model is used before it was loaded');
    return live.model;
  };
  /** Any failure leaves the live model in doubt. */
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      const result = await work();
      beat();
      return result;
    } catch (error) {
      live = null;
      throw error;
    }
  };

  return {
    at: (from, freshMoments = false) =>
      guarded(async () => {
        if (live !== null && !dirty && !freshMoments && live.weights === (from?.weights ?? null)) return;
        live = null;
        const fresh = await engine.createModel();
        if (from !== null) await engine.loadWeights(fresh, from.weights, !freshMoments);
        live = { model: fresh, weights: from?.weights ?? null };
        // Without its moments it is not the saved model: it must not be taken for it.
        dirty = freshMoments;
      }),
    gradients: (rows, loss, config) =>
      guarded(async () => {
        dirty = true;
        const logprobs = new Array<ArrayLike<number>>(rows.length);
        const totals: Record<string, number> = {};
        const order = byLength(rows.map((row) => row.tokens.length));
        for (const places of chunked(order, MICRO_BATCH)) {
          const part = await engine.forwardBackward(
            model(),
            places.map((i) => rows[i]!),
            loss,
            config,
          );
          places.forEach((place, i) => {
            logprobs[place] = part.logprobs[i]!;
          });
          for (const [key, value] of Object.entries(part.metrics)) totals[key] = (totals[key] ?? 0) + value;
          beat();
        }
        return { logprobs, metrics: totals };
      }),
    step: (adam) =>
      guarded(async () => {
        dirty = true;
        return engine.optimStep(model(), adam);
      }),
    save: (name) =>
      guarded(async () => {
        const id = model();
        const weights = await engine.saveWeights(id, name);
        const sampler = await engine.saveSampler(id, name);
        live = { model: id, weights };
        dirty = false;
        return { weights, sampler };
      }),
  };
}
