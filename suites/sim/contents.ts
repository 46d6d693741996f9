import { shownLists } from '../../devices/sim/apps.ts';
import { APPS } from '../../devices/sim/apps-core.ts';
import { ALL_APPS } from '../../devices/sim/apps.ts';
import {
  LEVELS,
  type Concept,
  CITIES,
  DAYS,
  EVENTS,
  HOURS,
  NAMES,
  PRODUCTS,
  SONGS,
  THINGS,
  VERBS,
} from '../../devices/sim/concepts.ts';
import { freshPhone, type Phone } from '../../devices/sim/model.ts';
import type { Random } from '../../rl/random.ts';
import type { Built } from './template.ts';

/** How many entries each list of a phone holds. */
const SIZES = {
  contacts: [4, 9],
  songs: [5, 9],
  products: [5, 9],
  notes: [1, 4],
  alarms: [2, 5],
  events: [1, 4],
  cities: [1, 4],
  // Lists of the apps beyond the core ones.
  todo: [2, 6],
  places: [1, 4],
  trips: [1, 3],
  photos: [3, 7],
  dishes: [4, 8],
  workouts: [1, 4],
} as const;
type ListName = keyof typeof SIZES;

const SOURCES: Record<ListName, (random: Random) => string[]> = {
  contacts: () => NAMES,
  songs: () => SONGS,
  products: () => PRODUCTS,
  notes: (random) => VERBS.map((verb) => `${verb} ${random.pick(THINGS)}`),
  alarms: () => HOURS,
  events: (random) => EVENTS.map((event) => `${event} ${random.pick(DAYS)}`),
  cities: () => CITIES,
  todo: () => THINGS,
  places: () => CITIES,
  trips: (random) => CITIES.map((city) => `${city} ${random.pick(DAYS)}`),
  photos: () => EVENTS,
  dishes: () => PRODUCTS,
  workouts: (random) => HOURS.map((hour) => `${hour} ${random.pick(LEVELS)}`),
};

/** Icons on the home screen of a phone that has not just the core apps. */
const HOME_APPS = 8;

/** Apps of a phone: those that a task needs and some others, in the order of all apps. */
export function someApps(needed: readonly string[], random: Random): Concept[] {
  const others = random.shuffle(ALL_APPS.filter((app) => !needed.includes(app)));
  const chosen = new Set<string>([...needed, ...others.slice(0, Math.max(0, HOME_APPS - needed.length))]);
  return ALL_APPS.filter((app) => chosen.has(app));
}

/**
 * A phone with someone's random belongings, in which the task makes sense and is not done yet; with the core apps unless
 * others are named.
 */
export function populate(built: Built, random: Random, apps?: readonly Concept[]): Phone {
  const data: Phone['data'] = {};
  const shown = new Set((apps ?? APPS).flatMap(shownLists));
  for (const name of (Object.keys(SIZES) as ListName[]).filter((list) => shown.has(list))) {
    const [low, high] = SIZES[name];
    const size = low + random.int(high - low + 1);
    const absent = (built.absent ?? []).filter((a) => a.list === name).map((a) => a.entry);
    const present = (built.present ?? []).filter((p) => p.list === name).map((p) => p.entry);
    const others = random
      .shuffle(SOURCES[name](random))
      .filter((entry) => !absent.includes(entry) && !present.includes(entry))
      .slice(0, Math.max(0, size - present.length));
    data[name] = random.shuffle([...present, ...others]);
  }
  const phone = freshPhone({ ...data, ...built.data });
  return apps === undefined ? phone : { ...phone, apps };
}
