import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';

/** Arguments of the embedded engine's process. */
export function engineArgs(home: string, port: number, config: RunConfig): string[] {
  const { maxBatch, threads, backend, processes } = config.engine;
  const values = {
    processes: Math.min(processes, availableParallelism()),
    port,
    checkpoints: join(home, 'engine'),
    'max-batch': maxBatch,
    threads,
    backend,
  };
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

/** Milliseconds within which an engine on another machine must say that it is there. */
const HELLO_MS = 10_000;

/** Refuses to begin with an engine that does not answer; one that goes away later is waited for. `engine_unavailable`. */
export async function requireEngine(url: string): Promise<void> {
  if (url === 'embedded') return;
  let why: string;
  try {
    const reply = await fetch(new URL('/api/v1/healthz', url), { signal: AbortSignal.timeout(HELLO_MS) });
    if (reply.ok) return;
    why = `it answers healthz with status ${reply.status}`;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    why = cause instanceof Error ? cause.message : String(cause);
  }
  throw new TapwrightError(
    'engine_unavailable',
    `no engine answers at ${url} (${why}): start it, or correct engine.url; nothing has been started`,
  );
}

/** The port asked for if it is free, else another free one: loopback only. */
export async function usablePort(wanted: number | undefined): Promise<number> {
  const bind = (port: number): Promise<number | null> =>
    new Promise((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(null));
      probe.listen(port, '127.0.0.1', () => {
        const address = probe.address();
        probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
      });
    });
  const port = (wanted === undefined ? null : await bind(wanted)) ?? (await bind(0));
  if (port === null) throw new TapwrightError('internal', 'no free port on 127.0.0.1 for the engine');
  return port;
}
