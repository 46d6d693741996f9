import type { OutlineElement } from '../../domain/index.ts';
import type { PageView } from '../../devices/browser/view.ts';
import type { Intent } from '../../domain/index.ts';
import { between, fillThen, select, tap, tapNamed, type, type Oracle } from './tasks.ts';

/** Experts of the pages beyond the first ones: they read what a rich view shows, and type nothing that the task does not say. */

const labelled = (view: PageView, label: string | null | undefined): OutlineElement | undefined =>
  view.elements.find((e) => e.label === label);
const ofRole = (view: PageView, ...roles: string[]): OutlineElement[] =>
  view.elements.filter((e) => roles.includes(e.role));
/** A label as the page has it, without the number that keeps repeated labels apart. */
const bare = (element: OutlineElement, name: string): boolean =>
  element.label === name || new RegExp(`^${name} \\d+$`).test(element.label);

/** Taps everything of `wanted` that is not chosen yet, then the button. */
const chooseThen = (wanted: readonly OutlineElement[], button = 'Submit'): Intent[] => [
  ...wanted.filter((e) => e.value !== 'on').map((e) => tap(e.label)),
  tap(button),
];

/** One after another: each holds a link or not until it was looked into. `value` tells which one is open. */
const openUntil =
  (role: 'row' | 'tab'): Oracle =>
  (view) => {
    const name = between(view, /the link (.+)$/);
    if (labelled(view, name)) return [tap(name!)];
    // A link is a row too; what opens says whether it is open.
    const shut = ofRole(view, role).filter((e) => role === 'tab' || e.value !== undefined);
    const last = shut.map((e) => e.value).lastIndexOf('on');
    const next = shut[last + 1];
    return next && name ? [tap(next.label), tap(name)] : null;
  };

/** A date or a time is shown otherwise than it is typed: once the field holds anything, it was typed. */
function fillOnce(pattern: RegExp): Oracle {
  return (view) =>
    ofRole(view, 'field')[0]?.value ? [tap('Submit')] : fillThen(view, [between(view, pattern)], 'Submit');
}

/** The words of the instruction about a shape, matched with a painted label such as `small blue 5`. */
function matches(label: string, what: string): boolean {
  return what.split(' ').every((word) => {
    const last = label.split(' ').at(-1)!;
    if (word === 'digit' || word === 'digits') return /^\d$/.test(last);
    if (word === 'letter' || word === 'letters') return /^[A-Za-z]$/.test(last);
    if (['item', 'items', 'object', 'objects'].includes(word)) return true;
    if (['shape', 'shapes'].includes(word)) return last.length > 1;
    const single = word.length > 2 ? word.replace(/s$/, '') : word;
    return label.split(' ').includes(word) || label.split(' ').includes(single);
  });
}

/** The icon of a row whose text begins with a name: the next element of that name. */
const iconOf =
  (pattern: RegExp, icon: string): Oracle =>
  (view) => {
    const name = between(view, pattern);
    const row = view.elements.findIndex((e) => name !== null && e.label.startsWith(`${name} `));
    const target = row < 0 ? undefined : view.elements.slice(row).find((e) => bare(e, icon));
    return target ? [tap(target.label)] : null;
  };

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']; // prettier-ignore

/** A month's page at a time until the day is there. */
const chooseDate: Oracle = (view) => {
  const wanted = /^Select (\d+)\/(\d+)\/(\d+) as/.exec(view.instruction);
  const field = ofRole(view, 'field')[0];
  if (!wanted || !field) return null;
  if (field.value === wanted.slice(1, 4).join('/')) return [tap('Submit')];
  const day = String(Number(wanted[2]));
  const shown = view.elements.find((e) => MONTHS.some((month) => e.label.startsWith(month)));
  if (!shown) return [tap(field.label), tap(day), tap('Submit')];
  const steps = Number(wanted[1]) - 1 - MONTHS.findIndex((month) => shown.label.startsWith(month));
  if (steps === 0) return [tap(day), tap('Submit')];
  return [...Array.from({ length: Math.abs(steps) }, () => tap(steps > 0 ? 'Next' : 'Prev')), tap(day), tap('Submit')];
};

/** Movie search: every field by the label before it. */
const search: Oracle = (view) => {
  const said = /^Search for (\w+) movies directed by (\w+) from year (\d+)$/.exec(view.instruction);
  if (!said) return null;
  const wanted: Record<string, string> = { genre: said[1]!, director: said[2]!, year: said[3]! };
  const texts = ofRole(view, 'field').map((field) => {
    const before = view.elements[view.elements.indexOf(field) - 1]?.label ?? '';
    return wanted[before.toLowerCase().split(' ')[0]!] ?? null;
  });
  return fillThen(view, texts, view.elements.at(-1)!.label);
};

