import type { Box, OutlineElement } from '../../domain/index.ts';
import { hashSeed } from '../../rl/random.ts';
import { itemsOf } from './apps.ts';
import { CONCEPTS, type Concept } from './concepts.ts';
import type { Item, Phone } from './model.ts';

export type SkinFamily = 'ios' | 'ios-alt' | 'android';

/** Wording and layout of one phone. Skins change labels, order, icons and layout, never logic. */
export interface Skin {
  family: SkinFamily;
  /** Draws the words; two phones of one family differ in it. */
  seed: number;
  /** 0..6 are seen in training, 7 is Android's own. */
  layout: number;
}

const WORDS: Record<SkinFamily, readonly number[]> = { ios: [0, 1, 2], 'ios-alt': [0, 1, 2, 3, 4], android: [3, 4] };
export const LAYOUTS: Record<SkinFamily, readonly number[]> = {
  ios: [0, 1, 2, 3],
  'ios-alt': [0, 1, 2, 3, 4, 5, 6],
  android: [7],
};

/** The word of a concept on this phone. */
export function word(skin: Skin, concept: Concept): string {
  const among = WORDS[skin.family];
  return CONCEPTS[concept][among[hashSeed(skin.seed, 'word', concept) % among.length]!]!;
}

export const WIDTH = 195;
export const HEIGHT = 422;
/** The status bar holds a clock: it is cropped before hashing. */
export const STATUS_BAR = 18;
const TITLE_BAR = 26;

interface Layout {
  /** Rows that fit between the bars. */
  capacity: number;
  backAt: 'top' | 'bottom';
  actionAt: 'top' | 'bottom';
  columns: number;
}
const layoutOf = (id: number): Layout => ({
  capacity: 6 + (id % 3),
  backAt: id % 2 === 0 ? 'top' : 'bottom',
  actionAt: Math.floor(id / 2) % 2 === 0 ? 'bottom' : 'top',
  columns: 2 + (id % 2),
});

/** A visible thing with its place. */
export interface Shown {
  item: Item;
  label: string;
  box: Box;
}
export interface View {
  /** Title of what is in front, under the skin. */
  title: string;
  shown: Shown[];
  canScrollUp: boolean;
  canScrollDown: boolean;
}

const labelOf = (skin: Skin, item: Item): string =>
  'concept' in item.label ? word(skin, item.label.concept) : item.label.text;

/** Interface items come in the layout's own order; content keeps its order. */
function arrange(skin: Skin, items: Item[]): Item[] {
  const rank = (item: Item): number =>
    'concept' in item.label ? hashSeed('order', skin.layout, item.label.concept) : Number.MAX_SAFE_INTEGER;
  return items
    .map((item, i) => ({ item, i }))
    .sort((a, b) => rank(a.item) - rank(b.item) || a.i - b.i)
    .map(({ item }) => item);
}

const HOME_TITLE = 'home';

/** What is visible of a phone under a skin, with boxes in screen pixels. Pure. */
export function viewOf(phone: Phone, skin: Skin): View {
  const layout = layoutOf(skin.layout);
  const items = itemsOf(phone);
  const title = phone.app === null ? HOME_TITLE : word(skin, phone.app);
  const content = arrange(
    skin,
    items.filter((item) => item.bar === undefined),
  );
  if (phone.app === null && !phone.popup)
    return { title, shown: grid(content, skin, layout), canScrollUp: false, canScrollDown: false };

  const bars = items.filter((item) => item.bar !== undefined);
  const at = (item: Item): 'top' | 'bottom' => (item.bar === 'back' ? layout.backAt : layout.actionAt);
  const [top, bottom] = [bars.filter((b) => at(b) === 'top'), bars.filter((b) => at(b) === 'bottom')];
  const first = Math.min(phone.scroll * (layout.capacity - 1), Math.max(0, content.length - layout.capacity));
  const page = content.slice(first, first + layout.capacity);
  const row = (HEIGHT - STATUS_BAR - TITLE_BAR) / (layout.capacity + 2);
  const placed: Shown[] = [];
  const place = (row_: Item[], y: number, height: number): void =>
    row_.forEach((item, i) => {
      const width = (WIDTH - 8) / row_.length;
      const box = {
        x: Math.round(4 + i * width),
        y: Math.round(y),
        width: Math.round(width - 4),
        height: Math.round(height - 4),
      };
      placed.push({ item, label: labelOf(skin, item), box });
    });
  const start = STATUS_BAR + TITLE_BAR;
  if (top.length > 0) place(top, start, row);
  page.forEach((item, i) => place([item], start + (i + 1) * row, row));
  if (bottom.length > 0) place(bottom, HEIGHT - row, row);
  return { title, shown: placed, canScrollUp: first > 0, canScrollDown: first + layout.capacity < content.length };
}

function grid(items: Item[], skin: Skin, layout: Layout): Shown[] {
  const rows = Math.ceil(items.length / layout.columns);
  const [w, h] = [WIDTH / layout.columns, Math.min(78, (HEIGHT - STATUS_BAR - 12) / rows)];
  return items.map((item, i) => ({
    item,
    label: labelOf(skin, item),
    box: {
      x: Math.round((i % layout.columns) * w + w / 2 - 26),
      y: Math.round(STATUS_BAR + 8 + Math.floor(i / layout.columns) * h),
      width: 52,
      height: Math.round(h - 8),
    },
  }));
}

/** The outline of a view: what a text planner reads and the grounder looks labels up in. */
export function outlineOf(view: View): OutlineElement[] {
  return view.shown.map(({ item, label, box }) => ({
    role: item.role,
    label,
    ...(item.value === undefined ? {} : { value: item.value }),
    box,
    ...(item.focused ? { focused: true } : {}),
  }));
}
