import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TapwrightError } from '../../domain/errors.ts';
import { createFramebuffer } from './framebuffer.ts';
import { createZrlePacker } from './testing.ts';
import { createZrleDecoder } from './zrle.ts';

const [WIDTH, HEIGHT] = [150, 70];

/** The plainest encoder: runs of pixels, tile by tile. */
function encode(pixels: number[], rect: { x: number; y: number; width: number; height: number }): Buffer {
  const out: number[] = [];
  for (let ty = 0; ty < rect.height; ty += 64) {
    for (let tx = 0; tx < rect.width; tx += 64) {
      const colors: number[] = [];
      for (let y = ty; y < Math.min(rect.height, ty + 64); y++)
        for (let x = tx; x < Math.min(rect.width, tx + 64); x++) colors.push(pixels[y * rect.width + x]!);
      out.push(128);
      for (let i = 0; i < colors.length;) {
        let run = 1;
        while (colors[i + run] === colors[i]) run++;
        const color = colors[i]!;
        out.push(color & 255, (color >> 8) & 255, color >> 16);
        let left = run - 1;
        for (; left >= 255; left -= 255) out.push(255);
        out.push(left);
        i += run;
      }
    }
  }
  return Buffer.from(out);
}

describe('ZRLE', () => {
  it('gives back what was encoded, rectangle after rectangle in one stream', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            x: fc.integer({ min: 0, max: 70 }),
            y: fc.integer({ min: 0, max: 30 }),
            width: fc.integer({ min: 1, max: 80 }),
            height: fc.integer({ min: 1, max: 40 }),
            colors: fc.integer({ min: 1, max: 5 }),
          }),
          { minLength: 1, maxLength: 4 },
        ),
        async (rects) => {
          const pack = createZrlePacker();
          const decoder = createZrleDecoder('test');
          const screen = createFramebuffer(WIDTH, HEIGHT, 'test');
          for (const { colors, ...rect } of rects) {
            const pixels = Array.from({ length: rect.width * rect.height }, (_, i) => ((i * i) % colors) * 0x010203);
            await decoder.decode((await pack(encode(pixels, rect))).subarray(4), rect, screen);
            pixels.forEach((color, i) => {
              const at = ((rect.y + Math.floor(i / rect.width)) * WIDTH + rect.x + (i % rect.width)) * 4;
              const got = screen.pixels[at]! | (screen.pixels[at + 1]! << 8) | (screen.pixels[at + 2]! << 16);
              if (got !== color) throw new Error(`pixel ${i} is ${got}, not ${color}`);
            });
          }
          decoder.close();
        },
      ),
      { numRuns: 25 },
    );
  });

  it('takes any bytes at all without harm: it draws inside the rectangle, or says that they are damaged', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 600 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 70 }),
        async (bytes, packed, width) => {
          const decoder = createZrleDecoder('test');
          const screen = createFramebuffer(WIDTH, HEIGHT, 'test');
          const rect = { x: 3, y: 2, width, height: 20 };
          const data = packed ? (await createZrlePacker()(bytes)).subarray(4) : bytes;
          try {
            await decoder.decode(data, rect, screen);
          } catch (error) {
            expect(error).toBeInstanceOf(TapwrightError);
            expect((error as TapwrightError).code).toBe('connection_dropped');
          }
          decoder.close();
          for (let i = 0; i < screen.pixels.length; i++) {
            const [x, y] = [(i >> 2) % WIDTH, Math.floor((i >> 2) / WIDTH)];
            const inside = x >= 3 && x < 3 + width && y >= 2 && y < 22;
            if (!inside && screen.pixels[i] !== (i % 4 === 3 ? 255 : 0)) throw new Error(`pixel ${x}, ${y} was drawn`);
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
