import { describe, expect, it } from 'vitest';
import { crc32c, maskedCrc, tensorboardEvents } from './tensorboard.ts';

/** Reads the records back and checks both sums of each. */
function records(file: Uint8Array): Buffer[] {
  const buffer = Buffer.from(file);
  const out: Buffer[] = [];
  for (let at = 0; at < buffer.length;) {
    const length = Number(buffer.readBigUInt64LE(at));
    expect(buffer.readUInt32LE(at + 8)).toBe(maskedCrc(buffer.subarray(at, at + 8)));
    const data = buffer.subarray(at + 12, at + 12 + length);
    expect(buffer.readUInt32LE(at + 12 + length)).toBe(maskedCrc(data));
    out.push(data);
    at += 16 + length;
  }
  return out;
}

type Field = { field: number; value: number | Buffer };
/** Fields of a protocol buffer message. */
function fields(data: Buffer): Field[] {
  const out: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = data[at++]!;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < data.length) {
    const tag = varint();
    const field = tag >> 3;
    const wire = tag & 7;
    if (wire === 0) out.push({ field, value: varint() });
    else if (wire === 1) out.push({ field, value: data.readDoubleLE((at += 8) - 8) });
    else if (wire === 5) out.push({ field, value: data.readFloatLE((at += 4) - 4) });
    else {
      const length = varint();
      out.push({ field, value: data.subarray(at, (at += length)) });
    }
  }
  return out;
}

describe('TensorBoard events', () => {
  it('crc32c has its published check values', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
  });

  it('read back as version, steps, tags and values', () => {
    const file = tensorboardEvents([
      { stage: 'train', update: 1, 'success/rate': 0.5, 'ppo/loss': null },
      { stage: 'train', update: 300, 'success/rate': 0.75, 'critic/loss': -2 },
    ]);
    const [version, ...events] = records(file).map(fields);
    expect(String(version!.find(({ field }) => field === 3)!.value)).toBe('brain.Event:2');
    const read = events.map((event) => ({
      step: event.find(({ field }) => field === 2)!.value,
      values: fields(event.find(({ field }) => field === 5)!.value as Buffer).map(({ value }) => {
        const [tag, simple] = fields(value as Buffer);
        return [String(tag!.value), simple!.value];
      }),
    }));
    expect(read).toEqual([
      { step: 1, values: [['success/rate', 0.5]] },
      {
        step: 300,
        values: [
          ['success/rate', 0.75],
          ['critic/loss', -2],
        ],
      },
    ]);
  });
});
