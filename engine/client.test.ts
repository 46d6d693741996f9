import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createEngineClient } from './client.ts';
import type { ClientDatum, EngineClient, SampleRequest } from './client.ts';
import { decodeBase64, encodeBase64 } from './floats.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- bodies of any call
type Json = Record<string, any>;
/** What the server does with a call: a status with a body, or it hangs up without an answer. */
type Answer = { status?: number; body: unknown } | 'hang up';
type Route = (body: Json, times: number) => Answer;

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

const EXTENDED = { supported_models: [], deterministic_batching: true, constraint: true, hidden_states: true };
const sampled = { sequences: [{ tokens: [4], logprobs: [-1], stop_reason: 'stop' }] };
const pending = { body: { request_id: 'r' } };

/** A server of a few routes and a client of it; `calls` counts by route. */
async function start(
  routes: Record<string, Route>,
  over: { requestTimeoutMs?: number; retries?: number; capabilities?: Json } = {},
): Promise<{ client: EngineClient; calls: Record<string, number>; bodies: Json[]; server: Server; url: string }> {
  const calls: Record<string, number> = {};
  const bodies: Json[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part) => (text += String(part)));
    request.on('end', () => {
      const name = request.url!.slice('/api/v1/'.length);
      const times = (calls[name] = (calls[name] ?? 0) + 1);
      const body = (text === '' ? {} : JSON.parse(text)) as Json;
      bodies.push(body);
      const answer: Answer =
        name === 'get_server_capabilities'
          ? { body: over.capabilities ?? EXTENDED }
          : (routes[name]?.(body, times) ?? { status: 404, body: { detail: 'Not Found' } });
      if (answer === 'hang up') return request.socket.destroy();
      response.writeHead(answer.status ?? 200).end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createEngineClient({
    url,
    requestTimeoutMs: over.requestTimeoutMs ?? 15_000,
    retries: over.retries ?? 3,
    backoffMs: 1,
    vocabulary: 32,
  });
  open.push({ close: () => new Promise((resolve) => server.close(resolve)) }, client);
  return { client, calls, bodies, server, url };
}

const request: SampleRequest = {
  policy: 'tinker://m/sampler_weights/p',
  prompt: [1, 2],
  seed: 1,
  temperature: 1,
  maxTokens: 3,
  stop: [],
  constraint: null,
  returnHidden: false,
};
const row: ClientDatum = {
  tokens: [1, 2],
  targets: [2, 3],
  weights: [0, 1],
  logprobs: [0, -1],
  advantages: [0, 1],
  constraint: null,
};
const adam = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, gradClip: 1 };

