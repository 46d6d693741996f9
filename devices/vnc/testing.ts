import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createDeflate, constants } from 'node:zlib';
import { createByteStream } from './byte-stream.ts';
import type { ByteStream } from './byte-stream.ts';
import { vncAuthResponse } from './handshake.ts';

/** A VNC server of one connection for tests: the wire is real, the screen is the test's. */
export interface ToyServer {
  port: number;
  /** Resolves with the connection when a client has been greeted. */
  greeted: Promise<ToyConnection>;
  close(): void;
}

export interface ToyConnection {
  /** The client's messages as they come: type and body. */
  received: { type: number; body: Buffer }[];
  /** Resolves when there are `n` messages of that type. */
  whenReceived(type: number, n: number): Promise<void>;
  send(...parts: Uint8Array[]): void;
  socket: Socket;
}

export interface ToyOptions {
  version?: string;
  password?: string;
  width?: number;
  height?: number;
  /** Refuses with these words. */
  refuse?: string;
}

const LENGTHS: Record<number, number> = { 0: 19, 3: 9, 4: 7, 5: 5 };

export async function toyServer(options: ToyOptions = {}): Promise<ToyServer> {
  const { version = '003.008', password, width = 64, height = 48, refuse } = options;
  let resolve: (connection: ToyConnection) => void = () => {};
  const greeted = new Promise<ToyConnection>((done) => (resolve = done));
  const server = createServer((socket) => {
    const stream = createByteStream(socket, 'the client');
    greet(stream, { version, width, height, refuse, password }).then(
      () => resolve(talk(socket, stream)),
      () => socket.destroy(),
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { port: (server.address() as AddressInfo).port, greeted, close: () => void server.close() };
}

async function greet(
  stream: ByteStream,
  options: {
    version: string;
    width: number;
    height: number;
    refuse?: string | undefined;
    password?: string | undefined;
  },
): Promise<void> {
  stream.write(Buffer.from(`RFB ${options.version}\n`));
  const minor = Number((await stream.read(12)).toString().slice(8, 11));
  const words = (text: string): Buffer => Buffer.concat([u32(text.length), Buffer.from(text)]);
  const type = options.password === undefined ? 1 : 2;
  if (options.refuse !== undefined) {
    stream.write(Buffer.concat([minor === 3 ? u32(0) : Buffer.of(0), words(options.refuse)]));
    return Promise.reject(new Error('refused'));
  }
  if (minor === 3) stream.write(u32(type));
  else {
    stream.write(Buffer.of(2, 30, type));
    if ((await stream.read(1))[0] !== type) throw new Error('another security was chosen');
  }
  if (type === 2) {
    const challenge = Buffer.from('0123456789abcdef');
    stream.write(challenge);
    const right = Buffer.from(vncAuthResponse(challenge, options.password!)).equals(await stream.read(16));
    stream.write(u32(right ? 0 : 1));
    if (!right) {
      if (minor === 8) stream.write(words('wrong password'));
      throw new Error('wrong password');
    }
  } else if (minor === 8) stream.write(u32(0));
  await stream.read(1);
  const init = Buffer.alloc(24);
  init.writeUInt16BE(options.width, 0);
  init.writeUInt16BE(options.height, 2);
  init.writeUInt32BE(3, 20);
  stream.write(Buffer.concat([init, Buffer.from('toy')]));
}

function talk(socket: Socket, stream: ByteStream): ToyConnection {
  const received: { type: number; body: Buffer }[] = [];
  const watchers = new Set<() => void>();
  const read = async (): Promise<void> => {
    for (;;) {
      const type = (await stream.read(1))[0]!;
      let body: Buffer;
      if (type === 2) {
        const head = await stream.read(3);
        body = Buffer.concat([head, await stream.read(4 * head.readUInt16BE(1))]);
      } else if (type === 6) {
        const head = await stream.read(7);
        body = Buffer.concat([head, await stream.read(head.readUInt32BE(3))]);
      } else {
        body = await stream.read(type === 255 ? 11 : LENGTHS[type]!);
      }
      received.push({ type, body });
      for (const watcher of [...watchers]) watcher();
    }
  };
  read().catch(() => {});
  return {
    received,
    socket,
    send: (...parts) => void socket.write(Buffer.concat(parts)),
    whenReceived: (type, n) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (received.filter((message) => message.type === type).length < n) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
  };
}

export const u16 = (value: number): Buffer => Buffer.of(value >> 8, value & 255);
export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};

/** A FramebufferUpdate of rectangles as `rect` makes them. */
export const update = (...rects: Uint8Array[]): Buffer => Buffer.concat([Buffer.of(0, 0), u16(rects.length), ...rects]);
export const rect = (
  [x, y, width, height]: readonly [number, number, number, number],
  encoding: number,
  body: Uint8Array = Buffer.alloc(0),
): Buffer => Buffer.concat([u16(x), u16(y), u16(width), u16(height), u32(encoding), body]);

/** One color for a whole rectangle, raw. */
export const solid = (
  at: readonly [number, number, number, number],
  [r, g, b]: readonly [number, number, number],
): Buffer => rect(at, 0, Buffer.concat(Array.from({ length: at[2] * at[3] }, () => Buffer.of(r, g, b, 0))));

/** Packs ZRLE tiles, one stream for a connection. */
export function createZrlePacker(): (tiles: Uint8Array) => Promise<Buffer> {
  const deflate = createDeflate();
  const parts: Buffer[] = [];
  deflate.on('data', (part: Buffer) => parts.push(part));
  return (tiles) =>
    new Promise((resolve) => {
      deflate.write(tiles, () => {
        deflate.flush(constants.Z_SYNC_FLUSH, () => {
          const packed = Buffer.concat(parts.splice(0));
          resolve(Buffer.concat([u32(packed.length), packed]));
        });
      });
    });
}
