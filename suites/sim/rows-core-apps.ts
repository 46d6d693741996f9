import { SETTINGS } from '../../devices/sim/apps-core.ts';
import {
  ABSENT, CITIES, DAYS, DIGITS, EVENTS, HOURS, LEVELS, NAMES, PRODUCTS, SONGS, THINGS, VERBS, VOUCHERS,
} from '../../devices/sim/concepts.ts'; // prettier-ignore
import type { Row } from './template.ts';

const STATES = ['on', 'off'];

/** Two switches of one group of settings. */
const together = Object.values(SETTINGS).map(([a, b]): Row => ({
  name: `toggle-${a}-${b}`, app: 'settings', category: 'toggle', goal: `turn {state} ${a} and ${b} in settings`,
  params: { state: STATES }, until: [{ key: a, is: '{state}' }, { key: b, is: '{state}' }],
  data: { [a]: '{not state}', [b]: '{not state}' },
})); // prettier-ignore

/** Two switches of different groups of settings. */
const apart = ([['wifi', 'location'], ['dark', 'silent'], ['airplane', 'camera']] as const).map(([a, b]): Row => ({
  name: `toggle-${a}-${b}`, app: 'settings', category: 'toggle', goal: `turn {first} ${a} and {second} ${b} in settings`,
  params: { first: STATES, second: STATES }, until: [{ key: a, is: '{first}' }, { key: b, is: '{second}' }],
  data: { [a]: '{not first}', [b]: '{not second}' },
})); // prettier-ignore

