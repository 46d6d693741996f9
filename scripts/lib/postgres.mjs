// A PostgreSQL cluster of our own: its programs found or installed, its folder made, started on loopback, ended.
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lastWords, runs } from './crew.mjs';
import { canInstallFromDebian, installFromDebian } from './debian.mjs';
import { postgresFolders } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

export const POSTGRES_HELP =
  'Install PostgreSQL 12 or newer (as root on Debian `npm run temporal:postgres -- --install` does it), ' +
  'or put its programs `initdb` and `postgres` on PATH.';
/** The cluster's only role: nothing but Temporal lives in it. */
export const POSTGRES_USER = 'temporal';
const OLDEST = 12;
const START_TIMEOUT_MS = 60_000;
/** What a postmaster killed by SIGKILL leaves for some moments: sessions that have not seen it yet. */
const STILL_ENDING = /pre-existing shared memory block|lock file .* already exists/;

/** Where the parts of a data folder are. */
export function clusterPlaces(data) {
  return {
    cluster: join(data, 'cluster'),
    passwordFile: join(data, 'password'),
    logFile: join(data, 'postgres.log'),
  };
}

/** PostgreSQL's programs, of the version that the folder was made by. `{ bin, major, version }`; throws SetupError. */
export async function ensurePostgres(data, { install = false, folders = postgresFolders } = {}) {
  const made = clusterMajor(data);
  const fitting = async () => {
    const found = [];
    for (const bin of folders()) {
      const { output } = await run(join(bin, 'postgres'), ['--version']);
      const version = /\d+(\.\d+)*/.exec(output)?.[0];
      if (version !== undefined) found.push({ bin, version, major: Number.parseInt(version, 10) });
    }
    const fits = ({ major }) => (made === null ? major >= OLDEST : major === made);
    return { found, chosen: found.find(fits) };
  };
  let { found, chosen } = await fitting();
  if (chosen === undefined && install && canInstallFromDebian()) {
    const name = made === null ? 'postgresql' : `postgresql-${made}`;
    await installFromDebian(name, 'PostgreSQL from Debian (keeps the state of Temporal)', POSTGRES_HELP);
    ({ found, chosen } = await fitting());
  }
  if (chosen === undefined) throw noPostgres(data, made, found);
  return chosen;
}

/** The sentence for a machine without the PostgreSQL that is wanted. */
export function noPostgres(data, made, found) {
  if (made === null) return new SetupError('There is no PostgreSQL on this machine.', POSTGRES_HELP);
  const there = found.length === 0 ? 'none' : found.map(({ version }) => version).join(', ');
  return new SetupError(
    `The database in ${data} was made by PostgreSQL ${made}, and of that version there is none here (found: ${there}).`,
    `Install PostgreSQL ${made}, bring the folder to the newer one by pg_upgrade, or choose another folder with --data.`,
  );
}

function clusterMajor(data) {
  const file = join(clusterPlaces(data).cluster, 'PG_VERSION');
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : null;
}

/** PostgreSQL refuses to run as root: then it runs as the user that Debian's package makes. `{}` or `{ uid, gid }`. */
export async function postgresUser() {
  if (process.getuid?.() !== 0) return {};
  const ids = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postgres'])));
  if (ids.some(({ code }) => code !== 0)) {
    throw new SetupError(
      'PostgreSQL refuses to run as root, and there is no user `postgres` to run it as.',
      'Make one (`useradd --system postgres`), or run this as another user than root.',
    );
  }
  return { uid: Number(ids[0].output), gid: Number(ids[1].output) };
}

/** Makes the folder; throws SetupError when we, or the user who runs PostgreSQL, cannot work in it. */
export async function ensureFolder(data, user) {
  try {
    // Whatever the umask: another user must be able to enter it; what is secret in it is closed by itself.
    if (mkdirSync(data, { recursive: true }) !== undefined) chmodSync(data, 0o755);
    accessSync(data, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new SetupError(`${data} cannot be written to (${error.code}).`, 'Choose another folder with --data.');
  }
  if (user.uid !== undefined && (await run('test', ['-x', data], { ...user, cwd: '/' })).code !== 0) {
    throw new SetupError(
      `PostgreSQL runs as the user \`postgres\` here, who may not enter ${data}.`,
      'Choose a folder that others may enter with --data (for instance /var/lib/tapwright-postgres), or open those above it (chmod o+x).',
    );
  }
}

/** Makes the cluster when there is none. Its password is in a file that only its owner may read. */
export async function ensureCluster(data, { bin, version }, user) {
  const { cluster, passwordFile } = clusterPlaces(data);
  if (existsSync(cluster)) {
    if (existsSync(passwordFile)) return;
    throw new SetupError(
      `There is a database in ${data}, but its file \`password\` is gone.`,
      'Put the file back, or choose another folder with --data.',
    );
  }
  // Made beside its place and renamed, so that an interrupted start leaves nothing that looks finished.
  const scratch = join(data, 'cluster.new');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { mode: 0o700 });
  if (user.uid !== undefined) for (const path of [scratch, passwordFile]) chownSync(path, user.uid, user.gid);
  const args = ['-D', scratch, '-U', POSTGRES_USER, '-A', 'scram-sha-256', '--pwfile', passwordFile];
  await step(`PostgreSQL ${version}, a database cluster of its own`, async () => {
    const made = await run(join(bin, 'initdb'), [...args, '-E', 'UTF8', '--no-locale'], { ...user, cwd: data });
    if (made.code !== 0) {
      throw new SetupError(`initdb failed:\n${tail(made.output)}`, `Check the free space and the rights in ${data}.`);
    }
  });
  renameSync(scratch, cluster);
}

/** Starts PostgreSQL on loopback, without a socket file, and waits until it takes connections. Returns the crew's member. */
export async function startPostgres(crew, data, { bin }, user, port) {
  const { cluster, logFile } = clusterPlaces(data);
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200'];
  const deadline = performance.now() + START_TIMEOUT_MS;
  const launch = () =>
    crew.start({
      name: 'PostgreSQL',
      command: join(bin, 'postgres'),
      args: ['-D', cluster, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
      logFile,
      // Fast shutdown: open sessions are rolled back; the last resort is the immediate one, mended at the next start.
      stopSignal: 'SIGINT',
      lastSignal: 'SIGQUIT',
      cwd: data,
      ...user,
    });
  let server = launch();
  while ((await run(join(bin, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)])).code !== 0) {
    const late = performance.now() > deadline;
    if (server.isGone() && !late && STILL_ENDING.test(lastWords(logFile))) {
      await sleep(1_000);
      server = launch();
    } else if (server.isGone() || late) {
      throw new SetupError(
        `PostgreSQL ${late ? `does not answer after ${START_TIMEOUT_MS / 1000} s` : 'ended at once'}. ${lastWords(logFile)}`,
        `See ${logFile}; another folder can be chosen with --data.`,
      );
    }
    await sleep(50);
  }
  return server;
}

/** Ends a PostgreSQL of this folder that nobody keeps any more. */
export async function endPostgresLeftBehind(data, { bin }, user) {
  const { cluster } = clusterPlaces(data);
  const file = join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return;
  // The file outlives a server that was killed, and its process id may be another program's by now.
  if (process.platform === 'linux' && !runs(Number.parseInt(readFileSync(file, 'utf8'), 10), cluster)) return;
  await run(join(bin, 'pg_ctl'), ['-D', cluster, '-m', 'fast', '-w', 'stop'], { ...user, cwd: data });
}
