import { remainingWords } from '../../devices/expert-words.ts';
import type { PageOracle, PageView } from '../../devices/browser/view.ts';
import type { Intent, Split, TaskInstance } from '../../domain/index.ts';
import { TapwrightError } from '../../domain/index.ts';
import { createRandom, hashSeed } from '../../rl/random.ts';
import { slice, type SliceOptions } from '../slice.ts';
import type { Suite } from '../suite.ts';
import { MINIWOB_TASKS, type MiniwobTask } from './catalogue.ts';

/** Words of instructions and fixed labels; names and random strings become hashed words in the planner. */
const WORDS =
  'Click on the button link dialog box by clicking x in labeled Cancel OK Tab 1 2 3 Focus into 1st 2nd 3rd input textbox ' +
  'Expand section below and click submit Submit Select nothing Enter text field press password Password Verify verify ' +
  'both fields Username username Login Section field Me START okay Okay ok Ok yes Yes no No cancel next Next ' +
  'previous Previous Close Click';

function task(template: string): MiniwobTask {
  const found = MINIWOB_TASKS.find((t) => t.name === template);
  if (!found)
    throw new TapwrightError(
      'invalid_input',
      `Suite miniwob has no task "${template}"; it has ${MINIWOB_TASKS.map((t) => t.name).join(', ')}.`,
    );
  return found;
}

const SPLITS: readonly Split[] = ['train', 'validation', 'heldout-params', 'heldout-tasks'];

const TEMPLATES = MINIWOB_TASKS.map((t) => ({
  ...t,
  category: t.name.split('-')[0]!,
  tags: [
    'web',
    ...(t.core ? ['core'] : []),
    ...(t.oracle === null ? ['no-expert'] : []),
    ...(t.heldOut ? ['heldout'] : []),
  ],
}));

export interface MiniwobSuite extends Suite {
  /** Like `instance('train', ...)` on tasks that have an expert. */
  demonstration(seed: number, index: number): TaskInstance;
}

/**
 * MiniWoB++ (Farama Foundation, MIT): the tasks that a seed reproduces. The instruction is drawn by the page itself, so
 * an instance's goal stays a placeholder until the device opens it (`RollbackProof.instruction`). The tasks of
 * `heldout-tasks` are in no other split.
 */
export function createMiniwobSuite(options: SliceOptions = {}): MiniwobSuite {
  const tasks = slice('miniwob', TEMPLATES, options);

  function instance(split: Split, seed: number, index: number, experts = false): TaskInstance {
    if (!SPLITS.includes(split))
      throw new TapwrightError('invalid_config', `Suite miniwob has no split "${split}"; it has ${SPLITS.join(', ')}.`);
    const pool = tasks.filter((t) => t.heldOut === (split === 'heldout-tasks') && (!experts || t.oracle !== null));
    const n = pool.length;
    if (n === 0)
      throw new TapwrightError(
        'invalid_config',
        `tasks: only and without leave suite miniwob no task for ${experts ? 'demonstrations' : `split ${split}`}.`,
      );
    // Whole rounds over the tasks, each in its own order: every task gets the same number of instances.
    const order = createRandom(seed, 'miniwob', split, Math.floor(index / n)).shuffle(pool);
    const chosen = order[index % n]!;
    // Page seeds of different splits never meet: the split is their residue modulo 4.
    const pageSeed = (hashSeed(seed, 'miniwob', split, chosen.name, index) >>> 3) * 4 + SPLITS.indexOf(split);
    const optimal = chosen.moves + 1;
    return {
      id: `miniwob/${chosen.name}/${pageSeed.toString(16).padStart(8, '0')}`,
      suite: 'miniwob',
      template: chosen.name,
      split,
      goal: chosen.name.replaceAll('-', ' '),
      params: {},
      apps: ['page'],
      category: chosen.category,
      tags: chosen.tags,
      snapshot: JSON.stringify({ page: chosen.name, seed: pageSeed, ...(chosen.core ? {} : { rich: true }) }),
      stepBudget: Math.min(30, Math.ceil(2.2 * optimal + 3)),
      optimalSteps: null,
      userFacts: {},
      possible: true,
      seed: pageSeed,
    };
  }

  return {
    id: 'miniwob',
    version: '1.1.0',
    licence: 'MIT',
    backend: 'browser',
    templates: tasks.map((t) => t.name),
    splits: SPLITS,
    vocabulary: () => [...new Set(WORDS.split(' '))].sort(),
    instance: (split, seed, index) => instance(split, seed, index),
    demonstration: (seed, index) => instance('train', seed, index, true),
  };
}

/** What remains to be done on a page. A page that ended without raw reward 1 can no longer be won. */
function plan(view: PageView): Intent[] | null {
  if (view.done) return view.raw === 1 ? [] : null;
  return task(view.template).oracle?.(view) ?? null;
}

/** Ground truth and expert of the suite's pages. Success is a raw reward of exactly 1 (devices.md). */
export function createMiniwobOracle(): PageOracle {
  return {
    truth(view) {
      const moves = plan(view);
      const fields = view.elements.map((e) => `${e.role} ${e.label}=${e.value ?? ''}${e.focused ? '*' : ''}`);
      return {
        key: `${view.template}|${view.done}|${view.raw}|${fields.join('|')}`,
        goalHolds: view.done && view.raw === 1,
        distance: moves?.length ?? null,
        needsFact: null,
      };
    },
    expert(view) {
      if (view.done) return { intent: { kind: 'task_complete', claim: 'done' }, reasoning: 'all set', remaining: '' };
      const moves = plan(view);
      const next = moves?.[0];
      if (!moves || !next) return null;
      const reasoning = next.kind === 'tap' ? `see ${next.target}` : 'write it';
      return { intent: next, reasoning, remaining: remainingWords(moves.slice(1), 'done') };
    },
  };
}
