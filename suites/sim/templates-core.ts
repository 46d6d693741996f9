import { LEVEL_SETTINGS, SETTINGS } from '../../devices/sim/apps-core.ts';
import {
  ABSENT, CITIES, DAYS, DIGITS, EVENTS, HOURS, LEVELS, NAMES, PRODUCTS, SONGS, THINGS, VERBS, VOUCHERS, type Concept,
} from '../../devices/sim/concepts.ts'; // prettier-ignore
import type { DraftValue } from '../../devices/sim/goal.ts';
import { both, opposite, spec, type Template } from './template.ts';

const text = (value: string): DraftValue => ({ text: value });
const SENTENCES = VERBS.flatMap((verb) => THINGS.map((thing) => `${verb} ${thing}`));

/** Instances of a template are told apart by their parameters only, so a template is one line here where it can be. */
const one = (
  name: string,
  category: string,
  params: Template['params'],
  build: Template['build'],
  tags: string[] = [],
): Template => ({ name, category, tags: ['one-app', ...tags], params, build });

const toggles = Object.values(SETTINGS)
  .flat()
  .map((key) =>
    one(`toggle-${key}`, 'toggle', { state: ['on', 'off'] }, ({ state }) => ({
      goal: `turn ${state} ${key} in settings`,
      spec: spec(['settings'], [{ key, is: state! }]),
      data: { [key]: opposite(state!) },
    })),
  );

const levels = Object.keys(LEVEL_SETTINGS).map((key) =>
  one(`level-${key}`, 'choice', { level: LEVELS }, ({ level }) => ({
    goal: `set ${key} to ${level} in settings`,
    spec: spec(['settings'], [{ key, is: level! }]),
    data: { [key]: LEVELS[(LEVELS.indexOf(level!) + 1) % LEVELS.length]! },
  })),
);

