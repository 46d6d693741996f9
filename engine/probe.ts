import { TapwrightError } from '../domain/errors.ts';
import type { ClientDatum, EngineClient } from './client.ts';
import { decodeBase64 } from './floats.ts';
import type { Capabilities, LossName } from './tinker.ts';

export interface ProbeOptions {
  client: EngineClient;
  baseModel: string;
  /** The critic reads hidden states: refuse an engine that gives none. */
  hiddenStates: boolean;
  /** The label mask is on. */
  constraint: boolean;
}

export interface ProbeReport {
  /** How the engine adds up token losses, as measured. */
  reduction: 'sum' | 'mean';
  capabilities: Capabilities;
}

/** A prompt of two tokens and a response of four. */
const TOKENS = [1, 2, 3, 4, 5, 6];
const PROMPT = 2;
const STILL = { learningRate: 0, beta1: 0.9, beta2: 0.95, eps: 1e-8, gradClip: 0 };
const CLIP = { clip_low_threshold: 0.8, clip_high_threshold: 1.2 };
/** Two pictures of 56 x 56 pixels, all black and all white. */
const PICTURES = [
  'iVBORw0KGgoAAAANSUhEUgAAADgAAAA4CAIAAAAn5KxJAAAAIElEQVR42u3BAQ0AAADCoPdPbQ43oAAAAAAAAAAAAAL4MJPgAAZPXqLIAAAAASUVORK5CYII=',
  'iVBORw0KGgoAAAANSUhEUgAAADgAAAA4CAIAAAAn5KxJAAAAP0lEQVR42u3OMQ0AAAwDoPo33R5TsQQUkD4RUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVHRM3/7nV0TjaS5AAAAAElFTkSuQmCC',
];
/** Relative; engines compute in float32 or bfloat16. */
const NEAR = 0.02;

/**
 * Start-up check of an engine with a known row, before a run trusts it: its PPO loss is our formula and no other, sums or
 * means are told apart, sampling reports the log-probabilities that training sees, the same seed gives the same tokens,
 * and where it says that it sees images, two of them differ. Uses a throw-away model whose weights do not move. Errors: `engine_refused` with the reason.
 */
export async function probeEngine(options: ProbeOptions): Promise<ProbeReport> {
  const { client, baseModel } = options;
  await client.health();
  const capabilities = await client.capabilities();
  if (options.hiddenStates && !capabilities.hiddenStates) refuse('it gives no hidden states, which the critic reads');
  if (options.constraint && !capabilities.constraint) refuse('it has no decode-time mask: set agent.decodeMask: none');
  for (const loss of ['cross_entropy', 'ppo']) {
    if (capabilities.losses.length > 0 && !capabilities.losses.includes(loss)) refuse(`it has no loss ${loss}`);
  }
  const model = await client.createModel({ baseModel, seed: 0 });
  try {
    const { logprobs } = await client.forward(model, [row(null, 0, 0)], 'cross_entropy');
    const known = logprobs[0]!.slice(PROMPT - 1);
    if (known.some((x) => !(x <= 1e-4))) refuse(`it gives log-probabilities ${known.join(', ')} to a known row`);
    const reduction = await checkLosses(client, model, logprobs[0]!);
    if (capabilities.reduction !== null && capabilities.reduction !== reduction) {
      refuse(`it says that it takes the ${capabilities.reduction} over tokens and takes the ${reduction}`);
    }
    if (reduction === 'sum' && !capabilities.extended) {
      refuse('it sums over tokens and takes no denominator, so the step would grow with the batch');
    }
    await checkSampling(options, model);
    if (capabilities.images) await checkImages(options);
    return { reduction, capabilities };
  } finally {
    client.release(model);
  }
}

function refuse(why: string): never {
  throw new TapwrightError('engine_refused', `the engine cannot be used: ${why}; the embedded engine (engine.url) can`);
}

/** The known row; `old` null for cross-entropy. Old log-probabilities are `shift` below the engine's own. */
function row(own: readonly number[] | null, shift: number, advantage: number): ClientDatum {
  const targets = TOKENS.slice(1);
  const response = (i: number): boolean => i >= PROMPT - 1;
  return {
    tokens: TOKENS.slice(0, -1),
    targets,
    weights: targets.map((_, i) => (response(i) ? 1 : 0)),
    logprobs: own && targets.map((_, i) => (response(i) ? own[i]! - shift : 0)),
    advantages: own && targets.map((_, i) => (response(i) ? advantage : 0)),
    constraint: null,
  };
}

/**
 * By the norm of gradients, which a step of learning rate 0 reports, and by the loss where it is reported: PPO with ratio
 * 1 and advantage 2 has twice the gradient of cross-entropy; beyond the clip it has none; two rows have that of one
 * (mean) or twice that (sum).
 */