/** Numbers of the grid's lines, from where its points are. */
const gridPoint: Oracle = (view) => {
  const said = /coordinate (-?\d+),(-?\d+)/.exec(view.instruction);
  const points = ofRole(view, 'icon').filter((e) => e.label.includes('circle'));
  const lines = (of: (e: OutlineElement) => number): number[] =>
    [...new Set(points.map((e) => Math.round(of(e))))].sort((a, b) => a - b);
  const [xs, ys] = [lines((e) => e.box.x), lines((e) => e.box.y)];
  const middle = (all: number[]): number => (all.length - 1) / 2;
  const target = points.find(
    (e) =>
      xs.indexOf(Math.round(e.box.x)) - middle(xs) === Number(said?.[1]) &&
      middle(ys) - ys.indexOf(Math.round(e.box.y)) === Number(said?.[2]),
  );
  return target ? [tap(target.label)] : null;
};

const hours = (text: string): number => {
  const [, h, m] = /(\d+)h (\d+)m/.exec(text) ?? [];
  return Number(h) * 60 + Number(m);
};

const CARDINAL: Oracle = (view) => {
  const numbers = view.elements.filter((e) => /^\d+$/.test(e.label));
  if (numbers.length > 0)
    return [...numbers].sort((a, b) => Number(a.label) - Number(b.label)).map((e) => tap(e.label));
  // The numbers go away with the first tap; the squares over them are drawn in their order.
  return view.elements.map((e) => tap(e.label));
};

