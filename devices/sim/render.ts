import { createRequire } from 'node:module';
import { createCanvas, GlobalFonts, type Canvas, type SKRSContext2D } from '@napi-rs/canvas';
import { span } from '../../domain/spans.ts';
import { hashHex, screenHash } from '../../rl/index.ts';
import { hashSeed } from '../../rl/random.ts';
import { HEIGHT, STATUS_BAR, WIDTH, type Shown, type SkinFamily, type View } from './skin.ts';

/** Our own font file, not the system's: the same pixels on every machine of a kind. */
const FONT = 'TapwrightSans';
const require = createRequire(import.meta.url);
GlobalFonts.registerFromPath(require.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'), FONT);

interface Theme {
  ground: string;
  card: string;
  ink: string;
  faint: string;
  accent: string;
  radius: number;
}
const THEMES: Record<SkinFamily, Theme> = {
  ios: { ground: '#f2f2f7', card: '#ffffff', ink: '#111114', faint: '#8e8e93', accent: '#0a7aff', radius: 7 },
  'ios-alt': { ground: '#e9edf4', card: '#fdfdff', ink: '#20242c', faint: '#7c8594', accent: '#5e5ce6', radius: 3 },
  android: { ground: '#fef7ff', card: '#ece6f0', ink: '#1d1b20', faint: '#79747e', accent: '#6750a4', radius: 12 },
};

export interface Frame {
  hash: string;
  degenerate: boolean;
  /** PNG bytes; only when asked for. */
  png: Uint8Array | null;
}

/** Draws a view. Deterministic: the same view and family give the same pixels. */
export function drawView(g: SKRSContext2D, view: View, family: SkinFamily): void {
  const theme = THEMES[family];
  g.fillStyle = theme.ground;
  g.fillRect(0, 0, WIDTH, HEIGHT);
  write(g, '9:41', '9px', theme.ink, 8, STATUS_BAR / 2, 'left');
  write(g, '100%', '9px', theme.ink, WIDTH - 8, STATUS_BAR / 2, 'right');
  if (view.title !== 'home') write(g, view.title, 'bold 13px', theme.ink, WIDTH / 2, STATUS_BAR + 13, 'center');
  for (const shown of view.shown) drawItem(g, shown, theme);
  if (view.canScrollDown) {
    g.fillStyle = theme.faint;
    g.fillRect(WIDTH - 3, HEIGHT / 2, 2, 60);
  }
}

interface Sprite {
  image: Canvas;
  width: number;
}
type Align = 'left' | 'right' | 'center';
/** Words repeat from screen to screen, and shaping text is most of a drawing's cost: each is shaped once. */
const sprites = new Map<string, Sprite>();
const SPRITE_HEIGHT = 22;

function spriteOf(text: string, font: string, color: string): Sprite {
  const key = `${font}|${color}|${text}`;
  const known = sprites.get(key);
  if (known) return known;
  const probe = createCanvas(1, 1).getContext('2d');
  probe.font = `${font} ${FONT}`;
  const width = Math.max(1, Math.ceil(probe.measureText(text).width) + 2);
  const image = createCanvas(width, SPRITE_HEIGHT);
  const g = image.getContext('2d');
  g.font = `${font} ${FONT}`;
  g.fillStyle = color;
  g.textBaseline = 'middle';
  g.fillText(text, 1, SPRITE_HEIGHT / 2);
  const sprite = { image, width };
  if (sprites.size >= 5000) sprites.delete(sprites.keys().next().value!);
  sprites.set(key, sprite);
  return sprite;
}

/** A line squeezed to less than this share of its width cannot be read: its end is shown instead. */
const LEGIBLE = 0.7;

/** Writes a line around (x, y) into `room` pixels. Whole pixels only, so that a word always looks the same. */
function write(
  g: SKRSContext2D,
  text: string,
  font: string,
  color: string,
  x: number,
  y: number,
  align: Align,
  room = WIDTH,
): void {
  if (text === '') return;
  const { image, width } = spriteOf(text, font, color);
  const w = Math.min(width, Math.max(1, Math.floor(room)));
  const left = align === 'left' ? x : align === 'right' ? x - w : x - w / 2;
  const shown = w < LEGIBLE * width ? w : width;
  const [dx, dy] = [Math.round(left), Math.round(y - SPRITE_HEIGHT / 2)];
  g.drawImage(image, width - shown, 0, shown, SPRITE_HEIGHT, dx, dy, w, SPRITE_HEIGHT);
}

function rounded(g: SKRSContext2D, x: number, y: number, w: number, h: number, radius: number): void {
  g.beginPath();
  g.roundRect(x, y, w, h, Math.min(radius, h / 2));
  g.fill();
}

function drawItem(g: SKRSContext2D, { item, label, box }: Shown, theme: Theme): void {
  const { x, y, width, height } = box;
  const middle = y + height / 2;
  const text = (value: string, at: number, align: Align, color: string, size = 11, room = width - 12): void =>
    write(g, value, `${size}px`, color, at, middle, align, room);
  if (item.role === 'icon') {
    const hue = hashSeed('icon', label) % 360;
    g.fillStyle = `hsl(${hue} 60% 52%)`;
    rounded(g, x + 9, y, 34, 34, theme.radius + 2);
    write(g, label[0]!.toUpperCase(), 'bold 16px', '#ffffff', x + 26, y + 17, 'center');
    write(g, label, '8px', theme.ink, x + 26, y + 41, 'center', 62);
    return;
  }
  if (item.role === 'button') {
    g.fillStyle = item.bar === 'back' ? theme.card : theme.accent;
    rounded(g, x, y, width, height, theme.radius + 4);
    text(
      item.bar === 'back' ? `‹ ${label}` : label,
      x + width / 2,
      'center',
      item.bar === 'back' ? theme.accent : '#ffffff',
    );
    return;
  }
  if (item.role === 'label') {
    text(label, x + 8, 'left', theme.faint, 10);
    return;
  }
  g.fillStyle = theme.card;
  rounded(g, x, y, width, height, theme.radius);
  text(label, x + 8, 'left', theme.ink);
  if (item.role === 'switch') {
    const on = item.value === 'on';
    g.fillStyle = on ? '#34c759' : '#c7c7cc';
    rounded(g, x + width - 36, middle - 8, 28, 16, 8);
    g.fillStyle = '#ffffff';
    rounded(g, x + width - (on ? 23 : 35), middle - 7, 14, 14, 7);
  } else if (item.role === 'radio' || item.role === 'checkbox') {
    g.fillStyle = item.value === 'on' ? theme.accent : '#d1d1d6';
    rounded(g, x + width - 22, middle - 6, 12, 12, 6);
  } else if (item.role === 'field') {
    g.fillStyle = item.focused ? theme.accent : theme.faint;
    g.fillRect(x + 8, y + height - 4, width - 16, item.focused ? 2 : 1);
    // What is typed ends before the label begins, however long it is.
    const room = width - 24 - spriteOf(label, '11px', theme.ink).width;
    text(item.value ?? '', x + width - 10, 'right', theme.accent, 11, room);
  } else {
    text(item.value ? `${item.value} ›` : '›', x + width - 8, 'right', theme.faint);
  }
}

export interface Renderer {
  frame(view: View, family: SkinFamily, png: boolean): Promise<Frame>;
}

/** Frames by screen state: a known screen costs a look-up, a new one a drawing and a hash. */
export function createRenderer({ maxCached = 20_000 } = {}): Renderer {
  const canvas = createCanvas(WIDTH, HEIGHT);
  const g = canvas.getContext('2d');
  const cache = new Map<string, Frame>();
  return {
    async frame(view, family, png) {
      const key = JSON.stringify([
        family,
        view.title,
        view.canScrollDown,
        view.shown.map((s) => [s.label, s.item.role, s.item.value, s.item.focused, s.item.bar, s.box]),
      ]);
      const known = cache.get(key);
      if (known && (!png || known.png)) return known;
      const { bytes, rgba } = span('render', () => {
        drawView(g, view, family);
        // encodeSync: the canvas is shared, and an encode in the background could see the next drawing.
        const packed = png ? new Uint8Array(canvas.encodeSync('png')) : null;
        return { bytes: packed, rgba: g.getImageData(0, 0, WIDTH, HEIGHT).data };
      });
      const crop = { top: STATUS_BAR, bottom: 0 };
      const { hash, degenerate } = span('hash', () => screenHash(new Uint8Array(rgba.buffer), WIDTH, HEIGHT, crop, 4));
      const frame = { hash: hashHex(hash), degenerate, png: bytes };
      if (cache.size >= maxCached) cache.delete(cache.keys().next().value!);
      cache.set(key, frame);
      return Promise.resolve(frame);
    },
  };
}
