import type { AppTable, Part } from './app-table.ts';
import { CITIES, DAYS, HOURS, LEVELS, type Concept } from './concepts.ts';

/** The core apps, in the order of the home screen before a skin reorders it. */
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

const concept = (name: Concept): { concept: Concept } => ({ concept: name });
const create: Part = { button: 'create', tap: { do: 'open', page: 'new' }, bar: true };
const toCart: Part = { button: 'cart', tap: { do: 'open', page: 'cart' }, bar: true };

/** Archetype `nested settings`. */
const settings: AppTable = {
  pages: {
    root: Object.keys(SETTINGS).map((group): Part => ({ open: concept(group as Concept), page: group })),
    ...Object.fromEntries(
      Object.entries(SETTINGS).map(([group, keys]): [string, Part[]] => [
        group,
        [
          ...keys.map((key): Part => ({ toggle: concept(key), key })),
          ...Object.entries(LEVEL_SETTINGS)
            .filter(([, of]) => of === group)
            .map(([key]): Part => ({ open: concept(key as Concept), page: key, value: key })),
        ],
      ]),
    ),
    ...Object.fromEntries(
      Object.keys(LEVEL_SETTINGS).map((key): [string, Part[]] => [key, [{ levels: LEVELS, key, pop: true }]]),
    ),
  },
};

export const CORE_TABLES: Record<(typeof APPS)[number], AppTable> = {
  settings,
  /** Archetype `editor`: a list of texts, each with a menu, and a page to write one. */
  notes: {
    menu: 'notes',
    pages: {
      root: [{ rows: 'notes', tap: { do: 'nothing' }, menu: true }, create],
      new: [
        { field: 'body', name: 'text' },
        { button: 'save', tap: { do: 'commit', list: 'notes', from: ['text'] }, bar: true },
      ],
    },
  },
  /** Archetype `chat`: people, each with what was said and a line to write on. */
  messages: {
    pages: {
      root: [{ rows: 'contacts', tap: { do: 'open', page: 'entry:*' } }],
      entry: [
        { said: 'messages.$', last: 2 },
        { field: 'body', name: 'text' },
        { button: 'send', tap: { do: 'commit', list: 'messages.$', from: ['text'] }, bar: true },
      ],
    },
  },
  /** Archetypes `list and detail` and `form` in one. */
  contacts: {
    menu: 'contacts',
    pages: {
      root: [{ rows: 'contacts', tap: { do: 'open', page: 'entry:*' }, menu: true }, create],
      new: [
        { field: 'name', name: 'name' },
        { field: 'number', name: 'number' },
        {
          button: 'save',
          tap: { do: 'commit', list: 'contacts.added', from: ['name', 'number'], also: 'contacts' },
          bar: true,
        },
      ],
      entry: [
        { button: 'call', tap: { do: 'set', key: 'called', to: '$', pop: false } },
        { toggle: concept('favourite'), key: 'contact.$' },
        { said: 'contacts.added', of: '$', last: 1 },
      ],
    },
  },
  /** Archetype `alarms`: a list of switches and a form with a choice. */
  clock: {
    menu: 'alarms',
    pages: {
      root: [{ switches: 'alarms', key: 'alarm.*', menu: true }, create],
      new: [
        { choose: HOURS, name: 'hour' },
        { button: 'save', tap: { do: 'commit', list: 'alarms', from: ['hour'] }, bar: true },
      ],
    },
  },
  /** Archetype `store with a checkout`. */
  shop: {
    pages: {
      root: [{ rows: 'products', tap: { do: 'open', page: 'entry:*' } }, toCart],
      cart: [
        { said: 'cart' },
        { field: 'code', name: 'code' },
        { button: 'buy', tap: { do: 'buy', cart: 'cart', bought: 'bought' }, bar: true },
      ],
      entry: [{ button: 'add', tap: { do: 'add', list: 'cart', entry: '$', pop: false } }, toCart],
    },
  },
  /** Archetype `list and detail`. */
  music: {
    pages: {
      root: [{ rows: 'songs', tap: { do: 'open', page: 'entry:*' } }],
      entry: [
        { button: 'play', tap: { do: 'set', key: 'playing', to: '$', pop: false } },
        { toggle: concept('favourite'), key: 'song.$' },
      ],
    },
  },
  /** Archetype `form`. */
  mail: {
    pages: {
      root: [{ said: 'mail', last: 3 }, create],
      new: [
        { field: 'to', name: 'to' },
        { field: 'body', name: 'text' },
        { button: 'send', tap: { do: 'commit', list: 'mail', from: ['to', 'text'] }, bar: true },
      ],
    },
  },
  /** Archetype `form` with a choice. */
  calendar: {
    menu: 'events',
    pages: {
      root: [{ rows: 'events', tap: { do: 'nothing' }, menu: true }, create],
      new: [
        { field: 'title', name: 'title' },
        { choose: DAYS, name: 'day' },
        { button: 'save', tap: { do: 'commit', list: 'events', from: ['title', 'day'] }, bar: true },
      ],
    },
  },
  /** Archetype `search`: results appear for what is typed. */
  weather: {
    menu: 'cities',
    pages: {
      root: [
        { rows: 'cities', tap: { do: 'nothing' }, menu: true },
        { button: 'find', tap: { do: 'open', page: 'search' }, bar: true },
      ],
      search: [
        { field: 'query', name: 'query' },
        { found: CITIES, name: 'query', tap: { do: 'add', list: 'cities', entry: '*', pop: true } },
      ],
    },
  },
};
