import { CITIES, DAYS, EVENTS, HOURS, NAMES, PRODUCTS, SONGS, THINGS, VERBS } from '../../devices/sim/concepts.ts';
import { freshPhone, type Phone } from '../../devices/sim/model.ts';
import type { Random } from '../../rl/random.ts';
import type { Built } from './templates.ts';

/** How many entries each list of a phone holds. */
const SIZES = {
  contacts: [4, 9],
  songs: [5, 9],
  products: [5, 9],
  notes: [1, 4],
  alarms: [2, 5],
  events: [1, 4],
  cities: [1, 4],
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
};

/** A phone with someone's random belongings, in which the task makes sense and is not done yet. */
export function populate(built: Built, random: Random): Phone {
  const data: Phone['data'] = {};
  for (const name of Object.keys(SIZES) as ListName[]) {
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
  return freshPhone({ ...data, ...built.data });
}
