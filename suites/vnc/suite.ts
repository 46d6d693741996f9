import { remainingWords } from '../../devices/expert-words.ts';
import type { GuestState } from '../../devices/vnc/guest-link.ts';
import type { PhoneOracle, VncSnapshot } from '../../devices/vnc/oracle.ts';
import { TapwrightError } from '../../domain/index.ts';
import type { Intent, Split, TaskInstance } from '../../domain/index.ts';
import { createRandom, hashSeed } from '../../rl/random.ts';
import type { Suite } from '../suite.ts';
import { CHORES, drawPhone, GOODS, MESSAGES, NAMES, NOTES, SETTINGS, setLines, TIMES } from './contents.ts';
import { TEMPLATES } from './templates.ts';
import type { Params, PhoneTemplate } from './templates.ts';

const SPLITS: readonly Split[] = ['train', 'validation', 'heldout-params', 'heldout-skin'];
/** The guest's theme that no training sees: dark, its apps in another order. */
const UNSEEN_THEME = 3;
/** What the guest writes on its pages besides contents (devices/vnc/guest/phone.c). */
const LABELS =
  'home settings contacts notes counter tasks alarms shop messages back number favorite call delete contact note price ' +
  'quantity more less add to cart last message send text save yes no keep order now orders value plus minus clear new on off ' +
  'are you sure thank';

/** Step cap of an instance (engine.md, 2). */
const stepBudget = (optimal: number): number => Math.min(30, Math.ceil(2.2 * optimal + 3));

/** A template's parameters by split: a fifth is never trained on, a tenth is for tuning. By a hash: the same for every seed. */
function combinations(template: PhoneTemplate): Record<'train' | 'validation' | 'heldout-params', Params[]> {
  const all = Object.entries(template.params).reduce<Params[]>(
    (rows, [key, values]) => rows.flatMap((row) => values.map((value) => ({ ...row, [key]: value }))),
    [{}],
  );
  const ranked = all
    .map((params) => ({ params, rank: hashSeed('vnc-split', template.name, ...Object.values(params)) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ params }) => params);
  const [held, tune] = [Math.ceil(all.length / 5), Math.ceil(all.length / 10)];
  return {
    'heldout-params': ranked.slice(0, held),
    validation: ranked.slice(held, held + tune),
    train: ranked.slice(held + tune),
  };
}

function templateOf(name: string): PhoneTemplate {
  const found = TEMPLATES.find((template) => template.name === name);
  if (found === undefined) {
    const names = TEMPLATES.map((template) => template.name).join(', ');
    throw new TapwrightError('invalid_input', `Suite vnc-phones has no task "${name}"; it has ${names}.`);
  }
  return found;
}

/** Virtual phones in QEMU: templates x parameters x contents x themes, all drawn from a seed. */
export function createVncSuite(): Suite {
  return {
    id: 'vnc-phones',
    version: '1',
    licence: 'Apache-2.0',
    backend: 'vnc',
    templates: TEMPLATES.map(({ name }) => name),
    splits: SPLITS,
    vocabulary: () => {
      const goals = TEMPLATES.flatMap((template) => {
        const params = Object.fromEntries(Object.entries(template.params).map(([key, values]) => [key, values[0]!]));
        return template.goal(params).split(' ');
      });
      const pools = [
        SETTINGS,
        NAMES,
        CHORES,
        GOODS,
        TIMES,
        NOTES,
        MESSAGES,
        ['1', '2', '3', '4', '5', '6', '7', '8', '9'],
      ];
      return [...new Set([...pools.flat().flatMap((text) => text.split(' ')), ...goals, ...LABELS.split(' ')])].sort();
    },
    instance(split, seed, index): TaskInstance {
      if (split === 'heldout-tasks' || !SPLITS.includes(split)) {
        throw new TapwrightError(
          'invalid_config',
          `Suite vnc-phones has no split "${split}"; it has ${SPLITS.join(', ')}.`,
        );
      }
      // Whole rounds over the templates, each in its own order: every template gets the same number of instances.
      const round = Math.floor(index / TEMPLATES.length);
      const order = createRandom(seed, 'vnc', split, round).shuffle(TEMPLATES);
      const template = order[index % TEMPLATES.length]!;
      const random = createRandom(seed, 'vnc', split, 'task', index);
      // The unseen theme is new; its tasks are those of training, so that only the theme makes the difference.
      const params = random.pick(combinations(template)[split === 'heldout-skin' ? 'train' : split]);
      const theme = split === 'heldout-skin' ? UNSEEN_THEME : random.int(UNSEEN_THEME);
      return make(split, template, params, theme, random.int(0x7fffffff));
    },
  };
}

function make(split: Split, template: PhoneTemplate, params: Params, theme: number, seed: number): TaskInstance {
  const phone = drawPhone(seed, theme, template.wanted?.(params) ?? {});
  template.undo(phone, params);
  const moves = template.moves(phone, params);
  if (moves === null || moves.length === 0) {
    throw new TapwrightError('internal', `Template ${template.name} made an instance that cannot be solved.`);
  }
  // The guest takes its theme from the seed's last two bits.
  const snapshot: VncSnapshot = { seed: theme, set: setLines(phone) };
  return {
    id: `vnc-phones/${template.name}/${theme}-${seed.toString(16)}`,
    suite: 'vnc-phones',
    template: template.name,
    split,
    goal: template.goal(params),
    params,
    apps: [...template.apps],
    category: template.category,
    tags: [template.apps.length > 1 ? 'two-app' : 'one-app'],
    snapshot: JSON.stringify(snapshot),
    stepBudget: stepBudget(moves.length + 1),
    optimalSteps: moves.length + 1,
    userFacts: {},
    possible: true,
    seed,
  };
}

/** Ground truth and expert of the suite's phones, from what the serial port tells. */
export function createPhoneOracle(): PhoneOracle {
  const movesOf = (task: TaskInstance, phone: GuestState): Intent[] | null =>
    templateOf(task.template).moves(phone, task.params);
  return {
    truth: (task, phone) => {
      const moves = movesOf(task, phone);
      const { events: _, ...state } = phone;
      return {
        key: hashSeed(JSON.stringify(state)).toString(16),
        goalHolds: moves?.length === 0,
        distance: moves?.length ?? null,
        needsFact: null,
      };
    },
    expert: (task, phone) => {
      const moves = movesOf(task, phone);
      if (moves === null) return null;
      const [next, ...rest] = moves;
      if (next === undefined) {
        return { intent: { kind: 'task_complete', claim: 'done' }, reasoning: 'all set', remaining: '' };
      }
      return { intent: next, reasoning: reasonFor(next), remaining: remainingWords(rest, 'done') };
    },
  };
}

/** Why, in the planner's few words. */
function reasonFor(intent: Intent): string {
  if (intent.kind === 'tap') return `see ${intent.target}`;
  if (intent.kind === 'text_entry') return 'write it';
  return intent.kind === 'swipe' ? 'look more' : 'go home';
}
