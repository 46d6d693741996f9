// `npm run temporal:postgres [-- up|stop] [--data F] [--port N] [--shards N] [--install]`: Temporal on a PostgreSQL of its
// own, in the foreground until Ctrl-C; then `TEMPORAL_ADDRESS=... npx tapwright run ...` runs on it. All state is in the
// data folder (default: `postgres/` in TAPWRIGHT_HOME), so that a second start goes on where the first was ended.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createCrew, endLeftBehind, freePorts, isFree, runs } from './lib/crew.mjs';
import { ensurePackages } from './lib/packages.mjs';
import {
  clusterPlaces,
  endPostgresLeftBehind,
  ensureCluster,
  ensureFolder,
  ensurePostgres,
  postgresUser,
  startPostgres,
} from './lib/postgres.mjs';
import { SetupError, step } from './lib/steps.mjs';
import {
  answering,
  ensureTemporalServer,
  PORTS,
  shardsDiffer,
  startTemporal,
  updateSchemas,
} from './lib/temporal-postgres.mjs';
import { printFailure } from './setup.mjs';

const USAGE =
  'usage: npm run temporal:postgres [-- [up|stop] [--data FOLDER] [--port N] [--shards N, 4 or more] [--install]]';
const SHARDS = 4;
const MOST_SHARDS = 16_384;
/** How a process id of this script is told from any other's. */
const SCRIPT = 'temporal-postgres.mjs';

/** The command line as `{ command, data, port, shards, install }`; null: not given. Throws SetupError. */
export function parseCommandLine(args, env = process.env) {
  const text = { type: 'string' };
  let parsed;
  try {
    const options = { data: text, port: text, shards: text, install: { type: 'boolean', default: false } };
    parsed = parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new SetupError(error.message.split('. ')[0], USAGE);
  }
  const { values, positionals } = parsed;
  const [command = 'up', ...rest] = positionals;
  if (!['up', 'stop'].includes(command) || rest.length > 0) {
    throw new SetupError(`unknown argument ${rest[0] ?? command}.`, USAGE);
  }
  const whole = (name, least, most) => {
    if (values[name] === undefined) return null;
    const number = Number(values[name]);
    if (Number.isInteger(number) && number >= least && number <= most) return number;
    throw new SetupError(`--${name} is a whole number from ${least} to ${most}, not ${values[name]}.`, USAGE);
  };
  const data = resolve(values.data ?? join(env.TAPWRIGHT_HOME ?? '.tapwright', 'postgres'));
  const numbers = { port: whole('port', 1, 65_535), shards: whole('shards', SHARDS, MOST_SHARDS) };
  return { command, data, ...numbers, install: values.install };
}

/** The ports to use: those of the last start; what others do not know by heart gives way when it is taken. */
export async function choosePorts(kept, wanted, { free = isFree, more = freePorts } = {}) {
  const ports = { ...kept };
  if (wanted !== null) ports.frontend = wanted;
  if (ports.frontend !== undefined && !(await free(ports.frontend))) {
    throw new SetupError(
      `Port ${ports.frontend} on 127.0.0.1 is taken by another program.`,
      'End that program, or choose another port with --port (and give TEMPORAL_ADDRESS anew to what runs).',
    );
  }
  for (const name of PORTS) {
    if (name === 'frontend' && ports.frontend !== undefined) continue;
    const port = ports[name];
    const twice = PORTS.some((other) => other !== name && ports[other] === port);
    if (port === undefined || twice || !(await free(port))) [ports[name]] = await more(1, Object.values(ports));
  }
  return ports;
}

/** What the folder remembers: `ports`, `shards`, and while it is up `pids`. */
function readState(data) {
  const file = join(data, 'state.json');
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new SetupError(`${file} does not read as JSON.`, 'Remove it: ports are chosen anew, no run is lost.');
  }
}

