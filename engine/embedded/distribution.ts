import type { Support } from './constraint.ts';
import type { OutputGradients, Outputs } from './model.ts';

/**
 * The next-token distribution in double precision, one place for sampler and trainer. With a copy head a token's mass is
 * exp(logit) plus exp(score + gate) of every position that holds it: generation and pointing share one normaliser.
 */
export interface Distribution {
  /** Probabilities by token id; 0 outside the support. Valid until the next `fill`. */
  readonly p: Float64Array;
  /** Ids of the support, ascending. */
  readonly ids: Int32Array;
  /** Fills `p` from output position `at` (b * S + s) of `outputs`; `context` are the T ids of the row, pads -1. */
  fill(outputs: Outputs, at: number, context: Int32Array, contextFrom: number, visible: number, support: Support): void;
  /** log p of a token; -Infinity outside the support. */
  logprob(token: number): number;
  entropy(): number;
  /**
   * Adds to `into` the gradient of a loss whose derivative by log p(target) is `byTarget` and by the entropy is
   * `byEntropy`, at the position that was filled last.
   */
  back(target: number, byTarget: number, byEntropy: number, into: OutputGradients): void;
}

interface Place {
  at: number;
  context: Int32Array;
  from: number;
  visible: number;
  /** Positions of a row of the copy scores. */
  length: number;
  copies: boolean;
}

export function createDistribution(vocab: number): Distribution {
  const p = new Float64Array(vocab);
  const logp = new Float64Array(vocab);
  const mass = new Float64Array(vocab);
  const own = new Float64Array(vocab);
  const open = new Uint8Array(vocab).fill(1);
  const all = Int32Array.from({ length: vocab }, (_, v) => v);
  /** The support of the last fill: every array is 0 outside it. */
  let ids: Int32Array = all;
  let copied = new Float64Array(64);
  let place: Place | null = null;
  let spread: number | null = null;

  /** Work is done on the support alone, which under a mask is a handful of ids. */
  function restrict(support: Support): void {
    const next = support ?? all;
    if (next === ids) return;
    for (const v of ids) p[v] = mass[v] = own[v] = open[v] = 0;
    for (const v of next) open[v] = 1;
    ids = next;
  }

  function fill(
    outputs: Outputs,
    at: number,
    context: Int32Array,
    contextFrom: number,
    visible: number,
    support: Support,
  ): void {
    const { logits, copy, gate } = outputs;
    restrict(support);
    const base = at * vocab;
    const length = copy === null ? 0 : copy.length / (logits.length / vocab);
    const g = gate === null ? 0 : gate[at]!;
    let top = -Infinity;
    for (const v of ids) if (logits[base + v]! > top) top = logits[base + v]!;
    if (copy !== null) {
      for (let t = 0; t < visible; t++) {
        const id = context[contextFrom + t]!;
        if (id < 0 || open[id] === 0) continue;
        const score = copy[at * length + t]! + g;
        if (score > top) top = score;
      }
    }
    for (const v of ids) mass[v] = own[v] = Math.exp(logits[base + v]! - top);
    if (copy !== null) {
      if (copied.length < length) copied = new Float64Array(2 * length);
      for (let t = 0; t < visible; t++) {
        const id = context[contextFrom + t]!;
        copied[t] = 0;
        if (id < 0 || open[id] === 0) continue;
        copied[t] = Math.exp(copy[at * length + t]! + g - top);
        mass[id]! += copied[t]!;
      }
    }
    let total = 0;
    for (const v of ids) total += mass[v]!;
    for (const v of ids) p[v] = mass[v]! / total;
    spread = null;
    place = { at, context, from: contextFrom, visible, length, copies: copy !== null };
  }

  function entropy(): number {
    if (spread !== null) return spread;
    spread = 0;
    for (const v of ids) {
      logp[v] = p[v]! > 0 ? Math.log(p[v]!) : 0;
      spread -= p[v]! * logp[v]!;
    }
    return spread;
  }

  function back(target: number, byTarget: number, byEntropy: number, into: OutputGradients): void {
    const { at, context, from, visible, length, copies } = place!;
    // A single permitted token has probability 1 whatever the weights.
    if (ids.length === 1) return;
    const h = byEntropy === 0 ? 0 : entropy();
    // Derivative by the effective logit log(mass).
    const byLogit = (v: number): number => {
      const q = p[v]!;
      let d = -byTarget * q;
      if (v === target) d += byTarget;
      if (byEntropy !== 0 && q > 0) d -= byEntropy * q * (logp[v]! + h);
      return d;
    };
    const base = at * vocab;
    for (const v of ids) if (mass[v]! > 0) into.logits[base + v] = byLogit(v) * (own[v]! / mass[v]!);
    if (!copies) return;
    let sum = 0;
    for (let t = 0; t < visible; t++) {
      if (copied[t] === 0) continue;
      const id = context[from + t]!;
      const d = byLogit(id) * (copied[t]! / mass[id]!);
      into.copy![at * length + t] = d;
      sum += d;
    }
    into.gate![at] = sum;
  }

  return {
    p,
    get ids() {
      return ids;
    },
    fill,
    logprob: (token) => Math.log(p[token]!),
    entropy,
    back,
  };
}
