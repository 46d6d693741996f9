import { itemsOf } from './apps.ts';
import type { Concept } from './concepts.ts';
import { list, pageOf, scalar, type Effect, type Item, type Phone } from './model.ts';
import type { View } from './skin.ts';

/** A page with exactly one field gives it the keyboard on opening. */
function autofocus(phone: Phone): Phone {
  const fields = itemsOf(phone).filter((item) => item.role === 'field');
  const only = fields.length === 1 && fields[0]!.tap.do === 'focus' ? fields[0]!.tap.field : null;
  return only === null ? phone : { ...phone, focus: only };
}

const enter = (phone: Phone, stack: string[]): Phone =>
  autofocus({ ...phone, stack, scroll: 0, focus: null, menu: null, draft: {} });

const back = (phone: Phone): Phone => (phone.stack.length > 1 ? enter(phone, phone.stack.slice(0, -1)) : home(phone));

/** To the home screen: the app forgets where it was and what was not saved. */
export const home = (phone: Phone): Phone => ({
  ...phone,
  app: null,
  stack: [],
  scroll: 0,
  focus: null,
  menu: null,
  draft: {},
  popup: false,
});

const put = (phone: Phone, key: string, value: string | string[]): Phone => ({
  ...phone,
  data: { ...phone.data, [key]: value },
});

/** Entries of a list are distinct: one that is there already moves to the end. */
const append = (phone: Phone, name: string, entry: string): Phone =>
  put(phone, name, [...list(phone, name).filter((other) => other !== entry), entry]);

function launch(phone: Phone, app: Concept): Phone {
  const opened = enter({ ...phone, app }, ['root']);
  return phone.popupIn === app ? { ...opened, popupIn: null, popup: true } : opened;
}

/** What a form would add to its list now. */
export const committed = (phone: Phone, { head, from }: Extract<Effect, { do: 'commit' }>): string =>
  [...(head === undefined ? [] : [head]), ...from.map((field) => phone.draft[field] ?? '')].join(' ');

/** What a tap's effect makes of the phone. Pure; an effect without meaning here changes nothing. */
export function apply(phone: Phone, effect: Effect): Phone {
  switch (effect.do) {
    case 'nothing':
      return phone;
    case 'launch':
      return launch(phone, effect.app);
    case 'open':
      return enter(phone, [...phone.stack, effect.page]);
    case 'back':
      return phone.menu !== null ? { ...phone, menu: null } : back(phone);
    case 'dismiss':
      return autofocus({ ...phone, popup: false });
    case 'toggle':
      return put(phone, effect.key, scalar(phone, effect.key) === 'on' ? 'off' : 'on');
    case 'set': {
      const done = put(phone, effect.key, effect.to);
      return effect.pop ? back(done) : done;
    }
    case 'focus':
      return { ...phone, focus: effect.field };
    case 'choose':
      return { ...phone, draft: { ...phone.draft, [effect.field]: effect.to } };
    case 'commit': {
      const parts = effect.from.map((field) => phone.draft[field] ?? '');
      if (parts.some((part) => part === '')) return phone;
      const kept = append(phone, effect.list, committed(phone, effect));
      const done = effect.also === undefined ? kept : append(kept, effect.also, parts[0]!);
      // A chat stays where it is; a form closes.
      return pageOf(phone).startsWith('entry:') ? autofocus({ ...done, draft: {}, scroll: 0 }) : back(done);
    }
    case 'add': {
      const entries = list(phone, effect.list);
      const done = entries.includes(effect.entry) ? phone : put(phone, effect.list, [...entries, effect.entry]);
      return effect.pop ? back(done) : done;
    }
    case 'buy': {
      const cart = list(phone, effect.cart);
      if (cart.length === 0) return phone;
      const code = phone.draft.code ? ` ${phone.draft.code}` : '';
      const bought = cart.map((name) => `${name}${code}`);
      return back(put(put(phone, effect.bought, [...list(phone, effect.bought), ...bought]), effect.cart, []));
    }
    case 'remove': {
      const rest = list(phone, effect.list).filter((text) => text !== effect.entry);
      return { ...put(phone, effect.list, rest), menu: null, scroll: 0 };
    }
  }
}

/** A long press opens the entry's menu where it has one, else it is a tap. */
export const longPress = (phone: Phone, item: Item): Phone =>
  item.menu === undefined ? apply(phone, item.tap) : { ...phone, menu: item.menu };

/** Typed text replaces what the focused field holds; null without a focused field. */
export function typeText(phone: Phone, text: string): Phone | null {
  if (phone.focus === null || phone.popup || phone.menu !== null) return null;
  return { ...phone, draft: { ...phone.draft, [phone.focus]: text } };
}

/** `up` shows what is below, as a finger moving up does. */
export function scroll(phone: Phone, view: View, direction: 'up' | 'down'): Phone {
  if (direction === 'up') return view.canScrollDown ? { ...phone, scroll: phone.scroll + 1 } : phone;
  return view.canScrollUp ? { ...phone, scroll: phone.scroll - 1 } : phone;
}
