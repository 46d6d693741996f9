import { createCipheriv } from 'node:crypto';
import { TapwrightError } from '../../domain/errors.ts';
import type { ByteStream } from './byte-stream.ts';

/** What a server says of itself when the connection stands. */
export interface ServerInit {
  /** Minor version that was agreed on: 3, 7 or 8 (RFC 6143, 7.1.1). */
  minor: 3 | 7 | 8;
  width: number;
  height: number;
  name: string;
}

const NONE = 1;
const VNC_AUTH = 2;
const MAX_NAME = 4096;
const MAX_REASON = 4096;
/** Pixels of a side at most, and in all: a screen, not an attack on our memory. */
export const MAX_SIDE = 8192;
export const MAX_PIXELS = 16 * 1024 * 1024;

/** Checks a size that a server announces. Errors: `connection_dropped`. */
export function checkSize(width: number, height: number, peer: string): void {
  if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS) {
    throw new TapwrightError('connection_dropped', `${peer} announced a screen of ${width} x ${height} pixels`);
  }
}

/**
 * RFB up to ServerInit (RFC 6143, 7.1 to 7.3): versions 3.3, 3.7 and 3.8; security None, and VncAuth when there is a
 * password. Errors: `connection_dropped` for a server that is none or that refuses, `invalid_config` for a wrong or a
 * missing password.
 */
export async function handshake(stream: ByteStream, peer: string, password: string | null): Promise<ServerInit> {
  const wrong = (what: string): TapwrightError => new TapwrightError('connection_dropped', `${peer} ${what}`);
  const greeting = (await stream.read(12)).toString('latin1');
  const match = /^RFB (\d{3})\.(\d{3})\n$/.exec(greeting);
  if (match === null) throw wrong('is no VNC server: it does not greet with its RFB version');
  const [major, offered] = [Number(match[1]), Number(match[2])];
  if (major < 3) throw wrong(`speaks RFB ${major}.${offered}, which is too old`);
  // 3.5 never was, and means 3.3; Apple's 3.889 and anything newer means 3.8.
  const minor = major > 3 || offered >= 8 ? 8 : offered === 7 ? 7 : 3;
  stream.write(Buffer.from(`RFB 003.00${minor}\n`, 'latin1'));

  const reason = async (): Promise<string> => {
    const length = (await stream.read(4)).readUInt32BE(0);
    return (await stream.read(Math.min(length, MAX_REASON))).toString('latin1');
  };
  let security: number;
  if (minor === 3) {
    security = (await stream.read(4)).readUInt32BE(0);
    if (security === 0) throw wrong(`refused the connection: ${await reason()}`);
  } else {
    const count = (await stream.read(1))[0]!;
    if (count === 0) throw wrong(`refused the connection: ${await reason()}`);
    const types = [...(await stream.read(count))];
    security = types.includes(NONE) ? NONE : types.includes(VNC_AUTH) ? VNC_AUTH : types[0]!;
    if (security === NONE || security === VNC_AUTH) stream.write(Uint8Array.of(security));
  }
  if (security === VNC_AUTH) {
    const challenge = await stream.read(16);
    if (password === null) {
      throw new TapwrightError('invalid_config', `${peer} wants a password: put it into the environment`);
    }
    stream.write(vncAuthResponse(challenge, password));
  } else if (security !== NONE) {
    throw wrong(`offers no security that we speak (type ${security}): None and VncAuth; TLS by a tunnel`);
  }
  // Before 3.8 None has no result.
  if (security === VNC_AUTH || minor === 8) {
    const result = (await stream.read(4)).readUInt32BE(0);
    if (result !== 0) {
      const why = minor === 8 ? await reason() : result === 2 ? 'too many attempts' : 'no reason given';
      if (security === VNC_AUTH) throw new TapwrightError('invalid_config', `${peer} refused the password: ${why}`);
      throw wrong(`refused the connection: ${why}`);
    }
  }
  // Shared: others may watch.
  stream.write(Uint8Array.of(1));
  const init = await stream.read(24);
  const [width, height] = [init.readUInt16BE(0), init.readUInt16BE(2)];
  checkSize(width, height, peer);
  const length = init.readUInt32BE(20);
  if (length > MAX_NAME) throw wrong(`announced a name of ${length} bytes`);
  return { minor, width, height, name: (await stream.read(length)).toString('utf8') };
}

/** The challenge encrypted with DES, the key being the password with the bits of each byte turned round. */
export function vncAuthResponse(challenge: Uint8Array, password: string): Uint8Array {
  const key = Buffer.alloc(8);
  key.write(password.slice(0, 8), 'latin1');
  for (let i = 0; i < 8; i++) {
    let turned = 0;
    for (let bit = 0; bit < 8; bit++) turned |= ((key[i]! >> bit) & 1) << (7 - bit);
    key[i] = turned;
  }
  // Single DES is gone from OpenSSL 3; three times with one key is the same.
  const cipher = createCipheriv('des-ede3-ecb', Buffer.concat([key, key, key]), null);
  cipher.setAutoPadding(false);
  return Buffer.concat([cipher.update(challenge), cipher.final()]);
}
