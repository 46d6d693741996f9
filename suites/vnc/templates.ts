import type { GuestState } from '../../devices/vnc/guest-link.ts';
import { CHORES, GOODS, MESSAGES, NAMES, NOTES, SETTINGS, TIMES } from './contents.ts';
import type { Wanted } from './contents.ts';
import { tap, toButton, toDetail, toRow, toSwitch, toText } from './moves.ts';
import type { Moves } from './moves.ts';

export type Params = Record<string, string>;

/** A kind of task: its words, what must be on the phone, what makes it undone, and the moves that are left. */
export interface PhoneTemplate {
  name: string;
  category: string;
  apps: readonly string[];
  params: Record<string, readonly string[]>;
  goal(params: Params): string;
  wanted?(params: Params): Wanted;
  /** Makes a drawn phone one on which the goal does not hold yet. */
  undo(phone: GuestState, params: Params): void;
  /** Moves that are left; empty: the goal holds; null: it cannot be reached any more, or nobody knows how. */
  moves(phone: GuestState, params: Params): Moves | null;
}

const STATES = ['on', 'off'] as const;
const settingsOf = (phone: GuestState): { name: string; on: number }[] =>
  SETTINGS.map((name) => ({ name, on: phone.settings[name]! }));
const named = (list: readonly { name: string }[]): string[] => list.map(({ name }) => name);
const turn = (list: { name: string; on: number }[], name: string, on: boolean): void => {
  for (const one of list) if (one.name === name) one.on = on ? 1 : 0;
};
const both = (first: Moves | null, second: Moves | null): Moves | null =>
  first === null || second === null ? null : [...first, ...second];
/** The phone as it is when moves have ended at an app's list: the next part starts there. */
const after = (phone: GuestState, moves: Moves | null, app: string): GuestState =>
  moves === null || moves.length === 0 ? phone : { ...phone, app, page: 'list', scroll: 0 };

const setting = (phone: GuestState, name: string, on: boolean): Moves | null =>
  toSwitch(phone, 'settings', settingsOf(phone), name, on);

function cart(phone: GuestState, name: string, quantity: number): Moves | null {
  const item = phone.items.find((one) => one.name === name);
  if (item === undefined || item.cart > quantity) return null;
  const missing = quantity - item.cart;
  if (missing === 0) return [];
  // The cart stands before the goods.
  const way = toDetail(phone, 'shop', named(phone.items), name, 1);
  if (way === null) return null;
  const has = way.length === 0 ? phone.quantity : 1;
  const steps = Array.from({ length: Math.abs(missing - has) }, () => tap(missing > has ? 'more' : 'less'));
  return [...way, ...steps, tap('add to cart')];
}

function counter(phone: GuestState, to: number): Moves {
  const by = to - phone.counter;
  const straight = Array.from({ length: Math.abs(by) }, () => tap(by > 0 ? 'plus' : 'minus'));
  const cleared = [tap('clear'), ...Array.from({ length: to }, () => tap('plus'))];
  const least = cleared.length < straight.length ? cleared : straight;
  return least.length === 0 || phone.app === 'counter'
    ? least
    : [...toButton(phone, 'counter', '').slice(0, -1), ...least];
}

