import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Episode } from '../domain/episode.ts';
import { TapwrightError } from '../domain/errors.ts';
import { span } from '../domain/spans.ts';
import type { BlobRef } from '../domain/screen.ts';
import { canonicalBytes } from './canonical-json.ts';
import { sha256Hex } from './files.ts';
import type { Files } from './files.ts';

const pack = promisify(gzip);
const unpack = promisify(gunzip);
const ENDING = '.json.gz';
/** One a batch of attempts, in its folder. */
const REFS = 'refs';
/** Largest record, unpacked: a bound on what a damaged file can make of memory. */
const MAX_BYTES = 512 * 1024 * 1024;

/**
 * Records of attempts: canonical JSON, packed, in `episodes/<id>.json.gz`; `zcat` reads them without us. Beside those of a
 * batch lies `refs`, a line `<sha256> <id>` for each: what was written can be told from what was changed later.
 */
export interface EpisodeStore {
  /**
   * Idempotent. `ref` is the hash of the canonical JSON, so equal attempts have equal refs on every machine. A second,
   * different record of the same id (a live device does not repeat itself) is kept beside the first: whoever holds a
   * ref gets the record it stands for. Errors: `disk_full`, `invalid_input` (not JSON, bad id).
   */
  put(episode: Episode): Promise<{ ref: BlobRef }>;
  /**
   * The first record of the id, or the one of `ref`. Errors: `not_found`; `corrupt_record` when it cannot be unpacked or is
   * not what was written.
   */
  get(id: string, ref?: BlobRef): Promise<Episode>;
  /** Ids in order, those that begin with `prefix` (`u0012/`, `e0000/t03/`). */
  list(prefix?: string): Promise<string[]>;
  /** Ids of records that were written and are gone, in order. */
  lost(prefix?: string): Promise<string[]>;
}

