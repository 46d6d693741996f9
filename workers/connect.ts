import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { TapwrightError } from '../domain/errors.ts';
import { dataConverter } from './claim-check.ts';
import { settings } from './settings.ts';

/** How long a process waits for a server that is not there: longer than any restart, not for ever. */
const PATIENCE_MS = 15 * 60_000;

/** Calls `connect` until it works, with backoff; says so once when it has to wait. */
export async function patiently<T>(address: string, connect: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  let delay = 200;
  let told = false;
  for (let waited = 0; ; waited += delay, delay = Math.min(5_000, delay * 1.6)) {
    try {
      return await connect();
    } catch (error) {
      if (waited > patienceMs) {
        throw new TapwrightError(
          'not_found',
          `no Temporal server at ${address} after ${Math.round(waited / 60_000)} minutes: start one, or unset TEMPORAL_ADDRESS to let the run start its own`,
          { cause: error },
        );
      }
      if (!told) process.stderr.write(`waiting for the Temporal server at ${address}\n`);
      told = true;
      await sleep(delay);
    }
  }
}

/** A client of this home's runs. */
export const createClient = (connection: Connection): Client => {
  const { namespace, home } = settings();
  return new Client({ connection, namespace, dataConverter: dataConverter(home) });
};

export const connectWorker = (address: string): Promise<NativeConnection> =>
  patiently(address, () => NativeConnection.connect({ address }));

export const connectClient = (address: string, patienceMs?: number): Promise<Connection> =>
  patiently(address, () => Connection.connect({ address, connectTimeout: '3s' }), patienceMs);
