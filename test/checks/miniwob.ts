import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createBrowserBackend } from '../../devices/browser/backend.ts';
import type { DeviceHandle } from '../../devices/device.ts';
import type { TaskInstance } from '../../domain/index.ts';
import { attempt, claiming, recordExpert } from '../../suites/baselines.ts';
import { EXCLUDED, MINIWOB_TASKS } from '../../suites/miniwob/catalogue.ts';
import { miniwobPages } from '../../suites/miniwob/pages.ts';
import { createMiniwobOracle, createMiniwobSuite } from '../../suites/miniwob/suite.ts';

/**
 * `npm run check:miniwob [-- --seeds 3 --task click-shape ...]`: every task of the suite in a real browser. For each: the same
 * seed twice gives the same instruction and the same outline; claiming at once is no success; the expert, where there is
 * one, finishes within the step budget. Also that the catalogue covers exactly the pages of the package.
 */
const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '3' }, task: { type: 'string', multiple: true, default: [] } },
});
const seeds = Number(values.seeds);
if (!Number.isInteger(seeds) || seeds < 1) throw new Error(`--seeds is a whole number from 1, not ${values.seeds}.`);
const pages = readdirSync(join(miniwobPages(), 'miniwob'))
  .filter((file) => file.endsWith('.html'))
  .map((file) => file.slice(0, -'.html'.length));
const listed = [...MINIWOB_TASKS.map((task) => task.name), ...Object.keys(EXCLUDED)];
const missing = pages.filter((page) => !listed.includes(page));
const surplus = listed.filter((name) => !pages.includes(name));

const backend = createBrowserBackend({ pages: miniwobPages(), oracle: createMiniwobOracle(), maxPages: 1 });
const open = (task: TaskInstance): Promise<DeviceHandle> =>
  backend.open({ task, key: null, seed: 1, faults: {}, infraTry: 0, pixels: null });

/** Instruction and outline right after reset, as one hash. */
async function first(task: TaskInstance): Promise<string> {
  const handle = await open(task);
  try {
    const { instruction } = await handle.rollback();
    const { outline } = await handle.observe();
    return createHash('sha256')
      .update(JSON.stringify([instruction, outline]))
      .digest('hex');
  } finally {
    await handle.close();
  }
}

async function using<T>(task: TaskInstance, work: (handle: DeviceHandle) => Promise<T>): Promise<T> {
  const handle = await open(task);
  try {
    return await work(handle);
  } finally {
    await handle.close();
  }
}

const failures: string[] = [];
let [solved, tried] = [0, 0];
console.log('task                          split     expert  same seed  claim at once  note');
for (const { name, heldOut, oracle } of MINIWOB_TASKS) {
  if (values.task.length > 0 && !values.task.includes(name)) continue;
  const split = heldOut ? 'heldout-tasks' : 'train';
  const one = createMiniwobSuite({ only: [name] });
  let [same, won, idle] = [0, 0, 0];
  let note = '';
  for (let i = 0; i < seeds; i++) {
    const task = one.instance(split, 77, i);
    try {
      if ((await first(task)) === (await first(task))) same++;
      if ((await using(task, (handle) => attempt(handle, task, claiming('done')))).success) idle++;
      if (!oracle) continue;
      const end = await using(task, async (handle) => {
        const moves = await recordExpert(handle, task);
        return { moves, holds: (await handle.truth())!.goalHolds };
      });
      if (end.holds && end.moves.at(-1)?.kind === 'task_complete') won++;
      else
        note = `seed ${i}: ${end.moves.map((m) => ('target' in m ? m.target : 'text' in m ? `"${m.text}"` : m.kind)).join(', ')}`;
    } catch (error) {
      note = String(error);
    }
  }
  if (oracle) [solved, tried] = [solved + won, tried + seeds];
  const fine = same === seeds && idle === 0 && (oracle === null || won === seeds);
  if (!fine) failures.push(name);
  const expert = oracle ? `${won}/${seeds}` : '-';
  console.log(
    `${name.padEnd(30)}${split.slice(0, 8).padEnd(10)}${expert.padEnd(8)}${`${same}/${seeds}`.padEnd(11)}${String(idle).padEnd(15)}${fine ? '' : note.slice(0, 160)}`,
  );
}
await backend.close();
const withExpert = MINIWOB_TASKS.filter((task) => task.oracle).length;
console.log(
  `${MINIWOB_TASKS.length} tasks (${MINIWOB_TASKS.filter((t) => t.heldOut).length} held out, ${withExpert} with an expert), ${Object.keys(EXCLUDED).length} pages left out, of ${pages.length}; experts ${solved} of ${tried}.`,
);
if (missing.length > 0) failures.push(`pages that the catalogue does not have: ${missing.join(', ')}`);
if (surplus.length > 0) failures.push(`catalogue entries without a page: ${surplus.join(', ')}`);
if (failures.length > 0) {
  console.error(`Failed: ${failures.join(', ')}`);
  process.exitCode = 1;
}
