import { APPS } from '../../devices/sim/apps-core.ts';
import type { SimSnapshot } from '../../devices/sim/backend.ts';
import * as words from '../../devices/sim/concepts.ts';
import { CONCEPTS, CORE_CONCEPTS } from '../../devices/sim/concepts.ts';
import * as more from '../../devices/sim/concepts-more.ts';
import { ALL_APPS } from '../../devices/sim/apps.ts';
import { createNavigator } from '../../devices/sim/search.ts';
import { LAYOUTS, type Skin, type SkinFamily } from '../../devices/sim/skin.ts';
import { TapwrightError, type Split, type TaskInstance } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import { slice, type SliceOptions } from '../slice.ts';
import type { Suite } from '../suite.ts';
import { populate, someApps } from './contents.ts';
import { combinations } from './splits.ts';
import type { Template } from './template.ts';
import { isCore, TEMPLATES } from './templates.ts';

export interface SimSuiteOptions extends SliceOptions {
  /** Share of training draws on wide skins (`ios-alt`); the rest is narrow (`ios`). */
  wideSkinFraction?: number;
}
export interface SimSuite extends Suite {
  /** Like `instance('train', ...)` on narrow skins only: what demonstrations are made on. */
  demonstration(seed: number, index: number): TaskInstance;
}

const SPLITS: readonly Split[] = ['train', 'validation', 'heldout-params', 'heldout-skin'];
/** One instance in so many has an app that asks for a rating when it is opened. */
const POPUP_RATE = 0.07;

/** Step cap of an instance (engine.md, 2). */
export const stepBudget = (optimal: number): number => Math.min(30, Math.ceil(2.2 * optimal + 3));

/** The simulated phones' suite: templates x parameters x skins, all drawn from a seed. */
export function createSimSuite({ wideSkinFraction = 0.5, only = [], without = [] }: SimSuiteOptions = {}): SimSuite {
  const templates = slice('sim-phones', TEMPLATES, { only, without });
  const family = (split: Split, u: number): SkinFamily => {
    if (split === 'heldout-skin') return 'android';
    return split === 'train' && u < wideSkinFraction ? 'ios-alt' : 'ios';
  };

  function instance(split: Split, seed: number, index: number, narrow = false): TaskInstance {
    if (!SPLITS.includes(split))
      throw new TapwrightError(
        'invalid_config',
        `Suite sim-phones has no split "${split}"; it has ${SPLITS.join(', ')}.`,
      );
    // The unseen skin is new; its tasks are those of training, so that only the skin makes the difference.
    const from = (split === 'heldout-skin' ? 'train' : split) as Exclude<Split, 'heldout-skin' | 'heldout-tasks'>;
    const pool = templates.filter((template) => combinations(template)[from].length > 0);
    const round = Math.floor(index / pool.length);
    const template = createRandom(seed, 'sim', split, 'round', round).shuffle(pool)[index % pool.length]!;
    const random = createRandom(seed, 'sim', split, narrow ? 'demo' : 'task', index);
    const params = random.pick(combinations(template)[from]);
    const chosen = narrow ? 'ios' : family(split, random.next());
    const skin: Skin = { family: chosen, seed: random.int(0x7fffffff), layout: random.pick(LAYOUTS[chosen]) };
    return make(split, template, params, skin, random.int(0x7fffffff));
  }

  return {
    id: 'sim-phones',
    version: '2',
    licence: 'Apache-2.0',
    backend: 'sim',
    templates: templates.map((template) => template.name),
    splits: SPLITS,
    instance: (split, seed, index) => instance(split, seed, index),
    demonstration: (seed, index) => instance('train', seed, index, true),
    vocabulary: () => vocabulary(templates),
  };
}

function make(
  split: Split,
  template: Template,
  params: Record<string, string>,
  skin: Skin,
  seed: number,
): TaskInstance {
  const built = template.build(params);
  const phone = populate(
    built,
    createRandom(seed, 'contents'),
    isCore(template) ? undefined : someApps(built.spec.apps, createRandom(seed, 'apps')),
  );
  const popup = createRandom(seed, 'popup');
  if (popup.next() < POPUP_RATE) phone.popupIn = popup.pick(built.spec.apps);
  const snapshot: SimSnapshot = { skin, goal: built.spec, phone };
  const route = createNavigator(built.spec, skin).route(phone);
  if (!route) throw new TapwrightError('internal', `Template ${template.name} made an instance that cannot be solved.`);
  const optimal = route.distance + 1;
  return {
    id: `sim-phones/${template.name}/${skin.family}-${skin.layout}-${seed.toString(16)}`,
    suite: 'sim-phones',
    template: template.name,
    split,
    goal: built.goal,
    params,
    apps: built.spec.apps,
    category: template.category,
    tags: template.tags,
    snapshot: JSON.stringify(snapshot),
    stepBudget: stepBudget(optimal),
    optimalSteps: optimal,
    userFacts: built.facts ?? {},
    possible: built.spec.evidence === null,
    seed,
  };
}

/**
 * Every word of goals, labels and typed texts. A slice of core templates has the words of the core apps only, so that
 * its token ids stay what they were before there were others.
 */
function vocabulary(templates: readonly Template[]): readonly string[] {
  const core = templates.every(isCore);
  const goals = (core ? TEMPLATES.filter(isCore) : TEMPLATES).flatMap((template) => {
    const params = Object.fromEntries(Object.entries(template.params).map(([key, values]) => [key, values[0]!]));
    const { goal, facts } = template.build(params);
    return [...goal.split(' '), ...Object.keys(facts ?? {})];
  });
  const concepts: Record<string, readonly string[]> = core ? CORE_CONCEPTS : CONCEPTS;
  const contents = Object.values(core ? words : { ...words, ...more }).filter((value) => Array.isArray(value));
  const apps = core ? APPS : ALL_APPS;
  return [...new Set([...Object.values(concepts), contents, goals, apps, 'home', 'on', 'off'].flat(2))].sort();
}
