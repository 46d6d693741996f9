export interface AdamParams {
  learningRate: number;
  beta1: number;
  beta2: number;
  eps: number;
  weightDecay: number;
  /** Global-norm clip; 0: none. */
  clipNorm: number;
}

/** Adam's state beside its weights: everything that an exact resume needs. */
export interface AdamState {
  weights: Float32Array;
  m: Float32Array;
  v: Float32Array;
  step: number;
}

/**
 * One step of AdamW with bias correction, in place, arithmetic in doubles and state in float32, so that a saved state
 * continues to the bit. Returns the gradient's global norm before clipping. A gradient that is not finite changes nothing
 * and throws nothing: the norm says so.
 */
export function adamStep(state: AdamState, grads: Float64Array, params: AdamParams): number {
  const { learningRate, beta1, beta2, eps, weightDecay, clipNorm } = params;
  let sum = 0;
  for (let i = 0; i < grads.length; i++) sum += grads[i]! * grads[i]!;
  const norm = Math.sqrt(sum);
  if (!Number.isFinite(norm)) return norm;
  const factor = clipNorm > 0 && norm > clipNorm ? clipNorm / norm : 1;
  const { weights, m, v } = state;
  state.step += 1;
  const c1 = 1 - Math.pow(beta1, state.step);
  const c2 = 1 - Math.pow(beta2, state.step);
  for (let i = 0; i < grads.length; i++) {
    const g = grads[i]! * factor;
    m[i] = beta1 * m[i]! + (1 - beta1) * g;
    v[i] = beta2 * v[i]! + (1 - beta2) * g * g;
    const update = m[i]! / c1 / (Math.sqrt(v[i]! / c2) + eps);
    weights[i] = weights[i]! - learningRate * (update + weightDecay * weights[i]!);
  }
  return norm;
}
