import type { DemonstrationRow } from '../agent/demonstrate.ts';
import type { RunConfig } from '../configs/schema.ts';
import { createRandom } from '../rl/random.ts';
import type { Metrics } from './api.ts';
import { plainDatum } from './datums.ts';
import type { PolicyTrainer } from './policy-trainer.ts';

/** Rows of optimiser step `step` (0-based): each epoch is a shuffle of its own, so every row comes once an epoch. */
export function sftBatch(rows: number, batch: number, step: number, seed: number): number[] {
  const picked: number[] = [];
  const size = Math.min(batch, rows);
  for (let i = 0; i < size; i++) {
    const position = step * size + i;
    picked.push(order(rows, Math.floor(position / rows), seed)[position % rows]!);
  }
  return picked;
}

/** The last few epochs' orders: a step needs one or two. */
const orders = new Map<string, number[]>();
function order(rows: number, epoch: number, seed: number): number[] {
  const key = `${rows}/${epoch}/${seed}`;
  let held = orders.get(key);
  if (held === undefined) {
    const places = Array.from({ length: rows }, (_, i) => i);
    held = createRandom(seed, 'sft', epoch).shuffle(places);
    if (orders.size >= 4) orders.clear();
    orders.set(key, held);
  }
  return held;
}

/** Optimiser steps `from`..`to`-1 of SFT: cross-entropy of the response tokens, learning rate falling to 0. */
export async function imitate(
  rows: DemonstrationRow[],
  config: RunConfig,
  trainer: PolicyTrainer,
  from: number,
  to: number,
): Promise<Metrics> {
  const { sft, learn, seed } = config;
  let loss = 0;
  let tokens = 0;
  for (let step = from; step < to; step++) {
    const picked = sftBatch(rows.length, sft.batch, step, seed);
    const data = picked.map((i) => plainDatum(rows[i]!.prompt, rows[i]!.response, rows[i]!.allowed));
    const denominator = picked.reduce((sum, i) => sum + rows[i]!.response.length, 0);
    const result = await trainer.gradients(data, 'cross_entropy', { denominator });
    result.logprobs.forEach((row, i) => {
      const length = rows[picked[i]!]!.response.length;
      for (let j = row.length - length; j < row.length; j++) loss -= row[j]!;
      tokens += length;
    });
    await trainer.step({
      learningRate: sft.learningRate * (1 - step / sft.steps),
      beta1: learn.beta1,
      beta2: learn.beta2,
      eps: 1e-8,
      gradClip: learn.gradClip,
    });
  }
  return { 'sft/loss': tokens === 0 ? null : loss / tokens, 'sft/steps': to, 'sft/rows': rows.length };
}
