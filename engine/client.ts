import { TapwrightError } from '../domain/errors.ts';
import { createBatcher } from './client-batcher.ts';
import { checkTokens, wireData, wireLossConfig } from './client-datum.ts';
import type { ClientDatum } from './client-datum.ts';
import { createTransport } from './client-http.ts';
import type { TransportOptions } from './client-http.ts';
import { decodeBase64 } from './floats.ts';
import { readBatch, readCapabilities, readFloats, readLoss, readMetrics, readSample, textOf } from './tinker.ts';
import type { Capabilities, Constraint, LossName, SampleBody, SampleResult } from './tinker.ts';

export type { ClientDatum };

export interface EngineClientOptions extends TransportOptions {
  /** Token ids are 0..vocabulary-1; null: not known here, the engine checks. */
  vocabulary?: number | null;
  /** Sampling requests sent together: what comes back together. */
  maxBatch?: number;
  heartbeatMs?: number;
}

export interface SampleRequest {
  /** `tinker://...` of sampler weights, or a base model's name. */
  policy: string;
  prompt: number[];
  /** Images before the prompt's tokens, each base64; only for an engine that has images. */
  images?: { data: string; format: string }[];
  /** 0..2^31-1. The same request with the same seed gives the same tokens. */
  seed: number;
  temperature: number;
  maxTokens: number;
  stop: number[];
  constraint: Constraint | null;
  returnHidden: boolean;
}

export interface Sampled {
  tokens: number[];
  /** Untempered, of the masked distribution when there is a constraint. */
  logprobs: number[];
  /** Hidden state of the last prompt token, base64 float32; null when not asked for or not offered. */
  hidden: string | null;
}

export interface AdamSettings {
  learningRate: number;
  beta1: number;
  beta2: number;
  eps: number;
  /** Global norm the gradient is cut to; 0: not. */
  gradClip: number;
  weightDecay?: number;
}

export interface LossResult {
  /** By row, one a target. */
  logprobs: number[][];
  metrics: Record<string, number>;
}

/**
 * A Tinker-compatible engine. Failures: `engine_unavailable` (retryable; also when the engine restarted and lost the
 * model), `engine_refused`, `not_found` (no such weights), `invalid_input` (a row of ours is wrong), `disk_full`,
 * `corrupt_checkpoint`. Only reads, forward passes and sampling are repeated here; after a failure of anything else the caller goes back
 * to a checkpoint with a fresh model (engine.md, 1).
 */
