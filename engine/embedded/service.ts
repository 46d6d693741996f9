import { randomInt, randomUUID } from 'node:crypto';
import { TapwrightError } from '../../domain/errors.ts';
import type { TensorOps } from '../tensor.ts';
import { Conflict, createCheckpoints } from './checkpoints.ts';
import { parseDatum, parseTokens } from './datum.ts';
import { createDecoder } from './decode.ts';
import { createFutures } from './futures.ts';
import type { FutureReply, Settled } from './futures.ts';
import type { LaneHelper } from './lane-helper.ts';
import { createLayout, parseModelName } from './layout.ts';
import { LOSSES, parseLoss } from './losses.ts';
import { createModel } from './model.ts';
import { createModelFactory } from './models.ts';
import type { TrainingModel } from './models.ts';
import { bad, encodeFloats, list, parseAdam, parseSampling, record, text, whole } from './requests.ts';
import type { Body } from './requests.ts';
import { createSampler } from './sampler.ts';
import { createSamplerWeights } from './sampler-weights.ts';

/** Too much waits already: HTTP 429, try again. */
export class Busy extends Error {}

export interface ServiceOptions {
  ops: TensorOps;
  checkpointDir: string;
  /** A second process for training passes. */
  helper?: LaneHelper;
  /** Sequences decoded at a time. */
  maxBatch: number;
  /** Sequences that may wait; more are refused. */
  maxWaiting?: number;
  /** A session without a heartbeat for this long is unloaded. */
  sessionTimeoutMs?: number;
  /** Milliseconds, for session ages only. */
  now?: () => number;
}

const MAX_ROWS = 4096;
const REMEMBERED = 1000;
const POLL_MS = 10_000;

