import { TapwrightError } from '../../domain/errors.ts';
import type { ByteStream } from './byte-stream.ts';
import type { Framebuffer, Rect } from './framebuffer.ts';
import { createZrleDecoder } from './zrle.ts';

/**
 * What a message was: an update that has `drawn` pixels, one of a `new size` without any, one with `nothing` to see (a
 * cursor, a notice), or something `other` that answers no request.
 */
export type Message = 'drawn' | 'new size' | 'nothing' | 'other';

/** Reads the server's messages into a framebuffer (RFC 6143, 7.6 and 7.7). */
export interface UpdateReader {
  /** One message. Errors: `connection_dropped` for what no honest server sends. */
  next(): Promise<Message>;
  /** The server takes the key events of QEMU's extension. */
  extendedKeys(): boolean;
  close(): void;
}

const ENCODING = {
  raw: 0,
  copyRect: 1,
  zrle: 16,
  desktopSize: -223,
  lastRect: -224,
  cursor: -239,
  extendedKeys: -258,
  extendedDesktopSize: -308,
} as const;

/** An honest update sets one size and covers the screen a few times at most. */
const MAX_SIZES = 4;
const MAX_COVERS = 16;
const RECTS_A_TURN = 64;
const MAX_CUT_TEXT = 1024 * 1024;
const MAX_CURSOR_SIDE = 1024;
const MAX_COLOURS = 65536;

export function createUpdateReader(stream: ByteStream, screen: Framebuffer, peer: string): UpdateReader {
  const zrle = createZrleDecoder(peer);
  let extended = false;
  const wrong = (what: string): TapwrightError => new TapwrightError('connection_dropped', `${peer} ${what}`);

  /** Draws one rectangle; the pixels it covered, or null when it was the last. */
  async function rectangle(): Promise<number | null> {
    const head = await stream.read(12);
    const rect: Rect = {
      x: head.readUInt16BE(0),
      y: head.readUInt16BE(2),
      width: head.readUInt16BE(4),
      height: head.readUInt16BE(6),
    };
    const encoding = head.readInt32BE(8);
    const area = rect.width * rect.height;
    switch (encoding) {
      case ENCODING.raw: {
        screen.check(rect);
        screen.raw(rect, await stream.read(area * 4));
        return area;
      }
      case ENCODING.copyRect: {
        const from = await stream.read(4);
        screen.copy(rect, from.readUInt16BE(0), from.readUInt16BE(2));
        return area;
      }
      case ENCODING.zrle: {
        screen.check(rect);
        const length = (await stream.read(4)).readUInt32BE(0);
        // Packed data is no larger than a little more than the pixels themselves.
        if (length > area * 5 + 4096) throw wrong(`sent ${length} packed bytes for ${area} pixels`);
        await zrle.decode(await stream.read(length), rect, screen);
        return area;
      }
      case ENCODING.desktopSize:
        screen.resize(rect.width, rect.height);
        return 0;
      case ENCODING.extendedDesktopSize: {
        const count = (await stream.read(4))[0]!;
        await stream.read(16 * count);
        // y is the outcome of a request of ours, and we make none: 0 is a size that holds.
        if (rect.y === 0) screen.resize(rect.width, rect.height);
        return 0;
      }
      case ENCODING.cursor: {
        if (rect.width > MAX_CURSOR_SIDE || rect.height > MAX_CURSOR_SIDE) {
          throw wrong(`sent a cursor of ${rect.width} x ${rect.height} pixels`);
        }
        await stream.read(area * 4 + Math.ceil(rect.width / 8) * rect.height);
        return 0;
      }
      case ENCODING.extendedKeys:
        extended = true;
        return 0;
      case ENCODING.lastRect:
        return null;
      default:
        throw wrong(`sent a rectangle in encoding ${encoding}, which was not offered`);
    }
  }

  async function update(): Promise<Message> {
    const count = (await stream.read(3)).readUInt16BE(1);
    const before = screen.pixels;
    let area = 0;
    let sizes = 0;
    let size = screen.pixels;
    // 65535 with LastRect: an open list.
    for (let i = 0; i < count; i++) {
      const drawn = await rectangle();
      if (drawn === null) break;
      area += drawn;
      if (screen.pixels !== size) {
        sizes += 1;
        size = screen.pixels;
      }
      if (sizes > MAX_SIZES || area > MAX_COVERS * screen.width * screen.height) {
        throw wrong('drew its screen over and over in one update');
      }
      // What is buffered is read without a pause: others on this host, and all deadlines, want a turn too.
      if (i % RECTS_A_TURN === RECTS_A_TURN - 1) await new Promise((resolve) => setImmediate(resolve));
    }
    if (area > 0) return 'drawn';
    return screen.pixels === before ? 'nothing' : 'new size';
  }

  return {
    next: async () => {
      const type = (await stream.read(1))[0]!;
      switch (type) {
        case 0:
          return update();
        case 1: {
          const count = (await stream.read(5)).readUInt16BE(3);
          await stream.read(6 * Math.min(count, MAX_COLOURS));
          return 'other';
        }
        case 2:
          return 'other';
        case 3: {
          const length = (await stream.read(7)).readUInt32BE(3);
          if (length > MAX_CUT_TEXT) throw wrong(`sent ${length} bytes of clipboard`);
          await stream.read(length);
          return 'other';
        }
        default:
          throw wrong(`sent a message of the unknown type ${type}`);
      }
    },
    extendedKeys: () => extended,
    close: () => zrle.close(),
  };
}
