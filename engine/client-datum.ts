import { TapwrightError } from '../domain/errors.ts';
import type { Capabilities, Constraint, Datum, LossConfig, LossName } from './tinker.ts';

/** A training row before it goes over the wire. All lists are as long as `tokens`. */
export interface ClientDatum {
  tokens: number[];
  targets: number[];
  /** 0 where a target is not trained. */
  weights: number[];
  /** Sampled log-probabilities; needed by every loss but cross_entropy. */
  logprobs: number[] | null;
  advantages: number[] | null;
  constraint: Constraint | null;
}

const wrong = (message: string): TapwrightError => new TapwrightError('invalid_input', message);

/** Token ids of a prompt, checked; `vocabulary` null: no upper bound is known. Errors: `invalid_input`. */
export function checkTokens(tokens: readonly number[], vocabulary: number | null, where: string): void {
  if (tokens.length === 0) throw wrong(`${where} holds no tokens`);
  const bad = tokens.findIndex((id) => !Number.isInteger(id) || id < 0 || (vocabulary !== null && id >= vocabulary));
  if (bad < 0) return;
  const range = vocabulary === null ? '0 and up' : `0..${vocabulary - 1}`;
  throw wrong(`${where}[${bad}] = ${String(tokens[bad])} is not a token id in ${range}`);
}

function checkNumbers(values: readonly number[], length: number, where: string): void {
  if (values.length !== length) {
    throw wrong(`${where} has ${values.length} entries and the row ${length} tokens: they must agree`);
  }
  const bad = values.findIndex((x) => !Number.isFinite(x));
  if (bad >= 0) throw wrong(`${where}[${bad}] = ${String(values[bad])} is not a finite number`);
}

/**
 * Rows as wire data, each checked here: engines accept rows that are short, miss a list or hold a token out of range, and
 * answer with loss 0, padding, or a model that is unusable from then on. Errors: `invalid_input` naming row and place.
 */
export function wireData(rows: readonly ClientDatum[], loss: LossName, vocabulary: number | null): Datum[] {
  if (rows.length === 0) throw wrong('a training request without rows would never complete');
  const data = rows.map((row, i) => wireDatum(row, loss, vocabulary, `data[${i}]`));
  if (!rows.some((row) => row.weights.some((w) => w !== 0))) {
    throw wrong('no target of the request has a weight: there is nothing to train on');
  }
  return data;
}

function wireDatum(row: ClientDatum, loss: LossName, vocabulary: number | null, where: string): Datum {
  const { tokens, targets, weights, logprobs, advantages, constraint } = row;
  checkTokens(tokens, vocabulary, `${where}.tokens`);
  checkNumbers(targets, tokens.length, `${where}.targets`);
  checkTokens(targets, vocabulary, `${where}.targets`);
  checkNumbers(weights, tokens.length, `${where}.weights`);
  const datum: Datum = {
    model_input: { chunks: [{ type: 'encoded_text', tokens }] },
    loss_fn_inputs: { target_tokens: { data: targets }, weights: { data: weights } },
    ...(constraint === null ? {} : { constraint }),
  };
  if (loss === 'cross_entropy') return datum;
  if (logprobs === null) throw wrong(`${where}.logprobs is missing: ${loss} needs the sampled log-probabilities`);
  if (advantages === null) throw wrong(`${where}.advantages is missing: ${loss} needs them`);
  checkNumbers(logprobs, tokens.length, `${where}.logprobs`);
  checkNumbers(advantages, tokens.length, `${where}.advantages`);
  const bad = logprobs.findIndex((logp, i) => weights[i] !== 0 && logp > 1e-4);
  if (bad >= 0) throw wrong(`${where}.logprobs[${bad}] = ${logprobs[bad]} is above 0: no log-probability`);
  datum.loss_fn_inputs.logprobs = { data: logprobs };
  datum.loss_fn_inputs.advantages = { data: advantages };
  return datum;
}

const EXTRAS = ['entropy', 'dual_clip', 'denominator'] as const;

/**
 * The loss's numbers as this engine takes them. One without our extensions gets the clip thresholds only; what it would
 * leave out silently is refused (`engine_refused`). A mean over weighted tokens is what such an engine computes, so the
 * denominator is left out, and weights must be a mask.
 */
export function wireLossConfig(
  capabilities: Capabilities,
  rows: readonly ClientDatum[],
  config: Record<string, number>,
): LossConfig {
  if (capabilities.extended) return config;
  const refuse = (what: string, instead: string): never => {
    throw new TapwrightError('engine_refused', `this engine has no ${what}: ${instead}, or use the embedded engine`);
  };
  if ((config['entropy'] ?? 0) !== 0) refuse('entropy bonus', 'set learn.entropy: 0');
  if (config['dual_clip'] !== undefined) refuse('dual clip', 'set learn.dualClip: null');
  if (rows.some((row) => row.constraint !== null)) refuse('decode-time mask', 'set agent.decodeMask: none');
  if (rows.some((row) => row.weights.some((w) => w !== 0 && w !== 1))) {
    refuse('weights but 0 and 1', 'set learn.aggregation: token-mean');
  }
  const extras: readonly string[] = EXTRAS;
  return Object.fromEntries(Object.entries(config).filter(([key]) => !extras.includes(key)));
}
