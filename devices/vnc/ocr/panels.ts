import type { Box } from '../../../domain/index.ts';
import type { Picture } from './reader.ts';

export type Color = readonly [number, number, number];

/** An area of one colour that a text stands on. */
export interface Panel {
  box: Box;
  color: Color;
}

/** Sum of channel differences up to which two pixels are of one area. */
const ALIKE = 18;

const colorAt = ({ width, pixels }: Picture, x: number, y: number): Color => {
  const at = (y * width + x) * 4;
  return [pixels[at]!, pixels[at + 1]!, pixels[at + 2]!];
};
const alike = (a: Color, b: Color): boolean =>
  Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]) + Math.abs(a[2] - b[2]) <= ALIKE;

/** A colour that calls for a touch, as against paper and ink. */
export const isVivid = (color: Color): boolean => Math.max(...color) - Math.min(...color) > 70;

/** Steps from (x, y) in one direction while the colour stays; the last point of it. */
function walk(picture: Picture, x: number, y: number, dx: number, dy: number, color: Color): { x: number; y: number } {
  for (;;) {
    const [nx, ny] = [x + dx, y + dy];
    if (nx < 0 || ny < 0 || nx >= picture.width || ny >= picture.height) return { x, y };
    if (!alike(colorAt(picture, nx, ny), color)) return { x, y };
    [x, y] = [nx, ny];
  }
}

/** The area around a text; null when it is the ground, which goes on to an edge. */
export function growPanel(picture: Picture, text: Box): Panel | null {
  const x = Math.min(picture.width - 1, Math.max(0, text.x - 1));
  const y = Math.min(picture.height - 1, Math.max(0, Math.round(text.y + text.height / 2)));
  const color = colorAt(picture, x, y);
  const top = walk(picture, x, y, 0, -1, color).y;
  const bottom = walk(picture, x, y, 0, 1, color).y;
  const height = bottom - top + 1;
  // Sideways above the text and what stands beside it, below rounded corners.
  const row = Math.min(y, top + Math.max(1, Math.round(height * 0.12)));
  const left = walk(picture, x, row, -1, 0, color).x;
  const right = walk(picture, x, row, 1, 0, color).x;
  const width = right - left + 1;
  const whole = left === 0 || right === picture.width - 1 || height > picture.height * 0.25;
  if (whole || width < text.width || height < 8) return null;
  return { box: { x: left, y: top, width, height }, color };
}

/** The colour of a thin line that ends an area below; null when it just ends. */
export function underline(picture: Picture, { box, color }: Panel): Color | null {
  const x = Math.round(box.x + box.width / 2);
  const from = box.y + box.height;
  if (from >= picture.height) return null;
  const line = colorAt(picture, x, from);
  if (alike(line, color)) return null;
  const end = walk(picture, x, from, 0, 1, line).y;
  return end - from + 1 <= 4 ? line : null;
}

/** A mark of this width or more at the end of an area is a switch or a tick box; an arrow is thinner. */
const MARK_WIDTH = 6;

/** What a drawn switch or tick box at the right end of an area says: `on` when it is vivid; null when there is none. */
export function markAtEnd(picture: Picture, { box, color }: Panel): 'on' | 'off' | null {
  const y = Math.round(box.y + box.height / 2);
  const from = Math.round(box.x + box.width * 0.75);
  let run = 0;
  let longest = 0;
  for (let x = from; x < box.x + box.width; x++) {
    const here = colorAt(picture, x, y);
    // A knob may have the area's own colour: what is vivid beside it is enough.
    run = alike(here, color) ? 0 : run + 1;
    longest = Math.max(longest, run);
    if (run >= MARK_WIDTH && isVivid(here)) return 'on';
  }
  return longest >= MARK_WIDTH ? 'off' : null;
}

/** The box of a picture with its name below, given the name's; null when nothing stands above it. */
export function iconAbove(picture: Picture, name: Box): Box | null {
  const x = Math.round(name.x + name.width / 2);
  const ground = colorAt(picture, Math.min(picture.width - 1, Math.max(0, name.x - 2)), Math.max(0, name.y - 1));
  const foot = walk(picture, x, Math.max(0, name.y - 1), 0, -1, ground).y - 1;
  if (foot < 0 || name.y - foot > name.height * 2) return null;
  let top = foot;
  while (top > 0 && !alike(colorAt(picture, x, top - 1), ground)) top -= 1;
  const height = foot - top + 1;
  const row = top + Math.round(height / 2);
  let [left, right] = [x, x];
  while (left > 0 && !alike(colorAt(picture, left - 1, row), ground)) left -= 1;
  while (right < picture.width - 1 && !alike(colorAt(picture, right + 1, row), ground)) right += 1;
  const width = right - left + 1;
  if (height < name.height || width < name.height || Math.max(width, height) > 3 * Math.min(width, height)) return null;
  const x0 = Math.min(left, name.x);
  const x1 = Math.max(right + 1, name.x + name.width);
  return { x: x0, y: top, width: x1 - x0, height: name.y + name.height - top };
}