export function createEpisodeStore(options: { dir: string; files: Files }): EpisodeStore {
  const { dir, files } = options;
  const pathOf = (id: string, ref?: string): string => {
    if (!/^[a-z]\d+\/t\d+\/a\d+$/.test(id)) {
      throw new TapwrightError('invalid_input', `"${id}" is no episode id: they look like u0012/t07/a3`);
    }
    return join(dir, `${id}${ref === undefined ? '' : `.${ref.slice(7, 23)}`}${ENDING}`);
  };
  const read = async (path: string): Promise<Buffer | null> => {
    let packed: Buffer;
    try {
      packed = await readFile(path);
    } catch {
      return null;
    }
    try {
      return await unpack(packed, { maxOutputLength: MAX_BYTES });
    } catch (error) {
      throw new TapwrightError('corrupt_record', `${path} is damaged and cannot be unpacked`, { cause: error });
    }
  };
  const hash = (bytes: Uint8Array): BlobRef => `sha256:${sha256Hex(bytes)}`;
  const refsPath = (id: string): string => join(dir, id.split('/')[0]!, REFS);
  /** Refs of the records that were written under an id; none in a run that is older than the list. */
  const refsOf = async (id: string): Promise<BlobRef[]> => {
    const text = await readFile(refsPath(id), 'utf8').catch(() => '');
    // A line that was cut off says nothing.
    const lines = text.split('\n').map((line) => /^([0-9a-f]{64}) (\S+)$/.exec(line));
    return lines.flatMap((line) => (line?.[2] === id ? [`sha256:${line[1]!}` as const] : []));
  };
  /** Lines that wait while others are written: records that come together share one write. */
  const queued = new Map<string, { lines: string[]; written: Promise<void> }>();
  let last: Promise<unknown> = Promise.resolve();
  const list = (id: string, ref: BlobRef): Promise<void> => {
    const path = refsPath(id);
    const line = `${ref.slice('sha256:'.length)} ${id}\n`;
    const waiting = queued.get(path);
    if (waiting !== undefined) {
      waiting.lines.push(line);
      return waiting.written;
    }
    const lines = [line];
    const write = (): Promise<void> => {
      queued.delete(path);
      // No wait for the disk: a machine that loses power here loses at most the proof of its last records.
      return files.append(path, Buffer.from(lines.join('')), { sync: false });
    };
    const written = last.then(write);
    last = written.catch(() => undefined);
    queued.set(path, { lines, written });
    return written;
  };

  const listed = async (prefix: string): Promise<string[]> => {
    // Only folders that can hold the prefix are looked into: a long run has tens of thousands of records.
    const ids: string[] = [];
    for (const batch of await names(dir)) {
      if (!fits(`${batch}/`, prefix)) continue;
      for (const draw of await names(join(dir, batch))) {
        if (!fits(`${batch}/${draw}/`, prefix)) continue;
        for (const file of await names(join(dir, batch, draw))) {
          const id = `${batch}/${draw}/${file.slice(0, -ENDING.length)}`;
          if (/^a\d+\.json\.gz$/.test(file) && id.startsWith(prefix)) ids.push(id);
        }
      }
    }
    return ids.sort();
  };

  return {
    put: async (episode) => {
      const bytes = span('record', () => canonicalBytes(episode));
      const ref = hash(bytes);
      // Level 1: most of what can be saved is outlines said twice, and the device host has better things to do.
      const packed = await pack(bytes, { level: 1 });
      const path = pathOf(episode.id);
      if (await files.writeNew(path, packed)) {
        await list(episode.id, ref);
        return { ref };
      }
      const held = await read(path).catch(() => null);
      const listed = await refsOf(episode.id);
      if (held === null) await files.write(path, packed);
      else if (!held.equals(bytes)) {
        await files.write(pathOf(episode.id, ref), packed);
        // The first one of a run that is older than the list, or whose writer was killed, stays as good as it was.
        if (listed.length === 0) await list(episode.id, hash(held));
      }
      // It was made before: by somebody who may have been killed before this line.
      if (!listed.includes(ref)) await list(episode.id, ref);
      return { ref };
    },
    get: async (id, ref) => {
      const path = pathOf(id);
      let bytes = await read(path);
      if (ref !== undefined && (bytes === null || hash(bytes) !== ref)) {
        bytes = await read(pathOf(id, ref));
        if (bytes !== null && hash(bytes) !== ref) {
          throw new TapwrightError('corrupt_record', `the record of ${id} does not have the hash ${ref}`);
        }
      }
      if (bytes === null) {
        throw new TapwrightError(
          'not_found',
          `no record of episode ${id}${ref === undefined ? '' : ` with hash ${ref}`} in ${dir}`,
        );
      }
      const written = ref === undefined ? await refsOf(id) : [];
      if (written.length > 0 && !written.includes(hash(bytes))) {
        throw new TapwrightError(
          'corrupt_record',
          `the record of ${id} was changed after it was written: its hash is ${hash(bytes).slice(0, 19)}..., and ${refsPath(id)} says ${written.map((one) => `${one.slice(0, 19)}...`).join(' or ')}`,
        );
      }
      return JSON.parse(bytes.toString('utf8')) as Episode;
    },
    list: (prefix = '') => listed(prefix),
    lost: async (prefix = '') => {
      const there = new Set(await listed(prefix));
      const gone = new Set<string>();
      for (const batch of await names(dir)) {
        if (!fits(`${batch}/`, prefix)) continue;
        const text = await readFile(join(dir, batch, REFS), 'utf8').catch(() => '');
        for (const [, id] of text.matchAll(/^[0-9a-f]{64} (\S+)$/gm)) {
          if (id!.startsWith(prefix) && !there.has(id!)) gone.add(id!);
        }
      }
      return [...gone].sort();
    },
  };
}

const fits = (path: string, prefix: string): boolean => path.startsWith(prefix) || prefix.startsWith(path);

async function names(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}
