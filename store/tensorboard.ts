import type { MetricsRow } from './metrics.ts';

/**
 * TensorBoard event file of scalar metrics: records of (length, masked crc of it, Event message, masked crc of that).
 * Event: 1 wall_time (double), 2 step (varint), 3 file_version (string), 5 summary; Summary: 1 value; Value: 1 tag,
 * 2 simple_value (float). Wall times are 0: the same metrics give the same file.
 */
export function tensorboardEvents(rows: readonly MetricsRow[]): Uint8Array {
  const records = [record(Buffer.concat([wallTime(), bytesField(3, Buffer.from('brain.Event:2'))]))];
  for (const row of rows) {
    const values = Object.entries(row).flatMap(([tag, value]) => {
      if (typeof value !== 'number' || tag === 'update') return [];
      const simple = Buffer.alloc(5);
      simple[0] = (2 << 3) | 5;
      simple.writeFloatLE(value, 1);
      return [bytesField(1, Buffer.concat([bytesField(1, Buffer.from(tag)), simple]))];
    });
    const step = Buffer.concat([Buffer.from([2 << 3]), varint(row.update)]);
    records.push(record(Buffer.concat([wallTime(), step, bytesField(5, Buffer.concat(values))])));
  }
  return Buffer.concat(records);
}

function record(data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64LE(BigInt(data.length), 0);
  head.writeUInt32LE(maskedCrc(head.subarray(0, 8)), 8);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE(maskedCrc(data), 0);
  return Buffer.concat([head, data, tail]);
}

function wallTime(): Buffer {
  const out = Buffer.alloc(9);
  out[0] = (1 << 3) | 1;
  return out;
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    out.push((rest & 0x7f) | 0x80);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...out, rest]);
}

/** CRC-32C (Castagnoli), reflected polynomial. */
const TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let c = i;
  for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
  return c >>> 0;
});

export function crc32c(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (const byte of bytes) c = (c >>> 8) ^ TABLE[(c ^ byte) & 0xff]!;
  return (c ^ 0xffffffff) >>> 0;
}

/** The form in which record files store a crc, so that a crc of crcs does not go wrong. */
export function maskedCrc(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
