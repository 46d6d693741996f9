import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';

/** What a process needs to know of where it runs: all from the environment, so that children inherit it. */
export interface Settings {
  /** Folder of runs, caches and the server's database (`TAPWRIGHT_HOME`, default `.tapwright/` here). */
  home: string;
  /** Prefix of this home's task queues. */
  prefix: string;
  /** Name of this device host. */
  host: string;
  namespace: string;
  /** Temporal's address; null: not known yet, the supervisor finds or starts one. */
  temporal: string | null;
  /** URL of the embedded engine; null until the supervisor has started it. */
  engine: string | null;
}

/** Reads the settings. */
export function settings(env: NodeJS.ProcessEnv = process.env): Settings {
  const home = resolve(env['TAPWRIGHT_HOME'] ?? '.tapwright');
  return {
    home,
    prefix: env['TAPWRIGHT_QUEUES'] ?? `tapwright-${createHash('sha256').update(home).digest('hex').slice(0, 8)}`,
    host: env['TAPWRIGHT_HOST'] ?? hostname(),
    namespace: env['TEMPORAL_NAMESPACE'] ?? 'default',
    temporal: env['TEMPORAL_ADDRESS'] ?? null,
    engine: env['TAPWRIGHT_ENGINE_URL'] ?? null,
  };
}
