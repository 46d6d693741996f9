import { TapwrightError } from '../../domain/errors.ts';
import type { AdamParams } from './adam.ts';
import { checkConstraint } from './constraint.ts';
import type { SamplingParams } from './sampler.ts';

/** Readers of request bodies: each names the key and what was expected. */
export type Body = Record<string, unknown>;

export const bad = (message: string): TapwrightError => new TapwrightError('invalid_input', message);

export function record(value: unknown, where: string): Body {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw bad(`${where} must be an object`);
  return value as Body;
}

export function text(body: Body, key: string): string {
  const value = body[key];
  if (typeof value !== 'string' || value === '') throw bad(`${key} must be a non-empty string`);
  return value;
}

export function list(value: unknown, where: string, most: number): unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw bad(`${where} must be a list with at least one entry`);
  if (value.length > most) throw bad(`${where} has ${value.length} entries, at most ${most} are taken`);
  return value;
}

/** A finite number within bounds, or the default when it is absent. */
export function number(body: Body, key: string, other: number, low = -Infinity, high = Infinity): number {
  const value = body[key];
  if (value === undefined || value === null) return other;
  if (typeof value !== 'number' || !Number.isFinite(value) || value < low || value > high) {
    throw bad(`${key} must be a number in ${low}..${high}, got ${JSON.stringify(value)}`);
  }
  return value;
}

export function whole(body: Body, key: string, other: number, low: number, high: number): number {
  const value = number(body, key, other, low, high);
  if (!Number.isInteger(value)) throw bad(`${key} must be a whole number, got ${value}`);
  return value;
}

export function parseAdam(value: unknown): AdamParams {
  const body = record(value ?? {}, 'adam_params');
  return {
    learningRate: number(body, 'learning_rate', 1e-4, 0, 10),
    beta1: number(body, 'beta1', 0.9, 0, 0.999999),
    beta2: number(body, 'beta2', 0.95, 0, 0.9999999),
    eps: number(body, 'eps', 1e-8, 0, 1),
    weightDecay: number(body, 'weight_decay', 0, 0, 10),
    clipNorm: number(body, 'grad_clip_norm', 0, 0),
  };
}

/** sampling_params of asample, checked against a vocabulary. `seed` is that of the request's first sample. */
export function parseSampling(
  value: unknown,
  vocab: number,
  wantHidden: boolean,
  randomSeed: () => number,
): SamplingParams {
  const body = record(value ?? {}, 'sampling_params');
  const stop = body['stop'] ?? [];
  const stops = Array.isArray(stop) ? (stop as unknown[]) : [stop];
  for (const id of stops) {
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= vocab) {
      throw bad(`sampling_params.stop must be token ids in 0..${vocab - 1}, got ${JSON.stringify(id)}`);
    }
  }
  const constraint = body['constraint'];
  return {
    maxTokens: whole(body, 'max_tokens', 32, 1, 1024),
    temperature: number(body, 'temperature', 1, 0, 100),
    topK: whole(body, 'top_k', -1, -1, 1e9),
    topP: number(body, 'top_p', 1, 0, 1),
    seed: body['seed'] === undefined || body['seed'] === null ? randomSeed() : whole(body, 'seed', 0, 0, 2 ** 53 - 1),
    stop: stops as number[],
    constraint:
      constraint === undefined || constraint === null ? null : checkConstraint(constraint, vocab, 'sampling_params'),
    wantHidden,
  };
}

export function encodeFloats(
  values: Float32Array,
  shape: number[],
): { data: string; dtype: 'float32'; shape: number[] } {
  return {
    data: Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64'),
    dtype: 'float32',
    shape,
  };
}
