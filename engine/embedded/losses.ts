import { TapwrightError } from '../../domain/errors.ts';

export const LOSSES = ['cross_entropy', 'importance_sampling', 'ppo'] as const;
export type LossName = (typeof LOSSES)[number];

/** A loss with its numbers. Thresholds bound the ratio itself, e.g. 0.8 and 1.2. */
export interface LossSpec {
  name: LossName;
  clipLow: number;
  clipHigh: number;
  /** Entropy bonus per token; 0: none. */
  entropy: number;
  /** Dual clip c for negative advantages; null: none. */
  dualClip: number | null;
  /** The sum over tokens is divided by this one number, fixed before any split (algorithms.md, 6). */
  denominator: number;
}

const KEYS = ['clip_low_threshold', 'clip_high_threshold', 'entropy', 'dual_clip', 'denominator'];
const LOG_RATIO_BOUND = 20;

/** Reads loss_fn and loss_fn_config; throws invalid_input. */
export function parseLoss(name: unknown, config: unknown): LossSpec {
  const wrong = (what: string): TapwrightError => new TapwrightError('invalid_input', what);
  if (!LOSSES.includes(name as LossName)) {
    throw wrong(`unknown loss_fn ${JSON.stringify(name)}: this engine has ${LOSSES.join(', ')}`);
  }
  const given = (config ?? {}) as Record<string, unknown>;
  if (typeof given !== 'object') throw wrong('loss_fn_config must be an object of numbers');
  for (const [key, value] of Object.entries(given)) {
    if (!KEYS.includes(key)) throw wrong(`unknown key loss_fn_config.${key}: expected ${KEYS.join(', ')}`);
    if (value !== null && (typeof value !== 'number' || !Number.isFinite(value))) {
      throw wrong(`loss_fn_config.${key} must be a finite number, got ${JSON.stringify(value)}`);
    }
  }
  const number = (key: string, other: number): number => (given[key] as number | null | undefined) ?? other;
  const spec: LossSpec = {
    name: name as LossName,
    clipLow: number('clip_low_threshold', 0.8),
    clipHigh: number('clip_high_threshold', 1.2),
    entropy: number('entropy', 0),
    dualClip: (given['dual_clip'] as number | null | undefined) ?? null,
    denominator: number('denominator', 1),
  };
  if (spec.clipLow > 1 || spec.clipLow < 0 || spec.clipHigh < 1) {
    throw wrong(
      'clip thresholds bound the ratio: 0 <= clip_low_threshold <= 1 <= clip_high_threshold, e.g. 0.8 and 1.2',
    );
  }
  if (spec.dualClip !== null && spec.dualClip <= 1) throw wrong('loss_fn_config.dual_clip must be above 1');
  if (spec.denominator <= 0) throw wrong('loss_fn_config.denominator must be above 0');
  return spec;
}

/** Loss of one token and its derivative by the new log-probability, before weight and denominator. */
export interface TokenLoss {
  loss: number;
  slope: number;
  ratio: number;
  logRatio: number;
  clipped: boolean;
}

/** Cross-entropy -logp; importance sampling -ratio A; PPO with clip and dual clip (algorithms.md, 6). */
export function tokenLoss(spec: LossSpec, logpNew: number, logpOld: number, advantage: number): TokenLoss {
  if (spec.name === 'cross_entropy') return { loss: -logpNew, slope: -1, ratio: 1, logRatio: 0, clipped: false };
  const raw = logpNew - logpOld;
  const logRatio = Math.min(LOG_RATIO_BOUND, Math.max(-LOG_RATIO_BOUND, raw));
  const ratio = Math.exp(logRatio);
  const free = -ratio * advantage;
  const slope = raw === logRatio ? free : 0;
  if (spec.name === 'importance_sampling') return { loss: free, slope, ratio, logRatio, clipped: false };
  const bounded = -Math.min(spec.clipHigh, Math.max(spec.clipLow, ratio)) * advantage;
  if (bounded > free) return capped(spec, { loss: bounded, slope: 0, ratio, logRatio, clipped: true }, advantage);
  return capped(spec, { loss: free, slope, ratio, logRatio, clipped: false }, advantage);
}

function capped(spec: LossSpec, token: TokenLoss, advantage: number): TokenLoss {
  if (spec.dualClip === null || advantage >= 0) return token;
  const cap = -spec.dualClip * advantage;
  return token.loss > cap ? { ...token, loss: cap, slope: 0 } : token;
}
