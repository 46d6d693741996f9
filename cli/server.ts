import { connect as connectSocket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, WorkflowNotFoundError, WorkflowUpdateRPCTimeoutOrCancelledError } from '@temporalio/client';
import { TapwrightError } from '../domain/errors.ts';
import type { Client } from '@temporalio/client';
import { createClient } from '../workers/connect.ts';
import { settings } from '../workers/settings.ts';
import { fromFailure } from '../workflows/failures.ts';
import type { ControlView, RunStatus } from '../workflows/types.ts';
import { serverAddress } from './home.ts';
import { troubleOf } from './trouble.ts';
import type { Trouble } from './trouble.ts';

/** How long a server may take to let us in, and a workflow to answer, in milliseconds: on a machine at work, seconds. */
const CONNECT_MS = 20_000;
const ANSWER_MS = 30_000;
/** A status is wanted at once, or without the workflow's part. */
const STATUS_MS = 5_000;

/** Null when nobody is there. A busy server is waited for; a port where nobody listens is told at once. */
async function connect(address: string): Promise<Connection | null> {
  if (await refused(address)) return null;
  return Connection.connect({ address, connectTimeout: CONNECT_MS }).catch(() => null);
}

function refused(address: string): Promise<boolean> {
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  // Written in another way: the client knows better.
  if (host === undefined || port === undefined) return Promise.resolve(false);
  const socket = connectSocket({ host, port: Number(port) });
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(false));
    socket.once('error', () => resolve(true));
    socket.setTimeout(CONNECT_MS, () => resolve(true));
  }).finally(() => socket.destroy());
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
    return await body(createClient(connection));
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

/** What a running run says of itself. */
export interface Answer {
  /** Null when its workflow does not answer. */
  status: RunStatus | null;
  trouble: Trouble[];
}

/** A running run's control and trouble; null when it does not run or does not answer soon. */
export async function askRun(address: string, id: string): Promise<Answer | null> {
  let connection: Connection | null = null;
  let late = false;
  const ask = async (): Promise<Answer | null> => {
    connection = await connect(address);
    if (late) await connection?.close();
    if (connection === null || late) return null;
    const client = createClient(connection);
    const handle = client.workflow.getHandle(id);
    if ((await handle.describe()).status.name !== 'RUNNING') return null;
    const trouble = await troubleOf(client, id);
    // Nobody answers a query when the workflow's worker is away; what is tried again is known without it.
    const query = handle.query<RunStatus>('status');
    query.catch(() => {});
    const status = await Promise.race([query, sleep(STATUS_MS / 2, null, { ref: false })]);
    return { status, trouble };
  };
  try {
    return await Promise.race([ask().catch(() => null), sleep(STATUS_MS, null, { ref: false })]);
  } finally {
    late = true;
    // Ends what is still being asked; a deadline of the call would leave the server's retries of it behind.
    await (connection as Connection | null)?.close();
  }
}