function writeState(data, state) {
  const file = join(data, 'state.json');
  writeFileSync(`${file}.part`, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(`${file}.part`, file);
}

/** The database's password: made at the first start, in a file for its owner alone, never printed. */
function password(data) {
  const { passwordFile, cluster } = clusterPlaces(data);
  if (!existsSync(passwordFile) && !existsSync(cluster)) {
    writeFileSync(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
  }
  return existsSync(passwordFile) ? readFileSync(passwordFile, 'utf8').trim() : '';
}

/** What a script that was killed has left running: the server before its database. */
async function endLeftovers({ data, state, postgres, user }) {
  if (state.pids?.temporal !== undefined) await endLeftBehind(state.pids.temporal, data);
  await endPostgresLeftBehind(data, postgres, user);
}

/** Brings everything up; what it has started is in `crew`, also when it fails. Returns the address. */
async function bringUp(crew, options, say) {
  const { data } = options;
  await ensurePackages();
  const user = await postgresUser();
  await ensureFolder(data, user);
  const state = readState(data);
  if (runs(state.pids?.script, SCRIPT)) {
    throw new SetupError(
      `It is up already: TEMPORAL_ADDRESS=127.0.0.1:${state.ports.frontend} (process ${state.pids.script}).`,
      `Use that address, or end it first: npm run temporal:postgres -- stop --data ${data}`,
    );
  }
  const asked = options.shards;
  if (asked !== null && state.shards !== undefined && state.shards !== asked) {
    throw shardsDiffer(data, state.shards, asked);
  }
  const postgres = await ensurePostgres(data, options);
  const programs = await ensureTemporalServer();
  await endLeftovers({ data, state, postgres, user });
  const ports = await choosePorts(state.ports ?? {}, options.port);
  const pids = { script: process.pid };
  // Before anything is started, so that whoever comes after us knows what to look for.
  writeState(data, { ports, shards: state.shards, pids });
  const secret = password(data);
  await ensureCluster(data, postgres, user);
  const database = await startPostgres(crew, data, postgres, user, ports.postgres);
  crew.mind('PostgreSQL', database);
  await updateSchemas(programs, ports.postgres, secret, data);
  const config = { ports, shards: asked ?? state.shards ?? SHARDS, password: secret };
  const server = startTemporal(crew, data, programs, config);
  crew.mind('The Temporal server', server);
  pids.temporal = server.pid;
  writeState(data, { ports, shards: state.shards, pids });
  // Asked of the database, not of our notes: it is the server's word that counts, and it keeps to its first number.
  const shards = await step('Temporal server, starting', () => answering(ports.frontend, server, data));
  if (asked !== null && shards !== asked) throw shardsDiffer(data, shards, asked);
  writeState(data, { ports, shards, pids });
  say(`Temporal in ${data}: PostgreSQL ${postgres.version}, ${shards} history shards`);
  return `127.0.0.1:${ports.frontend}`;
}

/** Runs until a signal comes or a process ends by itself. Resolves to the exit code. */
async function up(options, say) {
  const crew = createCrew();
  let signalled = () => {};
  const signal = new Promise((resolve) => void (signalled = resolve));
  // Again and again: npm passes on what the terminal has sent to us as well.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => signalled(name));
  try {
    const address = await Promise.race([bringUp(crew, options, say), signal.then(() => null)]);
    if (address !== null) {
      process.stdout.write(`TEMPORAL_ADDRESS=${address}\n`);
      say('Ctrl-C ends it; runs are kept.');
      const fallen = await Promise.race([crew.ended, signal.then(() => null)]);
      if (fallen !== null) {
        throw new SetupError(
          `${fallen.name} ended by itself (${fallen.how}).`,
          `Start it again by the same command: runs are kept and go on. Its log is in ${options.data}.`,
        );
      }
    }
    return address === null ? 130 : 0;
  } finally {
    if ((await crew.stop()) > 0) say('Temporal and PostgreSQL: stopped');
    forgetPids(options.data);
  }
}

function forgetPids(data) {
  if (!existsSync(join(data, 'state.json'))) return;
  const state = readState(data);
  // Another script's, when we were refused because it is up.
  if (state.pids?.script !== process.pid) return;
  delete state.pids;
  writeState(data, state);
}

/** Ends the script that keeps this folder, or what it left behind. */
async function stop({ data }, say) {
  const state = readState(data);
  const script = state.pids?.script;
  if (runs(script, SCRIPT)) {
    process.kill(script, 'SIGTERM');
    while (runs(script, SCRIPT)) await sleep(100);
  } else if (state.ports !== undefined) {
    await endLeftovers({ data, state, postgres: await ensurePostgres(data), user: await postgresUser() });
  }
  say('Temporal and PostgreSQL: stopped');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const say = (line) => process.stderr.write(`${line}\n`);
  try {
    const options = parseCommandLine(process.argv.slice(2));
    process.exitCode = options.command === 'stop' ? await stop(options, say) : await up(options, say);
  } catch (error) {
    printFailure(error, 'Temporal on PostgreSQL');
    process.exitCode = 1;
  }
  // A build or a connection attempt that a signal has overtaken is not waited for.
  process.exit();
}
