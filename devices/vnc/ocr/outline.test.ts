import { createCanvas } from '@napi-rs/canvas';
import type { SKRSContext2D } from '@napi-rs/canvas';
import { describe, expect, it } from 'vitest';
import { decode } from './models.ts';
import { cleanLabel, outlineOfText } from './outline.ts';
import { createTextReader, findBoxes } from './reader.ts';
import type { Picture, TextLine } from './reader.ts';

const [WIDTH, HEIGHT] = [200, 400];
function picture(draw: (g: SKRSContext2D) => void): Picture {
  const g = createCanvas(WIDTH, HEIGHT).getContext('2d');
  g.fillStyle = '#f2f2f7';
  g.fillRect(0, 0, WIDTH, HEIGHT);
  draw(g);
  const { data } = g.getImageData(0, 0, WIDTH, HEIGHT);
  return { width: WIDTH, height: HEIGHT, pixels: new Uint8Array(data.buffer) };
}
const line = (text: string, x: number, y: number, width = 40, height = 10): TextLine => ({
  text,
  confidence: 1,
  box: { x, y, width, height },
});

describe('an outline from text and areas', () => {
  const seen = picture((g) => {
    const area = (color: string, x: number, y: number, w: number, h: number): void => {
      g.fillStyle = color;
      g.fillRect(x, y, w, h);
    };
    area('#0a6ae6', 10, 40, 60, 24);
    area('#ffffff', 10, 80, 180, 30);
    area('#ffffff', 10, 120, 180, 30);
    area('#ffffff', 10, 160, 180, 30);
    area('#0a6ae6', 10, 187, 180, 3);
    area('#ffffff', 10, 200, 180, 30);
    area('#c7c7cc', 150, 207, 28, 16);
    area('#d9663a', 30, 240, 40, 40);
    area('#34a853', 120, 240, 40, 40);
  });
  const lines = [
    line('9:41', 5, 5),
    line('Settings', 80, 26),
    line('< Back', 20, 47),
    line('WiFi', 20, 90),
    line('on', 140, 90, 20),
    line('Kettle', 20, 130),
    line('31 >', 150, 130, 20),
    line('Text', 20, 170),
    line('hello you', 130, 170),
    line('Radio', 20, 210),
    line('shop', 32, 290, 36),
    line('notes', 120, 290),
    line('price', 20, 330),
    line('64', 160, 330, 20),
    line('•••', 20, 360),
  ];
  const { title, elements } = outlineOfText(seen, lines, 18);

  it('tells roles, labels and values apart, and leaves out the status bar and ornaments', () => {
    expect(title).toBe('settings');
    expect(elements.map(({ box: _, ...rest }) => rest)).toEqual([
      { role: 'button', label: 'back' },
      { role: 'switch', label: 'wifi', value: 'on' },
      { role: 'row', label: 'kettle', value: '31' },
      { role: 'field', label: 'text', value: 'hello you', focused: true },
      { role: 'switch', label: 'radio', value: 'off' },
      { role: 'icon', label: 'shop' },
      { role: 'icon', label: 'notes' },
      { role: 'label', label: 'price', value: '64' },
    ]);
  });

  it('gives the box of the area, and a picture with its name', () => {
    expect(elements[0]!.box).toEqual({ x: 10, y: 40, width: 60, height: 24 });
    expect(elements[1]!.box).toEqual({ x: 10, y: 80, width: 180, height: 30 });
    expect(elements[5]!.box).toEqual({ x: 30, y: 240, width: 40, height: 60 });
  });

  it('takes a screen without a title for the home screen, and numbers a label that comes twice', () => {
    const twice = outlineOfText(seen, [line('shop', 32, 290, 36), line('Shop', 120, 290)], 18);
    expect(twice.title).toBe('home');
    expect(twice.elements.map(({ label }) => label)).toEqual(['shop', 'shop 2']);
  });
});

it('writes labels as a planner does', () => {
  expect(cleanLabel('‹  Add to Cart…')).toBe('add to cart');
  expect(cleanLabel('7:30')).toBe('7:30');
  expect(cleanLabel('» —')).toBe('');
});

it('finds connected text, widened, and nothing that is too faint', () => {
  const map = new Float32Array(40 * 20);
  const paint = (x0: number, y0: number, w: number, h: number, value: number): void => {
    for (let y = y0; y < y0 + h; y++) for (let x = x0; x < x0 + w; x++) map[y * 40 + x] = value;
  };
  paint(5, 5, 10, 4, 0.9);
  paint(25, 5, 10, 4, 0.4);
  paint(20, 15, 1, 1, 0.9);
  const by = Math.round((10 * 4 * 1.6) / 28);
  expect(findBoxes(map, 40, 20)).toEqual([{ x: 5 - by, y: 5 - by, width: 10 + 2 * by, height: 4 + 2 * by }]);
});

it('reads the best class of each step without repeats and blanks', () => {
  const steps = [0, 1, 1, 0, 1, 2, 2];
  const scores = new Float32Array(steps.length * 3);
  steps.forEach((c, i) => (scores[i * 3 + c] = 0.5));
  expect(decode(scores, 3, ['', 'a', 'b'])).toEqual({ text: 'aab', confidence: 0.5 });
});

it('reads a line once, however often it is seen, and doubles a small screen', async () => {
  const sizes: string[] = [];
  let recognized = 0;
  const reader = createTextReader({
    detect: (input, height, width) => {
      sizes.push(`${width} x ${height}`);
      expect(input).toHaveLength(3 * width * height);
      const map = new Float32Array(width * height);
      for (let y = 20; y < 30; y++) map.fill(1, y * width + 40, y * width + 120);
      return Promise.resolve(map);
    },
    recognize: () => {
      recognized += 1;
      return Promise.resolve({ text: ' wifi ', confidence: 0.9 });
    },
    close: () => Promise.resolve(),
  });
  const blank = picture(() => {});
  const first = await reader.read(blank);
  expect(await reader.read(blank)).toEqual(first);
  expect([sizes[0], recognized, first[0]!.text]).toEqual(['416 x 800', 1, 'wifi']);
  // Back in the screen's own pixels.
  expect(first[0]!.box.x).toBeLessThan(20);
});
