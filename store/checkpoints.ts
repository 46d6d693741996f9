import { readFile, readdir, rm } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import type { Checkpoint } from '../domain/checkpoint.ts';
import { TapwrightError } from '../domain/errors.ts';
import { canonicalBytes } from './canonical-json.ts';
import { sha256File, sha256Hex } from './files.ts';
import type { Files } from './files.ts';

export type CheckpointStage = Checkpoint['stage'];

/** Checkpoints in `checkpoints/<stage>-<k>/`, each with a manifest that is written last: no manifest, no checkpoint. */
export interface CheckpointStore {
  /**
   * Writes `files` (name -> bytes) into the checkpoint's folder, hashes them and the `existing` ones (paths of what the
   * engine has written, absolute or relative to the run's folder), then writes the manifest with all hashes. Idempotent:
   * a whole checkpoint of this stage and k is returned as it is. Afterwards old checkpoints are pruned.
   * Errors: `disk_full` (earlier checkpoints stay whole), `not_found` (an existing file is not there).
   */
  commit(
    manifest: Omit<Checkpoint, 'files'>,
    files: Record<string, Uint8Array>,
    existing?: readonly string[],
  ): Promise<Checkpoint>;
  /** The newest whole checkpoint; torn and corrupt ones are passed over with a warning. Null when there is none. */
  latest(): Promise<Checkpoint | null>;
  /** The checkpoint of a stage and its k (SFT chunks, warm-ups or updates done); null when missing or not whole. */
  get(stage: CheckpointStage, k: number): Promise<Checkpoint | null>;
  /** What is wrong with a checkpoint, one line a file; empty when it is whole. */
  verify(checkpoint: Checkpoint): Promise<string[]>;
  /** Bytes of one of the checkpoint's own files. Errors: `corrupt_checkpoint`. */
  read(checkpoint: Checkpoint, name: string): Promise<Uint8Array>;
  /** Stage and k of each checkpoint that has a manifest, oldest first; not verified. */
  list(): Promise<{ stage: CheckpointStage; k: number }[]>;
}

export interface CheckpointOptions {
  /** The run's folder. */
  run: string;
  files: Files;
  /** The newest so many of a stage stay, and every `keepEvery`-th update (0: none more), and the last of each stage. */
  keepLast?: number;
  keepEvery?: number;
  /** Files outside of this folder are never deleted with their checkpoint. */
  owned?: string;
  warn?: (message: string) => void;
}

const ORDER: readonly CheckpointStage[] = ['sft', 'warmup', 'train'];
const MANIFEST = 'manifest.json';

/** How far a checkpoint's stage has come. */
export function checkpointIndex(checkpoint: Omit<Checkpoint, 'files'>): number {
  return { sft: checkpoint.sftChunks, warmup: checkpoint.warmup, train: checkpoint.update }[checkpoint.stage];
}

