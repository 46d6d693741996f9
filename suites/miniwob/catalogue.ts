import { EXPERTS } from './experts.ts';
import { CORE_TASKS, type Oracle } from './tasks.ts';

/** A page of the benchmark that is a task of the suite. */
export interface MiniwobTask {
  name: string;
  /** Shortest solution, Task_Complete not counted, or a bound of it; used for the step budget. */
  moves: number;
  /** Null: no expert, so no demonstrations and no distance; the page's own reward still says when it is done. */
  oracle: Oracle | null;
  /** One of the first tasks: its outline is the plain one, and its instances never change. */
  core: boolean;
  /** Never trained on: the split `heldout-tasks`. */
  heldOut: boolean;
}

/** Tasks to train on beyond the core, with their moves. */
const TRAIN: Readonly<Record<string, number>> = {
  'ascending-numbers': 5, 'book-flight-nodelay': 12, 'buy-ticket': 1, 'choose-date': 12,
  'choose-date-medium': 6, 'choose-date-nodelay': 12, 'choose-list': 3, 'click-button-sequence': 2,
  'click-checkboxes-soft': 6, 'click-checkboxes-transfer': 6, 'click-collapsible-2': 5, 'click-collapsible-nodelay': 2,
  'click-color': 1, 'click-pie-nodelay': 2, 'click-shades': 8, 'click-shape': 1,
  'click-tab-2': 3, 'click-tab-2-easy': 2, 'click-tab-2-medium': 3, 'click-test-2': 1, 'click-widget': 1, 'count-shape': 1,
  'email-inbox': 4, 'email-inbox-delete': 1, 'email-inbox-forward': 5, 'email-inbox-reply': 5, 'email-inbox-star-reply': 5,
  'enter-date': 3, 'enter-time': 3, 'find-greatest': 2, 'find-word': 3, 'form-sequence-2': 4, 'form-sequence-3': 3,
  'generate-number': 6, 'grid-coordinate': 1, 'guess-number': 8, 'identify-shape': 1, 'multi-layouts': 7, 'navigate-tree': 4,
  'number-checkboxes': 14, 'order-food': 6, 'phone-book': 5, 'read-table': 3, 'search-engine': 5, 'simple-algebra': 3,
  'social-media': 2, 'social-media-all': 6, 'text-transform': 3, 'tic-tac-toe': 5, 'use-autocomplete-nodelay': 4,
  'use-colorwheel': 4, 'use-spinner': 9,
}; // prettier-ignore

/** Tasks that no training sees; each has a relative among those that it does. */
const HELD_OUT: Readonly<Record<string, number>> = {
  'choose-date-easy': 5, 'click-checkboxes-large': 12, 'click-collapsible-2-nodelay': 5, 'click-tab-2-hard': 4,
  'click-test-transfer': 1, 'count-sides': 1, 'email-inbox-important': 1, 'email-inbox-noscroll': 5, 'enter-text-2': 3,
  'login-user-popup': 6, 'multi-orderings': 7, 'odd-or-even': 4, 'read-table-2': 5, 'simple-arithmetic': 3,
  'social-media-some': 4, 'use-colorwheel-2': 4, 'visual-addition': 3,
}; // prettier-ignore

const DRAG = 'something is dragged to a point, and our swipe scrolls';
const POINT = 'the answer is a point with no element on it, and a plan names elements';
const CLOCK = 'the page goes by the clock';
const LATE = 'its list comes after a delay by the clock';
const HOVER = 'it wants a pointer that hovers, and a finger does not';
const RANDOM = 'a seed does not bring back the same page';
const SELECT = 'text is selected by dragging over it';
const INNER = 'something inside a field is scrolled, and our swipe scrolls the page';
const SLIDER = 'a slider is dragged to a value';
const LONG = 'the text to type is longer than an action';

/** Pages that are no task of the suite, each with the reason. */
export const EXCLUDED: Readonly<Record<string, string>> = {
  'bisect-angle': POINT, 'book-flight': LATE, 'button-delay': CLOCK, 'chase-circle': RANDOM, 'circle-center': POINT, 'click-menu': HOVER, 'click-menu-2': HOVER, 'click-pie': RANDOM,
  'click-scroll-list': 'several options are chosen with a modifier key', 'copy-paste': LONG, 'copy-paste-2': LONG,
  'daily-calendar': DRAG, 'drag-box': DRAG, 'drag-circle': DRAG, 'drag-cube': DRAG, 'drag-items': DRAG,
  'drag-items-grid': DRAG, 'drag-shapes': DRAG, 'drag-shapes-2': DRAG, 'drag-single-shape': DRAG, 'drag-sort-numbers': DRAG,
  'draw-circle': DRAG, 'draw-line': DRAG, 'email-inbox-forward-nl': RANDOM, 'email-inbox-forward-nl-turk': RANDOM,
  'email-inbox-nl-turk': RANDOM, 'find-midpoint': POINT, 'form-sequence': SLIDER, 'highlight-text': SELECT,
  'highlight-text-2': SELECT, 'hot-cold': HOVER, 'hover-shape': CLOCK,
  'moving-items': RANDOM, 'resize-textarea': DRAG, 'right-angle': POINT, 'scroll-text': INNER, 'scroll-text-2': INNER,
  'sign-agreement': INNER, 'simon-says': CLOCK, 'stock-market': CLOCK, terminal: 'its lines end with a key that we do not have',
  'text-editor': SELECT, 'unicode-test': 'some of its labels are symbols, and a plan names words',
  'use-autocomplete': LATE, 'use-slider': SLIDER, 'use-slider-2': SLIDER,
}; // prettier-ignore

const more = (tasks: Readonly<Record<string, number>>, heldOut: boolean): MiniwobTask[] =>
  Object.entries(tasks).map(([name, moves]) => ({ name, moves, oracle: EXPERTS[name] ?? null, core: false, heldOut }));

/** All tasks of the suite, the core ones first: what a slice draws depends on the order. */
export const MINIWOB_TASKS: readonly MiniwobTask[] = [
  ...CORE_TASKS.map((task) => ({ ...task, core: true, heldOut: false })),
  ...more(TRAIN, false),
  ...more(HELD_OUT, true),
];
