import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { timingSafeEqual } from 'node:crypto';
import { TapwrightError } from '../../domain/errors.ts';
import { span, spent } from '../../domain/spans.ts';
import { Conflict } from './checkpoints.ts';
import { bad, record } from './requests.ts';
import { Busy } from './service.ts';
import type { Service } from './service.ts';

const MAX_BODY = 256 * 1024 * 1024;
const SWEEP_MS = 10_000;

/**
 * The Tinker wire protocol as JSON over HTTP under /api/v1. Errors are `{detail}` with 400 bad request or the engine's
 * error, 401 no token, 404 unknown, 405 wrong method, 408 not ready, 409 conflict, 413 too large, 429 too many waiting,
 * 500 ours, 507 disk full.
 */
export function createEngineServer(options: { service: Service; token?: string | null }): Server {
  const { service, token = null } = options;
  const routes: Record<string, (body: Record<string, unknown>) => unknown> = {
    'GET healthz': service.health,
    'GET get_server_capabilities': service.capabilities,
    'GET models': service.listModels,
    'GET spent': spent,
    'POST create_session': service.createSession,
    'POST session_heartbeat': service.heartbeat,
    'POST create_model': service.createModel,
    'POST forward': service.forward,
    'POST forward_backward': service.forwardBackward,
    'POST optim_step': service.optimStep,
    'POST save_weights': service.saveWeights,
    'POST load_weights': service.loadWeights,
    'POST save_weights_for_sampler': service.saveWeightsForSampler,
    'POST create_sampling_session': service.createSamplingSession,
    'POST asample': service.asample,
    'POST asample_batch': service.asampleBatch,
    'POST hidden_states': service.hiddenStates,
  };
  const known = new Set(Object.keys(routes).map((key) => key.split(' ')[1]!));
  known.add('retrieve_future');

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (token !== null && !authorized(request.headers.authorization, token)) {
      return send(response, 401, { detail: 'this engine wants Authorization: Bearer <token>' });
    }
    const path = (request.url ?? '').split('?')[0]!;
    const name = path.startsWith('/api/v1/') ? path.slice('/api/v1/'.length) : '';
    if (!known.has(name)) return send(response, 404, { detail: `there is no ${path} here; calls are under /api/v1/` });
    try {
      const body = request.method === 'POST' ? await readJson(request) : {};
      if (request.method === 'POST' && name === 'retrieve_future') return await retrieve(response, body);
      const route = routes[`${request.method} ${name}`];
      if (route === undefined) return send(response, 405, { detail: `${name} does not take ${request.method}` });
      return send(response, 200, await route(body));
    } catch (error) {
      return fail(response, error);
    }
  }

  async function retrieve(response: ServerResponse, body: Record<string, unknown>): Promise<void> {
    const result = await service.retrieve(body);
    if (result === 'pending') return send(response, 408, { detail: 'not ready, ask again', type: 'try_again' });
    if (result === 'unknown') {
      return send(response, 404, { detail: 'unknown request: the server restarted, or the result was forgotten' });
    }
    return result.ok ? send(response, 200, result.value) : fail(response, result.error);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => fail(response, error));
  });
  // Node closes idle connections after 5 s; a client's pool that reuses one at that moment sees a reset.
  server.keepAliveTimeout = 75_000;
  const timer = setInterval(() => service.sweep(), SWEEP_MS);
  timer.unref();
  server.on('close', () => clearInterval(timer));
  return server;
}

function authorized(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    parts.push(part as Buffer);
    size += (part as Buffer).length;
    if (size > MAX_BODY) throw new TooLarge(`the body is larger than ${MAX_BODY / 1024 / 1024} MB: send fewer rows`);
  }
  let value: unknown;
  try {
    value = span('wire', () => JSON.parse(Buffer.concat(parts).toString('utf8')) as unknown);
  } catch {
    throw bad('the body is not JSON');
  }
  return record(value, 'the body');
}

class TooLarge extends Error {}

function statusOf(error: unknown): number {
  if (error instanceof Conflict) return 409;
  if (error instanceof Busy) return 429;
  if (error instanceof TooLarge) return 413;
  if (!(error instanceof TapwrightError)) return 500;
  switch (error.code) {
    case 'invalid_input':
    case 'engine_refused':
    case 'corrupt_checkpoint':
      return 400;
    case 'not_found':
      return 404;
    case 'disk_full':
      return 507;
    default:
      return 500;
  }
}

function fail(response: ServerResponse, error: unknown): void {
  const status = statusOf(error);
  if (status === 500) process.stderr.write(`engine: ${error instanceof Error ? error.stack : String(error)}\n`);
  const detail = error instanceof Error ? error.message : String(error);
  send(response, status, { detail, ...(error instanceof TapwrightError ? { code: error.code } : {}) });
}

function send(response: ServerResponse, status: number, value: unknown): void {
  if (response.headersSent) return;
  const text = span('wire', () => JSON.stringify(value));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