export function createCheckpointStore(options: CheckpointOptions): CheckpointStore {
  const { run, files, keepLast = 3, keepEvery = 25, owned = run, warn = () => {} } = options;
  const dir = join(run, 'checkpoints');
  const folderOf = (stage: CheckpointStage, k: number): string => join(dir, `${stage}-${String(k).padStart(5, '0')}`);
  /** Paths in manifests have `/` on every system, so that a run's folder can be moved. */
  const named = (path: string): string => relative(run, path).split(sep).join('/');

  const manifestOf = async (stage: CheckpointStage, k: number): Promise<Checkpoint | null> => {
    try {
      return JSON.parse(await readFile(join(folderOf(stage, k), MANIFEST), 'utf8')) as Checkpoint;
    } catch {
      return null;
    }
  };

  const verify = async (checkpoint: Checkpoint): Promise<string[]> => {
    const wrong = await Promise.all(
      Object.entries(checkpoint.files).map(async ([name, expected]) => {
        const found = await sha256File(join(run, name));
        if (found === null) return [`${name} is missing`];
        return found === expected ? [] : [`${name} has another sha256 than its manifest says`];
      }),
    );
    return wrong.flat();
  };

  /** The checkpoint if it is whole, else null and a warning. */
  const whole = async (stage: CheckpointStage, k: number): Promise<Checkpoint | null> => {
    const checkpoint = await manifestOf(stage, k);
    if (checkpoint === null) return null;
    const wrong = await verify(checkpoint);
    if (wrong.length === 0) return checkpoint;
    warn(`checkpoint ${stage}-${k} is not whole (${wrong.join('; ')}): the one before it is used`);
    return null;
  };

  const list = async (): Promise<{ stage: CheckpointStage; k: number }[]> => {
    const found: { stage: CheckpointStage; k: number }[] = [];
    for (const name of await readdir(dir).catch(() => [])) {
      const match = /^(sft|warmup|train)-(\d+)$/.exec(name);
      if (match === null) continue;
      const [stage, k] = [match[1] as CheckpointStage, Number(match[2])];
      const entries = await readdir(join(dir, name));
      if (entries.includes(MANIFEST)) found.push({ stage, k });
    }
    return found.sort((a, b) => ORDER.indexOf(a.stage) - ORDER.indexOf(b.stage) || a.k - b.k);
  };

  /** Manifest first, so that a kill in between leaves no checkpoint that claims more than it has. */
  const prune = async (): Promise<void> => {
    const all = await list();
    const kept: Checkpoint[] = [];
    const dropped: { folder: string; checkpoint: Checkpoint }[] = [];
    for (const { stage, k } of all) {
      const ofStage = all.filter((other) => other.stage === stage);
      const fromEnd = ofStage.length - 1 - ofStage.findIndex((other) => other.k === k);
      const stays = fromEnd < Math.max(1, keepLast) || (stage === 'train' && keepEvery > 0 && k % keepEvery === 0);
      const checkpoint = await manifestOf(stage, k);
      if (stays && checkpoint !== null) kept.push(checkpoint);
      else if (!stays && checkpoint !== null) dropped.push({ folder: folderOf(stage, k), checkpoint });
    }
    const needed = new Set(kept.flatMap((checkpoint) => Object.keys(checkpoint.files)));
    for (const { folder, checkpoint } of dropped) {
      await rm(join(folder, MANIFEST), { force: true });
      for (const name of Object.keys(checkpoint.files)) {
        const path = resolve(run, name);
        const inside = !relative(resolve(owned), path).startsWith('..');
        if (!needed.has(name) && inside) await rm(path, { force: true });
      }
      await rm(folder, { recursive: true, force: true });
    }
  };

  return {
    commit: async (manifest, contents, existing = []) => {
      const k = checkpointIndex(manifest);
      const held = await whole(manifest.stage, k);
      if (held !== null) return held;
      const folder = folderOf(manifest.stage, k);
      const hashes: Record<string, string> = {};
      for (const path of existing) {
        const absolute = resolve(run, path);
        const hash = await sha256File(absolute);
        if (hash === null) {
          throw new TapwrightError(
            'not_found',
            `${absolute} should be part of checkpoint ${manifest.stage}-${k} but is not there`,
          );
        }
        hashes[named(absolute)] = hash;
      }
      for (const [name, bytes] of Object.entries(contents)) {
        const path = join(folder, name);
        await files.write(path, bytes, { sync: true });
        hashes[named(path)] = sha256Hex(bytes);
      }
      const checkpoint: Checkpoint = { ...manifest, files: hashes };
      await files.write(join(folder, MANIFEST), canonicalBytes(checkpoint), { sync: true });
      await prune();
      return checkpoint;
    },
    latest: async () => {
      for (const { stage, k } of (await list()).reverse()) {
        const checkpoint = await whole(stage, k);
        if (checkpoint !== null) return checkpoint;
      }
      return null;
    },
    get: whole,
    verify,
    read: async (checkpoint, name) => {
      const path = join(folderOf(checkpoint.stage, checkpointIndex(checkpoint)), name);
      const expected = checkpoint.files[named(path)];
      const bytes = expected === undefined ? null : await readFile(path).catch(() => null);
      if (bytes === null || sha256Hex(bytes) !== expected) {
        throw new TapwrightError('corrupt_checkpoint', `${path} is missing or not the file of its manifest`);
      }
      return bytes;
    },
    list,
  };
}
