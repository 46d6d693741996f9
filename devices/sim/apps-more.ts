import type { AppTable, Part } from './app-table.ts';
import { APPLIANCES, ROOMS } from './concepts-more.ts';
import { CITIES, DAYS, HOURS, LEVELS, type Concept } from './concepts.ts';

/** The apps beyond the core ones: a phone has some of them. */
export const MORE_APPS = [
  'todo', 'maps', 'bank', 'travel', 'gallery', 'food', 'fitness', 'house',
] as const satisfies readonly Concept[]; // prettier-ignore

const create: Part = { button: 'create', tap: { do: 'open', page: 'new' }, bar: true };
const find: Part = { button: 'find', tap: { do: 'open', page: 'search' }, bar: true };
const basket: Part = { button: 'cart', tap: { do: 'open', page: 'basket' }, bar: true };
const favourite = { concept: 'favourite' } as const;

export const MORE_TABLES: Record<(typeof MORE_APPS)[number], AppTable> = {
  /** Things to do, each with a rank and a reminder; new ones in a form. */
  todo: {
    menu: 'todo',
    pages: {
      root: [{ rows: 'todo', tap: { do: 'open', page: 'entry:*' }, menu: true }, create],
      new: [
        { field: 'title', name: 'task' },
        { choose: LEVELS, name: 'rank' },
        {
          button: 'save',
          tap: { do: 'commit', list: 'todo.ranked', from: ['task', 'rank'], also: 'todo' },
          bar: true,
        },
      ],
      entry: [
        { toggle: { concept: 'remind' }, key: 'todo.$' },
        { levels: LEVELS, key: 'rank.$', pop: false },
      ],
    },
  },
  /** Saved places, and a search that opens any place. */
  maps: {
    menu: 'places',
    pages: {
      root: [{ rows: 'places', tap: { do: 'open', page: 'entry:*' }, menu: true }, find],
      search: [
        { field: 'query', name: 'query' },
        { found: CITIES, name: 'query', tap: { do: 'open', page: 'entry:*' } },
      ],
      entry: [
        { button: 'directions', tap: { do: 'set', key: 'route', to: '$', pop: false } },
        { toggle: favourite, key: 'place.$' },
      ],
    },
  },
  /** People to pay, and a card that can be frozen. */
  bank: {
    pages: {
      root: [
        { toggle: { concept: 'freeze' }, key: 'frozen' },
        { rows: 'contacts', tap: { do: 'open', page: 'entry:*' } },
      ],
      entry: [
        { said: 'paid.$', last: 1 },
        { field: 'amount', name: 'amount' },
        { button: 'send', tap: { do: 'commit', list: 'paid.$', from: ['amount'] }, bar: true },
      ],
    },
  },
  /** Trips: search, choose a day, buy. */
  travel: {
    menu: 'trips',
    pages: {
      root: [{ rows: 'trips', tap: { do: 'nothing' }, menu: true }, find],
      search: [
        { field: 'to', name: 'query' },
        { found: CITIES, name: 'query', tap: { do: 'open', page: 'city:*' } },
      ],
      city: [
        { choose: DAYS, name: 'when' },
        { button: 'buy', tap: { do: 'commit', list: 'trips', from: ['when'], head: '$' }, bar: true },
      ],
    },
  },
  /** Pictures, each with a page, and people to share it with. */
  gallery: {
    menu: 'photos',
    pages: {
      root: [{ rows: 'photos', tap: { do: 'open', page: 'entry:*' }, menu: true }],
      entry: [
        { open: { concept: 'share' }, page: 'share:$' },
        { toggle: favourite, key: 'photo.$' },
        { said: 'shared.$', last: 2 },
      ],
      share: [{ rows: 'contacts', tap: { do: 'add', list: 'shared.$', entry: '*', pop: true } }],
    },
  },
  /** Dishes in three sizes, a basket, a checkout with a voucher. */
  food: {
    pages: {
      root: [{ rows: 'dishes', tap: { do: 'open', page: 'entry:*' } }, basket],
      entry: [
        { choose: LEVELS, name: 'size' },
        { button: 'add', tap: { do: 'commit', list: 'basket', from: ['size'], head: '$' } },
        basket,
      ],
      basket: [
        { said: 'basket' },
        { field: 'code', name: 'code' },
        { button: 'buy', tap: { do: 'buy', cart: 'basket', bought: 'ordered' }, bar: true },
      ],
    },
  },
  /** A plan of exercise by hour and level: a long form of two choices. */
  fitness: {
    menu: 'workouts',
    pages: {
      root: [
        { toggle: { concept: 'remind' }, key: 'workouts.remind' },
        { rows: 'workouts', tap: { do: 'nothing' }, menu: true },
        create,
      ],
      new: [
        { choose: HOURS, name: 'at' },
        { choose: LEVELS, name: 'effort' },
        { button: 'save', tap: { do: 'commit', list: 'workouts', from: ['at', 'effort'] }, bar: true },
      ],
    },
  },
  /** Rooms, each with switches and a level of warmth. */
  house: {
    pages: {
      root: ROOMS.map((room): Part => ({ open: { text: room }, page: `room:${room}` })),
      room: [
        ...APPLIANCES.map((text): Part => ({ toggle: { text }, key: `$.${text}` })),
        { levels: LEVELS, key: '$.warmth', pop: false },
      ],
    },
  },
};
