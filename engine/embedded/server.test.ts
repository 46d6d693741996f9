import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadTensor } from '../tensor.ts';
import { createEngineServer } from './server.ts';
import { createService } from './service.ts';

const dir = mkdtempSync(join(tmpdir(), 'tapwright-engine-'));
const ops = await loadTensor();
const NAME = 'tapwright-d16-l2-h2-v32-copy';
const servers: { close(): void }[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true, force: true });
});

// Replies are looked into by path; what is wrong there fails the expectation.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Json = Record<string, any>;
let clock = 0;
/** A server process's worth of state over the same checkpoint folder. */
async function start(over: { maxWaiting?: number; token?: string } = {}) {
  const service = createService({ ops, checkpointDir: dir, maxBatch: 16, now: () => clock, ...over });
  const server = createEngineServer({ service, token: over.token ?? null });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/`;
  const call = async (path: string, body?: unknown): Promise<{ status: number; body: Json }> => {
    const response = await fetch(base + path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Json };
  };
  const done = async (path: string, body: unknown): Promise<{ status: number; body: Json }> => {
    const first = await call(path, body);
    if (first.status !== 200) return first;
    for (;;) {
      const next = await call('retrieve_future', { request_id: first.body['request_id'] });
      if (next.status !== 408) return next;
    }
  };
  const newModel = async (): Promise<string> => {
    const session = (await call('create_session', { tags: [], sdk_version: '0', type: 'create_session' })).body;
    const made = await done('create_model', {
      session_id: session['session_id'],
      base_model: NAME,
      lora_config: { rank: 8, seed: 5 },
    });
    return made.body['model_id'] as string;
  };
  return { service, base, call, done, newModel };
}

const text = (tokens: number[]) => ({ chunks: [{ type: 'encoded_text', tokens }] });
const datum = (tokens: number[]) => ({
  model_input: text(tokens.slice(0, -1)),
  loss_fn_inputs: {
    target_tokens: { data: tokens.slice(1) },
    weights: { data: tokens.slice(1).map((_, i) => (i < 2 ? 0 : 1)) },
  },
});
const adam = { learning_rate: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0 };
const rows = [datum([1, 2, 3, 4, 5]), datum([6, 7, 8, 9])];

describe('the wire protocol', () => {
  it('saves and resumes to the bit in another server process, and samples its checkpoints', async () => {
    const a = await start();
    const train = async (s: typeof a, model: string, steps: number): Promise<number[]> => {
      const out: number[] = [];
      for (let i = 0; i < steps; i++) {
        const input = { data: rows, loss_fn: 'cross_entropy', loss_fn_config: { denominator: 5 } };
        const fb = await s.done('forward_backward', { model_id: model, forward_backward_input: input });
        out.push(
          fb.body['metrics']['loss:sum'] as number,
          ...(fb.body['loss_fn_outputs'][0]['logprobs']['data'] as number[]),
        );
        out.push(
          (await s.done('optim_step', { model_id: model, adam_params: adam })).body['metrics']['grad_norm'] as number,
        );
      }
      return out;
    };
    const model = await a.newModel();
    await train(a, model, 3);
    const saved = (await a.done('save_weights', { model_id: model, path: 'w3' })).body['path'] as string;
    const sampler = (await a.done('save_weights_for_sampler', { model_id: model, path: 's3' })).body['path'] as string;
    expect(saved).toBe(`tinker://${model}/weights/w3`);
    expect(readdirSync(join(dir, model, 'weights'))).toEqual(['w3.safetensors']);
    const ask = {
      prompt: text([1, 2, 3]),
      num_samples: 2,
      model_path: sampler,
      sampling_params: { max_tokens: 4, temperature: 1, seed: 7 },
    };
    const first = (await a.done('asample', ask)).body;
    const onward = await train(a, model, 3);
    expect(onward[0]).toBeLessThan(4);

    const b = await start();
    const resumed = await b.newModel();
    expect((await b.done('load_weights', { model_id: resumed, path: saved, optimizer: true })).status).toBe(200);
    expect(await train(b, resumed, 3)).toEqual(onward);
    // The older checkpoint is what it was, although training went on.
    expect((await b.done('asample', ask)).body).toEqual(first);
    const batch = await b.done('asample_batch', { requests: [ask, { ...ask, hidden_states: true }] });
    expect(batch.body['results'][0]).toEqual(first);
    expect(batch.body['results'][1].sequences).toEqual(first['sequences']);
    const hidden = await b.call('hidden_states', { model_path: sampler, prompts: [text([1, 2, 3])] });
    expect(hidden.body['hidden_states'].shape).toEqual([1, 32]);
    expect(hidden.body['hidden_states'].data).toBe(batch.body['results'][1].hidden_state.data);
    expect((await b.done('load_weights', { model_id: resumed, path: saved })).status).toBe(400);
    expect((await b.done('save_weights', { model_id: model, path: 'w3' })).status).toBe(404);
    expect((await a.done('save_weights', { model_id: model, path: 'w3' })).status).toBe(409);
  });

  it('takes a repeated seq_id for one request', async () => {
    const s = await start();
    const model = await s.newModel();
    const body = { model_id: model, forward_backward_input: { data: rows, loss_fn: 'cross_entropy' }, seq_id: 1 };
    const [one, two] = [await s.call('forward_backward', body), await s.call('forward_backward', body)];
    expect(two.body['request_id']).toBe(one.body['request_id']);
    const step = { model_id: model, adam_params: adam, seq_id: 2 };
    const norm = (await s.done('optim_step', step)).body['metrics']['grad_norm'];
    expect((await s.done('optim_step', step)).body['metrics']['grad_norm']).toBe(norm);
    expect((await s.call('models')).body['models'][0]['updates']).toBe(1);
  });

  it('answers wrong requests with the place and the reason', async () => {
    const s = await start({ maxWaiting: 3 });
    const model = await s.newModel();
    const forward = (data: unknown, loss = 'cross_entropy') =>
      s.done('forward', { model_id: model, forward_input: { data, loss_fn: loss } });
    expect(await forward([])).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('at least one entry') },
    });
    expect(await forward([datum([1, 40, 2])])).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('40 is not a token id in 0..31') },
    });
    expect(await forward(rows, 'dppo')).toMatchObject({ status: 400 });
    expect(await forward([{ model_input: { chunks: [{ type: 'image', data: '', format: 'png' }] } }])).toMatchObject({
      status: 400,
    });
    expect((await s.call('forward', { model_id: 'none', forward_input: {} })).status).toBe(404);
    expect((await s.call('create_model', { session_id: 'none', base_model: NAME })).status).toBe(404);
    expect((await s.call('retrieve_future', { request_id: 'none' })).status).toBe(404);
    expect((await s.call('nothing')).status).toBe(404);
    expect((await s.call('asample')).status).toBe(405);
    expect((await s.done('save_weights', { model_id: model, path: '../x' })).status).toBe(400);
    const sample = { prompt: text([1]), num_samples: 4, base_model: NAME, sampling_params: { max_tokens: 2 } };
    expect((await s.call('asample', sample)).status).toBe(429);
    expect((await s.call('asample', { ...sample, num_samples: 1, base_model: 'gpt' })).status).toBe(400);
    expect(
      (
        await s.done('asample', {
          ...sample,
          num_samples: 1,
          base_model: undefined,
          model_path: 'tinker://m/weights/x',
        })
      ).status,
    ).toBe(404);
    expect((await s.call('get_server_capabilities')).body).toMatchObject({
      images: false,
      reduction: 'sum',
      constraint: true,
    });
    const raw = await fetch(`${s.base}forward`, { method: 'POST', body: '{' });
    expect(raw.status).toBe(400);
  });

  it('unloads a silent session and asks for its token', async () => {
    const s = await start();
    const model = await s.newModel();
    clock += 301_000;
    s.service.sweep();
    expect((await s.call('models')).body).toEqual({ models: [] });
    expect((await s.call('optim_step', { model_id: model, adam_params: adam })).status).toBe(404);
    const locked = await start({ token: 'secret' });
    expect((await locked.call('healthz')).status).toBe(401);
    expect((await fetch(`${locked.base}healthz`, { headers: { authorization: 'Bearer secret' } })).status).toBe(200);
  });
});
