import { TapwrightError } from '../domain/errors.ts';

/** Float32 numbers as the wire and the records carry them: base64 of little-endian bytes. */
export function encodeBase64(values: Float32Array): string {
  const bytes = Buffer.allocUnsafe(4 * values.length);
  values.forEach((value, i) => bytes.writeFloatLE(value, 4 * i));
  return bytes.toString('base64');
}

/** The numbers behind base64. Errors: `invalid_input` when the text holds no whole number of float32s. */
export function decodeBase64(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length % 4 !== 0) {
    throw new TapwrightError('invalid_input', `${bytes.length} bytes of base64 are no list of float32 numbers`);
  }
  const out = new Float32Array(bytes.length / 4);
  for (let i = 0; i < out.length; i++) out[i] = bytes.readFloatLE(4 * i);
  return out;
}
