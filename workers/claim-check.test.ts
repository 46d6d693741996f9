import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimCheck } from './claim-check.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tapwright-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));
const payload = (value: unknown) => defaultPayloadConverter.toPayload(value);

describe('claim check', () => {
  it('leaves small payloads as they are', async () => {
    const small = [payload({ a: 1 }), payload('x'.repeat(100_000))];
    expect(await claimCheck(home).encode(small)).toEqual(small);
    expect(await claimCheck(home).decode(small)).toEqual(small);
    expect(await readdir(home)).toEqual([]);
  });

  it('carries a large one by reference, to be read by any process of the home', async () => {
    const large = [payload({ text: 'x'.repeat(3 * 1024 * 1024) }), payload(7)];
    const encoded = await claimCheck(home).encode(large);
    expect(encoded[0]!.data!.byteLength).toBeLessThan(100);
    expect(encoded[1]).toEqual(large[1]);
    const decoded = await claimCheck(home).decode(encoded);
    expect(decoded.map((one) => defaultPayloadConverter.fromPayload(one))).toEqual([
      { text: 'x'.repeat(3 * 1024 * 1024) },
      7,
    ]);
  });

  it('says which one is gone', async () => {
    const encoded = await claimCheck(home).encode([payload('x'.repeat(200_000))]);
    await rm(join(home, 'payloads'), { recursive: true });
    await expect(claimCheck(home).decode(encoded)).rejects.toThrow(/the blob sha256:[0-9a-f]{64} is not in .*payloads/);
  });
});
