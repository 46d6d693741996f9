import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { TapwrightError } from '../domain/errors.ts';
import { span } from '../domain/spans.ts';
import { createRandom } from '../rl/random.ts';
import { asObject, textOf } from './tinker.ts';

type Json = Record<string, unknown>;

export interface TransportOptions {
  /** http(s)://host:port, without /api/v1. */
  url: string;
  token?: string | null;
  /** For one call with all its waiting and repeating, milliseconds. */
  requestTimeoutMs: number;
  /** Connections kept open, and so requests at a time. */
  maxInFlight?: number;
  /** How often a call is repeated that did not reach the engine, or that may be repeated. */
  retries?: number;
  /** First pause before a repetition; it doubles up to ten times that. */
  backoffMs?: number;
}

/**
 * `again`: the call may be made twice (reads, seeded sampling). What may not be is only repeated when it surely never
 * reached the engine: connection refused, or 429.
 */
export interface CallOptions {
  again?: boolean;
}

export interface Transport {
  get(path: string): Promise<Json>;
  post(path: string, body: Json, options?: CallOptions): Promise<Json>;
  /** Posts, then waits for the result behind the reply's request_id. */
  future(path: string, body: Json, options?: CallOptions): Promise<Json>;
  /** Waits for the result behind a reply that `post` gave. */
  result(path: string, reply: Json): Promise<Json>;
  close(): Promise<void>;
}

/** The connection failed. `unsent`: the engine cannot have seen the request. */
class Broken extends Error {
  readonly unsent: boolean;
  constructor(message: string, unsent: boolean, cause: unknown) {
    super(message, { cause });
    this.unsent = unsent;
  }
}

/** The engine no longer knows the request: it restarted, or the result was forgotten. */
class Forgotten extends Error {}

const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);
const TRY_LATER = new Set([502, 503, 504]);
/** A long poll that comes back at once must not become a busy loop. */
const POLL_PAUSE_MS = 20;

