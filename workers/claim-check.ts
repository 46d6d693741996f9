import { join } from 'node:path';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import { createBlobStore } from '../store/blobs.ts';
import { createFiles } from '../store/files.ts';

/**
 * Temporal refuses payloads of more than 2 MiB, and a long history of large ones. What is larger than this travels by
 * reference (design.md, 1): the bytes lie in `<home>/payloads`, under their hash, and Temporal carries the hash.
 */
const LARGEST = 128 * 1024;
const ENCODING = 'binary/tapwright-reference';
const utf8 = { to: new TextEncoder(), from: new TextDecoder() };

/** How payloads of this home are written and read: every worker and every client needs it. */
export function dataConverter(home: string): DataConverter {
  return { payloadCodecs: [claimCheck(home)] };
}

/** Errors on reading: `not_found` and `corrupt_record` (store/blobs.ts). */
export function claimCheck(home: string): PayloadCodec {
  const blobs = createBlobStore({ dir: join(home, 'payloads'), files: createFiles() });
  const deposit = async (payload: Payload): Promise<Payload> => {
    const { data, metadata } = payload;
    if (!data || data.byteLength <= LARGEST) return payload;
    const encoding = metadata?.['encoding'] ?? new Uint8Array();
    return {
      metadata: { ...metadata, encoding: utf8.to.encode(ENCODING), 'tapwright-encoding': encoding },
      data: utf8.to.encode(await blobs.put(data)),
    };
  };
  const redeem = async (payload: Payload): Promise<Payload> => {
    const { data, metadata } = payload;
    if (!data || !metadata?.['encoding'] || utf8.from.decode(metadata['encoding']) !== ENCODING) return payload;
    const { 'tapwright-encoding': encoding, ...others } = metadata;
    return {
      metadata: { ...others, encoding: encoding! },
      data: await blobs.get(utf8.from.decode(data) as `sha256:${string}`),
    };
  };
  return {
    encode: (payloads) => Promise.all(payloads.map(deposit)),
    decode: (payloads) => Promise.all(payloads.map(redeem)),
  };
}
