import { createInflate } from 'node:zlib';
import type { Inflate } from 'node:zlib';
import { TapwrightError } from '../../domain/errors.ts';
import type { Framebuffer, Rect } from './framebuffer.ts';

const TILE = 64;
/** A tile's most expensive form is a run of one for each pixel: a pixel of three bytes and a length. */
const WORST_BYTES = 4;

/** ZRLE (RFC 6143, 7.7.6) with pixels of three bytes; one zlib stream for the whole connection. */
export interface ZrleDecoder {
  /** Errors: `connection_dropped` when the data is damaged or larger than the rectangle can need. */
  decode(data: Uint8Array, rect: Rect, into: Framebuffer): Promise<void>;
  close(): void;
}

export function createZrleDecoder(peer: string): ZrleDecoder {
  const inflate = createInflate();
  const broken = (what: string, cause?: unknown): TapwrightError =>
    new TapwrightError('connection_dropped', `${peer} sent a damaged ZRLE rectangle: ${what}`, { cause });
  let failed: unknown = null;
  inflate.on('error', (error) => (failed ??= error));
  return {
    decode: async (data, rect, into) => {
      into.check(rect);
      const tiles = Math.ceil(rect.width / TILE) * Math.ceil(rect.height / TILE);
      const most = rect.width * rect.height * WORST_BYTES + tiles * (1 + 127 * 3);
      const bytes = await unpack(inflate, data, most).catch((error: unknown) => {
        throw broken(error instanceof Error ? error.message : String(error), error);
      });
      if (failed !== null) throw broken(String(failed), failed);
      try {
        drawTiles(bytes, rect, into);
      } catch (error) {
        throw error instanceof TapwrightError ? error : broken(String(error), error);
      }
    },
    close: () => inflate.close(),
  };
}

/** What `data` unpacks to, given all that came before it; `most` bytes at most. */
function unpack(inflate: Inflate, data: Uint8Array, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    const done = (error: unknown): void => {
      inflate.off('data', more);
      inflate.off('error', done);
      if (error instanceof Error) reject(error);
      else resolve(Buffer.concat(parts, size));
    };
    const more = (part: Buffer): void => {
      size += part.length;
      parts.push(part);
      if (size > most) done(new Error(`it unpacks to more than the ${most} bytes that it can need`));
    };
    inflate.on('data', more);
    inflate.once('error', done);
    // The callback comes when all of the output has been handed out: a sync flush by the server ends each rectangle.
    inflate.write(data, () => inflate.flush(() => done(null)));
  });
}

function drawTiles(bytes: Uint8Array, rect: Rect, into: Framebuffer): void {
  const { pixels } = into;
  let at = 0;
  const byte = (): number => {
    if (at >= bytes.length) throw new Error('it ends in the middle of a tile');
    return bytes[at++]!;
  };
  const pixel = (): number => {
    const value = byte() | (byte() << 8) | (byte() << 16);
    return value;
  };
  const runLength = (): number => {
    let length = 1;
    for (;;) {
      const more = byte();
      length += more;
      if (more !== 255) return length;
    }
  };
  for (let ty = 0; ty < rect.height; ty += TILE) {
    for (let tx = 0; tx < rect.width; tx += TILE) {
      const [w, h] = [Math.min(TILE, rect.width - tx), Math.min(TILE, rect.height - ty)];
      const count = w * h;
      let drawn = 0;
      const put = (color: number, times: number): void => {
        if (drawn + times > count) throw new Error('a run is longer than its tile');
        for (let i = 0; i < times; i++, drawn++) {
          const x = rect.x + tx + (drawn % w);
          const y = rect.y + ty + Math.floor(drawn / w);
          const to = (y * into.width + x) * 4;
          pixels[to] = color & 255;
          pixels[to + 1] = (color >> 8) & 255;
          pixels[to + 2] = color >> 16;
          pixels[to + 3] = 255;
        }
      };
      const form = byte();
      if (form === 0) {
        for (let i = 0; i < count; i++) put(pixel(), 1);
      } else if (form === 1) {
        put(pixel(), count);
      } else if (form <= 16) {
        const palette = Array.from({ length: form }, pixel);
        const bits = form === 2 ? 1 : form <= 4 ? 2 : 4;
        for (let row = 0; row < h; row++) {
          let packed = 0;
          for (let i = 0, left = 0; i < w; i++) {
            if (left === 0) [packed, left] = [byte(), 8];
            left -= bits;
            put(colorOf(palette, (packed >> left) & ((1 << bits) - 1)), 1);
          }
        }
      } else if (form === 128) {
        while (drawn < count) put(pixel(), runLength());
      } else if (form >= 130) {
        const palette = Array.from({ length: form - 128 }, pixel);
        while (drawn < count) {
          const index = byte();
          put(colorOf(palette, index & 127), index >= 128 ? runLength() : 1);
        }
      } else {
        throw new Error(`a tile has the unknown form ${form}`);
      }
    }
  }
  if (at !== bytes.length) throw new Error(`${bytes.length - at} bytes are left over`);
}

function colorOf(palette: readonly number[], index: number): number {
  const color = palette[index];
  if (color === undefined) throw new Error(`a tile names color ${index} of a palette of ${palette.length}`);
  return color;
}
