import { TapwrightError } from '../../domain/index.ts';
import { LENGTHS } from './lengths.ts';
import { PAIRS } from './pairs.ts';
import { CORE_APP_ROWS } from './rows-core-apps.ts';
import { NEW_APP_ROWS } from './rows-new-apps.ts';
import { both, fromRow, type Template } from './template.ts';
import { CORE_TEMPLATES } from './templates-core.ts';

const single = [...CORE_TEMPLATES, ...[...CORE_APP_ROWS, ...NEW_APP_ROWS].map(fromRow)];
const byName = new Map(single.map((template) => [template.name, template]));

/** Values of one parameter of a half that take part in a pair. */
const FEW = 6;
const MOST = 2000;

/** A half of a pair: where it has many combinations, only some values of each parameter, spread over all of them. */
function half(name: string, most: number): Template {
  const template = byName.get(name);
  if (!template) throw new TapwrightError('internal', `pairs.ts: there is no template "${name}".`);
  const size = Object.values(template.params).reduce((product, values) => product * values.length, 1);
  if (size <= most) return template;
  const few = (values: readonly string[]): readonly string[] =>
    values.filter((_, i) => Math.floor((i * FEW) / values.length) !== Math.floor(((i - 1) * FEW) / values.length));
  return {
    ...template,
    params: Object.fromEntries(Object.entries(template.params).map(([key, values]) => [key, few(values)])),
  };
}

const pairs = PAIRS.map(([a, b]): Template => {
  const [first, second] = [half(a, Math.sqrt(MOST)), half(b, Math.sqrt(MOST))];
  const ask = [first, second].some((template) => template.tags.includes('ask-user')) ? ['ask-user'] : [];
  return both(`${a}-then-${b}`, 'two-app', ['two-app', ...ask], first, second);
});

const lengthOf = (name: string): string =>
  LENGTHS.short.includes(name) ? 'short' : LENGTHS.long.includes(name) ? 'long' : 'medium';

/**
 * All templates, in a fixed order, the core ones first: what a slice draws depends on it. Tags: `core`, one or two apps,
 * `ask-user`, `impossible`, and a length.
 */
export const TEMPLATES: readonly Template[] = [...single, ...pairs].map((template, i) => ({
  ...template,
  tags: [...template.tags, ...(i < CORE_TEMPLATES.length ? ['core'] : []), lengthOf(template.name)],
}));

export const isCore = (template: Template): boolean => template.tags.includes('core');
