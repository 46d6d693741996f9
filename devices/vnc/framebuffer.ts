import { TapwrightError } from '../../domain/errors.ts';
import { checkSize } from './handshake.ts';

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The server's screen as we know it: RGBA, row-major, alpha 255. Rectangles outside of it are refused. */
export interface Framebuffer {
  readonly width: number;
  readonly height: number;
  /** The live pixels: copy what is to be kept. */
  readonly pixels: Uint8Array;
  /** Errors: `connection_dropped` for a rectangle that does not lie inside. */
  check(rect: Rect): void;
  /** `bytes`: R, G, B and one unused byte for each pixel of the rectangle. */
  raw(rect: Rect, bytes: Uint8Array): void;
  /** Copies from (x, y) to the rectangle; the two may overlap. */
  copy(rect: Rect, x: number, y: number): void;
  /** A new size; what both have in common stays. */
  resize(width: number, height: number): void;
}

export function createFramebuffer(width: number, height: number, peer: string): Framebuffer {
  let size = { width, height };
  const blank = (w: number, h: number): Uint8Array => {
    checkSize(w, h, peer);
    const pixels = new Uint8Array(w * h * 4);
    for (let i = 3; i < pixels.length; i += 4) pixels[i] = 255;
    return pixels;
  };
  let pixels = blank(width, height);

  const check = ({ x, y, width: w, height: h }: Rect): void => {
    if (x + w > size.width || y + h > size.height) {
      throw new TapwrightError(
        'connection_dropped',
        `${peer} drew a rectangle of ${w} x ${h} at ${x}, ${y}, outside of its screen of ${size.width} x ${size.height}`,
      );
    }
  };
  return {
    get width() {
      return size.width;
    },
    get height() {
      return size.height;
    },
    get pixels() {
      return pixels;
    },
    check,
    raw: (rect, bytes) => {
      check(rect);
      const { x, y, width: w, height: h } = rect;
      for (let row = 0; row < h; row++) {
        const to = ((y + row) * size.width + x) * 4;
        pixels.set(bytes.subarray(row * w * 4, (row + 1) * w * 4), to);
        for (let i = to + 3; i < to + w * 4; i += 4) pixels[i] = 255;
      }
    },
    copy: (rect, fromX, fromY) => {
      check(rect);
      check({ ...rect, x: fromX, y: fromY });
      const { x, y, width: w, height: h } = rect;
      for (let i = 0; i < h; i++) {
        // Downwards from below, so that no row is read after it was written.
        const row = fromY < y ? h - 1 - i : i;
        const from = ((fromY + row) * size.width + fromX) * 4;
        pixels.copyWithin(((y + row) * size.width + x) * 4, from, from + w * 4);
      }
    },
    resize: (w, h) => {
      if (w === size.width && h === size.height) return;
      const next = blank(w, h);
      const common = Math.min(w, size.width) * 4;
      for (let row = 0; row < Math.min(h, size.height); row++) {
        const from = row * size.width * 4;
        next.set(pixels.subarray(from, from + common), row * w * 4);
      }
      pixels = next;
      size = { width: w, height: h };
    },
  };
}
