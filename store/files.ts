import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TapwrightError, asTapwrightError } from '../domain/errors.ts';

/** The bytes of a file on their way to the disk; tests put a full disk in its place. */
export type WriteBytes = (handle: FileHandle, bytes: Uint8Array) => Promise<void>;

export interface Files {
  /** Whole or not at all: written beside its place, then renamed over it. `sync`: on the disk before this returns. */
  write(path: string, bytes: Uint8Array, options?: { sync?: boolean }): Promise<void>;
  /** The same, but an existing file stays as it is; false when there was one. */
  writeNew(path: string, bytes: Uint8Array): Promise<boolean>;
  /** Adds bytes to the end of a file and, unless `sync` is false, waits for the disk. */
  append(path: string, bytes: Uint8Array, options?: { sync?: boolean }): Promise<void>;
}

/** Files being written end so; whatever reads a folder skips them. */
export const PART = '.part';
let parts = 0;

/** Writing in a run's folder. Errors: `disk_full`, with what to do; nothing earlier is harmed by it. */
export function createFiles(options: { writeBytes?: WriteBytes } = {}): Files {
  const { writeBytes = (handle, bytes) => handle.writeFile(bytes) } = options;

  const writePart = async (path: string, bytes: Uint8Array, sync: boolean): Promise<string> => {
    // Two processes may write the same file at once: each has its own part.
    const part = `${path}.${process.pid}-${parts++}${PART}`;
    const handle = await openIn(part, 'w');
    try {
      await writeBytes(handle, bytes);
      if (sync) await handle.sync();
    } catch (error) {
      await handle.close();
      await rm(part, { force: true });
      throw diskError(error, path);
    }
    await handle.close();
    return part;
  };

  return {
    write: async (path, bytes, { sync = false } = {}) => {
      const part = await writePart(path, bytes, sync);
      await rename(part, path);
      if (sync) await syncFolder(dirname(path));
    },
    writeNew: async (path, bytes) => {
      const part = await writePart(path, bytes, false);
      try {
        await link(part, path);
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw diskError(error, path);
      } finally {
        await rm(part, { force: true });
      }
    },
    append: async (path, bytes, { sync = true } = {}) => {
      const handle = await openIn(path, 'a');
      try {
        const { size } = await handle.stat();
        try {
          await writeBytes(handle, bytes);
          if (sync) await handle.sync();
        } catch (error) {
          // Half a line would be in the way of the next one.
          await handle.truncate(size).catch(() => {});
          throw diskError(error, path);
        }
      } finally {
        await handle.close();
      }
    },
  };
}

/** Opens for writing; makes the folder when it is missing. */
async function openIn(path: string, flags: string): Promise<FileHandle> {
  try {
    return await open(path, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw diskError(error, path);
  }
  try {
    await mkdir(dirname(path), { recursive: true });
    return await open(path, flags);
  } catch (error) {
    throw diskError(error, path);
  }
}

/** A rename is on the disk when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function diskError(error: unknown, path: string): TapwrightError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new TapwrightError(
      'disk_full',
      `the disk is full: ${path} could not be written. Everything before it is whole; free some space (or lower checkpoints.keepLast and devices.keepScreens) and start the run again with the same --id`,
      { cause: error },
    );
  }
  return asTapwrightError(error);
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Hash of a file of any size; null when it cannot be read. */
export async function sha256File(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  } catch {
    return null;
  }
  return hash.digest('hex');
}