export interface EngineClient {
  /** Is the engine's process there? An engine may answer well before it can work. */
  health(): Promise<void>;
  capabilities(): Promise<Capabilities>;
  createSession(): Promise<string>;
  /** A fresh model in a session of its own, which is kept alive until `release`. Its id. */
  createModel(options: { baseModel: string; seed: number; loraRank?: number }): Promise<string>;
  /** The model is no longer wanted: without heartbeats the engine unloads it after a while. */
  release(model: string): void;
  /** Only as the model's first request. `optimizer` false: the moments stay those of a fresh model. */
  loadWeights(model: string, path: string, optimizer?: boolean): Promise<void>;
  /** `tinker://...` of weights and moments; a name is taken once. */
  saveWeights(model: string, name: string): Promise<string>;
  saveForSampler(model: string, name: string): Promise<string>;
  forward(model: string, data: ClientDatum[], loss: LossName, config?: Record<string, number>): Promise<LossResult>;
  /** Adds to the gradient, which `optimStep` spends. */
  forwardBackward(
    model: string,
    data: ClientDatum[],
    loss: LossName,
    config?: Record<string, number>,
  ): Promise<LossResult>;
  optimStep(model: string, adam: AdamSettings): Promise<Record<string, number>>;
  sample(request: SampleRequest): Promise<Sampled>;
  /** Hidden states of the last prompt tokens. Errors: `engine_refused` when the engine gives none. */
  hiddenStates(policy: string, prompts: number[][]): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** A client of one engine; see EngineClient. Close it, or its connections stay open. */
export function createEngineClient(options: EngineClientOptions): EngineClient {
  const { vocabulary = null, maxBatch = 64, heartbeatMs = 30_000 } = options;
  const http = createTransport(options);
  const sessions = new Map<string, string>();
  let known: Promise<Capabilities> | null = null;
  let sequence = 0;

  const heartbeat = setInterval(() => {
    for (const id of sessions.values()) void http.post('session_heartbeat', { session_id: id }).catch(() => {});
  }, heartbeatMs);
  heartbeat.unref();

  function capabilities(): Promise<Capabilities> {
    if (known !== null) return known;
    const asked = http.get('get_server_capabilities').then(readCapabilities);
    known = asked;
    asked.catch(() => (known = null));
    return asked;
  }

  async function loss(
    call: 'forward' | 'forward_backward',
    model: string,
    rows: ClientDatum[],
    name: LossName,
    config: Record<string, number>,
  ): Promise<LossResult> {
    const data = wireData(rows, name, vocabulary);
    const input = { data, loss_fn: name, loss_fn_config: wireLossConfig(await capabilities(), rows, config) };
    const body = { model_id: model, [`${call}_input`]: input, seq_id: sequence++ };
    return readLoss(
      // A forward pass leaves nothing behind; a gradient added twice would.
      await http.future(call, body, { again: call === 'forward' }),
      rows.map((row) => row.tokens.length),
    );
  }

  const one = async (body: SampleBody): Promise<SampleResult> =>
    readSample(await http.future('asample', { ...body }, { again: true }), 1);
  const each = (bodies: SampleBody[]): Promise<PromiseSettledResult<SampleResult>[]> =>
    Promise.allSettled(bodies.map(one));

  const sample = createBatcher<SampleBody, SampleResult>({
    max: maxBatch,
    work: async (bodies) => {
      const { extended } = await capabilities();
      if (!extended || bodies.length === 1) return each(bodies);
      let reply: Record<string, unknown>;
      try {
        reply = await http.future('asample_batch', { requests: bodies }, { again: true });
      } catch (error) {
        // One wrong request fails the whole batch; alone, the others are served.
        if (!(error instanceof TapwrightError) || error.code === 'engine_unavailable') throw error;
        return each(bodies);
      }
      return Promise.allSettled(readBatch(reply, bodies.length).map(async (result) => readSample(result, 1)));
    },
  });

  const save = async (call: string, model: string, name: string): Promise<string> =>
    textOf(call, await http.future(call, { model_id: model, path: name }), 'path');

  const client: EngineClient = {
    health: async () => {
      await http.get('healthz');
    },
    capabilities,
    createSession: async () => {
      const body = { tags: [], sdk_version: '0.1.0', type: 'create_session' };
      return textOf('create_session', await http.post('create_session', body), 'session_id');
    },
    createModel: async ({ baseModel, seed, loraRank = 8 }) => {
      const session = await client.createSession();
      const made = await http.post('create_model', {
        session_id: session,
        base_model: baseModel,
        lora_config: { rank: loraRank, seed: seed % 2 ** 31 },
      });
      // Registered first: making a large model may take longer than a session lives without a heartbeat.
      const model = textOf('create_model', made, 'model_id');
      sessions.set(model, session);
      try {
        await http.result('create_model', made);
      } catch (error) {
        sessions.delete(model);
        throw error;
      }
      return model;
    },
    release: (model) => {
      sessions.delete(model);
    },
    loadWeights: async (model, path, optimizer = true) => {
      await http.future('load_weights', { model_id: model, path, optimizer });
    },
    saveWeights: (model, name) => save('save_weights', model, name),
    saveForSampler: (model, name) => save('save_weights_for_sampler', model, name),
    forward: (model, data, name, config = {}) => loss('forward', model, data, name, config),
    forwardBackward: (model, data, name, config = {}) => loss('forward_backward', model, data, name, config),
    optimStep: async (model, adam) => {
      const { extended } = await capabilities();
      const params = {
        learning_rate: adam.learningRate,
        beta1: adam.beta1,
        beta2: adam.beta2,
        eps: adam.eps,
        weight_decay: adam.weightDecay ?? 0,
        ...(extended ? { grad_clip_norm: adam.gradClip } : {}),
      };
      return readMetrics(await http.future('optim_step', { model_id: model, adam_params: params, seq_id: sequence++ }));
    },
    sample: async (request) => {
      checkSample(request, vocabulary);
      const told = await capabilities();
      if (request.constraint !== null && !told.constraint) {
        throw new TapwrightError('engine_refused', 'this engine has no decode-time mask: set agent.decodeMask: none');
      }
      if ((request.images?.length ?? 0) > 0 && !told.images) {
        throw new TapwrightError('engine_refused', 'this engine has no images: its planner reads the outline');
      }
      const { sequences, hidden } = await sample(sampleBody(request, told));
      const { tokens, logprobs } = sequences[0]!;
      return { tokens, logprobs, hidden };
    },
    hiddenStates: async (policy, prompts) => {
      if (!(await capabilities()).hiddenStates) {
        throw new TapwrightError('engine_refused', 'this engine gives no hidden states, which the critic reads');
      }
      prompts.forEach((prompt, i) => checkTokens(prompt, vocabulary, `prompts[${i}]`));
      const body = {
        ...source(policy),
        prompts: prompts.map((tokens) => ({ chunks: [{ type: 'encoded_text', tokens }] })),
      };
      const reply = await http.post('hidden_states', body, { again: true });
      const { data, shape } = readFloats('hidden_states', reply['hidden_states']);
      const all = decodeBase64(data);
      const size = shape[1] ?? 0;
      if (shape[0] !== prompts.length || all.length !== prompts.length * size) {
        throw new TapwrightError('engine_refused', `hidden states of shape ${shape.join('x')} for ${prompts.length}`);
      }
      return prompts.map((_, i) => all.slice(i * size, (i + 1) * size));
    },
    close: async () => {
      clearInterval(heartbeat);
      sessions.clear();
      await http.close();
    },
  };
  return client;
}

const source = (policy: string): { model_path: string } | { base_model: string } =>
  policy.startsWith('tinker://') ? { model_path: policy } : { base_model: policy };

function sampleBody(request: SampleRequest, told: Capabilities): SampleBody {
  const { policy, prompt, images = [], seed, temperature, maxTokens, stop, constraint, returnHidden } = request;
  const pictures = images.map(({ data, format }) => ({ type: 'image' as const, data, format }));
  return {
    prompt: { chunks: [...pictures, { type: 'encoded_text', tokens: prompt }] },
    num_samples: 1,
    ...source(policy),
    ...(returnHidden && told.hiddenStates ? { hidden_states: true } : {}),
    sampling_params: {
      max_tokens: maxTokens,
      seed,
      temperature,
      top_k: -1,
      top_p: 1,
      stop,
      ...(constraint === null ? {} : { constraint }),
    },
  };
}

function checkSample(request: SampleRequest, vocabulary: number | null): void {
  const { seed, maxTokens, temperature } = request;
  checkTokens(request.prompt, vocabulary, 'prompt');
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31) {
    throw new TapwrightError('invalid_input', `the seed of a sample must be in 0..2^31-1, not ${seed}`);
  }
  if (!Number.isInteger(maxTokens) || maxTokens < 1 || !(temperature >= 0)) {
    throw new TapwrightError('invalid_input', `maxTokens ${maxTokens} or temperature ${temperature} is out of range`);
  }
}
