import { TapwrightError } from '../../domain/errors.ts';

/**
 * Decode-time mask as a finite automaton over tokens, state 0 first. In a state the tokens of its arcs may come, and each
 * leads to its arc's `next`; `other` is where any other token leads, null: no other may come. The same in sampling and in
 * training, where log-probabilities are those of the masked, renormalised distribution.
 */
export interface Constraint {
  states: ConstraintState[];
}
export interface ConstraintState {
  arcs: { tokens: number[]; next: number }[];
  other: number | null;
}

/** Token ids that may come next, ascending and distinct; null: any. */
export type Support = Int32Array | null;

export interface ConstraintTracker {
  /** What may come next. */
  support(): Support;
  /** Moves on by the token that came, which must be in the support. */
  push(token: number): void;
}

const MAX_STATES = 1024;

/** Validates a constraint against a vocabulary; throws invalid_input with the place and the reason. */
export function checkConstraint(value: unknown, vocab: number, where: string): Constraint {
  const wrong = (what: string): never => {
    throw new TapwrightError('invalid_input', `${where}: ${what}`);
  };
  const states = (value as Constraint | null)?.states;
  if (!Array.isArray(states) || states.length === 0 || states.length > MAX_STATES)
    return wrong(`constraint must be {states: [{arcs, other}]} with 1 to ${MAX_STATES} states`);
  const isState = (s: unknown): boolean => Number.isInteger(s) && (s as number) >= 0 && (s as number) < states.length;
  states.forEach((state, i) => {
    const at = `constraint.states[${i}]`;
    if (!Array.isArray(state?.arcs)) return wrong(`${at}.arcs must be a list of {tokens, next}`);
    if (state.other !== null && !isState(state.other)) wrong(`${at}.other must be null or one of the states`);
    const seen = new Set<number>();
    state.arcs.forEach((arc, j) => {
      if (!Array.isArray(arc?.tokens) || !isState(arc.next))
        return wrong(`${at}.arcs[${j}] must be {tokens, next} with one of the states`);
      for (const id of arc.tokens) {
        if (!Number.isInteger(id) || id < 0 || id >= vocab)
          wrong(`${at}.arcs[${j}]: ${String(id)} is not a token id in 0..${vocab - 1}`);
        if (seen.has(id)) wrong(`${at}: token ${id} is in two arcs`);
        seen.add(id);
      }
    });
    if (state.other === null && seen.size === 0) wrong(`${at} permits no token`);
  });
  return { states };
}

/** Follows one response from its first token. A null constraint allows everything. */
export function createTracker(constraint: Constraint | null): ConstraintTracker {
  if (constraint === null) return { support: () => null, push: () => {} };
  const { states } = constraint;
  const supports: (Support | undefined)[] = [];
  let at = 0;
  return {
    support: () => {
      const { arcs, other } = states[at]!;
      return (supports[at] ??= other === null ? Int32Array.from(arcs.flatMap((arc) => arc.tokens)).sort() : null);
    },
    push: (token) => {
      const { arcs, other } = states[at]!;
      at = arcs.find((arc) => arc.tokens.includes(token))?.next ?? other ?? at;
    },
  };
}
