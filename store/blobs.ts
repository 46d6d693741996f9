import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TapwrightError } from '../domain/errors.ts';
import type { BlobRef } from '../domain/screen.ts';
import { sha256Hex } from './files.ts';
import type { Files } from './files.ts';

/** Bytes under the name of their own hash. */
export interface BlobStore {
  /** Idempotent. Errors: `invalid_input` when too large, `disk_full`. */
  put(bytes: Uint8Array): Promise<BlobRef>;
  /** Errors: `not_found`; `corrupt_record` when the bytes are no longer those of the reference. */
  get(ref: BlobRef): Promise<Uint8Array>;
  has(ref: BlobRef): Promise<boolean>;
}

export interface BlobOptions {
  dir: string;
  files: Files;
  /** Largest blob, in bytes. */
  maxBytes?: number;
}

export function createBlobStore(options: BlobOptions): BlobStore {
  const { dir, files, maxBytes = 256 * 1024 * 1024 } = options;
  /** 256 folders, so that none grows too long. */
  const pathOf = (ref: string): string => {
    const hex = /^sha256:([0-9a-f]{64})$/.exec(ref)?.[1];
    if (hex === undefined) {
      throw new TapwrightError('invalid_input', `"${ref}" is no blob reference: sha256: and 64 hex digits are`);
    }
    return join(dir, hex.slice(0, 2), hex.slice(2));
  };
  const size = async (path: string): Promise<number | null> => (await stat(path).catch(() => null))?.size ?? null;

  return {
    put: async (bytes) => {
      if (bytes.byteLength > maxBytes) {
        throw new TapwrightError(
          'invalid_input',
          `a blob of ${bytes.byteLength} bytes is over the bound of ${maxBytes}: cut it into parts`,
        );
      }
      const ref: BlobRef = `sha256:${sha256Hex(bytes)}`;
      const path = pathOf(ref);
      // A file of another length is a torn one of a machine that lost power: it is written again.
      if ((await size(path)) !== bytes.byteLength) await files.write(path, bytes);
      return ref;
    },
    get: async (ref) => {
      const path = pathOf(ref);
      let bytes: Buffer;
      try {
        bytes = await readFile(path);
      } catch (error) {
        throw new TapwrightError('not_found', `the blob ${ref} is not in ${dir}`, { cause: error });
      }
      if (sha256Hex(bytes) !== ref.slice('sha256:'.length)) {
        throw new TapwrightError('corrupt_record', `${path} does not have the hash it is named by: delete it`);
      }
      return bytes;
    },
    has: async (ref) => (await size(pathOf(ref))) !== null,
  };
}
