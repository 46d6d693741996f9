export interface LearningRateSchedule {
  /** Peak. */
  learningRate: number;
  /** Updates of linear warm-up. */
  warmup: number;
  /** Updates in all. */
  updates: number;
  /** Fraction of the peak at the last update. */
  end: number;
}

/**
 * Learning rate of the update after `done` finished ones (0..updates-1): linear warm-up whose first update already learns
 * (peak x 1/warmup), the peak at the end of it, then a linear decay that reaches peak x end at the last update.
 */
export function learningRateAt(done: number, schedule: LearningRateSchedule): number {
  const { learningRate, warmup, updates, end } = schedule;
  if (done < warmup) return (learningRate * (done + 1)) / warmup;
  // The decay starts from the last warm-up update, which already stands at the peak.
  const from = Math.max(warmup - 1, 0);
  const span = updates - 1 - from;
  const part = span <= 0 ? 0 : Math.min((done - from) / span, 1);
  return learningRate * (1 - (1 - end) * part);
}
