import type { GuestState } from '../../devices/vnc/guest-link.ts';
import { createRandom } from '../../rl/random.ts';

/** Names of the guest's switches, in its order (devices/vnc/guest/phone.c). */
export const SETTINGS = ['wifi', 'bluetooth', 'airplane mode', 'location', 'dark mode', 'battery saver'];
export const NAMES =
  'ada bruno clara david elena felix greta hugo ines jonas kira leon maria nora oscar paula rosa simon tara victor'.split(
    ' ',
  );
export const CHORES = [
  ...['water plants', 'pay rent', 'buy bread', 'call bank', 'wash car', 'read book', 'clean desk', 'book train'],
  ...['feed cat', 'fix lamp', 'send parcel', 'cook soup'],
];
export const GOODS = 'lamp chair kettle mirror basket clock pillow carpet candle teapot'.split(' ');
export const TIMES = ['5:15', '6:00', '6:30', '7:15', '7:45', '8:30', '9:00', '10:45'];
export const NOTES = ['buy milk', 'door code', 'gift ideas', 'fix bike', 'plan trip', 'learn piano', 'paint wall'];
export const MESSAGES = ['see you soon', 'thank you', 'come home', 'good luck', 'on my way', 'happy birthday'];

/** How many of each a phone has: the guest's own limits, notes with room for more. */
const COUNTS = { contacts: 16, tasks: 8, alarms: 6, items: 8, notes: 3 };

/** What a phone must have on it, whatever else it has. */
export interface Wanted {
  contact?: string;
  task?: string;
  alarm?: string;
  item?: string;
  note?: string;
  /** Notes that must not be there yet. */
  noNote?: string;
}

function some(
  pool: readonly string[],
  n: number,
  wanted: string | undefined,
  without: string | undefined,
  seed: number,
) {
  const random = createRandom(seed, 'some', ...pool);
  const others = random.shuffle(pool.filter((one) => one !== wanted && one !== without));
  const chosen = new Set([...(wanted === undefined ? [] : [wanted]), ...others].slice(0, n));
  // In the pool's order, which is how a phone sorts.
  return pool.filter((one) => chosen.has(one));
}

/** A phone at its home screen with contents from a seed. Pure. */
export function drawPhone(seed: number, theme: number, wanted: Wanted): GuestState {
  const random = createRandom(seed, 'vnc-contents');
  const bit = (): number => random.int(2);
  return {
    ...{ app: 'home', page: 'list', draft: '', index: 0, scroll: 0, focused: 0, quantity: 1 },
    ...{ orders: 0, called: -1, counter: random.int(5), theme, events: 0 },
    settings: Object.fromEntries(SETTINGS.map((name) => [name, bit()])),
    contacts: some(NAMES, COUNTS.contacts, wanted.contact, undefined, seed).map((name) => ({
      name,
      number: String(2000 + random.int(8000)),
      last: '',
      favorite: bit(),
    })),
    notes: some(NOTES, COUNTS.notes, wanted.note, wanted.noNote, seed).map((name) => ({ name, on: 0 })),
    tasks: some(CHORES, COUNTS.tasks, wanted.task, undefined, seed).map((name) => ({ name, on: bit() })),
    alarms: some(TIMES, COUNTS.alarms, wanted.alarm, undefined, seed).map((name) => ({ name, on: bit() })),
    items: some(GOODS, COUNTS.items, wanted.item, undefined, seed).map((name) => ({
      name,
      price: 10 + random.int(90),
      cart: 0,
      ordered: 0,
    })),
  };
}

/** The `set` lines that make a freshly reset guest this phone (devices/vnc/guest/contents.c). */
export function setLines(phone: GuestState): string[] {
  return [
    `counter ${phone.counter}`,
    ...SETTINGS.map((name, i) => `setting ${i} ${phone.settings[name]}`),
    ...phone.contacts.map(({ name, number, favorite }, i) => `contact ${i} ${number} ${favorite} ${name}`),
    ...phone.notes.map(({ name }, i) => `note ${i} ${name}`),
    ...phone.tasks.map(({ name, on }, i) => `task ${i} ${on} ${name}`),
    ...phone.alarms.map(({ name, on }, i) => `alarm ${i} ${on} ${name}`),
    ...phone.items.map(({ name, price }, i) => `item ${i} ${price} ${name}`),
  ];
}
