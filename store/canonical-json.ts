import { TapwrightError } from '../domain/errors.ts';

/**
 * JSON with sorted keys and no spaces: equal values give equal bytes, whatever order their keys were made in. Keys whose
 * value is undefined are left out. Numbers must be finite (`invalid_input`, with the path): JSON has no NaN, and a
 * silent null would be a number nobody wrote.
 */
export function canonicalJson(value: unknown): string {
  return write(value, '$');
}

/** The same as UTF-8 bytes. */
export function canonicalBytes(value: unknown): Uint8Array {
  return Buffer.from(canonicalJson(value), 'utf8');
}

function write(value: unknown, path: string): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      if (!Number.isFinite(value)) throw unwritable(path, String(value));
      // -0 and 0 are one number in JSON.
      return String(value === 0 ? 0 : value);
    case 'object':
      break;
    default:
      throw unwritable(path, `a ${typeof value}`);
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) {
    let out = '[';
    for (let i = 0; i < value.length; i++) {
      if (i > 0) out += ',';
      out += value[i] === undefined ? 'null' : write(value[i], `${path}[${i}]`);
    }
    return `${out}]`;
  }
  const record = value as Record<string, unknown>;
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) throw unwritable(path, 'an object of a class');
  let out = '{';
  for (const key of Object.keys(record).sort()) {
    const item = record[key];
    if (item === undefined) continue;
    if (out.length > 1) out += ',';
    out += `${JSON.stringify(key)}:${write(item, `${path}.${key}`)}`;
  }
  return `${out}}`;
}

function unwritable(path: string, what: string): TapwrightError {
  return new TapwrightError(
    'invalid_input',
    `${path} is ${what}, which JSON cannot hold: store a finite number or null`,
  );
}
