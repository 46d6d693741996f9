import { readFile, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse, stringify } from 'yaml';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import { createBlobStore } from './blobs.ts';
import type { BlobStore } from './blobs.ts';
import { canonicalJson } from './canonical-json.ts';
import { checkpointIndex, createCheckpointStore } from './checkpoints.ts';
import type { CheckpointStore } from './checkpoints.ts';
import { createEpisodeStore } from './episodes.ts';
import type { EpisodeStore } from './episodes.ts';
import { createFiles, sha256Hex } from './files.ts';
import type { Files, WriteBytes } from './files.ts';
import { createMetricsLog, withoutTimes } from './metrics.ts';
import type { MetricsLog } from './metrics.ts';
import { withCells } from './results.ts';
import type { ResultCell, Results } from './results.ts';

/** What a run says of itself before it starts: versions, device, backend, NFP choices (design.md, 9). Plain JSON. */
export type RunHeader = Record<string, unknown>;

/** `runs/<id>/` (design.md, 9). */
export interface RunFolder {
  id: string;
  dir: string;
  blobs: BlobStore;
  episodes: EpisodeStore;
  checkpoints: CheckpointStore;
  metrics: MetricsLog;
  /** config.yaml as it was resolved; trusted to fit the schema, which `createRun` was given. */
  config: RunConfig;
  header(): Promise<RunHeader>;
  /** Adds keys to header.json, or replaces them. */
  updateHeader(part: RunHeader): Promise<void>;
  results(): Promise<Results>;
  /** Adds cells to results.json; a cell of the same policy, checkpoint, suite, split and schedule is replaced. */
  addResults(cells: readonly ResultCell[]): Promise<Results>;
  /** Role and pid of each process of the run, as its supervisor noted them; empty when it never ran. */
  processes(): Promise<{ role: string; pid: number | null }[]>;
  /** Writes a file of the run (report.html, tb/...), whole or not at all. */
  write(name: string, bytes: Uint8Array | string): Promise<string>;
  /**
   * sha256 over the hashes of the newest checkpoint's files and over the metrics without `time/*`: equal for equal runs,
   * whatever they are called and wherever they lie. Error: `not_found` without a checkpoint.
   */
  digest(): Promise<string>;
}

export interface RunFolderOptions {
  /** Hears of checkpoints that are passed over. Default: standard error. */
  warn?: (message: string) => void;
  /** Tests: how bytes get into a file. */
  writeBytes?: WriteBytes;
}

export interface CreateOptions extends RunFolderOptions {
  /** What a new folder holds before it is a run: a kill in between leaves no run. */
  before?: (folder: RunFolder) => Promise<void>;
}

/** Folder of a run. Error: `invalid_input` for an id that is no plain file name. */
export function runDir(home: string, id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id)) {
    throw new TapwrightError(
      'invalid_input',
      `"${id}" cannot be a run's id: letters, digits, dots, dashes and underscores can, at most 100`,
    );
  }
  return join(resolve(home), 'runs', id);
}

/**
 * Makes a run's folder, or opens it when it is there with the same config. Errors: `invalid_config` when it is there
 * with another config, `disk_full`.
 */
export async function createRun(
  home: string,
  id: string,
  config: RunConfig,
  header: RunHeader,
  options: CreateOptions = {},
): Promise<RunFolder> {
  const dir = runDir(home, id);
  const files = createFiles(options);
  const old = await readFile(join(dir, 'config.yaml'), 'utf8').catch(() => null);
  if (old === null) {
    // A making that was cut off has left these: they are of no run.
    for (const name of ['checkpoints', 'metrics.jsonl', 'results.json']) {
      await rm(join(dir, name), { recursive: true, force: true });
    }
    await files.write(join(dir, 'header.json'), pretty({ ...header, config }));
    await options.before?.(folder(dir, id, config, files, options));
    // Written last: a folder with a config is a run.
    await files.write(join(dir, 'config.yaml'), Buffer.from(stringify(config)), { sync: true });
  } else if (configHash(parse(old) as RunConfig) !== configHash(config)) {
    throw new TapwrightError(
      'invalid_config',
      `run ${id} exists in ${dir} with another config (${differences(parse(old), config).join(', ')}): choose another --id, or leave the config as it was`,
    );
  } else {
    await unchanged(dir, id, parse(old));
  }
  return folder(dir, id, config, files, options);
}

/** A run goes on as it began: a config that was edited in its folder would teach under other rewards or rates. */
async function unchanged(dir: string, id: string, config: unknown): Promise<void> {
  const header = await readFile(join(dir, 'header.json'), 'utf8').catch(() => '{}');
  const { config: began } = JSON.parse(header) as { config?: unknown };
  const changed = began === undefined ? [] : differences(began, config);
  if (changed.length === 0) return;
  throw new TapwrightError(
    'invalid_config',
    `${join(dir, 'config.yaml')} was changed after run ${id} began (${changed.join(', ')}): put it back as header.json has it; tapwright branch ${id} --from-update K --set ... goes on under another config`,
  );
}

