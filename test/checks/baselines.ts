import { parseArgs } from 'node:util';
import { createBrowserBackend } from '../../devices/browser/backend.ts';
import { findChromium } from '../../devices/browser/chromium.ts';
import type { DeviceBackend } from '../../devices/device.ts';
import { createSimBackend } from '../../devices/sim/backend.ts';
import type { TaskInstance } from '../../domain/index.ts';
import {
  attempt,
  claiming,
  randomBaseline,
  recordExpert,
  replaying,
  waiting,
  type Baseline,
} from '../../suites/baselines.ts';
import { hasMiniwobPages, miniwobPages } from '../../suites/miniwob/pages.ts';
import { createMiniwobOracle, createMiniwobSuite } from '../../suites/miniwob/suite.ts';
import { createSimSuite } from '../../suites/sim/suite.ts';
import type { Suite } from '../../suites/suite.ts';

/**
 * `npm run check:baselines [-- --n 300 --pages 85]`: what policies that have learned nothing are worth on each suite: doing nothing
 * (waiting, or claiming at once), random moves, and the demonstration of one instance repeated blindly on another of the
 * same template. Fails when doing nothing succeeds anywhere.
 */
const { values } = parseArgs({
  options: { n: { type: 'string', default: '300' }, pages: { type: 'string', default: '85' } },
});

async function measure(name: string, suite: Suite, backend: DeviceBackend, n: number): Promise<void> {
  const run = async <T>(
    task: TaskInstance,
    work: (handle: Awaited<ReturnType<DeviceBackend['open']>>) => Promise<T>,
  ) => {
    const handle = await backend.open({
      task,
      key: null,
      seed: 1,
      faults: {},
      infraTry: 0,
      pixels: null,
      frames: false,
    });
    try {
      return await work(handle);
    } finally {
      await handle.close();
    }
  };
  const succeeds = async (task: TaskInstance, baseline: Baseline): Promise<number> =>
    (await run(task, (handle) => attempt(handle, task, baseline))).success ? 1 : 0;
  const tasks = Array.from({ length: n }, (_, i) => suite.instance('train', 21, i));
  const later = Array.from({ length: n }, (_, i) => suite.instance('train', 22, i));
  let [nothing, random, blind, pairs] = [0, 0, 0, 0];
  for (const task of tasks) {
    const idle = (await succeeds(task, waiting())) + (await succeeds(task, claiming('done')));
    nothing += idle + (await succeeds(task, claiming('blocked')));
    random += await succeeds(task, randomBaseline(5));
    const twin = later.find((other) => other.template === task.template);
    if (!twin) continue;
    pairs++;
    const moves = await run(task, (handle) => recordExpert(handle, task));
    blind += await succeeds(twin, replaying(moves));
  }
  const share = (of: number, all: number): string =>
    `${of} of ${all} (${((100 * of) / Math.max(1, all)).toFixed(1)} %)`;
  console.log(`${name}: nothing ${share(nothing, n)}, random ${share(random, n)}, blind replay ${share(blind, pairs)}`);
  if (nothing > 0) process.exitCode = 1;
}

const n = Number(values.n);
const sim = createSimBackend();
await measure('sim-phones core', createSimSuite({ only: ['core'] }), sim, n);
await measure('sim-phones', createSimSuite(), sim, n);
if (findChromium() !== null && hasMiniwobPages()) {
  const browser = createBrowserBackend({ pages: miniwobPages(), oracle: createMiniwobOracle(), maxPages: 1 });
  await measure('miniwob', createMiniwobSuite(), browser, Number(values.pages));
  await browser.close();
} else console.log('miniwob: no Chromium or no pages here (npm run setup -- --browser)');