export const TEMPLATES: readonly PhoneTemplate[] = [
  {
    name: 'toggle-setting',
    category: 'settings',
    apps: ['settings'],
    params: { setting: SETTINGS, state: STATES },
    goal: ({ setting: name, state }) => `turn ${state} ${name}`,
    undo: (phone, { setting: name, state }) => void (phone.settings[name!] = state === 'on' ? 0 : 1),
    moves: (phone, { setting: name, state }) => setting(phone, name!, state === 'on'),
  },
  {
    name: 'two-settings',
    category: 'settings',
    apps: ['settings'],
    params: { first: SETTINGS.slice(0, 3), second: SETTINGS.slice(3), state: STATES },
    goal: ({ first, second, state }) => `turn ${state} ${first} and ${second}`,
    undo: (phone, { first, second, state }) => {
      phone.settings[first!] = phone.settings[second!] = state === 'on' ? 0 : 1;
    },
    moves: (phone, { first, second, state }) => {
      const one = setting(phone, first!, state === 'on');
      return both(one, setting(after(phone, one, 'settings'), second!, state === 'on'));
    },
  },
  {
    name: 'count-to',
    category: 'counter',
    apps: ['counter'],
    params: { number: ['1', '2', '3', '4', '5', '6'] },
    goal: ({ number }) => `set the counter to ${number}`,
    undo: (phone, { number }) => void (phone.counter = Number(number) > 2 ? Number(number) - 2 : Number(number) + 1),
    moves: (phone, { number }) => counter(phone, Number(number)),
  },
  {
    name: 'clear-counter',
    category: 'counter',
    apps: ['counter'],
    params: { from: ['3', '5', '7', '9'] },
    goal: ({ from }) => `clear the counter that shows ${from}`,
    undo: (phone, { from }) => void (phone.counter = Number(from)),
    moves: (phone) => counter(phone, 0),
  },
  {
    name: 'tick-task',
    category: 'tasks',
    apps: ['tasks'],
    params: { task: CHORES, state: STATES },
    goal: ({ task, state }) => `turn ${state} the task ${task}`,
    wanted: ({ task }) => ({ task: task! }),
    undo: (phone, { task, state }) => turn(phone.tasks, task!, state === 'off'),
    moves: (phone, { task, state }) => toSwitch(phone, 'tasks', phone.tasks, task!, state === 'on'),
  },
  {
    name: 'set-alarm',
    category: 'alarms',
    apps: ['alarms'],
    params: { alarm: TIMES, state: STATES },
    goal: ({ alarm, state }) => `turn ${state} the alarm at ${alarm}`,
    wanted: ({ alarm }) => ({ alarm: alarm! }),
    undo: (phone, { alarm, state }) => turn(phone.alarms, alarm!, state === 'off'),
    moves: (phone, { alarm, state }) => toSwitch(phone, 'alarms', phone.alarms, alarm!, state === 'on'),
  },
  {
    name: 'call-contact',
    category: 'contacts',
    apps: ['contacts'],
    params: { contact: NAMES },
    goal: ({ contact }) => `call ${contact}`,
    wanted: ({ contact }) => ({ contact: contact! }),
    undo: (phone) => void (phone.called = -1),
    moves: (phone, { contact }) => {
      if (phone.contacts[phone.called]?.name === contact) return [];
      return both(toDetail(phone, 'contacts', named(phone.contacts), contact!), [tap('call')]);
    },
  },
  {
    name: 'favorite-contact',
    category: 'contacts',
    apps: ['contacts'],
    params: { contact: NAMES },
    goal: ({ contact }) => `make ${contact} a favorite`,
    wanted: ({ contact }) => ({ contact: contact! }),
    undo: (phone, { contact }) => {
      for (const one of phone.contacts) if (one.name === contact) one.favorite = 0;
    },
    moves: (phone, { contact }) => {
      if (phone.contacts.some(({ name, favorite }) => name === contact && favorite === 1)) return [];
      return both(toDetail(phone, 'contacts', named(phone.contacts), contact!), [tap('favorite')]);
    },
  },
  {
    name: 'delete-contact',
    category: 'contacts',
    apps: ['contacts'],
    params: { contact: NAMES },
    goal: ({ contact }) => `delete the contact ${contact}`,
    wanted: ({ contact }) => ({ contact: contact! }),
    undo: () => undefined,
    moves: (phone, { contact }) => {
      const index = phone.contacts.findIndex(({ name }) => name === contact);
      if (index < 0) return [];
      if (phone.app === 'contacts' && phone.page === 'confirm' && phone.index === index) return [tap('yes delete')];
      const way = toDetail(phone, 'contacts', named(phone.contacts), contact!);
      return both(way, [tap('delete contact'), tap('yes delete')]);
    },
  },
  {
    name: 'write-note',
    category: 'notes',
    apps: ['notes'],
    params: { note: NOTES },
    goal: ({ note }) => `write a note ${note}`,
    wanted: ({ note }) => ({ noNote: note! }),
    undo: () => undefined,
    moves: (phone, { note }) => {
      if (named(phone.notes).includes(note!)) return [];
      const there = phone.app === 'notes' && phone.page === 'edit';
      const way = there ? [] : toButton(phone, 'notes', 'new note');
      return [...way, ...toText(phone, 'text', note!, there), tap('save')];
    },
  },
  {
    name: 'delete-note',
    category: 'notes',
    apps: ['notes'],
    params: { note: NOTES },
    goal: ({ note }) => `delete the note ${note}`,
    wanted: ({ note }) => ({ note: note! }),
    undo: () => undefined,
    moves: (phone, { note }) => {
      const index = named(phone.notes).indexOf(note!);
      if (index < 0) return [];
      if (phone.app === 'notes' && phone.page === 'confirm' && phone.index === index) return [tap('yes delete')];
      // The button for a new one stands before the notes.
      const way = toDetail(phone, 'notes', named(phone.notes), note!, 1);
      return both(way, [tap('delete note'), tap('yes delete')]);
    },
  },
  {
    name: 'send-message',
    category: 'messages',
    apps: ['messages'],
    params: { contact: NAMES.slice(0, 10), text: MESSAGES },
    goal: ({ contact, text }) => `send ${contact} the message ${text}`,
    wanted: ({ contact }) => ({ contact: contact! }),
    undo: () => undefined,
    moves: (phone, { contact, text }) => {
      if (phone.contacts.some(({ name, last }) => name === contact && last === text)) return [];
      const way = toDetail(phone, 'messages', named(phone.contacts), contact!);
      return both(way, [...toText(phone, 'message', text!, way?.length === 0), tap('send')]);
    },
  },
  {
    name: 'fill-cart',
    category: 'shop',
    apps: ['shop'],
    params: { item: GOODS, quantity: ['1', '2', '3'] },
    goal: ({ item, quantity }) => `put ${quantity} ${item} into the cart`,
    wanted: ({ item }) => ({ item: item! }),
    undo: () => undefined,
    moves: (phone, { item, quantity }) => cart(phone, item!, Number(quantity)),
  },
  {
    name: 'order-item',
    category: 'shop',
    apps: ['shop'],
    params: { item: GOODS },
    goal: ({ item }) => `order a ${item}`,
    wanted: ({ item }) => ({ item: item! }),
    undo: () => undefined,
    moves: (phone, { item }) => {
      const one = phone.items.find(({ name }) => name === item);
      if (one === undefined) return null;
      if (one.ordered > 0) return [];
      const order = tap('order now');
      if (one.cart > 0) {
        const there = phone.app === 'shop' && phone.page === 'cart';
        return there ? [order] : [...toRow(phone, 'shop', 'cart', 0, phone.items.length + 1), order];
      }
      return both(cart(phone, item!, 1), [tap('cart'), order]);
    },
  },
  {
    name: 'task-and-setting',
    category: 'two-apps',
    apps: ['tasks', 'settings'],
    params: { task: CHORES.slice(0, 6), setting: SETTINGS },
    goal: ({ task, setting: name }) => `turn on the task ${task} and turn on ${name}`,
    wanted: ({ task }) => ({ task: task! }),
    undo: (phone, { task, setting: name }) => {
      turn(phone.tasks, task!, false);
      phone.settings[name!] = 0;
    },
    moves: (phone, { task, setting: name }) => {
      const [one, two] = [toSwitch(phone, 'tasks', phone.tasks, task!, true), setting(phone, name!, true)];
      // What is in front comes first.
      if (phone.app === 'settings' && two !== null && two.length > 0) {
        return both(two, toSwitch(after(phone, two, 'settings'), 'tasks', phone.tasks, task!, true));
      }
      return both(one, setting(after(phone, one, 'tasks'), name!, true));
    },
  },
  {
    name: 'alarm-and-call',
    category: 'two-apps',
    apps: ['alarms', 'contacts'],
    params: { alarm: TIMES, contact: NAMES.slice(0, 8) },
    goal: ({ alarm, contact }) => `turn on the alarm at ${alarm} and call ${contact}`,
    wanted: ({ alarm, contact }) => ({ alarm: alarm!, contact: contact! }),
    undo: (phone, { alarm }) => turn(phone.alarms, alarm!, false),
    moves: (phone, { alarm, contact }) => {
      const one = toSwitch(phone, 'alarms', phone.alarms, alarm!, true);
      if (phone.contacts[phone.called]?.name === contact) return one;
      const call = (from: GuestState): Moves | null =>
        both(toDetail(from, 'contacts', named(from.contacts), contact!), [tap('call')]);
      if (phone.app === 'contacts' && one !== null && one.length > 0) {
        return both(call(phone), toSwitch(after(phone, [tap('')], 'contacts'), 'alarms', phone.alarms, alarm!, true));
      }
      return both(one, call(after(phone, one, 'alarms')));
    },
  },
];
