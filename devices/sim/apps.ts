import { CITIES, DAYS, HOURS, LEVELS, type Concept } from './concepts.ts';
import { list, pageOf, scalar, type Item, type Phone } from './model.ts';

/** The apps are data over a few archetypes. `APPS` is the order of the home screen before a skin reorders it. */
export const APPS = [
  'settings', 'notes', 'messages', 'contacts', 'clock', 'shop', 'music', 'mail', 'calendar', 'weather',
] as const satisfies readonly Concept[]; // prettier-ignore

export const SETTINGS = {
  network: ['wifi', 'bluetooth', 'airplane', 'tethering'],
  display: ['dark', 'rotation'],
  sound: ['vibration', 'silent'],
  privacy: ['location', 'camera'],
} as const satisfies Partial<Record<Concept, readonly Concept[]>>;
/** Settings with a level: the group they are in. */
export const LEVEL_SETTINGS = { brightness: 'display', volume: 'sound' } as const;

type Group = keyof typeof SETTINGS;

const open = (concept: Concept, page: string): Item => ({ role: 'row', label: { concept }, tap: { do: 'open', page } });
const button = (concept: Concept, tap: Item['tap']): Item => ({
  role: 'button',
  label: { concept },
  tap,
  bar: 'action',
});
const toggle = (phone: Phone, label: Item['label'], key: string): Item => ({
  role: 'switch',
  label,
  value: scalar(phone, key),
  tap: { do: 'toggle', key },
});
const field = (phone: Phone, concept: Concept, name: string): Item => ({
  role: 'field',
  label: { concept },
  value: phone.draft[name] ?? '',
  tap: { do: 'focus', field: name },
  focused: phone.focus === name,
});
const choice = (phone: Phone, name: string, to: string): Item => ({
  role: 'radio',
  label: { text: to },
  value: phone.draft[name] === to ? 'on' : 'off',
  tap: { do: 'choose', field: name, to },
});
const entry = (text: string, page: string | null, menu: boolean): Item => ({
  role: 'row',
  label: { text },
  tap: page ? { do: 'open', page } : { do: 'nothing' },
  ...(menu ? { menu: text } : {}),
});

const said = (text: string): Item => ({ role: 'label', label: { text }, tap: { do: 'nothing' } });

/** Archetype `nested settings`. */
function settings(phone: Phone, page: string): Item[] {
  if (page === 'root') return (Object.keys(SETTINGS) as Group[]).map((group) => open(group, group));
  if (page in LEVEL_SETTINGS)
    return LEVELS.map((to) => ({
      role: 'radio',
      label: { text: to },
      value: scalar(phone, page) === to ? 'on' : 'off',
      tap: { do: 'set', key: page, to, pop: true },
    }));
  const levels = Object.entries(LEVEL_SETTINGS).filter(([, group]) => group === page);
  return [
    ...SETTINGS[page as Group].map((concept) => toggle(phone, { concept }, concept)),
    ...levels.map(([name]): Item => ({ ...open(name as Concept, name), value: scalar(phone, name) })),
  ];
}

/** Archetype `editor`: a list of texts, each with a menu, and a page to write one. */
function notes(phone: Phone, page: string): Item[] {
  if (page === 'new')
    return [field(phone, 'body', 'text'), button('save', { do: 'commit', list: 'notes', from: ['text'] })];
  return [
    ...list(phone, 'notes').map((text) => entry(text, null, true)),
    button('create', { do: 'open', page: 'new' }),
  ];
}

/** Archetype `chat`: people, each with what was said and a line to write on. */
function messages(phone: Phone, page: string): Item[] {
  if (page === 'root') return list(phone, 'contacts').map((name) => entry(name, `entry:${name}`, false));
  const name = page.slice('entry:'.length);
  return [
    ...list(phone, `messages.${name}`).slice(-2).map(said),
    field(phone, 'body', 'text'),
    button('send', { do: 'commit', list: `messages.${name}`, from: ['text'] }),
  ];
}

/** Archetypes `list and detail` and `form` in one. */
function contacts(phone: Phone, page: string): Item[] {
  if (page === 'root')
    return [
      ...list(phone, 'contacts').map((name) => entry(name, `entry:${name}`, true)),
      button('create', { do: 'open', page: 'new' }),
    ];
  if (page === 'new')
    return [
      field(phone, 'name', 'name'),
      field(phone, 'number', 'number'),
      button('save', { do: 'commit', list: 'contacts.added', from: ['name', 'number'], also: 'contacts' }),
    ];
  const name = page.slice('entry:'.length);
  return [
    { role: 'button', label: { concept: 'call' }, tap: { do: 'set', key: 'called', to: name, pop: false } },
    toggle(phone, { concept: 'favourite' }, `contact.${name}`),
    ...list(phone, 'contacts.added')
      .filter((added) => added.startsWith(`${name} `))
      .slice(-1)
      .map((added): Item => said(added.slice(name.length + 1))),
  ];
}

