import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  Connection,
  WorkflowNotFoundError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { TapwrightError } from '../domain/errors.ts';
import { settings } from '../workers/settings.ts';
import { fromFailure } from '../workflows/failures.ts';
import type { ControlView, RunStatus } from '../workflows/types.ts';
import { serverAddress } from './home.ts';

/** How long a running workflow may take to answer a question or an order, in milliseconds. */
const ANSWER_MS = 15_000;
/** A status is wanted at once, or without the workflow's part. */
const STATUS_MS = 3_000;

async function connect(address: string): Promise<Connection | null> {
  return Connection.connect({ address, connectTimeout: '3s' }).catch(() => null);
}

/** The body with a client of this home's server. Error: `not_found` with what to do when no server is there. */
export async function withServer<T>(body: (client: Client) => Promise<T>): Promise<T> {
  const address = await serverAddress();
  const connection = address === null ? null : await connect(address);
  if (connection === null) {
    const where = address === null ? `keeps ${settings().home}` : `answers at ${address}`;
    throw new TapwrightError(
      'not_found',
      `no Temporal server ${where}, so nothing runs there: start the run, or go on with it, by tapwright run, or set TEMPORAL_ADDRESS`,
    );
  }
  try {
    return await body(new Client({ connection, namespace: settings().namespace }));
  } finally {
    await connection.close();
  }
}

/** Gives an order to a running run: one Update of its workflow. Errors: its refusal, `not_found` when it does not run. */
export function orderRun(id: string, update: string, args: unknown[]): Promise<ControlView> {
  return withServer(async (client) => {
    const handle = client.workflow.getHandle(id);
    const goOn = `go on with it by tapwright run ${settings().home}/runs/${id}/config.yaml --id ${id}`;
    try {
      const { status } = await handle.describe();
      if (status.name !== 'RUNNING') {
        throw new TapwrightError('not_found', `run ${id} does not run, its end was ${status.name}: ${goOn}`);
      }
      const call = (): Promise<ControlView> =>
        handle.executeUpdate<ControlView, [unknown]>(update, { args: args as [unknown] });
      return await client.withDeadline(Date.now() + ANSWER_MS, call);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) {
        throw new TapwrightError('not_found', `run ${id} does not run: ${goOn}`, { cause: error });
      }
      if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
        throw new TapwrightError(
          'internal',
          `run ${id} did not answer within ${ANSWER_MS / 1000} s; it may still do as it was told. Is its workflow worker up (tapwright status ${id})? If not: ${goOn}`,
          { cause: error },
        );
      }
      throw error instanceof TapwrightError ? error : fromFailure((error as Error).cause ?? error);
    }
  });
}

/** What a running run says of its control; null when it does not run or does not answer soon. */
export async function askControl(address: string, id: string): Promise<ControlView | null> {
  const connection = await connect(address);
  if (connection === null) return null;
  try {
    const handle = new Client({ connection, namespace: settings().namespace }).workflow.getHandle(id);
    const ask = async (): Promise<ControlView | null> => {
      if ((await handle.describe()).status.name !== 'RUNNING') return null;
      return (await handle.query<RunStatus>('status')).control ?? null;
    };
    // A deadline of the call would leave the server's retries of it behind; the connection is closed below.
    const asked = ask().catch(() => null);
    return await Promise.race([asked, sleep(STATUS_MS, null, { ref: false })]);
  } finally {
    await connection.close();
  }
}
