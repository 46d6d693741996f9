import { LEVELS, type Concept } from '../../devices/sim/concepts.ts';
import type { Condition, DraftValue, Goal } from '../../devices/sim/goal.ts';
import type { Phone } from '../../devices/sim/model.ts';
import { TapwrightError } from '../../domain/index.ts';

export type Params = Record<string, string>;

/** A task template: what it says, what it asks of the phone, and what the phone must hold for it to make sense. */
export interface Template {
  name: string;
  category: string;
  tags: string[];
  /** Values of each parameter; the combinations are split between training and held-out. */
  params: Record<string, readonly string[]>;
  /** Pairs of parameters whose values must differ. */
  differ?: readonly (readonly [string, string])[];
  build(params: Params): Built;
}
export interface Built {
  goal: string;
  spec: Goal;
  /** Laid over the phone's random contents: makes the goal false at start and reachable. */
  data?: Phone['data'];
  /** Entries that must be in a list, and entries that must not. */
  present?: { list: string; entry: string }[];
  absent?: { list: string; entry: string }[];
  facts?: Record<string, string>;
}

/** A goal's specification from its conditions; the rest is empty unless given. */
export const spec = (apps: Concept[], conditions: Condition[], more: Partial<Goal> = {}): Goal => ({
  conditions,
  drafts: {},
  stops: [],
  apps,
  entries: [],
  evidence: null,
  ...more,
});

/** The other state of a switch, or the next level. */
export const opposite = (value: string): string =>
  value === 'on' ? 'off' : value === 'off' ? 'on' : LEVELS[(LEVELS.indexOf(value) + 1) % LEVELS.length]!;

/**
 * A template of one app as data. In every text `{x}` stands for the value of parameter `x`, and `{not x}` for the
 * opposite of a switch's state or another level.
 */
export interface Row {
  name: string;
  app: Concept;
  category: string;
  goal: string;
  params: Template['params'];
  /** What must hold in the end; left out where the task is impossible. */
  until?: Condition[];
  /** Field -> what it must hold on the way. */
  drafts?: Record<string, DraftValue>;
  entries?: string[];
  stops?: Goal['stops'];
  data?: Record<string, string>;
  present?: Built['present'];
  absent?: Built['absent'];
  facts?: Record<string, string>;
  differ?: Template['differ'];
  /** Impossible: the page on which, seen to its end, the thing is not. */
  evidence?: string;
}

/** The template that a row describes. */
export function fromRow(row: Row): Template {
  const { name, app, category, goal, params, differ, until = [], evidence, facts } = row;
  const { drafts = {}, entries = [], stops = [], data, present, absent } = row;
  const kind = evidence === undefined ? (facts ? ['ask-user'] : []) : ['impossible'];
  const proof = evidence === undefined ? null : { app, page: evidence };
  const whole = {
    goal,
    spec: spec([app], until, { drafts, entries, stops, evidence: proof }),
    data,
    present,
    absent,
    facts,
  };
  const text = JSON.stringify(whole);
  return {
    name,
    category,
    tags: ['one-app', ...kind],
    params,
    ...(differ ? { differ } : {}),
    build: (values) =>
      JSON.parse(
        text.replaceAll(/\{(not )?(\w+)\}/g, (_, not: string | undefined, key: string) =>
          not ? opposite(values[key]!) : values[key]!,
        ),
      ) as Built,
  };
}

/** Parameters that may be the same in both halves of a task. */
const SHARED = ['state', 'level'];

/**
 * Two tasks, one after the other. Errors: `internal` when both halves type into one field: a goal knows one text a field.
 */
export function both(name: string, category: string, tags: string[], first: Template, second: Template): Template {
  const rename = (params: Params, prefix: string): Params =>
    Object.fromEntries(
      Object.entries(params)
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, value]) => [key.slice(prefix.length), value]),
    );
  const prefixed = (template: Template, prefix: string): Template['params'] =>
    Object.fromEntries(Object.entries(template.params).map(([key, values]) => [`${prefix}${key}`, values]));
  const common = Object.keys(first.params).filter((key) => key in second.params && !SHARED.includes(key));
  return {
    name,
    category,
    tags,
    params: { ...prefixed(first, 'a-'), ...prefixed(second, 'b-') },
    differ: common.map((key) => [`a-${key}`, `b-${key}`] as const),
    build(params) {
      const [a, b] = [first.build(rename(params, 'a-')), second.build(rename(params, 'b-'))];
      const clash = Object.keys(a.spec.drafts).find((field) => field in b.spec.drafts);
      if (clash !== undefined)
        throw new TapwrightError('internal', `Template ${name}: both halves type into "${clash}".`);
      return {
        goal: `${a.goal} and ${b.goal}`,
        spec: {
          conditions: [...a.spec.conditions, ...b.spec.conditions],
          drafts: { ...a.spec.drafts, ...b.spec.drafts },
          stops: [...a.spec.stops, ...b.spec.stops],
          apps: [...new Set([...a.spec.apps, ...b.spec.apps])],
          entries: [...a.spec.entries, ...b.spec.entries],
          evidence: null,
        },
        data: { ...a.data, ...b.data },
        present: [...(a.present ?? []), ...(b.present ?? [])],
        absent: [...(a.absent ?? []), ...(b.absent ?? [])],
        facts: { ...a.facts, ...b.facts },
      };
    },
  };
}
