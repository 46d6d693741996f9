import type { Box, OutlineElement, Role } from '../../../domain/index.ts';
import { uniqueLabels } from '../../browser/view.ts';
import { growPanel, iconAbove, isVivid, markAtEnd, underline } from './panels.ts';
import type { Panel } from './panels.ts';
import type { Picture, TextLine } from './reader.ts';

/** What a reading of the pixels makes of a screen. */
export interface ReadScreen {
  /** The text in the middle of the top, `home` without one. */
  title: string;
  elements: OutlineElement[];
}

/** Words of a label as a planner writes them: lower case, single spaces, no ornaments around them. */
export function cleanLabel(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\x20-\x7e]+/g, ' ')
    .split(/\s+/)
    .map((word) => word.replace(/^[^a-z0-9]+|[^a-z0-9%!?]+$/g, ''))
    .filter(Boolean)
    .join(' ');
}

interface Piece {
  text: string;
  box: Box;
  panel: Panel | null;
}

const middle = (box: Box): number => box.y + box.height / 2;

/**
 * An outline from text and the areas it stands on: an area of a strong colour is a button, one with a line below a field,
 * one that says or draws `on` or `off` a switch, any other a row; text below a picture names it; the rest is plain text. `statusBar`: rows
 * at the top that belong to no app.
 */
export function outlineOfText(picture: Picture, lines: readonly TextLine[], statusBar: number): ReadScreen {
  const pieces: Piece[] = lines
    .map(({ text, box }) => ({ text: cleanLabel(text), box }))
    .filter(({ text, box }) => text !== '' && middle(box) >= statusBar)
    .map((piece) => ({ ...piece, panel: growPanel(picture, piece.box) }));
  const at = pieces.findIndex((piece) => isTitle(piece, picture, statusBar));
  const title = at < 0 ? 'home' : pieces.splice(at, 1)[0]!.text;

  const elements: OutlineElement[] = [];
  for (const group of groups(pieces, picture)) {
    const sorted = group.sort((a, b) => a.box.x - b.box.x);
    const { panel } = sorted[0]!;
    if (panel !== null) elements.push(onPanel(picture, sorted, panel));
    else elements.push(onGround(picture, sorted));
  }
  elements.sort((a, b) => middle(a.box) - middle(b.box) || a.box.x - b.box.x);
  return { title, elements: uniqueLabels(elements) };
}

function isTitle({ box, panel }: Piece, picture: Picture, statusBar: number): boolean {
  const off = Math.abs(box.x + box.width / 2 - picture.width / 2);
  return panel === null && middle(box) < statusBar + picture.height * 0.08 && off < picture.width * 0.06;
}

/** Pieces of one area, or of one line of the ground, belong together. */
function groups(pieces: readonly Piece[], picture: Picture): Piece[][] {
  const made: Piece[][] = [];
  for (const piece of pieces) {
    const mate = made.find(([first]) => belongs(first!, piece, picture));
    if (mate === undefined) made.push([piece]);
    else mate.push(piece);
  }
  return made;
}

function belongs(a: Piece, b: Piece, picture: Picture): boolean {
  if (a.panel !== null || b.panel !== null) {
    const [p, q] = [a.panel?.box, b.panel?.box];
    if (p === undefined || q === undefined) return false;
    return Math.abs(p.y - q.y) <= 4 && Math.abs(p.height - q.height) <= 6 && p.x < q.x + q.width && q.x < p.x + p.width;
  }
  if (Math.abs(middle(a.box) - middle(b.box)) > Math.max(a.box.height, b.box.height) / 2) return false;
  // Names of pictures stand side by side and say nothing of each other.
  return iconAbove(picture, a.box) === null && iconAbove(picture, b.box) === null;
}

function onPanel(picture: Picture, sorted: readonly Piece[], panel: Panel): OutlineElement {
  const { box } = panel;
  const join = (of: readonly Piece[]): string => of.map(({ text }) => text).join(' ');
  if (isVivid(panel.color)) return { role: 'button', label: join(sorted), box };
  const last = sorted.at(-1)!;
  const split = sorted.length > 1 && last.box.x + last.box.width / 2 > box.x + box.width / 2;
  const label = join(split ? sorted.slice(0, -1) : sorted);
  const line = underline(picture, panel);
  // Letters would pass for a mark.
  const free = line === null && last.box.x + last.box.width < box.x + box.width * 0.75;
  const value = split ? last.text : free ? (markAtEnd(picture, panel) ?? undefined) : undefined;
  const role: Role = line !== null ? 'field' : value === 'on' || value === 'off' ? 'switch' : 'row';
  const element: OutlineElement = { role, label, box };
  if (value !== undefined) element.value = value;
  if (line !== null && isVivid(line)) element.focused = true;
  return element;
}

function onGround(picture: Picture, sorted: readonly Piece[]): OutlineElement {
  const [first, ...others] = sorted;
  const icon = iconAbove(picture, first!.box);
  if (icon !== null) return { role: 'icon', label: first!.text, box: icon };
  const last = others.at(-1) ?? first!;
  const { x, y, height } = first!.box;
  const box = { x, y, width: last.box.x + last.box.width - x, height };
  const element: OutlineElement = { role: 'label', label: first!.text, box };
  if (others.length > 0) element.value = others.map(({ text }) => text).join(' ');
  return element;
}
