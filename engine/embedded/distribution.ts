import type { Support } from './constraint.ts';
import type { OutputGradients, Outputs } from './model.ts';

/**
 * The next-token distribution in double precision, one place for sampler and trainer. With a copy head a token's mass is
 * exp(logit) plus exp(score + gate) of every position that holds it: generation and pointing share one normaliser.
 */
export interface Distribution {
  /** Probabilities by token id; 0 outside the support. Valid until the next `fill`. */
  readonly p: Float64Array;
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

export function createDistribution(vocab: number): Distribution {
  const p = new Float64Array(vocab);
  const mass = new Float64Array(vocab);
  const own = new Float64Array(vocab);
  const open = new Uint8Array(vocab);
  let copied = new Float64Array(64);
  let total = 1;
  let place: {
    at: number;
    context: Int32Array;
    from: number;
    visible: number;
    length: number;
    support: Support;
    copies: boolean;
  } | null = null;

  function fill(
    outputs: Outputs,
    at: number,
    context: Int32Array,
    contextFrom: number,
    visible: number,
    support: Support,
  ): void {
    const { logits, copy, gate } = outputs;
    const base = at * vocab;
    const length = copy === null ? 0 : copy.length / (logits.length / vocab);
    const g = gate === null ? 0 : gate[at]!;
    if (support !== null) {
      open.fill(0);
      for (const id of support) open[id] = 1;
    }
    let top = -Infinity;
    if (support === null) for (let v = 0; v < vocab; v++) top = logits[base + v]! > top ? logits[base + v]! : top;
    else for (const v of support) top = logits[base + v]! > top ? logits[base + v]! : top;
    if (copy !== null) {
      for (let t = 0; t < visible; t++) {
        const id = context[contextFrom + t]!;
        if (id < 0 || (support !== null && open[id] === 0)) continue;
        const score = copy[at * length + t]! + g;
        if (score > top) top = score;
      }
    }
    if (support === null) for (let v = 0; v < vocab; v++) own[v] = Math.exp(logits[base + v]! - top);
    else {
      own.fill(0);
      for (const v of support) own[v] = Math.exp(logits[base + v]! - top);
    }
    mass.set(own);
    if (copy !== null) {
      if (copied.length < length) copied = new Float64Array(2 * length);
      for (let t = 0; t < visible; t++) {
        const id = context[contextFrom + t]!;
        copied[t] = 0;
        if (id < 0 || (support !== null && open[id] === 0)) continue;
        copied[t] = Math.exp(copy[at * length + t]! + g - top);
        mass[id]! += copied[t]!;
      }
    }
    total = 0;
    for (let v = 0; v < vocab; v++) total += mass[v]!;
    for (let v = 0; v < vocab; v++) p[v] = mass[v]! / total;
    place = { at, context, from: contextFrom, visible, length, support, copies: copy !== null };
  }

  function entropy(): number {
    let sum = 0;
    for (let v = 0; v < vocab; v++) if (p[v]! > 0) sum -= p[v]! * Math.log(p[v]!);
    return sum;
  }

  function back(target: number, byTarget: number, byEntropy: number, into: OutputGradients): void {
    const { at, context, from, visible, length, support, copies } = place!;
    const h = byEntropy === 0 ? 0 : entropy();
    // Derivative by the effective logit log(mass).
    const byLogit = (v: number): number => {
      const q = p[v]!;
      let d = -byTarget * q;
      if (v === target) d += byTarget;
      if (byEntropy !== 0 && q > 0) d -= byEntropy * q * (Math.log(q) + h);
      return d;
    };
    const base = at * vocab;
    if (support === null) {
      for (let v = 0; v < vocab; v++) {
        if (mass[v]! > 0) into.logits[base + v] = byLogit(v) * (own[v]! / mass[v]!);
      }
    } else {
      for (const v of support) if (mass[v]! > 0) into.logits[base + v] = byLogit(v) * (own[v]! / mass[v]!);
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

  return { p, fill, logprob: (token) => Math.log(p[token]!), entropy, back };
}
