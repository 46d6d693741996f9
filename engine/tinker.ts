import { TapwrightError } from '../domain/errors.ts';
import type { Constraint } from './embedded/constraint.ts';
import type { LossName } from './embedded/losses.ts';

/** Wire types of the Tinker HTTP API with our extensions, and light checks of what a server replies. */
export type { Constraint, LossName };

export type Chunk = { type: 'encoded_text'; tokens: number[] } | { type: 'image'; data: string; format: string };
export interface ModelInput {
  chunks: Chunk[];
}
export interface NumberList {
  data: number[];
}

/** A training row: inputs are tokens[:-1], targets tokens[1:], shifted by the client. */
export interface Datum {
  model_input: ModelInput;
  loss_fn_inputs: {
    target_tokens: NumberList;
    weights?: NumberList;
    logprobs?: NumberList;
    advantages?: NumberList;
  };
  /** Extension: the label mask under which the row was sampled. */
  constraint?: Constraint;
}

/** Ratio bounds, e.g. 0.8 and 1.2; `entropy`, `dual_clip` and `denominator` are extensions. */
export interface LossConfig {
  clip_low_threshold?: number;
  clip_high_threshold?: number;
  entropy?: number;
  dual_clip?: number;
  denominator?: number;
}

export interface LossInput {
  data: Datum[];
  loss_fn: LossName;
  loss_fn_config?: LossConfig;
}

export interface WireAdam {
  learning_rate: number;
  beta1: number;
  beta2: number;
  eps: number;
  weight_decay: number;
  /** Extension: the gradient's global norm is cut to it; 0: not. */
  grad_clip_norm?: number;
}

export interface SampleBody {
  prompt: ModelInput;
  num_samples: number;
  model_path?: string;
  base_model?: string;
  /** Extension: the hidden state of the last prompt token comes with the reply. */
  hidden_states?: boolean;
  sampling_params: {
    max_tokens: number;
    seed?: number;
    stop?: number[];
    temperature: number;
    top_k: number;
    top_p: number;
    /** Extension: decode-time label mask. */
    constraint?: Constraint;
  };
}

/** What a server says of itself. All but the models are extensions: null, false or empty where it says nothing. */
export interface Capabilities {
  models: string[];
  /** Speaks our extensions: asample_batch, constraint, hidden states, loss_fn_config extras. */
  extended: boolean;
  losses: string[];
  images: boolean;
  reduction: 'sum' | 'mean' | null;
  hiddenStates: boolean;
  deterministicBatching: boolean;
  constraint: boolean;
  /** The tensor library behind it; null: not told. */
  backend: string | null;
  /** Everything it said. */
  raw: Record<string, unknown>;
}

export interface Sequence {
  tokens: number[];
  logprobs: number[];
  stopReason: string;
}
/** One asample's result; `hidden` is base64 float32 or null. */
export interface SampleResult {
  sequences: Sequence[];
  hidden: string | null;
}

type Json = Record<string, unknown>;

/** A reply that is not what the protocol says: the server is another version, or no engine at all. */
function strange(call: string, what: string): TapwrightError {
  return new TapwrightError(
    'engine_refused',
    `the engine's reply to ${call} ${what}: is that URL a Tinker-compatible engine?`,
  );
}

/** The value as an object. Errors: `engine_refused`. */
export function asObject(call: string, value: unknown): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw strange(call, 'is not a JSON object');
  return value as Json;
}

/** A non-empty string of a reply. Errors: `engine_refused`. */
export function textOf(call: string, reply: Json, key: string): string {
  const value = reply[key];
  if (typeof value !== 'string' || value === '') throw strange(call, `has no ${key}`);
  return value;
}

function listOf(call: string, reply: Json, key: string, length?: number): unknown[] {
  const value = reply[key];
  if (!Array.isArray(value)) throw strange(call, `has no list ${key}`);
  if (length !== undefined && value.length !== length) {
    throw strange(call, `has ${value.length} ${key} where ${length} were asked for`);
  }
  return value;
}

function numbersOf(call: string, value: unknown, what: string): number[] {
  if (!Array.isArray(value)) throw strange(call, `has no numbers in ${what}`);
  const bad = value.findIndex((x) => typeof x !== 'number' || !Number.isFinite(x));
  if (bad >= 0) throw strange(call, `has ${String(value[bad])} in ${what}[${bad}], which is not a finite number`);
  return value as number[];
}

/** Reads get_server_capabilities. */
export function readCapabilities(reply: Json): Capabilities {
  const models = Array.isArray(reply['supported_models']) ? (reply['supported_models'] as unknown[]) : [];
  const reduction = reply['reduction'];
  return {
    models: models.map((m) => String((m as Json | null)?.['model_name'] ?? m)),
    extended: typeof reply['deterministic_batching'] === 'boolean',
    losses: Array.isArray(reply['losses']) ? (reply['losses'] as string[]) : [],
    images: reply['images'] === true,
    reduction: reduction === 'sum' || reduction === 'mean' ? reduction : null,
    hiddenStates: reply['hidden_states'] === true,
    deterministicBatching: reply['deterministic_batching'] === true,
    constraint: reply['constraint'] === true,
    backend: typeof reply['backend'] === 'string' ? reply['backend'] : null,
    raw: reply,
  };
}

/** Reads one asample result: `samples` sequences, each with one finite log-probability a token. */
export function readSample(reply: unknown, samples: number): SampleResult {
  const result = asObject('asample', reply);
  const sequences = listOf('asample', result, 'sequences', samples).map((each) => {
    const sequence = asObject('asample', each);
    const tokens = numbersOf('asample', sequence['tokens'], 'tokens');
    const logprobs = numbersOf('asample', sequence['logprobs'], 'logprobs');
    if (tokens.length !== logprobs.length) {
      throw strange('asample', `has ${logprobs.length} log-probabilities for ${tokens.length} tokens`);
    }
    return { tokens, logprobs, stopReason: String(sequence['stop_reason'] ?? '') };
  });
  const hidden = result['hidden_state'];
  return { sequences, hidden: hidden === undefined || hidden === null ? null : readFloats('asample', hidden).data };
}

/** The results of asample_batch, one a request. */
export function readBatch(reply: Json, requests: number): unknown[] {
  return listOf('asample_batch', reply, 'results', requests);
}

/** `{data: base64, shape}` of float32 numbers. */
export function readFloats(call: string, value: unknown): { data: string; shape: number[] } {
  const floats = asObject(call, value);
  return { data: textOf(call, floats, 'data'), shape: numbersOf(call, floats['shape'], 'shape') };
}

/** Reads the result of forward or forward_backward: log-probabilities by row, each as long as its row, and metrics. */
export function readLoss(
  reply: Json,
  lengths: readonly number[],
): { logprobs: number[][]; metrics: Record<string, number> } {
  const logprobs = listOf('forward', reply, 'loss_fn_outputs', lengths.length).map((each, i) => {
    const floats = asObject('forward', asObject('forward', each)['logprobs']);
    const row = numbersOf('forward', floats['data'], `logprobs of row ${i}`);
    if (row.length < lengths[i]!) {
      throw strange('forward', `has ${row.length} log-probabilities in row ${i} of ${lengths[i]} tokens`);
    }
    return row.length === lengths[i] ? row : row.slice(0, lengths[i]);
  });
  return { logprobs, metrics: readMetrics(reply) };
}

/** The finite numbers among a reply's metrics. */
export function readMetrics(reply: Json): Record<string, number> {
  const entries = Object.entries((reply['metrics'] ?? {}) as Json);
  return Object.fromEntries(entries.filter((e): e is [string, number] => Number.isFinite(e[1])));
}
