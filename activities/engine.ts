import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import type { LabelConstraint } from '../agent/constraint.ts';
import { labelConstraint } from '../agent/constraint.ts';
import type { SamplerPort } from '../agent/planner.ts';
import type { Tokenizer } from '../agent/tokenizer.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { Episode } from '../domain/index.ts';
import type { PlainDatum } from './datums.ts';
import type { SavedPolicy, TrainingEngine } from './policy-trainer.ts';

type Json = Record<string, unknown>;
async function call(url: string, path: string, body: Json | null, timeoutMs: number): Promise<Json> {
  let response: Response;
  try {
    response = await fetch(`${url}/api/v1/${path}`, {
      method: body === null ? 'GET' : 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === null ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    if (response.status === 408 && path === 'retrieve_future') return await call(url, path, body, timeoutMs);
    const reply = (await response.json()) as Json;
    if (response.ok) return reply;
    const detail = `${path}: ${String(reply['detail'])}`;
    if (response.status === 404) throw new TapwrightError('engine_unavailable', detail);
    if (response.status === 429) {
      await sleep(100);
      return await call(url, path, body, timeoutMs);
    }
    throw new TapwrightError(response.status >= 500 ? 'engine_unavailable' : 'engine_refused', detail);
  } catch (error) {
    if (error instanceof TapwrightError) throw error;
    throw new TapwrightError(
      'engine_unavailable',
      `the engine at ${url} does not answer ${path}: ${String((error as Error).cause ?? error)}`,
      {
        cause: error,
      },
    );
  }
}

async function future(url: string, path: string, body: Json, timeoutMs: number): Promise<Json> {
  const reply = await call(url, path, body, timeoutMs);
  return call(url, 'retrieve_future', { request_id: reply['request_id'] }, timeoutMs);
}

export async function createSampler(config: RunConfig, engineUrl: string | null): Promise<SamplerPort> {
  const url = engineUrl ?? config.engine.url;
  const ms = config.engine.requestTimeoutMs;
  type Request = Parameters<SamplerPort['sample']>[0];
  type Sampled = { tokens: number[]; logprobs: number[]; hidden: string | null };
  let waiting: { request: Request; resolve: (s: Sampled) => void; reject: (e: unknown) => void }[] = [];
  const body = (request: Request): Json => ({
    prompt: { chunks: [{ type: 'encoded_text', tokens: request.prompt }] },
    num_samples: 1,
    model_path: request.policy,
    hidden_states: request.returnHidden,
    sampling_params: {
      max_tokens: request.maxTokens,
      seed: request.seed,
      temperature: request.temperature,
      stop: request.stop,
      constraint: request.constraint as unknown as LabelConstraint,
    },
  });
  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    try {
      const reply = await future(url, 'asample_batch', { requests: batch.map((w) => body(w.request)) }, ms);
      (reply['results'] as Json[]).forEach((result, i) => {
        const sequence = (result['sequences'] as Json[])[0]!;
        const hidden = (result['hidden_state'] as { data: string } | undefined)?.data ?? null;
        batch[i]!.resolve({
          tokens: sequence['tokens'] as number[],
          logprobs: sequence['logprobs'] as number[],
          hidden,
        });
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return {
    sample: (request) =>
      new Promise((resolve, reject) => {
        waiting.push({ request, resolve, reject });
        if (waiting.length === 1) setImmediate(() => void flush());
      }),
  };
}

export interface LearnerEngine {
  training: TrainingEngine;
  describe(): Promise<Json>;
  producer(): Promise<Record<string, string>>;
  /** Files behind a saved policy, absolute; none when the engine keeps them elsewhere. */
  filesOf(saved: SavedPolicy): string[];
}

export async function createTrainingEngine(options: {
  home: string;
  engineUrl: string | null;
  config: RunConfig;
  tokenizer: Tokenizer;
}): Promise<LearnerEngine> {
  const { home, config, tokenizer } = options;
  const url = options.engineUrl ?? config.engine.url;
  const ms = config.engine.requestTimeoutMs;
  const embedded = config.engine.url === 'embedded';
  const base = config.engine.baseModel;
  const [plain, copy] = base.endsWith('-copy') ? [base.slice(0, -5), '-copy'] : [base, ''];
  const baseModel = embedded && !/-v\d+/.test(base) ? `${plain}-h4-v${tokenizer.size}${copy}` : base;
  let session: string | null = null;
  const datum = (row: PlainDatum): Json => ({
    model_input: { chunks: [{ type: 'encoded_text', tokens: row.tokens }] },
    loss_fn_inputs: {
      target_tokens: { data: row.targets },
      weights: { data: row.weights },
      ...(row.logprobs === null ? {} : { logprobs: { data: row.logprobs } }),
      ...(row.advantages === null ? {} : { advantages: { data: row.advantages } }),
    },
    constraint: labelConstraint(tokenizer, row.allowed),
  });
  const timer = setInterval(() => {
    if (session !== null) void call(url, 'session_heartbeat', { session_id: session }, ms).catch(() => {});
  }, 30_000);
  timer.unref();
  const training: TrainingEngine = {
    createModel: async () => {
      const opened = await call(url, 'create_session', { tags: [], type: 'create_session', sdk_version: '0' }, ms);
      session = opened['session_id'] as string;
      const made = await call(
        url,
        'create_model',
        { session_id: session, base_model: baseModel, lora_config: { rank: 0, seed: config.seed } },
        ms,
      );
      return made['model_id'] as string;
    },
    loadWeights: async (model, path) => {
      await future(url, 'load_weights', { model_id: model, path, optimizer: true }, ms);
    },
    forwardBackward: async (model, data, loss, settings) => {
      const input = { data: data.map(datum), loss_fn: loss, loss_fn_config: settings };
      const reply = await future(url, 'forward_backward', { model_id: model, forward_backward_input: input }, ms);
      const outputs = reply['loss_fn_outputs'] as { logprobs: { data: number[] } }[];
      return { logprobs: outputs.map((o) => o.logprobs.data), metrics: reply['metrics'] as Record<string, number> };
    },
    optimStep: async (model, adam) => {
      const params = {
        learning_rate: adam.learningRate,
        beta1: adam.beta1,
        beta2: adam.beta2,
        eps: adam.eps,
        weight_decay: 0,
        grad_clip_norm: adam.gradClip,
      };
      const reply = await future(url, 'optim_step', { model_id: model, adam_params: params }, ms);
      return reply['metrics'] as Record<string, number>;
    },
    saveWeights: async (model, name) =>
      (await future(url, 'save_weights', { model_id: model, path: name }, ms))['path'] as string,
    saveSampler: async (model, name) =>
      (await future(url, 'save_weights_for_sampler', { model_id: model, path: name }, ms))['path'] as string,
  };
  const capabilities = (): Promise<Json> => call(url, 'get_server_capabilities', null, ms);
  return {
    training,
    describe: async () => ({ ...(await capabilities()), baseModel, tokenizer: tokenizer.version }),
    producer: async () => ({ node: process.version, backend: String((await capabilities())['backend']) }),
    filesOf: ({ weights, sampler }) =>
      embedded
        ? [weights, sampler].map((path) => join(home, 'engine', `${path.slice('tinker://'.length)}.safetensors`))
        : [],
  };
}

/** Numbers in a hidden state, from the first recorded step; 0 without one. */
export function hiddenSize(episodes: readonly Episode[]): number {
  const hidden = episodes.find((episode) => episode.steps.length > 0)?.steps[0]!.sample.hidden;
  return hidden === undefined || hidden === null ? 0 : Buffer.from(hidden, 'base64').length / 4;
}
