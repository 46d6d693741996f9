import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { LaneReply, LaneRequest } from './lane-worker.ts';
import type { LaneResult, LaneWork } from './trainer.ts';

/** Work that another process has begun. An object, because a promise of a promise is one promise. */
export interface LaneHandedOver {
  result: Promise<LaneResult | null>;
}

/** A second process for training passes. */
export interface LaneHelper {
  /**
   * Has a lane's work done with the weights of that version. Resolves when the helper has the work, so that a caller who
   * then computes without a pause does not keep it waiting. `result` is null when the helper cannot (it is starting,
   * gone, or failed): the caller does the work itself, with the same bits.
   */
  run(baseModel: string, version: string, weights: Float32Array, work: LaneWork): Promise<LaneHandedOver>;
  close(): void;
}

const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const SCRIPT = fileURLToPath(new URL('./lane-worker.ts', import.meta.url));
/** Deaths after which it is not started again. */
const MAX_DEATHS = 3;

/** Starts the helper's process; one that dies is started again a few times, and never missed for the result. */
export function createLaneHelper(options: {
  backend: string;
  threads: number;
  log: (line: string) => void;
}): LaneHelper {
  let child: ChildProcess | null = null;
  let ready = false;
  let holds: string | null = null;
  let deaths = 0;
  let next = 0;
  let closed = false;
  let waiting: { id: number; settle: (result: LaneResult | null) => void } | null = null;

  const settle = (result: LaneResult | null): void => {
    const job = waiting;
    waiting = null;
    job?.settle(result);
  };

  function start(): void {
    ready = false;
    holds = null;
    // `advanced`: typed arrays travel as they are.
    child = fork(SCRIPT, [options.backend, String(options.threads)], {
      execArgv: ['--import', TSX],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.on('message', (message: LaneReply | { ready: true }) => {
      if ('ready' in message) ready = true;
      else if ('result' in message) settle(message.result);
      else {
        options.log(`the training helper failed (${message.error}); this process goes on alone`);
        holds = null;
        settle(null);
      }
    });
    child.on('error', () => {});
    child.on('exit', () => {
      ready = false;
      settle(null);
      deaths += 1;
      if (closed) return;
      if (deaths <= MAX_DEATHS) start();
      else options.log('the training helper died several times; training goes on in one process');
    });
  }
  start();

  return {
    run: (baseModel, version, weights, work) => {
      if (!ready || waiting !== null || child === null) return Promise.resolve({ result: Promise.resolve(null) });
      const id = next++;
      const result = new Promise<LaneResult | null>((resolve) => (waiting = { id, settle: resolve }));
      const request: LaneRequest = { id, baseModel, version, weights: holds === version ? null : weights, work };
      holds = version;
      const to = child;
      return new Promise((resolve) => {
        to.send(request, (error) => {
          if (error !== null) settle(null);
          resolve({ result });
        });
      });
    },
    close: () => {
      closed = true;
      child?.kill('SIGKILL');
    },
  };
}
