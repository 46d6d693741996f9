import { itemsOfPage, shownLists as listsOf, type AppTable } from './app-table.ts';
import { APPS, CORE_TABLES } from './apps-core.ts';
import { MORE_APPS, MORE_TABLES } from './apps-more.ts';
import type { Concept } from './concepts.ts';
import { pageOf, type Item, type Phone } from './model.ts';

/** Every app there is; a phone without a list of its own has the core ones. */
export const ALL_APPS: readonly Concept[] = [...APPS, ...MORE_APPS];
const TABLES: Partial<Record<Concept, AppTable>> = { ...CORE_TABLES, ...MORE_TABLES };

/** Lists whose entries an app shows, by name. */
export const shownLists = (app: Concept): string[] => listsOf(TABLES[app]!);

/** Everything on the screen in front, before the skin orders it and cuts it to what is visible. */
export function itemsOf(phone: Phone): Item[] {
  if (phone.popup)
    return [
      { role: 'button', label: { concept: 'rate' }, tap: { do: 'nothing' } },
      { role: 'button', label: { concept: 'later' }, tap: { do: 'dismiss' } },
    ];
  if (phone.app === null)
    return (phone.apps ?? APPS).map((app) => ({ role: 'icon', label: { concept: app }, tap: { do: 'launch', app } }));
  const back: Item = { role: 'button', label: { concept: 'back' }, tap: { do: 'back' }, bar: 'back' };
  const table = TABLES[phone.app]!;
  if (phone.menu !== null) {
    const remove: Item['tap'] = { do: 'remove', list: table.menu ?? '', entry: phone.menu };
    return [back, { role: 'button', label: { concept: 'remove' }, tap: remove }];
  }
  return [back, ...itemsOfPage(table, phone, pageOf(phone))];
}