/** Archetype `alarms`: a list of switches and a form with a choice. */
function clock(phone: Phone, page: string): Item[] {
  if (page === 'new')
    return [
      ...HOURS.map((hour) => choice(phone, 'hour', hour)),
      button('save', { do: 'commit', list: 'alarms', from: ['hour'] }),
    ];
  return [
    ...list(phone, 'alarms').map((hour): Item => ({ ...toggle(phone, { text: hour }, `alarm.${hour}`), menu: hour })),
    button('create', { do: 'open', page: 'new' }),
  ];
}

/** Archetype `store with a checkout`. */
function shop(phone: Phone, page: string): Item[] {
  if (page === 'root')
    return [
      ...list(phone, 'products').map((name) => entry(name, `entry:${name}`, false)),
      button('cart', { do: 'open', page: 'cart' }),
    ];
  if (page === 'cart')
    return [...list(phone, 'cart').map(said), field(phone, 'code', 'code'), button('buy', { do: 'buy' })];
  return [
    { role: 'button', label: { concept: 'add' }, tap: { do: 'add', list: 'cart', entry: page.slice('entry:'.length) } },
    button('cart', { do: 'open', page: 'cart' }),
  ];
}

/** Archetype `list and detail`. */
function music(phone: Phone, page: string): Item[] {
  if (page === 'root') return list(phone, 'songs').map((name) => entry(name, `entry:${name}`, false));
  const name = page.slice('entry:'.length);
  return [
    { role: 'button', label: { concept: 'play' }, tap: { do: 'set', key: 'playing', to: name, pop: false } },
    toggle(phone, { concept: 'favourite' }, `song.${name}`),
  ];
}

/** Archetype `form`. */
function mail(phone: Phone, page: string): Item[] {
  if (page === 'new')
    return [
      field(phone, 'to', 'to'),
      field(phone, 'body', 'text'),
      button('send', { do: 'commit', list: 'mail', from: ['to', 'text'] }),
    ];
  return [...list(phone, 'mail').slice(-3).map(said), button('create', { do: 'open', page: 'new' })];
}

/** Archetype `form` with a choice. */
function calendar(phone: Phone, page: string): Item[] {
  if (page === 'new')
    return [
      field(phone, 'title', 'title'),
      ...DAYS.map((day) => choice(phone, 'day', day)),
      button('save', { do: 'commit', list: 'events', from: ['title', 'day'] }),
    ];
  return [
    ...list(phone, 'events').map((text) => entry(text, null, true)),
    button('create', { do: 'open', page: 'new' }),
  ];
}

/** Archetype `search`: results appear for what is typed. */
function weather(phone: Phone, page: string): Item[] {
  if (page === 'search') {
    const found = CITIES.filter((city) => city === phone.draft.query);
    return [
      field(phone, 'query', 'query'),
      ...found.map((city): Item => ({
        role: 'row',
        label: { text: city },
        tap: { do: 'add', list: 'cities', entry: city },
      })),
    ];
  }
  return [
    ...list(phone, 'cities').map((text) => entry(text, null, true)),
    button('find', { do: 'open', page: 'search' }),
  ];
}

const PAGES: Partial<Record<Concept, (phone: Phone, page: string) => Item[]>> = {
  settings, notes, messages, contacts, clock, shop, music, mail, calendar, weather,
}; // prettier-ignore

/** Which list an entry's menu deletes from. */
export const MENU_LIST: Partial<Record<Concept, string>> = {
  notes: 'notes',
  contacts: 'contacts',
  clock: 'alarms',
  calendar: 'events',
  weather: 'cities',
};

/** Everything on the screen in front, before the skin orders it and cuts it to what is visible. */
export function itemsOf(phone: Phone): Item[] {
  if (phone.popup)
    return [
      { role: 'button', label: { concept: 'rate' }, tap: { do: 'nothing' } },
      { role: 'button', label: { concept: 'later' }, tap: { do: 'dismiss' } },
    ];
  if (phone.app === null)
    return APPS.map((app) => ({ role: 'icon', label: { concept: app }, tap: { do: 'launch', app } }));
  const back: Item = { role: 'button', label: { concept: 'back' }, tap: { do: 'back' }, bar: 'back' };
  if (phone.menu !== null) {
    const remove: Item['tap'] = { do: 'remove', list: MENU_LIST[phone.app] ?? '', entry: phone.menu };
    return [back, { role: 'button', label: { concept: 'remove' }, tap: remove }];
  }
  return [back, ...PAGES[phone.app]!(phone, pageOf(phone))];
}