describe('failures of an engine', () => {
  it('is unavailable when nothing listens, after a few tries', async () => {
    const { client, server } = await start({});
    await client.capabilities();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await expect(client.saveWeights('m', 'n')).rejects.toMatchObject({
      code: 'engine_unavailable',
      retryable: true,
      message: expect.stringContaining('is not reachable'),
    });
  });

  it('is not called again after a broken save, load, pass or step: it may have been done', async () => {
    const broken: Route = () => 'hang up';
    const names = ['save_weights', 'load_weights', 'forward_backward', 'optim_step', 'create_model'];
    const { client, calls } = await start({
      ...Object.fromEntries(names.map((name) => [name, broken])),
      create_session: () => ({ body: { session_id: 's' } }),
    });
    const unavailable = { code: 'engine_unavailable', message: expect.stringContaining('broke off') };
    await expect(client.saveWeights('m', 'n')).rejects.toMatchObject(unavailable);
    await expect(client.loadWeights('m', 'tinker://m/weights/n')).rejects.toMatchObject(unavailable);
    await expect(client.forwardBackward('m', [row], 'ppo')).rejects.toMatchObject(unavailable);
    await expect(client.optimStep('m', adam)).rejects.toMatchObject(unavailable);
    await expect(client.createModel({ baseModel: 'b', seed: 1 })).rejects.toMatchObject(unavailable);
    for (const name of names) expect([name, calls[name]]).toEqual([name, 1]);
  });

  it('repeats a forward pass, which leaves nothing behind', async () => {
    const { client, calls } = await start({
      forward: (_, times) => (times === 1 ? 'hang up' : pending),
      retrieve_future: () => ({ body: { loss_fn_outputs: [{ logprobs: { data: [-1, -2] } }], metrics: {} } }),
    });
    expect((await client.forward('m', [row], 'ppo')).logprobs).toEqual([[-1, -2]]);
    expect(calls['forward']).toBe(2);
  });

  it('samples again after a broken connection, a gateway error and a result that was lost', async () => {
    const { client, calls } = await start({
      asample: (_, times) => (times === 1 ? 'hang up' : times === 2 ? { status: 503, body: {} } : pending),
      retrieve_future: (_, times) => {
        if (times === 1) return { status: 404, body: { detail: 'unknown request' } };
        return times === 2 ? { status: 408, body: { detail: 'not ready' } } : { body: sampled };
      },
    });
    expect(await client.sample(request)).toEqual({ tokens: [4], logprobs: [-1], hidden: null });
    expect(calls).toMatchObject({ asample: 4, retrieve_future: 3 });
  });

  it('is unavailable when the deadline has passed', async () => {
    const { client } = await start(
      { asample: () => pending, retrieve_future: () => ({ status: 408, body: { detail: 'not ready' } }) },
      { requestTimeoutMs: 80 },
    );
    await expect(client.sample(request)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('80 ms'),
    });
  });

  it('is waited for while it is busy, but not for ever', async () => {
    const busy = { status: 429, body: { detail: 'too many waiting' } };
    const { client } = await start({
      optim_step: (_, times) => (times < 8 ? busy : pending),
      retrieve_future: () => ({ body: { metrics: { grad_norm: 2, note: 'x' } } }),
    });
    expect(await client.optimStep('m', adam)).toEqual({ grad_norm: 2 });
    const full = await start({ optim_step: () => busy }, { requestTimeoutMs: 60 });
    await expect(full.client.optimStep('m', adam)).rejects.toMatchObject({ code: 'engine_unavailable' });
  });

  it('maps statuses to failure classes', async () => {
    const cases: [number, Json, string][] = [
      [400, { detail: 'bad' }, 'engine_refused'],
      [422, { detail: [{ loc: ['body', 'path'], msg: 'wrong' }] }, 'engine_refused'],
      [401, { detail: 'no' }, 'engine_refused'],
      [409, { detail: 'taken' }, 'engine_refused'],
      [413, { detail: 'large' }, 'engine_refused'],
      [404, { detail: 'there is no model m' }, 'engine_unavailable'],
      [404, { detail: 'no tinker://m/weights/n' }, 'not_found'],
      [400, { detail: 'torn', code: 'corrupt_checkpoint' }, 'corrupt_checkpoint'],
      [500, { detail: 'oops' }, 'engine_unavailable'],
      [507, { detail: 'full', code: 'disk_full' }, 'disk_full'],
    ];
    for (const [status, body, code] of cases) {
      const direct = await start({ save_weights: () => ({ status, body }) });
      await expect(direct.client.saveWeights('m', 'n')).rejects.toMatchObject({
        code,
        message: expect.stringContaining('save_weights'),
      });
      if (status === 404) continue;
      const later = await start({ save_weights: () => pending, retrieve_future: () => ({ status, body }) });
      await expect(later.client.saveWeights('m', 'n')).rejects.toMatchObject({
        code,
        message: expect.stringContaining('save_weights'),
      });
    }
  });

  it('refuses replies that are none', async () => {
    const { client } = await start({
      asample: () => pending,
      retrieve_future: () => ({ body: { sequences: [{ tokens: [1, 2], logprobs: [-1] }] } }),
      save_weights: () => ({ body: {} }),
      healthz: () => ({ body: [] }),
    });
    await expect(client.sample(request)).rejects.toThrow(/1 log-probabilities for 2 tokens/);
    await expect(client.saveWeights('m', 'n')).rejects.toThrow(/has no request_id/);
    await expect(client.health()).rejects.toThrow(/not a JSON object/);
    expect(() => createEngineClient({ url: 'nowhere', requestTimeoutMs: 1 })).toThrow(/no http/);
  });
});

