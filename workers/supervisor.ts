import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import { keepChild } from './child.ts';
import type { Kept } from './child.ts';
import { engineArgs, usablePort } from './engine-process.ts';
import { readHomeState, writeHomeState, writeJson } from './home-state.ts';
import type { HomeState } from './home-state.ts';
import { settings } from './settings.ts';
import { endServerLeftBehind, serversOf, startTemporalServer } from './temporal-server.ts';
import type { TemporalServerOptions } from './temporal-server.ts';

/** One process of a run, as `tapwright status --json` lists it. */
export interface ProcessRow {
  role: string;
  pid: number | null;
}

export interface Supervisor {
  /** Temporal's address. */
  address: string;
  /** Resolves when the engine and all workers have said that they are ready. */
  ready: Promise<void>;
  /** Rejects when a process cannot be kept alive. */
  failed: Promise<never>;
  stop(): Promise<void>;
}

export interface SupervisorOptions {
  run: string;
  config: RunConfig;
  /** Folder of the run: processes.json and logs/ go there. */
  folder: string;
  say(line: string): void;
  /** Processes that the work at hand does not need. */
  without?: readonly ('engine' | 'learn')[];
}

/** A home keeps one run at a time. Error: `invalid_config` when another process is at it. Returns the home's state. */
export async function refuseSecondSupervisor(): Promise<HomeState> {
  const { home } = settings();
  const state = await readHomeState(home);
  if (state.supervisor !== undefined && state.supervisor !== process.pid && alive(state.supervisor)) {
    throw new TapwrightError(
      'invalid_config',
      `another run is being kept in ${home} by process ${state.supervisor}: wait for it, stop it, or set TAPWRIGHT_HOME to another folder`,
    );
  }
  return state;
}

