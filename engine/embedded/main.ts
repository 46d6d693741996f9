import { parseArgs } from 'node:util';
import { TapwrightError } from '../../domain/errors.ts';
import { loadTensor } from '../tensor.ts';
import { createLaneHelper } from './lane-helper.ts';
import { createEngineServer } from './server.ts';
import { createService } from './service.ts';

/**
 * The embedded engine's process: `main.ts --port N --checkpoints DIR [--host H] [--threads N] [--backend B]
 * [--max-batch N] [--processes 1|2]`. Prints one JSON line when it is ready. Exit code 2: a wrong argument or a port that is taken.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      checkpoints: { type: 'string' },
      dir: { type: 'string' },
      threads: { type: 'string', default: '1' },
      backend: { type: 'string', default: 'auto' },
      'max-batch': { type: 'string', default: '128' },
      processes: { type: 'string', default: '1' },
    },
  });
  const { host, backend } = values;
  const port = whole('--port', values.port, 0, 65535);
  const threads = whole('--threads', values.threads, 1, 64);
  const maxBatch = whole('--max-batch', values['max-batch'], 1, 4096);
  const processes = whole('--processes', values.processes, 1, 2);
  const checkpointDir = values.checkpoints ?? values.dir;
  if (checkpointDir === undefined) stop('--checkpoints DIR is missing: where weights are saved');
  if (backend !== 'auto' && backend !== 'native' && backend !== 'wasm') {
    stop(`--backend must be auto, native or wasm, not ${backend}`);
  }
  const loopback = host === '127.0.0.1' || host === '::1' || host === 'localhost';
  const token = process.env['TAPWRIGHT_TOKEN'] || null;
  if (!loopback && token === null) {
    stop(`--host ${host} is reachable from other machines: set TAPWRIGHT_TOKEN, which callers send as a bearer token`);
  }
  const ops = await loadTensor({ backend, threads, log: (line) => process.stderr.write(`${line}\n`) });
  const log = (line: string): void => void process.stderr.write(`engine: ${line}\n`);
  const helper = processes === 2 ? createLaneHelper({ backend, threads, log }) : undefined;
  const service = createService({ ops, checkpointDir, maxBatch, ...(helper && { helper }) });
  const server = createEngineServer({ service, token });
  server.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      stop(`port ${port} on ${host} is taken: choose another --port, or 0 for a free one`);
    stop(`cannot listen on ${host}:${port}: ${error.message}`);
  });
  server.listen(port, host, () => {
    const address = server.address();
    const actual = typeof address === 'object' && address !== null ? address.port : port;
    process.stdout.write(`${JSON.stringify({ ready: true, port: actual, backend: ops.backend, pid: process.pid })}\n`);
  });
  const end = (): void => {
    helper?.close();
    server.close(() => process.exit(0));
    server.closeAllConnections();
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  // Whoever kept this process is gone: nobody would stop it.
  process.on('disconnect', end);
}

function whole(name: string, value: string, low: number, high: number): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < low || n > high)
    stop(`${name} must be a whole number in ${low}..${high}, not ${value}`);
  return n;
}

function stop(message: string): never {
  process.stderr.write(`engine: ${message}\n`);
  process.exit(2);
}

main().catch((error: unknown) => {
  const message =
    error instanceof TapwrightError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`engine: ${message}\n`);
  process.exit(error instanceof TypeError ? 2 : 1);
});
