import type { Outcome, TerminalVerdict } from '../domain/index.ts';

/**
 * The reward's outcome of an attempt that said Task_Complete (algorithms.md, 1). `done` needs the judge's success;
 * `blocked` counts only when the judge agrees that the task cannot be done. Anything else is a false claim.
 */
export function outcomeOfClaim(claim: 'done' | 'blocked', verdict: TerminalVerdict): Outcome {
  if (claim === 'done' && verdict === 'success') return 'success';
  if (claim === 'blocked' && verdict === 'blocked_complete') return 'blocked_complete';
  return 'false_completion';
}
