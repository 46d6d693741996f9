import { remainingWords } from '../../devices/expert-words.ts';
import type { PageOracle, PageView } from '../../devices/browser/view.ts';
import type { Intent, Split, TaskInstance } from '../../domain/index.ts';
import { TapwrightError } from '../../domain/index.ts';
import { createRandom, hashSeed } from '../../rl/random.ts';
import type { Suite } from '../suite.ts';
import { MINIWOB_TASKS } from './tasks.ts';

/** Words of instructions and fixed labels; names and random strings become hashed words in the planner. */
const WORDS =
  'Click on the button link dialog box by clicking x in labeled Cancel OK Tab 1 2 3 Focus into 1st 2nd 3rd input textbox ' +
  'Expand section below and click submit Submit Select nothing Enter text field press password Password Verify verify ' +
  'both fields Username username Login Section field Me START okay Okay ok Ok yes Yes no No cancel next Next ' +
  'previous Previous Close Click';

function task(template: string) {
  const found = MINIWOB_TASKS.find((t) => t.name === template);
  if (!found)
    throw new TapwrightError(
      'invalid_input',
      `Suite miniwob has no task "${template}"; it has ${MINIWOB_TASKS.map((t) => t.name).join(', ')}.`,
    );
  return found;
}

/**
 * MiniWoB++ (Farama Foundation, MIT): the tasks that a seed reproduces. The instruction is drawn by the page itself, so
 * an instance's goal stays a placeholder until the device opens it (`RollbackProof.instruction`).
 */
export function createMiniwobSuite(): Suite {
  const splits: readonly Split[] = ['train', 'validation', 'heldout-params'];
  return {
    id: 'miniwob',
    version: '1.1.0',
    licence: 'MIT',
    backend: 'browser',
    templates: MINIWOB_TASKS.map((t) => t.name),
    splits,
    vocabulary: () => [...new Set(WORDS.split(' '))].sort(),
    instance(split, seed, index): TaskInstance {
      if (!splits.includes(split))
        throw new TapwrightError(
          'invalid_config',
          `Suite miniwob has no split "${split}"; it has ${splits.join(', ')}.`,
        );
      // Whole rounds over the tasks, each in its own order: every task gets the same number of instances.
      const n = MINIWOB_TASKS.length;
      const order = createRandom(seed, 'miniwob', split, Math.floor(index / n)).shuffle(MINIWOB_TASKS);
      const chosen = order[index % n]!;
      // Page seeds of different splits never meet: the split is their residue modulo 4.
      const pageSeed = (hashSeed(seed, 'miniwob', split, chosen.name, index) >>> 3) * 4 + splits.indexOf(split);
      const optimal = chosen.moves + 1;
      return {
        id: `miniwob/${chosen.name}/${pageSeed.toString(16).padStart(8, '0')}`,
        suite: 'miniwob',
        template: chosen.name,
        split,
        goal: chosen.name.replaceAll('-', ' '),
        params: {},
        apps: ['page'],
        category: chosen.name.split('-')[0]!,
        tags: ['web'],
        snapshot: JSON.stringify({ page: chosen.name, seed: pageSeed }),
        stepBudget: Math.ceil(2.2 * optimal + 3),
        optimalSteps: null,
        userFacts: {},
        possible: true,
        seed: pageSeed,
      };
    },
  };
}

/** What remains to be done on a page. A page that ended without raw reward 1 can no longer be won. */
function plan(view: PageView): Intent[] | null {
  if (view.done) return view.raw === 1 ? [] : null;
  return task(view.template).oracle(view);
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
