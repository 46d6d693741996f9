import type { RunConfig } from '../configs/schema.ts';
import { createCritic } from '../engine/critic.ts';
import { loadTensor } from '../engine/tensor.ts';
import type { CriticPort } from './learner.ts';

export interface LearnerCritic extends CriticPort {
  /** Weights and moments, for the checkpoint. */
  save(): Uint8Array;
}

/** The run's critic as a checkpoint left it (`state` null: new), for rows of such features. */
export async function createLearnerCritic(options: {
  config: RunConfig;
  features: { width: number; normalise: number[] };
  state: Uint8Array | null;
}): Promise<LearnerCritic> {
  const { config, features, state } = options;
  const { epochs, minibatch, valueClip, hidden, learningRate } = config.critic;
  const critic = createCritic({
    tensor: await loadTensor({ backend: config.engine.backend, threads: config.engine.threads }),
    inputSize: features.width,
    normalise: features.normalise,
    hidden,
    learningRate,
    seed: [config.seed],
  });
  if (state !== null) critic.load(state);
  return {
    values: ({ data, rows }) => critic.values(data, rows),
    train: ({ data, rows }, returns, oldValues, seed) =>
      critic.train(data, returns, new Uint8Array(rows).fill(1), { epochs, minibatch, seed, valueClip, oldValues }),
    save: () => critic.state(),
  };
}
