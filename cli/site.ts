import { Client } from '@temporalio/client';
import { TapwrightError } from '../domain/errors.ts';
import type { RunFolder } from '../store/index.ts';
import { connectClient } from '../workers/connect.ts';
import { readHomeState } from '../workers/home-state.ts';
import { settings } from '../workers/settings.ts';
import type { SupervisorOptions } from '../workers/supervisor.ts';
import { fromFailure } from '../workflows/failures.ts';
import { alive } from './home.ts';
import { supervised, unreachable } from './run.ts';

export interface SiteOptions {
  /** Processes that the body does without, when it has to start its own. */
  without?: SupervisorOptions['without'];
  /** The command that goes on with it after an interruption. */
  goOn: string;
}

/** What is said on the way is no part of the command's output. */
const tell = (line: string): void => void process.stderr.write(`${line}\n`);

/** A server that others keep answers at once, or is on its way down. */
const PATIENCE_MS = 20_000;

/**
 * The body with a client of this home's server whose workers are up: those that a running command keeps, which are left
 * alone, else our own, taken down again afterwards. `failed` rejects when our own cannot be kept alive.
 */
export async function withSite(
  run: RunFolder,
  { goOn, without = [] }: SiteOptions,
  body: (client: Client, failed: Promise<never>) => Promise<void>,
): Promise<void> {
  const { home, namespace, temporal } = settings();
  const { supervisor, temporal: kept } = await readHomeState(home);
  const address = temporal ?? kept?.address;
  if (supervisor === undefined || !alive(supervisor) || address === undefined) {
    await supervised(run.id, run.config, run.dir, (client, own) => body(client, own.failed), { goOn, without, tell });
    return;
  }
  const connection = await connectClient(address, PATIENCE_MS);
  try {
    await body(new Client({ connection, namespace }), new Promise<never>(() => {}));
  } catch (error) {
    if (unreachable(error)) {
      throw new TapwrightError(
        'internal',
        `the command that kept the server and the workers up (process ${supervisor}) has ended: go on with  ${goOn}`,
        { cause: error },
      );
    }
    throw fromFailure((error as { cause?: unknown }).cause instanceof Error ? (error as Error).cause : error);
  } finally {
    await connection.close();
  }
}