/**
 * Starts what a run needs and does not run yet: the Temporal server, the engine, the device host, the learner, the
 * workflow worker; keeps them alive; takes them down again.
 */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const site = settings();
  const logs = join(options.folder, 'logs');
  await mkdir(logs, { recursive: true });
  const state = await refuseSecondSupervisor();
  state.supervisor = process.pid;
  await writeHomeState(site.home, state);

  const rows = new Map<string, number | null>();
  // One write after another: a later list is never overtaken by an earlier one.
  let writing: Promise<void> = Promise.resolve();
  const note = (role: string, pid: number | null): void => {
    rows.set(role, pid);
    const list: ProcessRow[] = [...rows].map(([name, id]) => ({ role: name, pid: id }));
    writing = writing.then(() => writeJson(join(options.folder, 'processes.json'), list)).catch(() => {});
  };
  note('supervisor', process.pid);
  const save = (): Promise<void> => {
    const saved = writing.then(() => writeHomeState(site.home, state));
    writing = saved.catch(() => {});
    return saved;
  };

  let giveUp = (_error: Error): void => {};
  const failed = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  failed.catch(() => {});
  const server = await temporalServer(site, state, {
    logFile: join(logs, 'temporal.log'),
    onPid: (pid) => {
      note('temporal', pid);
      if (pid === null || state.temporal === undefined) return;
      // Started again: whoever comes after us must know which process to end.
      state.temporal.pid = pid;
      save().catch(() => {});
    },
    onRestart: options.say,
    onGiveUp: (message) => giveUp(new TapwrightError('internal', message)),
  });
  if (server.started !== null) {
    state.temporal = server.started;
    await save();
  }
  const children: Kept[] = [];
  const keep = (role: string, script: string, args: string[], env: Record<string, string>, ready?: 'line'): void => {
    children.push(
      keepChild({
        role,
        script,
        args,
        env,
        logFile: join(logs, `${role}.log`),
        onPid: (pid) => note(role, pid),
        onRestart: options.say,
        onGiveUp: (message) => giveUp(new TapwrightError('internal', message)),
        ...(ready === 'line' ? { readyLine: (line: string) => line.startsWith('{') && line.includes('"port"') } : {}),
      }),
    );
  };

  const { engine } = options.config;
  const { without = [] } = options;
  const env: Record<string, string> = {
    TAPWRIGHT_HOME: site.home,
    TAPWRIGHT_QUEUES: site.prefix,
    TAPWRIGHT_HOST: site.host,
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_NAMESPACE: site.namespace,
    // Small operations want one thread each (engine.md, 3).
    TF_NUM_INTRAOP_THREADS: '1',
    TF_NUM_INTEROP_THREADS: '1',
    TF_CPP_MIN_LOG_LEVEL: '2',
  };
  if (engine.url === 'embedded' && !without.includes('engine')) {
    const wanted = state.enginePort;
    state.enginePort = await usablePort(wanted);
    if (wanted !== undefined && wanted !== state.enginePort) {
      options.say(`port ${wanted} is taken by another program: the engine listens at ${state.enginePort} from now on`);
    }
    await save();
    env['TAPWRIGHT_ENGINE_URL'] = `http://127.0.0.1:${state.enginePort}`;
    const threads = String(engine.threads);
    keep(
      'engine',
      'engine/embedded/main.ts',
      engineArgs(site.home, state.enginePort, options.config),
      { ...env, TF_NUM_INTRAOP_THREADS: threads },
      'line',
    );
  } else if (engine.url !== 'embedded') {
    env['TAPWRIGHT_ENGINE_URL'] = engine.url;
  }
  const { devices, rollout, workflow } = options.config;
  const atOnce = Math.min(devices.count, workflow.maxConcurrentEpisodes);
  // No attempt waits for a device while its time runs out.
  const parcels = rollout.grain === 'step' ? atOnce : Math.floor(atOnce / rollout.parcel);
  keep('workflow', 'workers/main.ts', ['--role', 'workflow', '--slots', String(atOnce)], env);
  keep('device', 'workers/main.ts', ['--role', 'device', '--slots', String(parcels)], env);
  if (!without.includes('learn')) keep('learn', 'workers/main.ts', ['--role', 'learn'], env);

  const ready = Promise.all(children.map((child) => child.ready)).then(() => {});
  // It may be stopped before anybody waits for it.
  ready.catch(() => {});
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
    await server.stop();
    delete state.supervisor;
    if (server.started !== null) delete state.temporal;
    await save();
  };
  return {
    address: server.address,
    ready,
    failed,
    stop: () => (stopped ??= stop()),
  };
}

interface Server {
  address: string;
  /** Set when this supervisor started it (and will stop it). */
  started: { address: string; pid: number } | null;
  stop(): Promise<void>;
}

/**
 * The server to use: the one named by TEMPORAL_ADDRESS, else one of our own on the home's database. One that a supervisor
 * left behind when it was killed is ended first: nobody would start it again when it dies, nor stop it. On its port, so
 * that the workers left behind with it can say what they have done.
 */
async function temporalServer(
  site: ReturnType<typeof settings>,
  state: HomeState,
  options: Omit<TemporalServerOptions, 'dbFile' | 'port'>,
): Promise<Server> {
  const external = { started: null, stop: async () => {} };
  if (site.temporal !== null) return { ...external, address: site.temporal };
  const dbFile = join(site.home, 'temporal.db');
  let port: number | undefined;
  if (state.temporal !== undefined) {
    const { address, pid } = state.temporal;
    if (await endServerLeftBehind(pid, dbFile)) port = Number(address.split(':').at(-1));
    else if (await answers(address)) return { ...external, address };
    delete state.temporal;
  }
  // Nobody may have lived to note it: two servers on one database would be its end.
  for (const pid of serversOf(dbFile)) await endServerLeftBehind(pid, dbFile);
  const own = await startTemporalServer({ ...options, dbFile, ...(port === undefined ? {} : { port }) });
  return {
    address: own.address,
    started: { address: own.address, pid: own.pid },
    stop: async () => {
      await own.stop();
    },
  };
}

async function answers(address: string): Promise<boolean> {
  try {
    const connection = await Connection.connect({ address, connectTimeout: '2s' });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
