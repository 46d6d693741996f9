import type { KnownSuite } from './checks.ts';
import { isPlain } from './paths.ts';
import type { Plain } from './paths.ts';

/** The one dial of a comparison: how much of everything a run does. */
export const SCALES = ['quick', 'short', 'paper'] as const;
export type Scale = (typeof SCALES)[number];

interface Amounts {
  /** Policy updates, and critic warm-ups before them. */
  updates: number;
  warmup: number;
  instances: Record<string, number>;
  demonstrations: number;
  sftSteps: number;
}

/** 16 x 8 attempts an update at every scale: what differs is for how long. `paper` is the published one (facts.md, "Scale"). */
const AMOUNTS: Record<Scale, Amounts> = {
  quick: {
    updates: 24,
    warmup: 4,
    instances: { validation: 20, 'heldout-params': 60, 'heldout-skin': 30, train: 30 },
    demonstrations: 1000,
    sftSteps: 80,
  },
  short: {
    updates: 100,
    warmup: 8,
    instances: { validation: 50, 'heldout-params': 200, 'heldout-skin': 100, train: 100 },
    demonstrations: 3000,
    sftSteps: 200,
  },
  paper: {
    updates: 336,
    warmup: 15,
    instances: { validation: 100, 'heldout-params': 400, 'heldout-skin': 200, train: 200 },
    demonstrations: 3000,
    sftSteps: 200,
  },
};
const TASKS = 16;
const ATTEMPTS = 8;
/** Evaluations on the way: so many times a whole run, whatever part of it is made. */
const EVALUATIONS = 4;
const WITH_CRITIC: readonly unknown[] = [undefined, 'ppo', 'gigppo'];

/**
 * What a config's `scale` says of keys that it does not give itself; nothing without a known scale. `learn.fraction` is the
 * part of the updates that is made; the rate schedule ends there. Estimators without a critic get no warm-up, suites only
 * the splits that they have.
 */
export function scaleDefaults(value: Plain, suites: readonly KnownSuite[] = []): Plain {
  const amounts = AMOUNTS[value['scale'] as Scale] as Amounts | undefined;
  if (amounts === undefined) return {};
  const learn = isPlain(value['learn']) ? value['learn'] : {};
  const fraction = typeof learn['fraction'] === 'number' ? learn['fraction'] : 1;
  const splits = suites.find(({ id }) => id === value['suite'])?.splits;
  return {
    learn: {
      updates: Math.max(1, Math.round(amounts.updates * fraction)),
      warmup: WITH_CRITIC.includes(learn['estimator']) ? amounts.warmup : 0,
      tasks: TASKS,
      attempts: ATTEMPTS,
    },
    evaluation: {
      every: Math.round(amounts.updates / EVALUATIONS),
      instances: Object.fromEntries(
        Object.entries(amounts.instances).filter(([split]) => splits === undefined || splits.includes(split)),
      ),
    },
    sft: { demonstrations: amounts.demonstrations, steps: amounts.sftSteps },
  };
}