async function checkLosses(client: EngineClient, model: string, own: number[]): Promise<'sum' | 'mean'> {
  const measure = async (rows: ClientDatum[], loss: LossName): Promise<{ norm: number; loss: number | null }> => {
    const { metrics } = await client.forwardBackward(model, rows, loss, loss === 'ppo' ? CLIP : {});
    const norm = normOf(await client.optimStep(model, STILL));
    if (norm === null) refuse('its optim_step does not report the norm of the gradient, so its losses go unchecked');
    return { norm, loss: metrics['loss:sum'] ?? metrics['loss'] ?? null };
  };
  // What an earlier tenant of the slot left behind is spent first.
  await measure([row(null, 0, 0)], 'cross_entropy');
  const plain = await measure([row(null, 0, 0)], 'cross_entropy');
  if (!(plain.norm > 0)) refuse('the gradient of a known row is 0');
  const double = await measure([row(null, 0, 0), row(null, 0, 0)], 'cross_entropy');
  const reduction = near(double.norm, plain.norm) ? 'mean' : near(double.norm, 2 * plain.norm) ? 'sum' : null;
  if (reduction === null) refuse(`two equal rows have ${double.norm / plain.norm} times the gradient of one`);
  const weighted = await measure([row(own, 0, 2)], 'ppo');
  if (!near(weighted.norm, 2 * plain.norm)) {
    refuse(`advantage 2 scales the gradient by ${weighted.norm / plain.norm}: its loss ppo is another one`);
  }
  const clipped = await measure([row(own, 0.5, 1)], 'ppo');
  if (!(clipped.norm < NEAR * plain.norm)) {
    refuse('a ratio of 1.65 has a gradient where ppo clips at 1.2: its loss ppo is another one');
  }
  // A ratio of 1.65 with advantage 1 counts as 1.2 a token, of four tokens.
  const expected = -1.2 * (reduction === 'sum' ? TOKENS.length - PROMPT : 1);
  if (clipped.loss !== null && !near(clipped.loss, expected)) {
    refuse(`the ppo loss of a known row is ${clipped.loss}, by the formula ${expected}`);
  }
  return reduction;
}

function normOf(metrics: Record<string, number>): number | null {
  const key = Object.keys(metrics).find((name) => /grad.*norm/i.test(name));
  return key === undefined ? null : metrics[key]!;
}

const near = (a: number, b: number): boolean => Math.abs(a - b) <= NEAR * Math.abs(b);

const REQUEST = { seed: 11, temperature: 1, maxTokens: 4, stop: [], constraint: null, returnHidden: false };

/** Engines are known to drop images without a word: then the second one changes nothing. */
async function checkImages({ client, baseModel }: ProbeOptions): Promise<void> {
  const request = { ...REQUEST, policy: baseModel, prompt: TOKENS.slice(0, PROMPT), maxTokens: 1 };
  const seen: number[] = [];
  for (const data of PICTURES) {
    const sampled = await client.sample({ ...request, images: [{ data, format: 'png' }] });
    seen.push(sampled.tokens[0]!, sampled.logprobs[0]!);
  }
  if (seen[0] === seen[2] && seen[1] === seen[3]) {
    refuse('a black and a white image give the same answer to the bit: it drops images');
  }
}

/** The base model sampled, against the fresh training model, which has the same weights. */
async function checkSampling(options: ProbeOptions, model: string): Promise<void> {
  const { client, baseModel } = options;
  const prompt = TOKENS.slice(0, PROMPT);
  const request = { ...REQUEST, policy: baseModel, prompt, returnHidden: options.hiddenStates };
  const first = await client.sample(request);
  const second = await client.sample(request);
  if (first.tokens.join() !== second.tokens.join()) refuse('the same request with the same seed gave other tokens');
  if (options.hiddenStates) {
    if (first.hidden === null) refuse('a sample came without the hidden state that was asked for');
    const hidden = decodeBase64(first.hidden);
    if (hidden.length === 0 || hidden.some((x) => !Number.isFinite(x))) refuse('a hidden state is empty or not finite');
  }
  const all = [...prompt, ...first.tokens];
  const data: ClientDatum = {
    tokens: all.slice(0, -1),
    targets: all.slice(1),
    weights: all.slice(1).map((_, i) => (i >= PROMPT - 1 ? 1 : 0)),
    logprobs: null,
    advantages: null,
    constraint: null,
  };
  const seen = (await client.forward(model, [data], 'cross_entropy')).logprobs[0]!.slice(PROMPT - 1);
  const off = Math.max(...first.logprobs.map((logp, i) => Math.abs(logp - seen[i]!)));
  if (!(off < NEAR)) refuse(`log-probabilities of sampling and of training differ by ${off}`);
}
