import type { GuestState } from '../../devices/vnc/guest-link.ts';
import type { Intent } from '../../domain/index.ts';

/** Fewest moves to somewhere or to something on a phone, from its state. Pure; null: no way that is known. */
export type Moves = Intent[];

export const tap = (target: string): Intent => ({ kind: 'tap', target });
export const type = (text: string): Intent => ({ kind: 'text_entry', text });

/** Rows that fit below the header, and how far a swipe goes (devices/vnc/guest/phone.c). */
const VISIBLE = 11;
const SWIPE = VISIBLE - 2;

/** Where a phone stands, as far as moves within an app need it. */
interface Place {
  app: string;
  page: GuestState['page'];
  index?: number;
}

/** Moves to an app's list. */
function toList(phone: GuestState, app: string): Moves {
  if (phone.app !== app) return phone.app === 'home' ? [tap(app)] : [{ kind: 'navigate_home' }, tap(app)];
  if (phone.page === 'list') return [];
  return phone.page === 'confirm' ? [tap('back'), tap('back')] : [tap('back')];
}

/** A row's label in a list of so many rows, swiping it into view first; `at`: which row it is. */
export function toRow(phone: GuestState, app: string, label: string, at: number, rows: number): Moves {
  const moves = toList(phone, app);
  const most = Math.max(0, rows - VISIBLE);
  let scroll = moves.length === 0 ? phone.scroll : 0;
  while (at < scroll || at >= scroll + VISIBLE) {
    const down = at >= scroll;
    moves.push({ kind: 'swipe', direction: down ? 'up' : 'down' });
    scroll = Math.min(most, Math.max(0, scroll + (down ? SWIPE : -SWIPE)));
  }
  return [...moves, tap(label)];
}

const isAt = (phone: GuestState, { app, page, index }: Place): boolean =>
  phone.app === app && phone.page === page && (index === undefined || phone.index === index);

/** Moves to a page behind a row; none when it is in front. */
export function toDetail(
  phone: GuestState,
  app: string,
  names: readonly string[],
  name: string,
  before = 0,
): Moves | null {
  const index = names.indexOf(name);
  if (index < 0) return null;
  if (isAt(phone, { app, page: 'detail', index })) return [];
  if (isAt(phone, { app, page: 'confirm', index })) return [tap('back')];
  return toRow(phone, app, name, index + before, names.length + before);
}

/** Moves that turn a switch of a list to what it should be; none when it is that already. */
export function toSwitch(
  phone: GuestState,
  app: string,
  list: readonly { name: string; on: number }[],
  name: string,
  on: boolean,
): Moves | null {
  const at = list.findIndex((one) => one.name === name);
  if (at < 0) return null;
  return (list[at]!.on === 1) === on ? [] : toRow(phone, app, name, at, list.length);
}

/** Moves that put a text into the page's field; none when it is there. */
export function toText(phone: GuestState, field: string, text: string, there: boolean): Moves {
  if (there && phone.draft === text) return [];
  return there && phone.focused === 1 ? [type(text)] : [tap(field), type(text)];
}

/** Moves to a list, for what stands on it beside rows. */
export const toButton = (phone: GuestState, app: string, label: string): Moves => [...toList(phone, app), tap(label)];