describe('sampling', () => {
  it('sends what is asked within one turn of the event loop together', async () => {
    const { client, calls } = await start({
      asample_batch: () => pending,
      retrieve_future: () => ({ body: { results: [sampled, sampled, sampled] } }),
    });
    const results = await Promise.all([1, 2, 3].map((seed) => client.sample({ ...request, seed })));
    expect(results).toHaveLength(3);
    expect(calls['asample_batch']).toBe(1);
  });

  it('serves the good requests alone when one spoils the batch', async () => {
    const { client } = await start({
      asample_batch: () => ({ status: 400, body: { detail: 'requests[1] is wrong' } }),
      asample: (body) => (body['sampling_params']['seed'] === 2 ? { status: 400, body: { detail: 'wrong' } } : pending),
      retrieve_future: () => ({ body: sampled }),
    });
    const results = await Promise.allSettled([1, 2, 3].map((seed) => client.sample({ ...request, seed })));
    expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('asks an engine without our extensions one by one, and never for what it lacks', async () => {
    const { client, calls, bodies } = await start(
      { asample: () => pending, retrieve_future: () => ({ body: sampled }) },
      { capabilities: { supported_models: [{ model_name: 'm' }] } },
    );
    const both = [client.sample({ ...request, returnHidden: true }), client.sample(request)];
    expect((await Promise.all(both))[0]!.hidden).toBeNull();
    expect(calls['asample']).toBe(2);
    expect(bodies.some((body) => 'hidden_states' in body)).toBe(false);
    const constraint = { states: [{ arcs: [{ tokens: [1], next: 0 }], other: null }] };
    await expect(client.sample({ ...request, constraint })).rejects.toThrow(/no decode-time mask/);
    await expect(client.forward('m', [row], 'ppo', { entropy: 0.01 })).rejects.toThrow(/no entropy bonus/);
    await expect(client.forward('m', [{ ...row, weights: [0, 0.5] }], 'ppo')).rejects.toThrow(/weights but 0 and 1/);
    await expect(client.hiddenStates('m', [[1]])).rejects.toThrow(/no hidden states/);
    const images = [{ data: 'AA==', format: 'png' }];
    await expect(client.sample({ ...request, images })).rejects.toThrow(/no images/);
  });
});

describe('rows', () => {
  it('are checked before they go over the wire', async () => {
    const { client, calls } = await start({});
    const wrong: [Partial<ClientDatum>, RegExp][] = [
      [{ tokens: [] }, /holds no tokens/],
      [{ tokens: [1, 32] }, /tokens\[1\] = 32 is not a token id in 0..31/],
      [{ targets: [2] }, /targets has 1 entries and the row 2 tokens/],
      [{ targets: [2, -1] }, /targets\[1\] = -1/],
      [{ weights: [0, NaN] }, /weights\[1\] = NaN/],
      [{ logprobs: null }, /logprobs is missing/],
      [{ logprobs: [0, 0.5] }, /above 0/],
      [{ advantages: null }, /advantages is missing/],
      [{ advantages: [0, Infinity] }, /advantages\[1\] = Infinity/],
      [{ weights: [0, 0] }, /nothing to train on/],
    ];
    for (const [change, message] of wrong) {
      await expect(client.forwardBackward('m', [{ ...row, ...change }], 'ppo')).rejects.toThrow(message);
    }
    await expect(client.forward('m', [], 'ppo')).rejects.toThrow(/without rows/);
    await expect(client.sample({ ...request, seed: 2 ** 31 })).rejects.toThrow(/seed/);
    await expect(client.sample({ ...request, prompt: [99] })).rejects.toThrow(/prompt\[0\] = 99/);
    expect(calls['forward_backward']).toBeUndefined();
  });
});

describe('floats', () => {
  it('go to base64 and back with their bits', () => {
    const values = Float32Array.of(1.5, -0, 3e-42, 1e38);
    expect(decodeBase64(encodeBase64(values))).toEqual(values);
    expect(() => decodeBase64('AAAA')).toThrow(/no list of float32/);
  });
});
