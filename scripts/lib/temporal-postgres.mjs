// Temporal's server on PostgreSQL: built with Go, its databases brought up to date, its config written, started.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lastWords } from './crew.mjs';
import { goInstall } from './go.mjs';
import { builtTemporalServer, isExecutable, projectDir, TEMPORAL_SERVER_VERSION, which } from './places.mjs';
import { POSTGRES_USER } from './postgres.mjs';
import { run, SetupError, tail } from './steps.mjs';

/** How many packages the Go build compiles on an empty Go cache: only for the progress line. */
const GO_PACKAGES = 1250;
const START_TIMEOUT_MS = 90_000;
/** As the server on SQLite keeps its closed workflows. */
const RETENTION_S = 24 * 60 * 60;
const DATABASES = { temporal: 'temporal', temporal_visibility: 'visibility' };
/** The name of the config file; in the process's command line too, beside the folder. */
const ENV = 'tapwright';

/** Every port the server and its database need. `frontend` is the one that others know. */
export const PORTS = [
  'frontend',
  'postgres',
  ...['history', 'matching', 'worker'],
  ...['frontendMembership', 'historyMembership', 'matchingMembership', 'workerMembership'],
];

/** Finds or builds server and schema tool. `{ server, sqlTool }`; throws SetupError. */
export async function ensureTemporalServer() {
  const folder = builtTemporalServer();
  const programs = { server: join(folder, 'temporal-server'), sqlTool: join(folder, 'temporal-sql-tool') };
  if (Object.values(programs).every(isExecutable)) return programs;
  const help = `Put Go on PATH and start again: the server ${TEMPORAL_SERVER_VERSION} is then built, once.`;
  if (which('go') === null) {
    throw new SetupError('There is no Go on this machine to build the Temporal server for PostgreSQL.', help);
  }
  const source = (path) => `go.temporal.io/server/cmd/${path}@v${TEMPORAL_SERVER_VERSION}`;
  await goInstall({
    title: `Temporal server ${TEMPORAL_SERVER_VERSION} for PostgreSQL, built with Go (once, 4-8 minutes on two cores)`,
    sources: [source('server'), source('tools/sql')],
    files: { server: 'temporal-server', sql: 'temporal-sql-tool' },
    folder,
    packages: GO_PACKAGES,
    help,
  });
  return programs;
}

/** The server's config file. JSON's strings are YAML's too, whatever is in them. */
export function serverConfig({ ports, shards, password, dynamicConfig }) {
  const store = (database, connections) => `
      sql:
        pluginName: postgres12
        databaseName: ${database}
        connectAddr: "127.0.0.1:${ports.postgres}"
        connectProtocol: tcp
        user: ${POSTGRES_USER}
        password: ${JSON.stringify(password)}
        maxConns: ${connections}
        maxIdleConns: ${connections}
        maxConnLifetime: 1h`;
  const service = (name) => `
  ${name}:
    rpc:
      grpcPort: ${ports[name]}
      membershipPort: ${ports[`${name}Membership`]}
      bindOnLocalHost: true`;
  return `# Written at every start by npm run temporal:postgres. It holds a password.
log:
  stdout: true
  level: warn
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: ${shards}
  datastores:
    default:${store('temporal', 20)}
    visibility:${store('temporal_visibility', 5)}
global:
  membership:
    maxJoinDuration: 30s
    broadcastAddress: "127.0.0.1"
services:${['frontend', 'matching', 'history', 'worker'].map(service).join('')}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active:
      enabled: true
      initialFailoverVersion: 1
      rpcName: frontend
      rpcAddress: "127.0.0.1:${ports.frontend}"
dcRedirectionPolicy:
  policy: noop
dynamicConfigClient:
  filepath: ${JSON.stringify(dynamicConfig)}
  pollInterval: 60s
`;
}

/** Creates both databases when they are not there and brings their schemas up to date; does nothing when they are. */
export async function updateSchemas({ sqlTool }, port, password, data) {
  // By the environment: a command line can be read by everybody on the machine.
  const env = { ...process.env, SQL_HOST: '127.0.0.1', SQL_PORT: String(port), SQL_PLUGIN: 'postgres12' };
  Object.assign(env, { SQL_USER: POSTGRES_USER, SQL_PASSWORD: password });
  for (const [database, schema] of Object.entries(DATABASES)) {
    const commands = [
      ['create-database'],
      ['setup-schema', '-v', '0.0'],
      ['update-schema', '--schema-name', `postgresql/v12/${schema}`],
    ];
    for (const command of commands) {
      const { code, output } = await run(sqlTool, ['--db', database, ...command], { env, cwd: data });
      if (code === 0) continue;
      throw new SetupError(
        `temporal-sql-tool ${command[0]} of ${database} failed:\n${tail(output, 3)}`,
        `If its password is not the one in ${join(data, 'password')}, put the right one there; otherwise see ${join(data, 'postgres.log')}.`,
      );
    }
  }
}

/** Starts the server. Returns the crew's member; `answering` waits until it serves. */
export function startTemporal(crew, data, { server }, config) {
  const dynamicConfig = join(projectDir, 'docker', 'dynamicconfig.yaml');
  writeFileSync(join(data, `${ENV}.yaml`), serverConfig({ ...config, dynamicConfig }), { mode: 0o600 });
  return crew.start({
    name: 'The Temporal server',
    command: server,
    args: ['--root', data, '--config', '.', '--env', ENV, '--allow-no-auth', 'start'],
    logFile: join(data, 'temporal.log'),
    stopSignal: 'SIGTERM',
    cwd: data,
  });
}

/** The sentence for a number of shards that is not the database's own. */
export function shardsDiffer(data, made, wanted) {
  return new SetupError(
    `The database in ${data} was made with ${made} history shards, and ${wanted} are asked for; the number is fixed for ever.`,
    `Start without --shards, or choose another folder with --data.`,
  );
}

/** Waits for the server, makes the namespace if need be, and tells the number of shards that the database has. */
export async function answering(port, member, data) {
  const address = `127.0.0.1:${port}`;
  const logFile = join(data, 'temporal.log');
  const { Connection } = await import('@temporalio/client');
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (member.isGone()) {
      throw new SetupError(`The Temporal server ended at once. ${lastWords(logFile)}`, `See ${logFile}.`);
    }
    let connection = null;
    try {
      connection = await Connection.connect({ address, connectTimeout: '1s' });
      const { workflowService: service } = connection;
      const { historyShardCount } = await service.getClusterInfo({});
      await ensureNamespace(service);
      // Answered only when the shards are held and the visibility store is read.
      await notFound(service.describeWorkflowExecution({ namespace: 'default', execution: { workflowId: 'none' } }));
      await service.listWorkflowExecutions({ namespace: 'default', pageSize: 1 });
      return historyShardCount;
    } catch (error) {
      if (performance.now() > deadline) {
        throw new SetupError(
          `The Temporal server at ${address} does not answer after ${START_TIMEOUT_MS / 1000} s (${error.message}). ${lastWords(logFile)}`,
          `See ${logFile}.`,
        );
      }
    } finally {
      await connection?.close();
    }
    await sleep(200);
  }
}

async function ensureNamespace(service) {
  if (!(await notFound(service.describeNamespace({ namespace: 'default' })))) return;
  await service.registerNamespace({
    namespace: 'default',
    workflowExecutionRetentionPeriod: { seconds: RETENTION_S },
  });
}

/** True when the answer is that there is no such thing; false when there is; any other error is thrown. */
async function notFound(answer) {
  try {
    await answer;
    return false;
  } catch (error) {
    if (error.code === 5) return true;
    throw error;
  }
}
