import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { TapwrightError } from '../../domain/errors.ts';

/** A named float32 tensor. */
export interface StoredTensor {
  shape: number[];
  data: Float32Array;
}

export interface StoredTensors {
  tensors: Map<string, StoredTensor>;
  metadata: Record<string, string>;
}

/** The safetensors bytes: 8-byte little-endian header length, JSON header padded to 8, then the data in order. */
export function encodeSafetensors({ tensors, metadata }: StoredTensors): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
  }
  let json = JSON.stringify(header);
  json += ' '.repeat((8 - (Buffer.byteLength(json) % 8)) % 8);
  const head = Buffer.from(json);
  const out = new Uint8Array(8 + head.length + at);
  new DataView(out.buffer).setBigUint64(0, BigInt(head.length), true);
  out.set(head, 8);
  at = 8 + head.length;
  for (const { data } of tensors.values()) {
    out.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return out;
}

/** Reads safetensors bytes of float32 tensors; throws corrupt_checkpoint naming `where` and what is wrong. */
export function decodeSafetensors(bytes: Uint8Array, where: string): StoredTensors {
  const wrong = (what: string): TapwrightError =>
    new TapwrightError('corrupt_checkpoint', `${where} is not a whole safetensors file: ${what}`);
  if (bytes.length < 8) throw wrong(`${bytes.length} bytes`);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length < 2 || 8 + length > bytes.length) throw wrong(`a header of ${length} bytes in ${bytes.length}`);
  let header: Record<string, { dtype?: unknown; shape?: unknown; data_offsets?: unknown }>;
  try {
    header = JSON.parse(Buffer.from(bytes.subarray(8, 8 + length)).toString('utf8')) as typeof header;
  } catch {
    throw wrong('the header is not JSON');
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) throw wrong('the header is no object');
  const data = bytes.subarray(8 + length);
  const tensors = new Map<string, StoredTensor>();
  let expected = 0;
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const { dtype, shape, data_offsets: offsets } = entry;
    const whole = (list: unknown): list is number[] =>
      Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && (n as number) >= 0);
    if (dtype !== 'F32') throw wrong(`tensor ${name} has type ${String(dtype)}, only F32 is read`);
    if (!whole(shape) || !whole(offsets) || offsets.length !== 2) throw wrong(`tensor ${name} has no shape or offsets`);
    const [from, to] = offsets as [number, number];
    const size = 4 * shape.reduce((a, b) => a * b, 1);
    if (from !== expected || to - from !== size || to > data.length) {
      throw wrong(`tensor ${name} lies at ${from}..${to} of ${data.length} bytes, its shape wants ${size}`);
    }
    expected = to;
    // A copy: the view may be unaligned.
    tensors.set(name, { shape, data: new Float32Array(new Uint8Array(data.subarray(from, to)).buffer) });
  }
  if (expected !== data.length) throw wrong(`${data.length - expected} bytes are left over`);
  return { tensors, metadata: (header['__metadata__'] ?? {}) as Record<string, string> };
}

/** Writes a file so that it is there whole or not at all: beside it, synced, then renamed. Maps a full disk. */
export function writeAtomically(path: string, bytes: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  const scratch = `${path}.${process.pid}.tmp`;
  try {
    const file = openSync(scratch, 'w');
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(scratch, path);
    const folder = openSync(dirname(path), 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    rmSync(scratch, { force: true });
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw new TapwrightError('disk_full', `the disk is full: cannot write ${path}; free space and start again`);
    }
    throw error;
  }
}

export function readSafetensors(path: string): StoredTensors {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new TapwrightError('not_found', `there is no checkpoint at ${path}`);
  }
  return decodeSafetensors(bytes, path);
}
