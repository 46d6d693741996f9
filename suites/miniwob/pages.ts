import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where set-up unpacks the `miniwob` wheel; `TAPWRIGHT_MINIWOB` names another folder (the one that holds `miniwob/`). */
export function miniwobPages(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TAPWRIGHT_MINIWOB) return env.TAPWRIGHT_MINIWOB;
  const cache = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(cache, 'tapwright', 'miniwob-1.1.0', 'miniwob', 'html');
}

/** True when the pages are there. */
export const hasMiniwobPages = (env: NodeJS.ProcessEnv = process.env): boolean =>
  existsSync(join(miniwobPages(env), 'miniwob', 'click-button.html'));
