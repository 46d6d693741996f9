// Where things live on this machine. Node built-ins only: the set-up runs before any package is installed.
import { accessSync, constants, existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const TEMPORAL_CLI_VERSION = '1.5.1';
/** The server inside that CLI, for where it is built alone (on PostgreSQL): one version, whatever keeps the state. */
export const TEMPORAL_SERVER_VERSION = '1.29.1';
export const MINIWOB_VERSION = '1.1.0';
export const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The project's folder: the one that holds package.json. */
export const projectDir = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Tapwright's folder in the user's cache folder: what `npm ci` must not delete and what is dear to make again. */
export function cacheDir(env = process.env) {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'tapwright');
}

/** The Temporal server that the set-up built with Go. */
export function builtTemporal(env = process.env) {
  return join(cacheDir(env), `temporal-${TEMPORAL_CLI_VERSION}`, 'temporal');
}

/** The folder of the server for PostgreSQL and its schema tool, built with Go. */
export function builtTemporalServer(env = process.env) {
  return join(cacheDir(env), `temporal-server-${TEMPORAL_SERVER_VERSION}`);
}

/** The Temporal server that the SDK downloaded. */
export function downloadedTemporal(env = process.env) {
  return join(cacheDir(env), 'temporal-sdk', 'temporal');
}

/** The folder that holds MiniWoB++'s pages (`miniwob/click-button.html`, `core/core.js`), whether or not it is there. */
export function miniwobHtmlDir(env = process.env) {
  return join(cacheDir(env), `miniwob-${MINIWOB_VERSION}`, 'miniwob', 'html');
}

/** MiniWoB++'s pages, or null when the set-up has not fetched them. */
export function findMiniwob(env = process.env) {
  const dir = miniwobHtmlDir(env);
  return existsSync(join(dir, 'core', 'core.js')) ? dir : null;
}

/** The first executable file of that name on PATH, or null. */
export function which(name, env = process.env) {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    if (folder !== '' && isExecutable(join(folder, name))) return join(folder, name);
  }
  return null;
}

export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A Chromium to drive: TAPWRIGHT_CHROMIUM, else one on PATH, else null. */
export function findChromium(env = process.env) {
  if (env.TAPWRIGHT_CHROMIUM) return isExecutable(env.TAPWRIGHT_CHROMIUM) ? env.TAPWRIGHT_CHROMIUM : null;
  for (const name of CHROMIUM_NAMES) {
    const path = which(name, env);
    if (path !== null) return path;
  }
  return null;
}

/** Folders with PostgreSQL's server programs, the newest of Debian's first, then PATH: Debian keeps them off PATH. */
export function postgresFolders(env = process.env, debian = '/usr/lib/postgresql') {
  const majors = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = majors.map((major) => join(debian, major, 'bin'));
  const onPath = which('initdb', env);
  if (onPath !== null) folders.push(dirname(realpathSync(onPath)));
  const programs = ['initdb', 'postgres', 'pg_ctl', 'pg_isready'];
  return folders.filter((folder) => programs.every((name) => isExecutable(join(folder, name))));
}

/**
 * The Temporal server to use, in the order TEMPORAL_ADDRESS, PATH, the cached build, the SDK's download.
 * `{ kind: 'address', address, source }`, `{ kind: 'binary', path, source }` or null.
 */
export function findTemporal(env = process.env) {
  if (env.TEMPORAL_ADDRESS) return { kind: 'address', address: env.TEMPORAL_ADDRESS, source: 'TEMPORAL_ADDRESS' };
  const onPath = which('temporal', env);
  if (onPath !== null) return { kind: 'binary', path: onPath, source: 'PATH' };
  if (isExecutable(builtTemporal(env))) return { kind: 'binary', path: builtTemporal(env), source: 'cached build' };
  if (isExecutable(downloadedTemporal(env))) {
    return { kind: 'binary', path: downloadedTemporal(env), source: 'SDK download' };
  }
  return null;
}

/** What to do when there is no Temporal server. */
export const TEMPORAL_HELP =
  `Run \`npm run setup\` with Go on PATH (it builds the server once), or install the \`temporal\` CLI ` +
  `${TEMPORAL_CLI_VERSION} or newer on PATH, or set TEMPORAL_ADDRESS=host:port to a server that runs.`;
