import type { Random } from '../../rl/random.ts';
import type { Distribution } from './distribution.ts';
import type { SamplingParams } from './sampler.ts';

/** What decides which token of a distribution is taken. */
type Choice = Pick<SamplingParams, 'temperature' | 'topK' | 'topP'>;

/** Greedy (the lowest id wins a tie), or inverse distribution function with one draw of the request's stream. */
export function pick({ p, ids }: Pick<Distribution, 'p' | 'ids'>, params: Choice, random: Random): number {
  if (params.temperature === 0) {
    let best = ids[0]!;
    for (let k = 1; k < ids.length; k++) if (p[ids[k]!]! > p[best]!) best = ids[k]!;
    return best;
  }
  const u = random.next();
  const kept = filter(tempered(p, ids, params.temperature), params);
  let total = 0;
  for (let k = 0; k < ids.length; k++) total += kept[ids[k]!]!;
  let left = u * total;
  let last = ids[0]!;
  for (let k = 0; k < ids.length; k++) {
    const v = ids[k]!;
    if (kept[v] === 0) continue;
    last = v;
    left -= kept[v]!;
    if (left < 0) return v;
  }
  return last;
}

/** p to the power of 1 / temperature, 0 outside of `ids`. */
function tempered(p: Float64Array, ids: Int32Array, temperature: number): Float64Array {
  if (temperature === 1) return p;
  const out = new Float64Array(p.length);
  for (let k = 0; k < ids.length; k++) {
    const v = ids[k]!;
    if (p[v]! > 0) out[v] = Math.pow(p[v]!, 1 / temperature);
  }
  return out;
}

/** top-k, then top-p; ties by id. */
function filter(weights: Float64Array, { topK, topP }: Choice): Float64Array {
  const all = topK <= 0 || topK >= weights.length;
  if (all && topP >= 1) return weights;
  const order = Array.from(weights.keys()).sort((a, b) => weights[b]! - weights[a]! || a - b);
  const kept = new Float64Array(weights.length);
  const ranked = all ? order : order.slice(0, topK);
  const total = ranked.reduce((sum, v) => sum + weights[v]!, 0);
  let sum = 0;
  for (const v of ranked) {
    if (sum >= topP * total && sum > 0) break;
    kept[v] = weights[v]!;
    sum += weights[v]!;
  }
  return kept;
}
