import { createHash } from 'node:crypto';
import { createCanvas } from '@napi-rs/canvas';
import type { Canvas } from '@napi-rs/canvas';
import type { Box } from '../../../domain/index.ts';
import { LINE_HEIGHT } from './models.ts';
import type { OcrModels } from './models.ts';

/** Pixels of a screen: RGBA, row-major. */
export interface Picture {
  width: number;
  height: number;
  pixels: Uint8Array;
}

/** One piece of text with its place in the picture, pixels. */
export interface TextLine {
  text: string;
  confidence: number;
  box: Box;
}

export interface TextReader {
  /** All text, from above, then from the left. The same picture gives the same lines. */
  read(picture: Picture): Promise<TextLine[]>;
}

/** Text is found from this share on (PP-OCR's own values from here to UNCLIP). */
const THRESHOLD = 0.3;
const BOX_THRESHOLD = 0.5;
/** The network finds the core of a line: it is widened by area x this / perimeter. */
const UNCLIP = 1.6;
const MEAN = [0.485, 0.456, 0.406] as const;
const SPREAD = [0.229, 0.224, 0.225] as const;
const MIN_CONFIDENCE = 0.5;
/** Screens narrower than this are doubled: their letters are too small for the networks. */
const NARROW = 300;
const MAX_LINE_WIDTH = 960;

/** Finds lines and reads each. A line that looks like one read before is not read again: most of a screen stays. */
export function createTextReader(models: OcrModels, { maxCached = 20_000 } = {}): TextReader {
  const known = new Map<string, { text: string; confidence: number }>();

  const recognize = async (canvas: Canvas, box: Box): Promise<{ text: string; confidence: number }> => {
    const width = Math.min(MAX_LINE_WIDTH, Math.max(16, Math.round((box.width / box.height) * LINE_HEIGHT)));
    const line = createCanvas(width, LINE_HEIGHT).getContext('2d');
    line.drawImage(canvas, box.x, box.y, box.width, box.height, 0, 0, width, LINE_HEIGHT);
    const { data } = line.getImageData(0, 0, width, LINE_HEIGHT);
    const key = createHash('sha256').update(data).digest('base64');
    const old = known.get(key);
    if (old !== undefined) return old;
    const read = await models.recognize(planes({ width, height: LINE_HEIGHT, pixels: data }, [0.5], [0.5]), width);
    if (known.size >= maxCached) known.delete(known.keys().next().value!);
    known.set(key, read);
    return read;
  };

  return {
    read: async (picture) => {
      const scale = picture.width < NARROW ? 2 : 1;
      const [width, height] = [picture.width * scale, picture.height * scale];
      // The network wants multiples of 32: what is added is as the last row and column are.
      const [w, h] = [Math.ceil(width / 32) * 32, Math.ceil(height / 32) * 32];
      const canvas = enlarged(picture, scale, w, h);
      const { data } = canvas.getContext('2d').getImageData(0, 0, w, h);
      const map = await models.detect(planes({ width: w, height: h, pixels: data }, MEAN, SPREAD), h, w);
      const lines: TextLine[] = [];
      for (const box of findBoxes(map, w, h)) {
        const inside = clip(box, width, height);
        if (inside.width < 4 || inside.height < 4) continue;
        const { text, confidence } = await recognize(canvas, inside);
        if (confidence < MIN_CONFIDENCE || text.trim() === '') continue;
        const back = (value: number): number => Math.round(value / scale);
        lines.push({
          text: text.trim(),
          confidence,
          box: { x: back(inside.x), y: back(inside.y), width: back(inside.width), height: back(inside.height) },
        });
      }
      return lines.sort((a, b) => a.box.y - b.box.y || a.box.x - b.box.x);
    },
  };
}

function enlarged({ width, height, pixels }: Picture, scale: number, w: number, h: number): Canvas {
  const source = createCanvas(width, height);
  const g = source.getContext('2d');
  const image = g.createImageData(width, height);
  image.data.set(pixels);
  g.putImageData(image, 0, 0);
  const canvas = createCanvas(w, h);
  const to = canvas.getContext('2d');
  to.drawImage(source, 0, 0, width, height, 0, 0, width * scale, height * scale);
  const [right, bottom] = [w - width * scale, h - height * scale];
  if (right > 0) to.drawImage(source, width - 1, 0, 1, height, width * scale, 0, right, height * scale);
  if (bottom > 0) to.drawImage(source, 0, height - 1, width, 1, 0, height * scale, width * scale, bottom);
  return canvas;
}

/** Planes B, G, R of a picture, each value v as (v / 255 - mean) / spread. */
function planes(
  { width, height, pixels }: { width: number; height: number; pixels: ArrayLike<number> },
  mean: readonly number[],
  spread: readonly number[],
): Float32Array {
  const size = width * height;
  const out = new Float32Array(3 * size);
  for (let c = 0; c < 3; c++) {
    const [m, s] = [mean[c % mean.length]!, spread[c % spread.length]!];
    for (let i = 0; i < size; i++) out[c * size + i] = (pixels[i * 4 + 2 - c]! / 255 - m) / s;
  }
  return out;
}

/** Boxes of connected text in a map of shares (h, w), widened to whole letters. */
export function findBoxes(map: Float32Array, width: number, height: number): Box[] {
  const seen = new Uint8Array(width * height);
  const boxes: Box[] = [];
  const stack: number[] = [];
  for (let start = 0; start < map.length; start++) {
    if (seen[start] === 1 || map[start]! < THRESHOLD) continue;
    let [left, right, top, bottom, sum, count] = [width, 0, height, 0, 0, 0];
    stack.push(start);
    seen[start] = 1;
    while (stack.length > 0) {
      const at = stack.pop()!;
      const [x, y] = [at % width, Math.floor(at / width)];
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
      sum += map[at]!;
      count += 1;
      for (const [next, inside] of [
        [at - 1, x > 0],
        [at + 1, x < width - 1],
        [at - width, y > 0],
        [at + width, y < height - 1],
      ] as const) {
        if (!inside || seen[next] === 1 || map[next]! < THRESHOLD) continue;
        seen[next] = 1;
        stack.push(next);
      }
    }
    const [w, h] = [right - left + 1, bottom - top + 1];
    if (w < 3 || h < 3 || sum / count < BOX_THRESHOLD) continue;
    const by = Math.round((w * h * UNCLIP) / (2 * (w + h)));
    boxes.push({ x: left - by, y: top - by, width: w + 2 * by, height: h + 2 * by });
  }
  return boxes;
}

function clip(box: Box, width: number, height: number): Box {
  const [x, y] = [Math.max(0, box.x), Math.max(0, box.y)];
  return { x, y, width: Math.min(width, box.x + box.width) - x, height: Math.min(height, box.y + box.height) - y };
}
