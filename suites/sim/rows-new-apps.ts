import { APPLIANCES, ROOMS } from '../../devices/sim/concepts-more.ts';
import {
  ABSENT, CITIES, DAYS, DIGITS, EVENTS, HOURS, LEVELS, NAMES, PRODUCTS, THINGS, VOUCHERS,
} from '../../devices/sim/concepts.ts'; // prettier-ignore
import type { Row } from './template.ts';

const STATES = ['on', 'off'];

/** Templates of the apps beyond the core ones. */
export const NEW_APP_ROWS: readonly Row[] = [
  // todo
  {
    name: 'todo-add', app: 'todo', category: 'form', goal: 'add {what} {level} in todo',
    params: { what: THINGS, level: LEVELS }, until: [{ list: 'todo.ranked', has: '{what} {level}' }],
    drafts: { task: { text: '{what}' }, rank: { text: '{level}' } }, absent: [{ list: 'todo', entry: '{what}' }],
  },
  {
    name: 'todo-ask', app: 'todo', category: 'form', goal: 'add my order {level} in todo',
    params: { what: THINGS, level: LEVELS }, until: [{ list: 'todo.ranked', has: '{what} {level}' }],
    drafts: { task: { fact: 'order', text: '{what}' }, rank: { text: '{level}' } },
    absent: [{ list: 'todo', entry: '{what}' }], facts: { order: '{what}' },
  },
  {
    name: 'todo-delete', app: 'todo', category: 'editor', goal: 'delete {what} in todo',
    params: { what: THINGS }, until: [{ list: 'todo', lacks: '{what}' }], present: [{ list: 'todo', entry: '{what}' }],
  },
  {
    name: 'todo-level', app: 'todo', category: 'choice', goal: 'set {what} to {level} in todo',
    params: { what: THINGS, level: LEVELS }, until: [{ key: 'rank.{what}', is: '{level}' }], entries: ['{what}'],
    data: { 'rank.{what}': '{not level}' }, present: [{ list: 'todo', entry: '{what}' }],
  },
  {
    name: 'todo-remind', app: 'todo', category: 'list-detail', goal: 'turn {state} remind for {what} in todo',
    params: { what: THINGS, state: STATES }, until: [{ key: 'todo.{what}', is: '{state}' }], entries: ['{what}'],
    data: { 'todo.{what}': '{not state}' }, present: [{ list: 'todo', entry: '{what}' }],
  },
  {
    name: 'todo-level-remind', app: 'todo', category: 'list-detail', goal: 'remind and set {what} to {level} in todo',
    params: { what: THINGS, level: LEVELS },
    until: [{ key: 'rank.{what}', is: '{level}' }, { key: 'todo.{what}', is: 'on' }], entries: ['{what}'],
    data: { 'rank.{what}': '{not level}' }, present: [{ list: 'todo', entry: '{what}' }],
  },
  {
    name: 'no-todo', app: 'todo', category: 'impossible', goal: 'delete {what} in todo',
    params: { what: ABSENT }, evidence: 'root',
  },
  // maps
  {
    name: 'maps-directions', app: 'maps', category: 'search', goal: 'directions to {city} in maps',
    params: { city: CITIES }, until: [{ key: 'route', is: '{city}' }], drafts: { query: { text: '{city}' } },
    entries: ['{city}'], absent: [{ list: 'places', entry: '{city}' }],
  },
  {
    name: 'maps-saved', app: 'maps', category: 'list-detail', goal: 'directions to {city} in maps',
    params: { city: CITIES }, until: [{ key: 'route', is: '{city}' }], drafts: { query: { text: '{city}' } },
    entries: ['{city}'], present: [{ list: 'places', entry: '{city}' }],
  },
  {
    name: 'maps-favourite', app: 'maps', category: 'search', goal: 'make {city} favourite in maps',
    params: { city: CITIES }, until: [{ key: 'place.{city}', is: 'on' }], drafts: { query: { text: '{city}' } },
    entries: ['{city}'], absent: [{ list: 'places', entry: '{city}' }],
  },
  {
    name: 'maps-delete', app: 'maps', category: 'editor', goal: 'delete {city} in maps',
    params: { city: CITIES }, until: [{ list: 'places', lacks: '{city}' }],
    present: [{ list: 'places', entry: '{city}' }],
  },
  {
    name: 'maps-ask', app: 'maps', category: 'search', goal: 'directions to my hometown in maps',
    params: { city: CITIES }, until: [{ key: 'route', is: '{city}' }],
    drafts: { query: { fact: 'hometown', text: '{city}' } }, entries: ['{city}'],
    absent: [{ list: 'places', entry: '{city}' }], facts: { hometown: '{city}' },
  },
  {
    name: 'maps-favourite-directions', app: 'maps', category: 'search',
    goal: 'make {city} favourite and directions in maps', params: { city: CITIES },
    until: [{ key: 'place.{city}', is: 'on' }, { key: 'route', is: '{city}' }], drafts: { query: { text: '{city}' } },
    entries: ['{city}'], absent: [{ list: 'places', entry: '{city}' }],
  },
  // bank
  {
    name: 'bank-send', app: 'bank', category: 'form', goal: 'send {name} {amount} in bank',
    params: { name: NAMES, amount: DIGITS }, until: [{ list: 'paid.{name}', has: '{amount}' }],
    drafts: { amount: { text: '{amount}' } }, entries: ['{name}'], present: [{ list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'bank-ask', app: 'bank', category: 'form', goal: 'send {name} my rent in bank',
    params: { name: NAMES, amount: DIGITS }, until: [{ list: 'paid.{name}', has: '{amount}' }],
    drafts: { amount: { fact: 'rent', text: '{amount}' } }, entries: ['{name}'],
    present: [{ list: 'contacts', entry: '{name}' }], facts: { rent: '{amount}' },
  },
  {
    name: 'bank-freeze', app: 'bank', category: 'toggle', goal: 'turn {state} freeze in bank',
    params: { state: STATES }, until: [{ key: 'frozen', is: '{state}' }], data: { frozen: '{not state}' },
  },
  {
    name: 'bank-freeze-send', app: 'bank', category: 'form', goal: 'turn off freeze and send {name} {amount} in bank',
    params: { name: NAMES, amount: DIGITS },
    until: [{ key: 'frozen', is: 'off' }, { list: 'paid.{name}', has: '{amount}' }],
    drafts: { amount: { text: '{amount}' } }, entries: ['{name}'], data: { frozen: 'on' },
    present: [{ list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'bank-send-two', app: 'bank', category: 'form', goal: 'send {name} and {other} {amount} in bank',
    params: { name: NAMES, other: NAMES, amount: DIGITS }, differ: [['name', 'other']],
    until: [{ list: 'paid.{name}', has: '{amount}' }, { list: 'paid.{other}', has: '{amount}' }],
    drafts: { amount: { text: '{amount}' } }, entries: ['{name}', '{other}'],
    present: [{ list: 'contacts', entry: '{name}' }, { list: 'contacts', entry: '{other}' }],
  },
  {
    name: 'no-payee', app: 'bank', category: 'impossible', goal: 'send {what} {amount} in bank',
    params: { what: ABSENT, amount: DIGITS }, evidence: 'root',
  },
  // travel
  {
    name: 'travel-buy', app: 'travel', category: 'search', goal: 'buy {city} on {day} in travel',
    params: { city: CITIES, day: DAYS }, until: [{ list: 'trips', has: '{city} {day}' }],
    drafts: { query: { text: '{city}' }, when: { text: '{day}' } }, absent: [{ list: 'trips', entry: '{city} {day}' }],
  },
  {
    name: 'travel-ask-city', app: 'travel', category: 'search', goal: 'buy my hometown on {day} in travel',
    params: { city: CITIES, day: DAYS }, until: [{ list: 'trips', has: '{city} {day}' }],
    drafts: { query: { fact: 'hometown', text: '{city}' }, when: { text: '{day}' } },
    absent: [{ list: 'trips', entry: '{city} {day}' }], facts: { hometown: '{city}' },
  },
  {
    name: 'travel-ask-day', app: 'travel', category: 'search', goal: 'buy {city} on my holiday in travel',
    params: { city: CITIES, day: DAYS }, until: [{ list: 'trips', has: '{city} {day}' }],
    drafts: { query: { text: '{city}' }, when: { fact: 'holiday', text: '{day}' } },
    absent: [{ list: 'trips', entry: '{city} {day}' }], facts: { holiday: '{day}' },
  },
  {
    name: 'travel-delete', app: 'travel', category: 'editor', goal: 'delete {city} {day} in travel',
    params: { city: CITIES, day: DAYS }, until: [{ list: 'trips', lacks: '{city} {day}' }],
    present: [{ list: 'trips', entry: '{city} {day}' }],
  },
  {
    name: 'no-trip', app: 'travel', category: 'impossible', goal: 'delete {what} {day} in travel',
    params: { what: ABSENT, day: DAYS }, evidence: 'root',
  },
  // gallery
  {
    name: 'gallery-favourite', app: 'gallery', category: 'list-detail', goal: 'make {event} favourite in gallery',
    params: { event: EVENTS }, until: [{ key: 'photo.{event}', is: 'on' }], entries: ['{event}'],
    present: [{ list: 'photos', entry: '{event}' }],
  },
  {
    name: 'gallery-delete', app: 'gallery', category: 'editor', goal: 'delete {event} in gallery',
    params: { event: EVENTS }, until: [{ list: 'photos', lacks: '{event}' }],
    present: [{ list: 'photos', entry: '{event}' }],
  },
  {
    name: 'gallery-share', app: 'gallery', category: 'list-detail', goal: 'share {event} with {name} in gallery',
    params: { event: EVENTS, name: NAMES }, until: [{ list: 'shared.{event}', has: '{name}' }], entries: ['{event}'],
    present: [{ list: 'photos', entry: '{event}' }, { list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'gallery-share-two', app: 'gallery', category: 'list-detail',
    goal: 'share {event} with {name} and {other} in gallery',
    params: { event: EVENTS, name: NAMES, other: NAMES }, differ: [['name', 'other']],
    until: [{ list: 'shared.{event}', has: '{name}' }, { list: 'shared.{event}', has: '{other}' }],
    entries: ['{event}'],
    present: [
      { list: 'photos', entry: '{event}' }, { list: 'contacts', entry: '{name}' }, { list: 'contacts', entry: '{other}' },
    ],
  },
  {
    name: 'gallery-favourite-share', app: 'gallery', category: 'list-detail',
    goal: 'make {event} favourite and share with {name} in gallery', params: { event: EVENTS, name: NAMES },
    until: [{ key: 'photo.{event}', is: 'on' }, { list: 'shared.{event}', has: '{name}' }], entries: ['{event}'],
    present: [{ list: 'photos', entry: '{event}' }, { list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'no-photo', app: 'gallery', category: 'impossible', goal: 'share {what} with {name} in gallery',
    params: { what: ABSENT, name: NAMES }, evidence: 'root',
  },
  // food
  {
    name: 'food-add', app: 'food', category: 'store', goal: 'add {product} {level} in food',
    params: { product: PRODUCTS, level: LEVELS }, until: [{ list: 'basket', has: '{product} {level}' }],
    drafts: { size: { text: '{level}' } }, entries: ['{product}'], present: [{ list: 'dishes', entry: '{product}' }],
  },
  {
    name: 'food-buy', app: 'food', category: 'store', goal: 'buy {product} {level} in food',
    params: { product: PRODUCTS, level: LEVELS }, until: [{ list: 'ordered', has: '{product} {level}' }],
    drafts: { size: { text: '{level}' } }, entries: ['{product}'],
    stops: [{ list: 'basket', has: '{product} {level}' }], present: [{ list: 'dishes', entry: '{product}' }],
  },
  {
    name: 'food-code', app: 'food', category: 'store', goal: 'buy {product} {level} in food with {code}',
    params: { product: PRODUCTS, level: LEVELS, code: VOUCHERS },
    until: [{ list: 'ordered', has: '{product} {level} {code}' }],
    drafts: { size: { text: '{level}' }, code: { text: '{code}' } }, entries: ['{product}'],
    stops: [{ list: 'basket', has: '{product} {level}' }], present: [{ list: 'dishes', entry: '{product}' }],
  },
  {
    name: 'food-ask', app: 'food', category: 'store', goal: 'buy {product} {level} in food with my voucher',
    params: { product: PRODUCTS, level: LEVELS, code: VOUCHERS },
    until: [{ list: 'ordered', has: '{product} {level} {code}' }],
    drafts: { size: { text: '{level}' }, code: { fact: 'voucher', text: '{code}' } }, entries: ['{product}'],
    stops: [{ list: 'basket', has: '{product} {level}' }], present: [{ list: 'dishes', entry: '{product}' }],
    facts: { voucher: '{code}' },
  },
  {
    name: 'food-buy-two', app: 'food', category: 'store', goal: 'buy {product} and {other} {level} in food',
    params: { product: PRODUCTS, other: PRODUCTS, level: LEVELS }, differ: [['product', 'other']],
    until: [{ list: 'ordered', has: '{product} {level}' }, { list: 'ordered', has: '{other} {level}' }],
    drafts: { size: { text: '{level}' } }, entries: ['{product}', '{other}'],
    stops: [{ list: 'basket', has: '{product} {level}' }, { list: 'basket', has: '{other} {level}' }],
    present: [{ list: 'dishes', entry: '{product}' }, { list: 'dishes', entry: '{other}' }],
  },
  {
    name: 'no-dish', app: 'food', category: 'impossible', goal: 'buy {what} {level} in food',
    params: { what: ABSENT, level: LEVELS }, evidence: 'root',
  },
  // fitness
  {
    name: 'fitness-add', app: 'fitness', category: 'form', goal: 'add {hour} {level} in fitness',
    params: { hour: HOURS, level: LEVELS }, until: [{ list: 'workouts', has: '{hour} {level}' }],
    drafts: { at: { text: '{hour}' }, effort: { text: '{level}' } },
    absent: [{ list: 'workouts', entry: '{hour} {level}' }],
  },
  {
    name: 'fitness-delete', app: 'fitness', category: 'editor', goal: 'delete {hour} {level} in fitness',
    params: { hour: HOURS, level: LEVELS }, until: [{ list: 'workouts', lacks: '{hour} {level}' }],
    present: [{ list: 'workouts', entry: '{hour} {level}' }],
  },
  {
    name: 'fitness-remind', app: 'fitness', category: 'toggle', goal: 'turn {state} remind in fitness',
    params: { state: STATES }, until: [{ key: 'workouts.remind', is: '{state}' }],
    data: { 'workouts.remind': '{not state}' },
  },
  {
    name: 'fitness-add-remind', app: 'fitness', category: 'form', goal: 'remind and add {hour} {level} in fitness',
    params: { hour: HOURS, level: LEVELS },
    until: [{ key: 'workouts.remind', is: 'on' }, { list: 'workouts', has: '{hour} {level}' }],
    drafts: { at: { text: '{hour}' }, effort: { text: '{level}' } },
    absent: [{ list: 'workouts', entry: '{hour} {level}' }],
  },
  {
    name: 'fitness-ask', app: 'fitness', category: 'form', goal: 'add my hour {level} in fitness',
    params: { hour: HOURS, level: LEVELS }, until: [{ list: 'workouts', has: '{hour} {level}' }],
    drafts: { at: { fact: 'hour', text: '{hour}' }, effort: { text: '{level}' } },
    absent: [{ list: 'workouts', entry: '{hour} {level}' }], facts: { hour: '{hour}' },
  },
  // house
  ...APPLIANCES.map((thing): Row => ({
    name: `house-${thing}`, app: 'house', category: 'toggle', goal: `turn {state} ${thing} of {room} in house`,
    params: { room: ROOMS, state: STATES }, until: [{ key: `{room}.${thing}`, is: '{state}' }],
    data: { [`{room}.${thing}`]: '{not state}' },
  })),
  {
    name: 'house-warmth', app: 'house', category: 'choice', goal: 'set {room} to {level} in house',
    params: { room: ROOMS, level: LEVELS }, until: [{ key: '{room}.warmth', is: '{level}' }],
    data: { '{room}.warmth': '{not level}' },
  },
  {
    name: 'house-two-rooms', app: 'house', category: 'toggle', goal: 'turn {state} {thing} of {room} and {other} in house',
    params: { thing: APPLIANCES, room: ROOMS, other: ROOMS, state: STATES }, differ: [['room', 'other']],
    until: [{ key: '{room}.{thing}', is: '{state}' }, { key: '{other}.{thing}', is: '{state}' }],
    data: { '{room}.{thing}': '{not state}', '{other}.{thing}': '{not state}' },
  },
  {
    name: 'house-all', app: 'house', category: 'toggle', goal: 'turn {state} lamp heater and fan of {room} in house',
    params: { room: ROOMS, state: STATES },
    until: APPLIANCES.map((thing) => ({ key: `{room}.${thing}`, is: '{state}' })),
    data: Object.fromEntries(APPLIANCES.map((thing) => [`{room}.${thing}`, '{not state}'])),
  },
  {
    name: 'house-lamp-warmth', app: 'house', category: 'choice', goal: 'turn {state} lamp and set {level} of {room} in house',
    params: { room: ROOMS, level: LEVELS, state: STATES },
    until: [{ key: '{room}.lamp', is: '{state}' }, { key: '{room}.warmth', is: '{level}' }],
    data: { '{room}.lamp': '{not state}', '{room}.warmth': '{not level}' },
  },
]; // prettier-ignore
