import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEngineClient } from '../../engine/client.ts';
import type { ClientDatum, EngineClient } from '../../engine/client.ts';
import { createEngineServer } from '../../engine/embedded/server.ts';
import { createService } from '../../engine/embedded/service.ts';
import { probeEngine } from '../../engine/probe.ts';
import { loadTensor } from '../../engine/tensor.ts';

/** Our client against our server: the wire protocol as the learner and the samplers use it. */
const baseModel = 'tapwright-d16-l2-h2-v32-copy';
const dir = mkdtempSync(join(tmpdir(), 'tapwright-protocol-'));
const adam = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, gradClip: 1 };
const row = (tokens: number[], prompt = 2): ClientDatum => ({
  tokens: tokens.slice(0, -1),
  targets: tokens.slice(1),
  weights: tokens.slice(1).map((_, i) => (i < prompt - 1 ? 0 : 1)),
  logprobs: null,
  advantages: null,
  constraint: null,
});
const rows = [row([1, 2, 3, 4, 5]), row([6, 7, 8, 9])];
const request = {
  policy: baseModel,
  prompt: [1, 2, 3],
  seed: 7,
  temperature: 1,
  maxTokens: 5,
  stop: [31],
  constraint: null,
  returnHidden: true,
};
let port = 0;
let server: Server;
let client: EngineClient;

async function start(at: number): Promise<Server> {
  const service = createService({ ops: await loadTensor(), checkpointDir: dir, maxBatch: 16 });
  const fresh = createEngineServer({ service });
  await new Promise<void>((resolve) => fresh.listen(at, '127.0.0.1', resolve));
  return fresh;
}

async function stop(old: Server): Promise<void> {
  const ended = new Promise((resolve) => old.close(resolve));
  old.closeAllConnections();
  await ended;
}

beforeAll(async () => {
  server = await start(0);
  port = (server.address() as AddressInfo).port;
  client = createEngineClient({ url: `http://127.0.0.1:${port}`, requestTimeoutMs: 20_000, vocabulary: 32 });
});
afterAll(async () => {
  await client.close();
  await stop(server);
  rmSync(dir, { recursive: true, force: true });
});

describe('the client and the embedded engine', () => {
  it('says what it can do', async () => {
    await client.health();
    const told = await client.capabilities();
    expect(told).toMatchObject({ extended: true, hiddenStates: true, constraint: true, reduction: 'sum' });
    expect(told.losses).toContain('ppo');
  });

  it('passes the probe of a start-up', async () => {
    const report = await probeEngine({ client, baseModel, hiddenStates: true, constraint: true });
    expect(report.reduction).toBe('sum');
  });

  it('trains, saves, and goes on from the checkpoint with the same bits', async () => {
    const train = async (model: string): Promise<number[]> => {
      const { logprobs, metrics } = await client.forwardBackward(model, rows, 'cross_entropy', { denominator: 5 });
      expect(logprobs.map((l) => l.length)).toEqual([4, 3]);
      const step = await client.optimStep(model, adam);
      return [metrics['loss:sum']!, step['grad_norm']!, ...logprobs.flat()];
    };
    const model = await client.createModel({ baseModel, seed: 3 });
    await train(model);
    const weights = await client.saveWeights(model, 'one');
    const second = await train(model);
    const fresh = await client.createModel({ baseModel, seed: 99 });
    await client.loadWeights(fresh, weights);
    expect(await train(fresh)).toEqual(second);
    client.release(model);

    await expect(client.saveWeights(model, 'one')).rejects.toMatchObject({ code: 'engine_refused' });
    await expect(client.loadWeights(fresh, weights)).rejects.toMatchObject({ code: 'engine_refused' });
    const third = await client.createModel({ baseModel, seed: 3 });
    await expect(client.loadWeights(third, 'tinker://none/weights/x')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('samples a saved policy: together or alone the same, with the log-probabilities that training sees', async () => {
    const model = await client.createModel({ baseModel, seed: 3 });
    await client.forwardBackward(model, rows, 'cross_entropy', {});
    await client.optimStep(model, adam);
    const policy = await client.saveForSampler(model, 'sampler');
    const constraint = {
      states: [
        { arcs: [{ tokens: [4], next: 1 }], other: 0 },
        { arcs: [{ tokens: [6, 7], next: 0 }], other: null },
      ],
    };
    const asked = Array.from({ length: 12 }, (_, i) => ({
      ...request,
      policy,
      seed: i,
      constraint: i % 2 === 0 ? constraint : null,
    }));
    const together = await Promise.all(asked.map((each) => client.sample(each)));
    expect(await client.sample(asked[5]!)).toEqual(together[5]);
    expect(await client.sample(asked[6]!)).toEqual(together[6]);
    const data = together.map((sampled, i) => ({
      ...row([...request.prompt, ...sampled.tokens], request.prompt.length),
      constraint: asked[i]!.constraint,
    }));
    const { logprobs } = await client.forward(model, data, 'cross_entropy');
    together.forEach((sampled, i) => {
      const seen = logprobs[i]!.slice(-sampled.tokens.length);
      sampled.logprobs.forEach((logp, t) => expect(seen[t]).toBeCloseTo(logp, 4));
    });
    const [hidden] = await client.hiddenStates(policy, [request.prompt]);
    expect(Buffer.from(hidden!.buffer).toString('base64')).toBe(together[0]!.hidden);
    expect(hidden).toHaveLength(32);
  });

  it('serves the good requests of a batch when one is wrong', async () => {
    const results = await Promise.allSettled([
      client.sample(request),
      client.sample({ ...request, policy: 'tinker://none/sampler_weights/x' }),
      client.sample({ ...request, stop: [77] }),
    ]);
    expect(results.map((r) => (r.status === 'fulfilled' ? 'ok' : (r.reason as { code: string }).code))).toEqual([
      'ok',
      'not_found',
      'engine_refused',
    ]);
  });

  it('calls an engine that restarted unavailable, for its models are gone, and samples on', async () => {
    const model = await client.createModel({ baseModel, seed: 3 });
    const before = await client.sample(request);
    await stop(server);
    server = await start(port);
    await expect(client.forward(model, rows, 'cross_entropy')).rejects.toMatchObject({
      code: 'engine_unavailable',
      retryable: true,
    });
    expect(await client.sample(request)).toEqual(before);
    const fresh = await client.createModel({ baseModel, seed: 3 });
    await client.forward(fresh, rows, 'cross_entropy');
  });
});
