import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { TapwrightError } from '../../domain/index.ts';

/** Flags for an unattended browser: no sandbox as root, nothing that talks to the network by itself (devices.md). */
export const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
  '--allow-file-access-from-files',
];

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Path of a Chromium: `TAPWRIGHT_CHROMIUM`, then the usual names on PATH; null when there is none. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.TAPWRIGHT_CHROMIUM) return executable(env.TAPWRIGHT_CHROMIUM) ? env.TAPWRIGHT_CHROMIUM : null;
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    for (const name of NAMES) {
      const path = join(folder, name);
      if (folder && executable(path)) return path;
    }
  }
  return null;
}

/** As findChromium, but its absence is an error that says what to do. */
export function requireChromium(env: NodeJS.ProcessEnv = process.env): string {
  const path = findChromium(env);
  if (path) return path;
  throw new TapwrightError(
    'not_found',
    env.TAPWRIGHT_CHROMIUM
      ? `TAPWRIGHT_CHROMIUM names ${env.TAPWRIGHT_CHROMIUM}, which is not an executable file; point it at a Chromium or unset it.`
      : 'No Chromium on PATH. Run `npm run setup -- --browser`, or install one (Debian: apt-get install chromium), or set TAPWRIGHT_CHROMIUM to its path.',
    { retryable: false },
  );
}