/** The calls of the wire protocol as functions from body to reply; they throw what server.ts maps to status codes. */
export function createService(options: ServiceOptions) {
  const { ops, maxBatch, maxWaiting = 4096, sessionTimeoutMs = 300_000, now = () => performance.now() } = options;
  const checkpoints = createCheckpoints({ dir: options.checkpointDir });
  const model = createModel(ops);
  const makeModel = createModelFactory({ ops, model, checkpoints, helper: options.helper });
  const sampler = createSampler({ model, decoder: createDecoder(ops), maxBatch });
  const samplerWeights = createSamplerWeights({ ops, checkpoints, keep: 8 });
  const futures = createFutures({ keep: 20_000, keepFetched: 256 });
  const sessions = new Map<string, { seen: number; samplers: Map<string, string> }>();
  const samplers = new Map<string, string>();
  const models = new Map<string, TrainingModel>();
  let asked = 0;

  function session(id: string) {
    const found = sessions.get(id);
    if (found === undefined) throw new TapwrightError('not_found', `there is no session ${id}: create one`);
    found.seen = now();
    return found;
  }

  function trained(body: Body): TrainingModel {
    const id = text(body, 'model_id');
    const found = models.get(id);
    if (found === undefined) {
      throw new TapwrightError('not_found', `there is no model ${id}: the server restarted or its session ended`);
    }
    session(found.session);
    return found;
  }

  /** Repeats of one seq_id are one request: they get the first one's future. */
  function once(of: TrainingModel, kind: string, body: Body, work: () => Promise<unknown>): FutureReply {
    const seq = body['seq_id'];
    if (seq === undefined || seq === null) return futures.start(work());
    const key = `${kind} ${String(seq)}`;
    const known = of.seen.get(key) as FutureReply | undefined;
    if (known !== undefined) return known;
    const reply = futures.start(work());
    of.seen.set(key, reply);
    for (const old of of.seen.keys()) {
      if (of.seen.size <= REMEMBERED) break;
      of.seen.delete(old);
    }
    return reply;
  }

  function run(body: Body, backward: boolean): FutureReply {
    const of = trained(body);
    const kind = backward ? 'forward_backward' : 'forward';
    const key = `${kind}_input`;
    const input = record(body[key], key);
    const spec = parseLoss(input['loss_fn'], input['loss_fn_config']);
    const { vocab } = of.layout.config;
    const data = list(input['data'], `${key}.data`, MAX_ROWS).map((datum, i) =>
      parseDatum(datum, spec.name, vocab, `${key}.data[${i}]`),
    );
    return once(of, kind, body, async () => {
      const { logprobs, metrics } = await of.pass(data, spec, backward);
      return {
        loss_fn_output_type: 'scalar',
        loss_fn_outputs: logprobs.map((row) => ({
          logprobs: { data: Array.from(row), dtype: 'float32', shape: [row.length] },
        })),
        metrics,
      };
    });
  }

  /** Where a request samples from: a checkpoint path or a base model. */
  function source(body: Body): string {
    const given = body['sampling_session_id'];
    if (typeof given === 'string') {
      const found = samplers.get(given);
      if (found === undefined) throw new TapwrightError('not_found', `there is no sampling session ${given}`);
      return found;
    }
    const from = body['model_path'] ?? body['base_model'];
    if (typeof from !== 'string') throw bad('one of sampling_session_id, model_path or base_model is needed');
    return from;
  }

  const vocabularies = new Map<string, number>();
  function vocabularyOf(from: string): number {
    let found = vocabularies.get(from);
    if (found === undefined) {
      const config = from.startsWith('tinker://') ? checkpoints.load(from).layout.config : parseModelName(from);
      if (vocabularies.size > 1000) vocabularies.clear();
      vocabularies.set(from, (found = config.vocab));
    }
    return found;
  }

  /** Checks one asample body; the returned function samples. */
  function sampling(body: Body, where: string): { count: number; start: () => Promise<unknown> } {
    const from = source(body);
    const vocab = vocabularyOf(from);
    const prompt = parseTokens(body['prompt'], vocab, `${where}prompt`);
    const count = whole(body, 'num_samples', 1, 1, 1024);
    if (body['prompt_logprobs'] === true) throw bad(`${where}prompt_logprobs is not offered: use forward`);
    const params = parseSampling(body['sampling_params'], vocab, body['hidden_states'] === true, () =>
      randomInt(2 ** 31),
    );
    return {
      count,
      start: () =>
        samplerWeights.with(from, async (weights) => {
          const sampled = await Promise.all(
            Array.from({ length: count }, (_, i) =>
              sampler.sample(weights, prompt, { ...params, seed: params.seed + i }),
            ),
          );
          const hidden = sampled[0]!.hidden;
          return {
            type: 'sample',
            sequences: sampled.map((s) => ({ stop_reason: s.stopReason, tokens: s.tokens, logprobs: s.logprobs })),
            ...(hidden === null ? {} : { hidden_state: encodeFloats(hidden, [hidden.length]) }),
          };
        }),
    };
  }

  function admitted(count: number): void {
    if (asked + count > maxWaiting) {
      throw new Busy(`${asked} sequences wait or run, at most ${maxWaiting} may: try again in a moment`);
    }
    asked += count;
  }

  async function counted<T>(count: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      asked -= count;
    }
  }

  return {
    health: () => ({ status: 'ok' }),
    capabilities: () => ({
      supported_models: [{ model_name: 'tapwright-d64-l2-h4-v512' }, { model_name: 'tapwright-d64-l2-h4-v512-copy' }],
      model_name_pattern: 'tapwright-d<width>-l<layers>[-h<heads>][-v<vocabulary>][-copy]',
      losses: [...LOSSES],
      images: false,
      reduction: 'sum',
      hidden_states: true,
      deterministic_batching: true,
      constraint: true,
      backend: ops.backend,
    }),
    createSession: (body: Body) => {
      record(body, 'the body');
      const id = `session-${randomUUID()}`;
      sessions.set(id, { seen: now(), samplers: new Map() });
      return { type: 'create_session', session_id: id };
    },
    heartbeat: (body: Body) => {
      session(text(body, 'session_id'));
      return { type: 'session_heartbeat' };
    },
    createModel: (body: Body) => {
      const of = text(body, 'session_id');
      session(of);
      const seed = whole(record(body['lora_config'] ?? {}, 'lora_config'), 'seed', 0, 0, 2 ** 53 - 1);
      const made = makeModel(of, text(body, 'base_model'), seed);
      models.set(made.id, made);
      return { model_id: made.id, ...futures.start(Promise.resolve({ type: 'create_model', model_id: made.id })) };
    },
    forward: (body: Body) => run(body, false),
    forwardBackward: (body: Body) => run(body, true),
    optimStep: (body: Body) => {
      const of = trained(body);
      const params = parseAdam(body['adam_params']);
      return once(of, 'optim_step', body, async () => ({ metrics: await of.step(params) }));
    },
    saveWeights: (body: Body) => {
      const of = trained(body);
      const name = text(body, 'path');
      // A taken name is known at once, so it is told at once.
      return futures.start(of.save('weights', name).then((path) => ({ type: 'save_weights', path })));
    },
    loadWeights: (body: Body) => {
      const of = trained(body);
      const path = text(body, 'path');
      return futures.start(of.load(path, body['optimizer'] !== false).then(() => ({ type: 'load_weights', path })));
    },
    saveWeightsForSampler: (body: Body) => {
      const of = trained(body);
      const transient = body['path'] === undefined || body['path'] === null;
      const name = transient
        ? `transient-${whole(body, 'sampling_session_seq_id', 0, 0, 2 ** 53 - 1)}`
        : text(body, 'path');
      return futures.start(
        of.save('sampler_weights', name).then((path) => {
          if (!transient) return { type: 'save_weights_for_sampler', path };
          const id = `sampler-${randomUUID()}`;
          samplers.set(id, path);
          return { type: 'save_weights_for_sampler', path, sampling_session_id: id };
        }),
      );
    },
    createSamplingSession: (body: Body) => {
      const from = body['model_path'] ?? body['base_model'];
      if (typeof from !== 'string') throw bad('one of model_path or base_model is needed');
      const owner = session(text(body, 'session_id'));
      vocabularyOf(from);
      const key = `${String(body['sampling_session_seq_id'])} ${from}`;
      const known = owner.samplers.get(key) ?? `sampler-${randomUUID()}`;
      owner.samplers.set(key, known);
      samplers.set(known, from);
      return { type: 'create_sampling_session', sampling_session_id: known };
    },
    asample: (body: Body) => {
      const { count, start } = sampling(body, '');
      admitted(count);
      return futures.start(counted(count, start));
    },
    asampleBatch: (body: Body) => {
      const requests = list(body['requests'], 'requests', MAX_ROWS).map((each, i) =>
        sampling(record(each, `requests[${i}]`), `requests[${i}].`),
      );
      const count = requests.reduce((sum, each) => sum + each.count, 0);
      admitted(count);
      return futures.start(
        counted(count, async () => ({ results: await Promise.all(requests.map((each) => each.start())) })),
      );
    },
    hiddenStates: async (body: Body) => {
      const from = source(body);
      const vocab = vocabularyOf(from);
      const prompts = list(body['prompts'], 'prompts', MAX_ROWS).map((each, i) =>
        parseTokens(each, vocab, `prompts[${i}]`),
      );
      const params = { ...parseSampling({ max_tokens: 1, temperature: 0, seed: 0 }, vocab, true, () => 0) };
      admitted(prompts.length);
      return counted(prompts.length, () =>
        samplerWeights.with(from, async (weights) => {
          const sampled = await Promise.all(prompts.map((prompt) => sampler.sample(weights, prompt, params)));
          const size = sampled[0]!.hidden!.length;
          const out = new Float32Array(prompts.length * size);
          sampled.forEach((s, i) => out.set(s.hidden!, i * size));
          return { hidden_states: encodeFloats(out, [prompts.length, size]) };
        }),
      );
    },
    listModels: () => ({
      models: [...models.values()].map((m) => ({
        model_id: m.id,
        session_id: m.session,
        base_model: m.layout.config.name,
        updates: m.updates(),
      })),
    }),
    retrieve: (body: Body): Promise<Settled | 'pending' | 'unknown'> => futures.wait(text(body, 'request_id'), POLL_MS),
    /** Unloads the models of sessions that fell silent; called now and then by the server. */
    sweep: (): void => {
      for (const [id, { seen }] of sessions) {
        if (now() - seen <= sessionTimeoutMs) continue;
        sessions.delete(id);
        for (const [modelId, m] of models) {
          if (m.session !== id) continue;
          m.dispose();
          models.delete(modelId);
        }
      }
    },
    layoutOf: (name: string) => createLayout(parseModelName(name)),
  };
}

export type Service = ReturnType<typeof createService>;
export { Conflict };