/** Experts by page. A page without one takes part in training by reward and in evaluation only. */
export const EXPERTS: Readonly<Record<string, Oracle>> = {
  'ascending-numbers': CARDINAL,
  'buy-ticket': (view) => {
    const wish = between(view, /with the (.+)$/) ?? '';
    const offers = ofRole(view, 'button');
    const lasts = view.elements.filter((e) => /\d+h \d+m/.test(e.label)).map((e) => hours(e.label));
    const costs = offers.map((e) => Number(/for (\d+)/.exec(e.label)?.[1]));
    const by = wish.includes('duration') ? lasts : costs;
    const best = /longest|most/.test(wish) ? Math.max(...by) : Math.min(...by);
    const offer = offers[by.indexOf(best)];
    return offer ? [tap(offer.label)] : null;
  },
  'choose-date': chooseDate,
  'choose-date-easy': chooseDate,
  'choose-date-medium': chooseDate,
  'choose-date-nodelay': chooseDate,
  'choose-list': (view) => fillThen(view, [between(view, /^Select (.+) from the list/)], 'Submit'),
  'click-button-sequence': (view) => (labelled(view, 'ONE')?.focused ? [tap('TWO')] : [tap('ONE'), tap('TWO')]),
  'click-checkboxes-large': select('checkbox'),
  'click-checkboxes-transfer': select('checkbox'),
  'click-collapsible-2': openUntil('row'),
  'click-collapsible-2-nodelay': openUntil('row'),
  'click-collapsible-nodelay': (view) => {
    const section = ofRole(view, 'row')[0];
    if (!section) return null;
    return section.value === 'on' ? [tap('Submit')] : [tap(section.label), tap('Submit')];
  },
  'click-color': tapNamed(/^Click on the (\w+) colored box$/),
  'click-pie-nodelay': (view) => {
    const item = between(view, /labeled (.+)$/);
    const found = view.elements.find((e) => item !== null && e.label.split(' ').at(-1) === item);
    if (found) return [tap(found.label)];
    const plus = view.elements.find((e) => e.label.endsWith('+'));
    return plus && item ? [tap(plus.label), tap(item)] : null;
  },
  'click-shades': (view) => {
    const colour = between(view, /shades of (\w+)/);
    return colour ? chooseThen(view.elements.filter((e) => bare(e, colour))) : null;
  },
  'click-shape': (view) => {
    const what = between(view, /^Click on an? (.+)$/);
    const shape = what ? view.elements.find((e) => matches(e.label.replace(/ \d+$/, (n) => (/(small|large) \w+ \d+$/.test(e.label) ? n : '')), what)) : undefined; // prettier-ignore
    return shape ? [tap(shape.label)] : null;
  },
  'click-tab-2': openUntil('tab'),
  'click-tab-2-easy': openUntil('tab'),
  'click-tab-2-hard': openUntil('tab'),
  'click-tab-2-medium': openUntil('tab'),
  'click-test-2': tapNamed(/button (\w+)$/),
  'click-test-transfer': tapNamed(/button (\w+)$/),
  'click-widget': (view) => {
    const kind = between(view, /^Click on an? (\w+) widget$/);
    const found = view.elements.find((e) =>
      kind === 'textarea'
        ? bare(e, 'area')
        : kind === 'text'
          ? bare(e, 'field') && e.role === 'field'
          : e.role === kind,
    );
    return found ? [tap(found.label)] : null;
  },
  'count-shape': (view) => {
    const what = between(view, /^How many (.+) are there\??$/);
    if (!what) return null;
    const n = view.elements.filter((e) => e.role !== 'button' && matches(e.label, what)).length;
    return labelled(view, String(n)) ? [tap(String(n))] : null;
  },
  'email-inbox-delete': iconOf(/email by (\w+) and/, 'trash'),
  'email-inbox-important': iconOf(/email by (\w+) and/, 'star'),
  'enter-date': fillOnce(/^Enter (\S+) as/),
  'enter-time': fillOnce(/^Enter (.+) as/),
  'find-greatest': (view) => {
    const cards = ofRole(view, 'row').filter((e) => /^\d+$/.test(e.label));
    const best = cards.sort((a, b) => Number(b.label) - Number(a.label))[0];
    return best ? chooseThen([best]) : null;
  },
  'form-sequence-2': (view) => {
    const said = /the (\d)\w+ radio button and enter the number (-?\d+) into the (\d)/.exec(view.instruction);
    const radio = ofRole(view, 'radio')[Number(said?.[1]) - 1];
    const field = ofRole(view, 'field')[Number(said?.[3]) - 1];
    if (!said || !radio || !field) return null;
    const moves = radio.value === 'on' ? [] : [tap(radio.label)];
    if (field.value !== said[2]) moves.push(...(field.focused ? [] : [tap(field.label)]), type(said[2]!));
    return [...moves, tap('Submit')];
  },
  'generate-number': (view) => {
    const shown = Number(view.elements.find((e) => e.role === 'label')?.label);
    const said = view.instruction;
    const limit = Number(/than (\d+)/.exec(said)?.[1]);
    const right = /greater/.test(said) ? shown > limit : /less/.test(said) ? shown < limit : /even/.test(said) ? shown % 2 === 0 : shown % 2 === 1; // prettier-ignore
    return right ? [tap('Submit')] : [tap('Generate'), tap('Submit')];
  },
  'grid-coordinate': gridPoint,
  'identify-shape': (view) => {
    const figure = view.elements
      .find((e) => e.role !== 'button')
      ?.label.split(' ')
      .at(-1);
    if (figure === undefined) return null;
    const kind = /^\d$/.test(figure)
      ? 'Number'
      : figure.length === 1
        ? 'Letter'
        : figure[0]!.toUpperCase() + figure.slice(1);
    return labelled(view, kind) ? [tap(kind)] : null;
  },
  'login-user-popup': (view) => {
    const parts = /username (.+) and the password (.+) into the/.exec(view.instruction);
    const moves = fillThen(view, [parts?.[1] ?? null, parts?.[2] ?? null], 'OK');
    return moves && labelled(view, 'Cancel') ? [tap('Cancel'), ...moves] : moves;
  },
  'multi-layouts': search,
  'multi-orderings': search,
  'odd-or-even': (view) => {
    const moves: Intent[] = [];
    view.elements.forEach((e, i) => {
      if (!/^-?\d+$/.test(e.label)) return;
      const button = view.elements[i + (Number(e.label) % 2 === 0 ? 1 : -1)];
      if (button && button.value !== 'on') moves.push(tap(button.label));
    });
    return [...moves, tap('Submit')];
  },
  'phone-book': (view) => {
    const said = /^Find (\S+) in the contact book and click on their (.+)$/.exec(view.instruction);
    const kind = said?.[2]?.split(' ')[0]?.toLowerCase();
    if (!said || !kind) return null;
    if (view.elements[0]?.label === said[1]) {
      const at = view.elements.findIndex((e) => e.label.toLowerCase().startsWith(kind));
      const target = view.elements[at + 1];
      return at >= 0 && target ? [tap(target.label)] : null;
    }
    return labelled(view, '>') ? [tap('>')] : null;
  },
  'use-autocomplete-nodelay': (view) => complete(view),
  'use-spinner': (view) => {
    const field = ofRole(view, 'field')[0];
    const wanted = Number(between(view, /^Select (-?\d+) with/));
    if (!field || Number.isNaN(wanted)) return null;
    const steps = wanted - Number(field.value);
    const arrows = view.elements.filter((e) => bare(e, 'ui button'));
    const arrow = arrows[steps > 0 ? 0 : 1];
    if (!arrow) return null;
    return [...Array.from({ length: Math.abs(steps) }, () => tap(arrow.label)), tap('Submit')];
  },
};

/** Types how an item begins, picks the one that ends as it should. */
function complete(view: PageView): Intent[] | null {
  const said = /starts with (\S+)(?: and ends with (\S+))?$/.exec(view.instruction);
  const field = ofRole(view, 'field')[0];
  if (!said || !field) return null;
  const fits = (text: string): boolean => text.startsWith(said[1]!) && text.endsWith(said[2] ?? '') && text !== said[1];
  if (fits(field.value ?? '')) return [tap('Submit')];
  const item = view.elements.find((e) => e.role !== 'field' && fits(e.label));
  if (item) return [tap(item.label), tap('Submit')];
  if (field.value === said[1]) return null;
  return [...(field.focused ? [] : [tap(field.label)]), type(said[1]!), tap(said[1]!), tap('Submit')];
}