/** JSON over a keep-alive pool, with the engine's statuses as TapwrightErrors; bounded in time by one deadline a call. */
export function createTransport(options: TransportOptions): Transport {
  const { url, token = null, requestTimeoutMs, maxInFlight = 32, retries = 4, backoffMs = 100 } = options;
  const origin = originOf(url);
  const pool = new Pool(origin, {
    connections: maxInFlight,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: Math.min(10_000, requestTimeoutMs),
  });
  let closed = false;
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
  const jitter = createRandom('engine-client', process.pid, origin);
  const pauseMs = (attempt: number): number => Math.min(backoffMs * 2 ** attempt, 10 * backoffMs);
  const pause = (attempt: number): Promise<void> => sleep(pauseMs(attempt));
  const unavailable = (path: string, what: string, cause?: unknown): TapwrightError =>
    new TapwrightError('engine_unavailable', `the engine at ${origin} ${what} (${path})`, { cause });

  async function send(path: string, body: Json | null, deadline: number): Promise<{ status: number; text: string }> {
    if (closed) throw unavailable(path, 'was closed by its client');
    try {
      const reply = await pool.request({
        path: `/api/v1/${path}`,
        method: body === null ? 'GET' : 'POST',
        body: body === null ? null : span('wire', () => JSON.stringify(body)),
        headers,
        signal: AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now()))),
      });
      return { status: reply.statusCode, text: await reply.body.text() };
    } catch (error) {
      const { code = '', name = '', message } = error as { code?: string; name?: string; message: string };
      if (name === 'TimeoutError') throw unavailable(path, `did not answer within ${requestTimeoutMs} ms`, error);
      throw new Broken(`${code} ${message}`.trim(), UNSENT.has(code), error);
    }
  }

  /** One answered request: repeats what may be repeated, waits while the engine is busy, maps the rest to errors. */
  async function exchange(path: string, body: Json | null, again: boolean, deadline: number): Promise<Json> {
    for (let attempt = 0; ; attempt++) {
      const mayRepeat = attempt < retries && performance.now() < deadline;
      let reply: { status: number; text: string };
      try {
        reply = await send(path, body, deadline);
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
        if ((again || error.unsent) && mayRepeat) {
          await pause(attempt);
          continue;
        }
        const what = error.unsent
          ? `is not reachable: ${error.message}`
          : `broke off, and whether it did the call is not known: ${error.message}`;
        throw unavailable(path, what, error);
      }
      const { status, text } = reply;
      if (status >= 200 && status < 300) return parse(path, text);
      if (status === 429) {
        if (performance.now() >= deadline) throw unavailable(path, `is too busy for ${requestTimeoutMs} ms already`);
        attempt = Math.min(attempt, retries - 1);
        // Anywhere in the pause: clients that were turned away together must not come back together.
        await sleep(jitter.next() * pauseMs(attempt));
        continue;
      }
      if (TRY_LATER.has(status) && again && mayRepeat) {
        await pause(attempt);
        continue;
      }
      if (path === 'retrieve_future' && status === 408) throw new NotReady();
      throw mapped(path, body, status, text);
    }
  }

  function parse(path: string, text: string): Json {
    let value: unknown;
    try {
      value = span('wire', () => JSON.parse(text) as unknown);
    } catch {
      throw new TapwrightError('engine_refused', `${origin} answered ${path} with something that is not JSON`);
    }
    return asObject(path, value);
  }

  function mapped(path: string, body: Json | null, status: number, text: string): Error {
    const { detail, code } = detailOf(text);
    const said = `${path}: ${detail}`;
    switch (true) {
      case status === 404 && path === 'retrieve_future' && code !== 'not_found':
        return new Forgotten(detail);
      case status === 404 && aboutWeights(path, detail, body):
        return new TapwrightError('not_found', said);
      case status === 404 && body === null:
        return new TapwrightError('engine_refused', `${said}: ${origin} does not speak the Tinker protocol`);
      case status === 404:
        return unavailable(path, `no longer knows what the call is about: ${detail}`);
      case status === 408:
        return unavailable(path, `was not ready: ${detail}`);
      case status === 507 || code === 'disk_full':
        return new TapwrightError('disk_full', said);
      case status >= 500:
        return unavailable(path, `failed with status ${status}: ${detail}`);
      case code === 'corrupt_checkpoint':
        return new TapwrightError('corrupt_checkpoint', said);
      case status === 401 || status === 403:
        return new TapwrightError('engine_refused', `${said}: is TAPWRIGHT_TOKEN the engine's token?`);
      case status === 409:
        return new TapwrightError('engine_refused', `${said}: what is saved is never overwritten, take another name`);
      default:
        return new TapwrightError('engine_refused', said);
    }
  }

  async function retrieve(of: string, reply: Json, deadline: number): Promise<Json> {
    const body = { request_id: textOf(of, reply, 'request_id') };
    for (;;) {
      const asked = performance.now();
      try {
        return await exchange('retrieve_future', body, true, deadline);
      } catch (error) {
        if (error instanceof Forgotten) throw error;
        if (!(error instanceof NotReady)) throw named(of, error);
      }
      const now = performance.now();
      if (now >= deadline) throw unavailable(of, `was not ready within ${requestTimeoutMs} ms`);
      if (now - asked < POLL_PAUSE_MS) await sleep(POLL_PAUSE_MS);
    }
  }

  const lost = <T>(path: string, work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw error instanceof Forgotten ? unavailable(path, `lost the request: ${error.message}`) : error;
    });

  return {
    get: (path) => exchange(path, null, true, performance.now() + requestTimeoutMs),
    post: (path, body, { again = false } = {}) => exchange(path, body, again, performance.now() + requestTimeoutMs),
    future: async (path, body, { again = false } = {}) => {
      const deadline = performance.now() + requestTimeoutMs;
      for (let attempt = 0; ; attempt++) {
        const reply = await exchange(path, body, again, deadline);
        try {
          return await retrieve(path, reply, deadline);
        } catch (error) {
          if (!(error instanceof Forgotten) || !again || attempt >= retries) return lost(path, Promise.reject(error));
          await pause(attempt);
        }
      }
    },
    result: (path, reply) => lost(path, retrieve(path, reply, performance.now() + requestTimeoutMs)),
    close: async () => {
      closed = true;
      await pool.destroy();
    },
  };
}

class NotReady extends Error {}

function originOf(url: string): string {
  try {
    const parsed = new URL(url);
    if (parsed.protocol === 'http:' || parsed.protocol === 'https:') return parsed.origin;
  } catch {
    // Told below.
  }
  throw new TapwrightError('invalid_config', `engine.url ${JSON.stringify(url)} is no http(s)://host:port address`);
}

/** The engine's words: `{detail}` as a sentence or, from FastAPI, as a list of places. */
function detailOf(text: string): { detail: string; code: string | null } {
  try {
    const { detail, code } = JSON.parse(text) as { detail?: unknown; code?: unknown };
    const words = typeof detail === 'string' ? detail : JSON.stringify(detail);
    return { detail: words ?? text.slice(0, 300), code: typeof code === 'string' ? code : null };
  } catch {
    return { detail: text.slice(0, 300) || 'no reason given', code: null };
  }
}

/** Is a 404 about the weights that a call reads (gone for good) rather than about a model or session of a past life? */
function aboutWeights(call: string, detail: string, body: Json | null): boolean {
  const read = call === 'load_weights' ? [body?.['path']] : [body?.['model_path'], body?.['base_model']];
  return (
    /checkpoint|tinker:\/\//i.test(detail) || read.some((name) => typeof name === 'string' && detail.includes(name))
  );
}

/** The error of a future, told under the name of the call that made it. */
function named(of: string, error: unknown): unknown {
  if (!(error instanceof TapwrightError)) return error;
  const message = error.message.replaceAll('retrieve_future', of);
  return new TapwrightError(error.code, message, { retryable: error.retryable, cause: error });
}
