import { TapwrightError } from '../../domain/errors.ts';
import { checkConstraint, createTracker } from './constraint.ts';
import type { Constraint, Support } from './constraint.ts';
import type { LossName } from './losses.ts';

/** Longest row the engine takes. */
export const MAX_TOKENS = 2048;

/** One checked training row: inputs are tokens[:-1], targets tokens[1:], shifted by the client. */
export interface EngineDatum {
  tokens: number[];
  targets: number[];
  /** 0 where a target is not trained; the first other one starts the response. */
  weights: number[];
  logprobs: number[] | null;
  advantages: number[] | null;
  /** Permitted ids at each target from the response's first on; null: any at all of them. */
  supports: Support[] | null;
}

const wrong = (message: string): TapwrightError => new TapwrightError('invalid_input', message);
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** The token ids of `{chunks: [{type: 'encoded_text', tokens}]}`, checked; `where` names the place in messages. */
export function parseTokens(input: unknown, vocab: number, where: string): number[] {
  const chunks = isRecord(input) ? input['chunks'] : undefined;
  if (!Array.isArray(chunks) || chunks.length === 0) throw wrong(`${where}.chunks must be a list of chunks`);
  const out: number[] = [];
  chunks.forEach((chunk: unknown, i) => {
    const at = `${where}.chunks[${i}]`;
    if (!isRecord(chunk)) throw wrong(`${at} must be an object`);
    const type = chunk['type'] ?? 'encoded_text';
    if (type !== 'encoded_text') {
      throw wrong(`${at}: this engine reads encoded_text only, not ${JSON.stringify(type)}; it has no images`);
    }
    const tokens = chunk['tokens'];
    if (!Array.isArray(tokens)) throw wrong(`${at}.tokens must be a list of token ids`);
    tokens.forEach((id: unknown, j) => out.push(tokenId(id, vocab, `${at}.tokens[${j}]`)));
  });
  if (out.length === 0) throw wrong(`${where} holds no tokens`);
  if (out.length > MAX_TOKENS) throw wrong(`${where} holds ${out.length} tokens, at most ${MAX_TOKENS} are taken`);
  return out;
}

function tokenId(id: unknown, vocab: number, where: string): number {
  if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= vocab) {
    throw wrong(`${where} = ${JSON.stringify(id)} is not a token id in 0..${vocab - 1}`);
  }
  return id as number;
}

function numbers(inputs: Record<string, unknown>, key: string, length: number, where: string): number[] | null {
  const given = inputs[key];
  if (given === undefined || given === null) return null;
  const data = Array.isArray(given) ? given : isRecord(given) ? given['data'] : undefined;
  if (!Array.isArray(data)) throw wrong(`${where}.${key} must be {data: [numbers]}`);
  if (data.length !== length) {
    throw wrong(`${where}.${key} has ${data.length} entries, the input has ${length} tokens: they must agree`);
  }
  const bad = data.findIndex((x) => typeof x !== 'number' || !Number.isFinite(x));
  if (bad >= 0) throw wrong(`${where}.${key}[${bad}] = ${JSON.stringify(data[bad])} is not a finite number`);
  return data as number[];
}

/** Checks one wire datum for a loss; throws invalid_input naming the place. */
export function parseDatum(value: unknown, loss: LossName, vocab: number, where: string): EngineDatum {
  if (!isRecord(value)) throw wrong(`${where} must be an object`);
  const tokens = parseTokens(value['model_input'], vocab, `${where}.model_input`);
  const inputs = value['loss_fn_inputs'];
  const at = `${where}.loss_fn_inputs`;
  if (!isRecord(inputs)) throw wrong(`${at} must be an object`);
  const targets = numbers(inputs, 'target_tokens', tokens.length, at);
  if (targets === null) throw wrong(`${at}.target_tokens is missing`);
  targets.forEach((id, i) => tokenId(id, vocab, `${at}.target_tokens[${i}]`));
  const weights = numbers(inputs, 'weights', tokens.length, at) ?? new Array<number>(tokens.length).fill(1);
  const logprobs = numbers(inputs, 'logprobs', tokens.length, at);
  const advantages = numbers(inputs, 'advantages', tokens.length, at);
  if (loss !== 'cross_entropy') {
    if (logprobs === null) throw wrong(`${at}.logprobs is missing: ${loss} needs the sampled log-probabilities`);
    if (advantages === null) throw wrong(`${at}.advantages is missing: ${loss} needs them`);
  }
  const given = value['constraint'];
  const constraint = given === undefined || given === null ? null : checkConstraint(given, vocab, where);
  return { tokens, targets, weights, logprobs, advantages, supports: supportsOf(targets, weights, constraint, at) };
}

/** Where the response of a row begins: its first trained target, or its length. */
export function responseStart(row: Pick<EngineDatum, 'tokens' | 'weights'>): number {
  const first = row.weights.findIndex((w) => w !== 0);
  return first < 0 ? row.tokens.length : first;
}

/**
 * What a mask permits at each target of a response. Throws `invalid_input` for a trained target outside of it: its
 * probability is zero, so the row was made with another mask.
 */
export function supportsOf(
  targets: number[],
  weights: number[],
  constraint: Constraint | null,
  where: string,
): Support[] | null {
  const first = weights.findIndex((w) => w !== 0);
  if (constraint === null || first < 0) return null;
  const tracker = createTracker(constraint);
  return targets.slice(first).map((target, i) => {
    const support = tracker.support();
    if (weights[first + i] !== 0 && support !== null && !support.includes(target)) {
      throw wrong(
        `${where}.target_tokens[${first + i}] = ${target} is not among the ${support.length} tokens the constraint permits there`,
      );
    }
    tracker.push(target);
    return support;
  });
}
