import type { TensorOps } from '../tensor.ts';
import type { Checkpoints } from './checkpoints.ts';
import { createLayout, initialWeights, parseModelName } from './layout.ts';
import { uploadWeights } from './weights.ts';
import type { DeviceWeights } from './weights.ts';

export interface SamplerWeights {
  /** Runs `work` with the weights of a checkpoint path or a base model's name on the device. */
  with<T>(source: string, work: (weights: DeviceWeights) => Promise<T>): Promise<T>;
}

/** Weights to sample from, by source; the least recently used beyond `keep` are freed once nothing uses them. */
export function createSamplerWeights(options: {
  ops: TensorOps;
  checkpoints: Checkpoints;
  keep: number;
}): SamplerWeights {
  const { ops, checkpoints, keep } = options;
  const entries = new Map<string, { weights: DeviceWeights; users: number }>();

  function open(source: string): DeviceWeights {
    if (source.startsWith('tinker://')) {
      const { layout, state } = checkpoints.load(source);
      return uploadWeights(ops, layout, state.weights);
    }
    const layout = createLayout(parseModelName(source));
    return uploadWeights(ops, layout, initialWeights(layout, 0));
  }

  function trim(): void {
    for (const [source, entry] of entries) {
      if (entries.size <= keep) return;
      if (entry.users > 0) continue;
      entry.weights.dispose();
      entries.delete(source);
    }
  }

  return {
    with: async (source, work) => {
      const entry = entries.get(source) ?? { weights: open(source), users: 0 };
      entries.delete(source);
      entries.set(source, entry);
      entry.users++;
      trim();
      try {
        return await work(entry.weights);
      } finally {
        entry.users--;
        trim();
      }
    },
  };
}
