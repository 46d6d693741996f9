import type { RunConfig } from '../configs/schema.ts';
import type { Split } from '../domain/index.ts';

/** Splits that may be looked at while a run is tuned; the others are for what is reported. */
const FOR_TUNING: readonly Split[] = ['train', 'validation'];

type Instances = Partial<Record<Split, number>>;

/** Updates whose checkpoints are reported, by the fractions of `evaluation.heldoutAt`; null: every evaluation sees all splits. */
function reportedUpdates({ evaluation, learn }: RunConfig): number[] | null {
  return evaluation.heldoutAt?.map((fraction) => checkpointAt(learn.updates, fraction)) ?? null;
}

/** The update at a fraction of so many. */
export const checkpointAt = (updates: number, fraction: number): number => Math.round(updates * fraction);

/** What the evaluation of update k (0: the SFT policy) looks at: held-out splits only where they are reported. */
export function instancesAt(config: RunConfig, update: number, instances: Instances): Instances {
  const reported = reportedUpdates(config);
  if (reported === null || reported.includes(update)) return instances;
  return Object.fromEntries(Object.entries(instances).filter(([split]) => FOR_TUNING.includes(split as Split)));
}

/** True when update k (0: the SFT policy) is to be evaluated on anything. */
export function evaluates(config: RunConfig, update: number): boolean {
  const { every, instances } = config.evaluation;
  const reported = reportedUpdates(config) ?? [0, config.learn.updates];
  const due = update === config.learn.updates || (every > 0 && update % every === 0);
  if (!due && !reported.includes(update)) return false;
  // A run that evaluates nothing anywhere still says so, as it always has.
  return reported.includes(update) || Object.values(instancesAt(config, update, instances)).some((n) => (n ?? 0) > 0);
}
