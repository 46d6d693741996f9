import { TapwrightError } from '../domain/index.ts';

/** What of a suite is drawn: what `only` names (empty: all), less what `without` names. */
export interface SliceOptions {
  /** Tags, categories or names of templates. */
  only?: readonly string[];
  without?: readonly string[];
}

/** A template as a slice sees it. */
export interface Sliced {
  name: string;
  category: string;
  tags: readonly string[];
}

/** The templates of a slice of a suite, in their order. Errors: `invalid_config` for a name that nothing has, and for an empty slice. */
export function slice<T extends Sliced>(
  suite: string,
  templates: readonly T[],
  { only = [], without = [] }: SliceOptions,
): readonly T[] {
  const namesOf = ({ name, category, tags }: Sliced): string[] => [name, category, ...tags];
  const known = new Set(templates.flatMap(namesOf));
  const unknown = [...only, ...without].find((name) => !known.has(name));
  if (unknown !== undefined) {
    const tags = [...new Set(templates.flatMap((t) => [t.category, ...t.tags]))].sort().join(', ');
    throw new TapwrightError(
      'invalid_config',
      `tasks: suite ${suite} has no tag, category or template "${unknown}"; it has ${tags}, and the names of its templates.`,
    );
  }
  const has = (template: T, names: readonly string[]): boolean =>
    namesOf(template).some((name) => names.includes(name));
  const kept = templates.filter((t) => (only.length === 0 || has(t, only)) && !has(t, without));
  if (kept.length === 0)
    throw new TapwrightError('invalid_config', `tasks: no template of suite ${suite} is left by only and without.`);
  return kept;
}
