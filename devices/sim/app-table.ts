import type { Concept } from './concepts.ts';
import { list, scalar, type Effect, type Item, type Phone } from './model.ts';

type Label = Item['label'];

/**
 * One part of a page. In keys, lists, pages and effects `$` stands for what the page is about (`alice` on `entry:alice`)
 * and `*` for the row's own entry.
 */
export type Part =
  /** A row for each entry of a list; `menu`: a long press can delete it. */
  | { rows: string; tap: Effect; menu?: true }
  /** A switch for each entry of a list. */
  | { switches: string; key: string; menu?: true }
  /** The last entries of a list as plain text; `of`: only those that begin with it, without it. */
  | { said: string; last?: number; of?: string }
  | { open: Label; page: string; value?: string }
  | { toggle: Label; key: string }
  | { field: Concept; name: string }
  /** Radio buttons of a form. */
  | { choose: readonly string[]; name: string }
  /** Radio buttons that act at once. */
  | { levels: readonly string[]; key: string; pop: boolean }
  /** `bar`: pinned to an edge of the screen. */
  | { button: Concept; tap: Effect; bar?: true }
  /** Rows for what a field holds word for word. */
  | { found: readonly string[]; name: string; tap: Effect };

/** An app as data: its pages by the part of their name before the colon, and the list that entries are deleted from. */
export interface AppTable {
  pages: Record<string, readonly Part[]>;
  menu?: string;
}

const SLOT = /[$*]/;
function filled(text: string, about: string, entry: string): string {
  return SLOT.test(text) ? text.replaceAll('$', () => about).replaceAll('*', () => entry) : text;
}

function effectOf(effect: Effect, about: string, entry: string): Effect {
  const out: Record<string, unknown> = { ...effect };
  for (const [key, value] of Object.entries(effect))
    if (typeof value === 'string' && SLOT.test(value)) out[key] = filled(value, about, entry);
  return out as Effect;
}

/** The things on one page of an app, bars included. Pure. A page that the table does not have is empty. */
export function itemsOfPage({ pages }: AppTable, phone: Phone, page: string): Item[] {
  const colon = page.indexOf(':');
  const about = colon < 0 ? '' : page.slice(colon + 1);
  const parts = pages[colon < 0 ? page : page.slice(0, colon)] ?? [];
  return parts.flatMap((part) => itemsOfPart(part, phone, about));
}

function itemsOfPart(part: Part, phone: Phone, about: string): Item[] {
  const entries = (name: string): string[] => list(phone, filled(name, about, ''));
  const toggle = (label: Label, key: string): Item => ({
    role: 'switch',
    label,
    value: scalar(phone, key),
    tap: { do: 'toggle', key },
  });
  const row = (text: string, tap: Effect): Item => ({
    role: 'row',
    label: { text },
    tap: effectOf(tap, about, text),
  });
  if ('rows' in part)
    return entries(part.rows).map((text) => ({ ...row(text, part.tap), ...(part.menu ? { menu: text } : {}) }));
  if ('switches' in part)
    return entries(part.switches).map((text) => ({
      ...toggle({ text }, filled(part.key, about, text)),
      ...(part.menu ? { menu: text } : {}),
    }));
  if ('said' in part) {
    const of = part.of === undefined ? '' : `${filled(part.of, about, '')} `;
    return entries(part.said)
      .filter((text) => text.startsWith(of))
      .slice(-(part.last ?? Infinity))
      .map((text) => ({ role: 'label', label: { text: text.slice(of.length) }, tap: { do: 'nothing' } }));
  }
  if ('open' in part) {
    const value = part.value === undefined ? {} : { value: scalar(phone, filled(part.value, about, '')) };
    return [{ role: 'row', label: part.open, tap: { do: 'open', page: filled(part.page, about, '') }, ...value }];
  }
  if ('toggle' in part) return [toggle(part.toggle, filled(part.key, about, ''))];
  if ('field' in part)
    return [
      {
        role: 'field',
        label: { concept: part.field },
        value: phone.draft[part.name] ?? '',
        tap: { do: 'focus', field: part.name },
        focused: phone.focus === part.name,
      },
    ];
  if ('choose' in part)
    return part.choose.map((to) => ({
      role: 'radio',
      label: { text: to },
      value: phone.draft[part.name] === to ? 'on' : 'off',
      tap: { do: 'choose', field: part.name, to },
    }));
  if ('levels' in part) {
    const key = filled(part.key, about, '');
    return part.levels.map((to) => ({
      role: 'radio',
      label: { text: to },
      value: scalar(phone, key) === to ? 'on' : 'off',
      tap: { do: 'set', key, to, pop: part.pop },
    }));
  }
  if ('button' in part)
    return [
      {
        role: 'button',
        label: { concept: part.button },
        tap: effectOf(part.tap, about, ''),
        ...(part.bar ? { bar: 'action' as const } : {}),
      },
    ];
  return part.found.filter((text) => text === phone.draft[part.name]).map((text) => row(text, part.tap));
}

/** Lists that an app's pages show as rows, by name: what they hold, in order, decides what is in view. */
export function shownLists({ pages }: AppTable): string[] {
  const names = Object.values(pages)
    .flat()
    .flatMap((part) =>
      'rows' in part ? [part.rows] : 'switches' in part ? [part.switches] : 'said' in part ? [part.said] : [],
    );
  return [...new Set(names)].filter((name) => !name.includes('$'));
}