/** Longer templates of the core apps: several things, or several conditions on one thing. */
export const CORE_APP_ROWS: readonly Row[] = [
  ...together,
  ...apart,
  {
    name: 'levels-both', app: 'settings', category: 'choice', goal: 'set brightness to {level} and volume to {other} in settings',
    params: { level: LEVELS, other: LEVELS }, until: [{ key: 'brightness', is: '{level}' }, { key: 'volume', is: '{other}' }],
    data: { brightness: '{not level}', volume: '{not other}' },
  },
  {
    name: 'dark-brightness', app: 'settings', category: 'choice', goal: 'turn {state} dark and set brightness to {level} in settings',
    params: { level: LEVELS, state: STATES }, until: [{ key: 'brightness', is: '{level}' }, { key: 'dark', is: '{state}' }],
    data: { brightness: '{not level}', dark: '{not state}' },
  },
  {
    name: 'note-delete-two', app: 'notes', category: 'editor', goal: 'delete {verb} {what} and {other} {thing} in notes',
    params: { verb: VERBS, what: THINGS.slice(0, 5), other: VERBS, thing: THINGS.slice(5) }, differ: [['verb', 'other']],
    until: [{ list: 'notes', lacks: '{verb} {what}' }, { list: 'notes', lacks: '{other} {thing}' }],
    present: [{ list: 'notes', entry: '{verb} {what}' }, { list: 'notes', entry: '{other} {thing}' }],
  },
  {
    name: 'message-two', app: 'messages', category: 'chat', goal: 'message {name} and {other} {what}',
    params: { name: NAMES, other: NAMES, what: THINGS }, differ: [['name', 'other']],
    until: [{ list: 'messages.{name}', has: '{what}' }, { list: 'messages.{other}', has: '{what}' }],
    drafts: { text: { text: '{what}' } }, entries: ['{name}', '{other}'],
    present: [{ list: 'contacts', entry: '{name}' }, { list: 'contacts', entry: '{other}' }],
  },
  {
    name: 'contact-call-favourite', app: 'contacts', category: 'list-detail', goal: 'call {name} and make favourite in contacts',
    params: { name: NAMES }, until: [{ key: 'called', is: '{name}' }, { key: 'contact.{name}', is: 'on' }],
    entries: ['{name}'], present: [{ list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'contact-add-call', app: 'contacts', category: 'form', goal: 'add {name} {number} and call in contacts',
    params: { name: NAMES, number: DIGITS },
    until: [{ list: 'contacts.added', has: '{name} {number}' }, { key: 'called', is: '{name}' }],
    drafts: { name: { text: '{name}' }, number: { text: '{number}' } }, entries: ['{name}'],
    absent: [{ list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'contact-ask', app: 'contacts', category: 'form', goal: 'add my boss {number} in contacts',
    params: { name: NAMES, number: DIGITS }, until: [{ list: 'contacts.added', has: '{name} {number}' }],
    drafts: { name: { fact: 'boss', text: '{name}' }, number: { text: '{number}' } }, facts: { boss: '{name}' },
    absent: [{ list: 'contacts', entry: '{name}' }],
  },
  {
    name: 'contact-favourite-two', app: 'contacts', category: 'list-detail', goal: 'make {name} and {other} favourite in contacts',
    params: { name: NAMES, other: NAMES }, differ: [['name', 'other']],
    until: [{ key: 'contact.{name}', is: 'on' }, { key: 'contact.{other}', is: 'on' }], entries: ['{name}', '{other}'],
    present: [{ list: 'contacts', entry: '{name}' }, { list: 'contacts', entry: '{other}' }],
  },
  {
    name: 'contact-delete-two', app: 'contacts', category: 'list-detail', goal: 'delete {name} and {other} in contacts',
    params: { name: NAMES, other: NAMES }, differ: [['name', 'other']],
    until: [{ list: 'contacts', lacks: '{name}' }, { list: 'contacts', lacks: '{other}' }],
    present: [{ list: 'contacts', entry: '{name}' }, { list: 'contacts', entry: '{other}' }],
  },
  {
    name: 'alarm-toggle-two', app: 'clock', category: 'alarms', goal: 'turn {state} {hour} and {other} in clock',
    params: { hour: HOURS, other: HOURS, state: STATES }, differ: [['hour', 'other']],
    until: [{ key: 'alarm.{hour}', is: '{state}' }, { key: 'alarm.{other}', is: '{state}' }],
    data: { 'alarm.{hour}': '{not state}', 'alarm.{other}': '{not state}' },
    present: [{ list: 'alarms', entry: '{hour}' }, { list: 'alarms', entry: '{other}' }],
  },
  {
    name: 'alarm-add-on', app: 'clock', category: 'alarms', goal: 'add {hour} and turn on in clock',
    params: { hour: HOURS }, until: [{ list: 'alarms', has: '{hour}' }, { key: 'alarm.{hour}', is: 'on' }],
    drafts: { hour: { text: '{hour}' } }, absent: [{ list: 'alarms', entry: '{hour}' }],
  },
  {
    name: 'alarm-swap', app: 'clock', category: 'alarms', goal: 'delete {hour} and add {other} in clock',
    params: { hour: HOURS, other: HOURS }, differ: [['hour', 'other']],
    until: [{ list: 'alarms', lacks: '{hour}' }, { list: 'alarms', has: '{other}' }], drafts: { hour: { text: '{other}' } },
    present: [{ list: 'alarms', entry: '{hour}' }], absent: [{ list: 'alarms', entry: '{other}' }],
  },
  {
    name: 'shop-buy-two', app: 'shop', category: 'store', goal: 'buy {product} and {other} in shop',
    params: { product: PRODUCTS, other: PRODUCTS }, differ: [['product', 'other']],
    until: [{ list: 'bought', has: '{product}' }, { list: 'bought', has: '{other}' }], entries: ['{product}', '{other}'],
    stops: [{ list: 'cart', has: '{product}' }, { list: 'cart', has: '{other}' }],
    present: [{ list: 'products', entry: '{product}' }, { list: 'products', entry: '{other}' }],
  },
  {
    name: 'shop-code', app: 'shop', category: 'store', goal: 'buy {product} in shop with {code}',
    params: { product: PRODUCTS, code: VOUCHERS }, until: [{ list: 'bought', has: '{product} {code}' }],
    drafts: { code: { text: '{code}' } }, entries: ['{product}'], stops: [{ list: 'cart', has: '{product}' }],
    present: [{ list: 'products', entry: '{product}' }],
  },
  {
    name: 'music-play-favourite', app: 'music', category: 'list-detail', goal: 'play {song} and make favourite in music',
    params: { song: SONGS }, until: [{ key: 'playing', is: '{song}' }, { key: 'song.{song}', is: 'on' }],
    entries: ['{song}'], present: [{ list: 'songs', entry: '{song}' }],
  },
  {
    name: 'music-favourite-two', app: 'music', category: 'list-detail', goal: 'make {song} and {other} favourite in music',
    params: { song: SONGS, other: SONGS }, differ: [['song', 'other']],
    until: [{ key: 'song.{song}', is: 'on' }, { key: 'song.{other}', is: 'on' }], entries: ['{song}', '{other}'],
    present: [{ list: 'songs', entry: '{song}' }, { list: 'songs', entry: '{other}' }],
  },
  {
    name: 'event-ask', app: 'calendar', category: 'form', goal: 'add {event} on my holiday in calendar',
    params: { event: EVENTS, day: DAYS }, until: [{ list: 'events', has: '{event} {day}' }],
    drafts: { title: { text: '{event}' }, day: { fact: 'holiday', text: '{day}' } }, facts: { holiday: '{day}' },
    absent: [{ list: 'events', entry: '{event} {day}' }],
  },
  {
    name: 'event-move', app: 'calendar', category: 'form', goal: 'delete {event} {day} and add {event} on {other} in calendar',
    params: { event: EVENTS, day: DAYS, other: DAYS }, differ: [['day', 'other']],
    until: [{ list: 'events', lacks: '{event} {day}' }, { list: 'events', has: '{event} {other}' }],
    drafts: { title: { text: '{event}' }, day: { text: '{other}' } },
    present: [{ list: 'events', entry: '{event} {day}' }], absent: [{ list: 'events', entry: '{event} {other}' }],
  },
  {
    name: 'city-swap', app: 'weather', category: 'search', goal: 'delete {city} and add {other} in weather',
    params: { city: CITIES, other: CITIES }, differ: [['city', 'other']],
    until: [{ list: 'cities', lacks: '{city}' }, { list: 'cities', has: '{other}' }], drafts: { query: { text: '{other}' } },
    present: [{ list: 'cities', entry: '{city}' }], absent: [{ list: 'cities', entry: '{other}' }],
  },
  {
    name: 'city-delete-two', app: 'weather', category: 'search', goal: 'delete {city} and {other} in weather',
    params: { city: CITIES, other: CITIES }, differ: [['city', 'other']],
    until: [{ list: 'cities', lacks: '{city}' }, { list: 'cities', lacks: '{other}' }],
    present: [{ list: 'cities', entry: '{city}' }, { list: 'cities', entry: '{other}' }],
  },
  {
    name: 'no-recipient', app: 'messages', category: 'impossible', goal: 'message {what} {thing}',
    params: { what: ABSENT, thing: THINGS }, evidence: 'root',
  },
  {
    name: 'no-song-favourite', app: 'music', category: 'impossible', goal: 'make {what} favourite in music',
    params: { what: ABSENT }, evidence: 'root',
  },
]; // prettier-ignore
