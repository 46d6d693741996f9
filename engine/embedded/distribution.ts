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
  logits: Float32Array;
  /** Where this position's logits begin. */
  base: number;
  /** p = exp(logit - top) / total where nothing is copied. */
  top: number;
  total: number;
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
    for (let k = 0; k < ids.length; k++) top = Math.max(top, logits[base + ids[k]!]!);
    if (copy !== null) {
      for (let t = 0; t < visible; t++) {
        const id = context[contextFrom + t]!;
        if (id < 0 || open[id] === 0) continue;
        const score = copy[at * length + t]! + g;
        if (score > top) top = score;
      }
    }
    for (let k = 0; k < ids.length; k++) {
      const v = ids[k]!;
      mass[v] = own[v] = Math.exp(logits[base + v]! - top);
    }
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
    for (let k = 0; k < ids.length; k++) total += mass[ids[k]!]!;
    for (let k = 0; k < ids.length; k++) p[ids[k]!] = mass[ids[k]!]! / total;
    spread = null;
    place = { at, logits, base, top, total, context, from: contextFrom, visible, length, copies: copy !== null };
  }

  function entropy(): number {
    if (spread !== null) return spread;
    spread = 0;
    const { logits, base, top, total } = place!;
    const shift = top + Math.log(total);
    for (let k = 0; k < ids.length; k++) {
      const v = ids[k]!;
      const q = p[v]!;
      // A logarithm costs as much as everything else here: what nothing was copied to has its own logit.
      logp[v] = q === 0 ? 0 : mass[v] === own[v] ? logits[base + v]! - shift : Math.log(q);
      spread -= q * logp[v]!;
    }
    return spread;
  }

  function back(target: number, byTarget: number, byEntropy: number, into: OutputGradients): void {
    const { at, base, context, from, visible, length, copies } = place!;
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
    for (let k = 0; k < ids.length; k++) {
      const v = ids[k]!;
      const m = mass[v]!;
      if (m > 0) into.logits[base + v] = m === own[v] ? byLogit(v) : byLogit(v) * (own[v]! / m);
    }
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
