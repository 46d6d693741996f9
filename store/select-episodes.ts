import { OUTCOMES } from '../domain/episode.ts';
import type { Episode } from '../domain/episode.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { Split } from '../domain/task.ts';
import type { EpisodeStore } from './episodes.ts';

/** What recorded attempts can be asked for by; of one key any of the values, of several keys all. */
export type Where = Partial<Record<WhereKey, string[]>>;
type WhereKey = keyof typeof KEYS;

const SPLITS: readonly Split[] = ['train', 'validation', 'heldout-params', 'heldout-skin', 'heldout-tasks'];
const PHASES = { warmup: 'w', train: 'u', eval: 'e' } as const;

interface Key {
  /** What a value may be, in words; null: anything. */
  values: readonly string[] | string;
  valid(value: string): boolean;
  /** Seen from the id alone; null: only the record says it. */
  byId: ((id: string, value: string) => boolean) | null;
  byRecord(episode: Episode, value: string): boolean;
}

const oneOf = (values: readonly string[]): Pick<Key, 'values' | 'valid'> => ({
  values,
  valid: (value) => values.includes(value),
});

const KEYS = {
  outcome: {
    ...oneOf(OUTCOMES),
    byId: null,
    // Whoever looks for failures means all that did not succeed.
    byRecord: ({ outcome }, value) => (value === 'failure' ? outcome !== 'success' : outcome === value),
  },
  phase: {
    ...oneOf(Object.keys(PHASES)),
    byId: (id, value) => id.startsWith(PHASES[value as keyof typeof PHASES]),
    byRecord: ({ key }, value) => key.phase === value,
  },
  update: {
    values: 'a number of an update',
    valid: (value) => /^\d+$/.test(value),
    byId: (id, value) => Number(id.slice(1, id.indexOf('/'))) === Number(value),
    byRecord: ({ key }, value) => key.update === Number(value),
  },
  split: { ...oneOf(SPLITS), byId: null, byRecord: ({ task }, value) => task.split === value },
  task: {
    values: "a task's id, template, category or tag",
    valid: (value) => value !== '',
    byId: null,
    byRecord: ({ task }, value) =>
      [task.id, task.template, task.category, ...task.tags].includes(value) || task.id.startsWith(`${value}/`),
  },
  suite: {
    values: "a suite's id",
    valid: (value) => value !== '',
    byId: null,
    byRecord: ({ task }, v) => task.suite === v,
  },
} satisfies Record<string, Key>;

/** Reads `key=value` conditions. Error: `invalid_input` with the keys, or the values, that there are. */
export function parseWhere(conditions: readonly string[]): Where {
  const where: Where = {};
  for (const condition of conditions) {
    const [name, ...rest] = condition.split('=');
    const value = rest.join('=');
    if (rest.length === 0 || !Object.hasOwn(KEYS, name!)) {
      throw new TapwrightError(
        'invalid_input',
        `--where ${condition}: expected key=value with a key of ${Object.keys(KEYS).join(', ')}`,
      );
    }
    const { values, valid }: Key = KEYS[name as WhereKey];
    if (!valid(value)) {
      const known = typeof values === 'string' ? values : `one of ${values.join(', ')}`;
      throw new TapwrightError('invalid_input', `--where ${condition}: ${name} is ${known}`);
    }
    (where[name as WhereKey] ??= []).push(value);
  }
  return where;
}

export interface SelectOptions {
  where?: Where;
  /** Only ids that begin so. */
  prefix?: string;
  /** The first so many. */
  limit?: number;
}

/** Records read at the same time. */
const AT_ONCE = 16;

/**
 * Ids of the recorded attempts that are asked for, in order. Records are read only for what their ids do not say; one that
 * is damaged is not passed over: whoever uses it hears of it.
 */
export async function selectEpisodes(episodes: EpisodeStore, options: SelectOptions = {}): Promise<string[]> {
  const { where = {}, prefix, limit = Infinity } = options;
  const asked = Object.entries(where).map(([name, values]) => ({ key: KEYS[name as WhereKey] as Key, values }));
  // One that is gone is asked for too: its user is told so.
  const [there, lost] = await Promise.all([episodes.list(prefix), episodes.lost(prefix)]);
  const ids = [...there, ...lost]
    .sort()
    .filter((id) =>
      asked.every(({ key, values }) => key.byId === null || values.some((value) => key.byId!(id, value))),
    );
  const unsaid = asked.filter(({ key }) => key.byId === null);
  if (unsaid.length === 0) return ids.slice(0, limit);
  const matches = async (id: string): Promise<boolean> => {
    try {
      const episode = await episodes.get(id);
      return unsaid.every(({ key, values }) => values.some((value) => key.byRecord(episode, value)));
    } catch {
      return true;
    }
  };
  const selected: string[] = [];
  for (let from = 0; from < ids.length && selected.length < limit; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE);
    const found = await Promise.all(some.map(matches));
    selected.push(...some.filter((_, i) => found[i]));
  }
  return selected.slice(0, limit);
}
