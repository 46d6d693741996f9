import { TapwrightError } from '../../domain/errors.ts';

/**
 * Decode-time label mask: after a trigger token of the response only `allowed` tokens or a closer may follow, until a
 * closer is emitted; right after the trigger at least one allowed token must come first. The same rules in sampling and
 * in training, where log-probabilities are those of the masked, renormalised distribution.
 */
export interface Constraint {
  triggers: number[];
  closers: number[];
  allowed: number[];
}

/** Token ids that may come next, ascending and distinct; null: any. */
export type Support = Int32Array | null;

export interface ConstraintTracker {
  /** What may come next. */
  support(): Support;
  /** Moves on by the token that came. */
  push(token: number): void;
}

/** Validates a constraint against a vocabulary; throws invalid_input with the place and the reason. */
export function checkConstraint(value: unknown, vocab: number, where: string): Constraint {
  const wrong = (what: string): TapwrightError => new TapwrightError('invalid_input', `${where}: ${what}`);
  if (typeof value !== 'object' || value === null) throw wrong('constraint must be {triggers, closers, allowed}');
  const out: Record<string, number[]> = {};
  for (const key of ['triggers', 'closers', 'allowed'] as const) {
    const ids = (value as Record<string, unknown>)[key];
    if (!Array.isArray(ids)) throw wrong(`constraint.${key} must be a list of token ids`);
    const bad = ids.findIndex((id) => !Number.isInteger(id) || (id as number) < 0 || (id as number) >= vocab);
    if (bad >= 0) throw wrong(`constraint.${key}[${bad}] = ${String(ids[bad])} is not a token id in 0..${vocab - 1}`);
    out[key] = ids as number[];
  }
  const { triggers, closers, allowed } = out as Record<keyof Constraint, number[]>;
  if (triggers.length > 0 && (allowed.length === 0 || closers.length === 0)) {
    throw wrong('constraint.allowed and constraint.closers must not be empty when there are triggers');
  }
  const both = allowed.find((id) => closers.includes(id));
  if (both !== undefined) throw wrong(`token ${both} is in constraint.allowed and in constraint.closers`);
  return { triggers, closers, allowed };
}

/** Follows one response from its first token. A null constraint allows everything. */
export function createTracker(constraint: Constraint | null): ConstraintTracker {
  if (constraint === null || constraint.triggers.length === 0) return { support: () => null, push: () => {} };
  const ids = (list: number[]): Int32Array => Int32Array.from(new Set(list)).sort();
  const triggers = new Set(constraint.triggers);
  const closers = new Set(constraint.closers);
  const first = ids(constraint.allowed);
  const inside = ids([...constraint.allowed, ...constraint.closers]);
  let state: Support = null;
  return {
    support: () => state,
    push: (token) => {
      if (state === null) state = triggers.has(token) ? first : null;
      else state = closers.has(token) ? null : inside;
    },
  };
}