/** Opens a run's folder. Error: `not_found`, with the runs that are there. */
export async function openRun(home: string, id: string, options: RunFolderOptions = {}): Promise<RunFolder> {
  const dir = runDir(home, id);
  const path = join(dir, 'config.yaml');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const known = await listRuns(home);
    const hint = known.length === 0 ? 'there are no runs yet' : `there are: ${known.slice(-8).join(', ')}`;
    throw new TapwrightError('not_found', `no run ${id} in ${resolve(home)}: ${hint}`, { cause: error });
  }
  let config: RunConfig;
  try {
    config = parse(text) as RunConfig;
  } catch (error) {
    throw new TapwrightError('invalid_config', `${path} does not read as YAML: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return folder(dir, id, config, createFiles(options), options);
}

/** Ids of the runs of a home, in order of name. */
export async function listRuns(home: string): Promise<string[]> {
  return (await readdir(join(resolve(home), 'runs')).catch(() => [])).sort();
}

/** sha256 of a resolved config, whatever the order of its keys. */
export function configHash(config: RunConfig): string {
  return sha256Hex(Buffer.from(canonicalJson(config)));
}

function folder(dir: string, id: string, config: RunConfig, files: Files, options: RunFolderOptions): RunFolder {
  const checkpoints = createCheckpointStore({
    run: dir,
    files: withDiskFault(files),
    ...config.checkpoints,
    // Engines of the same home write beside the run's folder.
    owned: resolve(dir, '..', '..'),
    warn: options.warn ?? ((message) => process.stderr.write(`${message}\n`)),
  });
  const metrics = createMetricsLog({ path: join(dir, 'metrics.jsonl'), files });
  const json = async <T>(name: string, fallback: T): Promise<T> => {
    const text = await readFile(join(dir, name), 'utf8').catch(() => null);
    if (text === null) return fallback;
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      throw new TapwrightError('corrupt_record', `${join(dir, name)} is no JSON: it was changed by hand?`, {
        cause: error,
      });
    }
  };
  const results = (): Promise<Results> => json<Results>('results.json', { cells: [] });
  return {
    id,
    dir,
    config,
    blobs: createBlobStore({ dir: join(dir, 'blobs'), files }),
    episodes: createEpisodeStore({ dir: join(dir, 'episodes'), files }),
    checkpoints,
    metrics,
    header: () => json<RunHeader>('header.json', {}),
    updateHeader: async (part) => {
      const header = await json<RunHeader>('header.json', {});
      await files.write(join(dir, 'header.json'), pretty({ ...header, ...part }));
    },
    results,
    addResults: async (cells) => {
      const merged = withCells(await results(), cells);
      await files.write(join(dir, 'results.json'), pretty(merged));
      return merged;
    },
    processes: () => json('processes.json', []),
    write: async (name, bytes) => {
      const path = join(dir, name);
      await files.write(path, typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
      return path;
    },
    digest: async () => {
      const checkpoint = await checkpoints.latest();
      if (checkpoint === null) {
        throw new TapwrightError('not_found', `run ${id} has no checkpoint yet, so there is nothing to digest`);
      }
      const newest = (await checkpoints.list()).at(-1);
      if (newest !== undefined && (newest.stage !== checkpoint.stage || newest.k !== checkpointIndex(checkpoint))) {
        throw new TapwrightError(
          'corrupt_checkpoint',
          `checkpoint ${newest.stage}-${newest.k} of run ${id} is not whole, so there is no digest of it: go on with the run by the same --id, which makes it again`,
        );
      }
      // Hashes without names: names may hold the run's id.
      const hashes = Object.values(checkpoint.files).sort();
      const rows = (await metrics.read()).map((row) => canonicalJson(withoutTimes(row)));
      return sha256Hex(Buffer.from([...hashes, ...rows].join('\n')));
    },
  };
}

/**
 * For tests and drills: with `TAPWRIGHT_FAULT_DISK_FULL=n` the disk is full from the n-th file on that an opened folder
 * writes for its checkpoints.
 */
function withDiskFault(files: Files, env: NodeJS.ProcessEnv = process.env): Files {
  const from = Number(env['TAPWRIGHT_FAULT_DISK_FULL'] ?? 0);
  if (!(from >= 1)) return files;
  const full = createFiles({
    writeBytes: () => Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })),
  });
  let written = 0;
  return { ...files, write: (...args) => (++written >= from ? full : files).write(...args) };
}

function pretty(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Paths at which two configs differ. */
export function differences(a: unknown, b: unknown, path = ''): string[] {
  const plain = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!plain(a) || !plain(b)) return canonicalJson(a ?? null) === canonicalJson(b ?? null) ? [] : [path];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) =>
    differences(a[key], b[key], path === '' ? key : `${path}.${key}`),
  );
}
