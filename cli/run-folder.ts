import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { loadConfig } from '../configs/loader.ts';
import { nfpChoices } from '../configs/nfp.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { PolicyRef } from '../activities/api.ts';
import { checkpointIndex, createRun, openRun } from '../store/index.ts';
import { KNOWN_SUITES } from './known-suites.ts';
import { settings } from '../workers/settings.ts';

export interface OpenedRun {
  id: string;
  config: RunConfig;
  /** The run's folder. */
  folder: string;
  /** It was there before. */
  resumed: boolean;
  /** Newest policy; null before the first checkpoint. */
  policy: PolicyRef | null;
}

export interface NewRun {
  configPath: string;
  sets: string[];
  id?: string;
  /** What must hold before a folder is made that would pass for a run. */
  before?(config: RunConfig): Promise<void>;
}

/**
 * Makes or reopens the folder of a run. With a config the folder's own must be equal to it; without one the run must
 * exist. The default id is the config's name with the first digits of its content, so the same config is the same run.
 */
export async function openRunFolder(options: NewRun | { id: string }): Promise<OpenedRun> {
  const { home } = settings();
  if (!('configPath' in options)) {
    const run = await openRun(home, options.id);
    return described(run.id, run.config, run.dir, true, await run.checkpoints.latest());
  }
  const config = loadConfig({ path: options.configPath, sets: options.sets, suites: KNOWN_SUITES });
  const { only, without } = config.tasks;
  // A slice that does not exist is said before anything is made.
  if (only.length + without.length > 0) (await import('../suites/index.ts')).getSuite(config.suite, config.tasks);
  await options.before?.(config);
  const id = options.id ?? `${config.name}-${fingerprint(config)}`;
  const existing = await openRun(home, id).catch((error: unknown) => {
    if (error instanceof TapwrightError && error.code === 'not_found') return null;
    throw error;
  });
  const run = await createRun(home, id, config, { ...(await machineHeader()), nfp: nfpChoices(config) });
  return described(id, config, run.dir, existing !== null, await run.checkpoints.latest());
}

function described(
  id: string,
  config: RunConfig,
  folder: string,
  resumed: boolean,
  latest: Awaited<ReturnType<Awaited<ReturnType<typeof openRun>>['checkpoints']['latest']>>,
): OpenedRun {
  const policy =
    latest === null ? null : { stage: latest.stage, index: checkpointIndex(latest), sampler: latest.sampler };
  return { id, config, folder, resumed, policy };
}

export const fingerprint = (config: RunConfig): string =>
  createHash('sha256').update(JSON.stringify(config)).digest('hex').slice(0, 6);

/** What a run says of the machine it began on. */
export async function machineHeader(): Promise<Record<string, unknown>> {
  const own = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return {
    tapwright: own.version,
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    cpu: cpus()[0]?.model ?? 'unknown',
  };
}