const simple: Template[] = [
  one('note-write', 'editor', { what: SENTENCES }, ({ what }) => ({
    goal: `write ${what} in notes`,
    spec: spec(['notes'], [{ list: 'notes', has: what! }], { drafts: { text: text(what!) } }),
    absent: [{ list: 'notes', entry: what! }],
  })),
  one('note-delete', 'editor', { what: SENTENCES }, ({ what }) => ({
    goal: `delete ${what} in notes`,
    spec: spec(['notes'], [{ list: 'notes', lacks: what! }]),
    present: [{ list: 'notes', entry: what! }],
  })),
  one('message-send', 'chat', { name: NAMES, what: SENTENCES }, ({ name, what }) => ({
    goal: `message ${name} ${what}`,
    spec: spec(['messages'], [{ list: `messages.${name}`, has: what! }], {
      drafts: { text: text(what!) },
      entries: [name!],
    }),
    present: [{ list: 'contacts', entry: name! }],
  })),
  one(
    'message-ask',
    'chat',
    { name: NAMES, what: SENTENCES },
    ({ name, what }) => ({
      goal: `message ${name} my order`,
      spec: spec(['messages'], [{ list: `messages.${name}`, has: what! }], {
        drafts: { text: { fact: 'order', text: what! } },
        entries: [name!],
      }),
      present: [{ list: 'contacts', entry: name! }],
      facts: { order: what! },
    }),
    ['ask-user'],
  ),
  one('contact-add', 'form', { name: NAMES, number: DIGITS }, ({ name, number }) => ({
    goal: `add ${name} ${number} in contacts`,
    spec: spec(['contacts'], [{ list: 'contacts.added', has: `${name} ${number}` }], {
      drafts: { name: text(name!), number: text(number!) },
    }),
  })),
  one('contact-call', 'list-detail', { name: NAMES }, ({ name }) => ({
    goal: `call ${name}`,
    spec: spec(['contacts'], [{ key: 'called', is: name! }], { entries: [name!] }),
    present: [{ list: 'contacts', entry: name! }],
  })),
  one('contact-favourite', 'list-detail', { name: NAMES }, ({ name }) => ({
    goal: `make ${name} favourite in contacts`,
    spec: spec(['contacts'], [{ key: `contact.${name}`, is: 'on' }], { entries: [name!] }),
    present: [{ list: 'contacts', entry: name! }],
  })),
  one('contact-delete', 'list-detail', { name: NAMES }, ({ name }) => ({
    goal: `delete ${name} in contacts`,
    spec: spec(['contacts'], [{ list: 'contacts', lacks: name! }]),
    present: [{ list: 'contacts', entry: name! }],
  })),
  one('alarm-add', 'alarms', { hour: HOURS }, ({ hour }) => ({
    goal: `add ${hour} in clock`,
    spec: spec(['clock'], [{ list: 'alarms', has: hour! }], { drafts: { hour: text(hour!) } }),
    absent: [{ list: 'alarms', entry: hour! }],
  })),
  one('alarm-toggle', 'alarms', { hour: HOURS, state: ['on', 'off'] }, ({ hour, state }) => ({
    goal: `turn ${state} ${hour} in clock`,
    spec: spec(['clock'], [{ key: `alarm.${hour}`, is: state! }]),
    present: [{ list: 'alarms', entry: hour! }],
    data: { [`alarm.${hour}`]: opposite(state!) },
  })),
  one('alarm-delete', 'alarms', { hour: HOURS }, ({ hour }) => ({
    goal: `delete ${hour} in clock`,
    spec: spec(['clock'], [{ list: 'alarms', lacks: hour! }]),
    present: [{ list: 'alarms', entry: hour! }],
  })),
  one('shop-cart', 'store', { product: PRODUCTS }, ({ product }) => ({
    goal: `add ${product} in shop`,
    spec: spec(['shop'], [{ list: 'cart', has: product! }], { entries: [product!] }),
    present: [{ list: 'products', entry: product! }],
  })),
  one('shop-buy', 'store', { product: PRODUCTS }, ({ product }) => ({
    goal: `buy ${product} in shop`,
    spec: spec(['shop'], [{ list: 'bought', has: product! }], {
      entries: [product!],
      stops: [{ list: 'cart', has: product! }],
    }),
    present: [{ list: 'products', entry: product! }],
  })),
  one(
    'shop-ask',
    'store',
    { product: PRODUCTS, code: VOUCHERS },
    ({ product, code }) => ({
      goal: `buy ${product} with my voucher`,
      spec: spec(['shop'], [{ list: 'bought', has: `${product} ${code}` }], {
        drafts: { code: { fact: 'voucher', text: code! } },
        entries: [product!],
        stops: [{ list: 'cart', has: product! }],
      }),
      present: [{ list: 'products', entry: product! }],
      facts: { voucher: code! },
    }),
    ['ask-user'],
  ),
  one('music-play', 'list-detail', { song: SONGS }, ({ song }) => ({
    goal: `play ${song}`,
    spec: spec(['music'], [{ key: 'playing', is: song! }], { entries: [song!] }),
    present: [{ list: 'songs', entry: song! }],
  })),
  one('music-favourite', 'list-detail', { song: SONGS }, ({ song }) => ({
    goal: `make ${song} favourite in music`,
    spec: spec(['music'], [{ key: `song.${song}`, is: 'on' }], { entries: [song!] }),
    present: [{ list: 'songs', entry: song! }],
  })),
  one('mail-send', 'form', { name: NAMES, what: SENTENCES }, ({ name, what }) => ({
    goal: `mail ${name} ${what}`,
    spec: spec(['mail'], [{ list: 'mail', has: `${name} ${what}` }], {
      drafts: { to: text(name!), text: text(what!) },
    }),
  })),
  one(
    'mail-ask',
    'form',
    { name: NAMES, what: SENTENCES },
    ({ name, what }) => ({
      goal: `mail my boss ${what}`,
      spec: spec(['mail'], [{ list: 'mail', has: `${name} ${what}` }], {
        drafts: { to: { fact: 'boss', text: name! }, text: text(what!) },
      }),
      facts: { boss: name! },
    }),
    ['ask-user'],
  ),
  one('event-add', 'form', { event: EVENTS, day: DAYS }, ({ event, day }) => ({
    goal: `add ${event} on ${day} in calendar`,
    spec: spec(['calendar'], [{ list: 'events', has: `${event} ${day}` }], {
      drafts: { title: text(event!), day: text(day!) },
    }),
    absent: [{ list: 'events', entry: `${event} ${day}` }],
  })),
  one('event-delete', 'editor', { event: EVENTS, day: DAYS }, ({ event, day }) => ({
    goal: `delete ${event} ${day} in calendar`,
    spec: spec(['calendar'], [{ list: 'events', lacks: `${event} ${day}` }]),
    present: [{ list: 'events', entry: `${event} ${day}` }],
  })),
  one('city-add', 'search', { city: CITIES }, ({ city }) => ({
    goal: `add ${city} in weather`,
    spec: spec(['weather'], [{ list: 'cities', has: city! }], { drafts: { query: text(city!) } }),
    absent: [{ list: 'cities', entry: city! }],
  })),
  one(
    'city-ask',
    'search',
    { city: CITIES },
    ({ city }) => ({
      goal: 'add my hometown in weather',
      spec: spec(['weather'], [{ list: 'cities', has: city! }], {
        drafts: { query: { fact: 'hometown', text: city! } },
      }),
      absent: [{ list: 'cities', entry: city! }],
      facts: { hometown: city! },
    }),
    ['ask-user'],
  ),
  one('city-delete', 'search', { city: CITIES }, ({ city }) => ({
    goal: `delete ${city} in weather`,
    spec: spec(['weather'], [{ list: 'cities', lacks: city! }]),
    present: [{ list: 'cities', entry: city! }],
  })),
];

const impossible = (
  name: string,
  what: readonly string[],
  app: Concept,
  page: string,
  say: (x: string) => string,
): Template => ({
  name,
  category: 'impossible',
  tags: ['one-app', 'impossible'],
  params: { what },
  build: ({ what: x }) => ({ goal: say(x!), spec: spec([app], [], { evidence: { app, page } }) }),
});
const cannot: Template[] = [
  impossible('no-contact', ABSENT, 'contacts', 'root', (x) => `call ${x}`),
  impossible('no-product', ABSENT, 'shop', 'root', (x) => `buy ${x} in shop`),
  impossible('no-song', ABSENT, 'music', 'root', (x) => `play ${x} in music`),
  impossible('no-alarm', ABSENT, 'clock', 'new', (x) => `add ${x} in clock`),
];

const named = (name: string): Template => [...toggles, ...simple].find((t) => t.name === name)!;
const pairs: Template[] = [
  both('wifi-then-play', 'two-app', ['two-app'], named('toggle-wifi'), named('music-play')),
  both('silent-then-call', 'two-app', ['two-app'], named('toggle-silent'), named('contact-call')),
  both('alarm-then-city', 'two-app', ['two-app'], named('alarm-toggle'), named('city-delete')),
  both('song-then-contact', 'two-app', ['two-app'], named('music-favourite'), named('contact-favourite')),
];

/** The core templates, in a fixed order: it decides what is drawn. */
export const CORE_TEMPLATES: readonly Template[] = [...toggles, ...levels, ...simple, ...cannot, ...pairs];
