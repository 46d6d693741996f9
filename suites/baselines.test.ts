import { describe, expect, it } from 'vitest';
import { createSimBackend } from '../devices/sim/backend.ts';
import type { TaskInstance } from '../domain/index.ts';
import { attempt, claiming, randomBaseline, recordExpert, replaying, waiting, type Baseline } from './baselines.ts';
import { createSimSuite } from './sim/suite.ts';

const suite = createSimSuite();
const backend = createSimBackend();
const n = suite.templates.length;
const tasks = Array.from({ length: 2 * n }, (_, i) => suite.instance('train', 21, i));

const open = (task: TaskInstance) =>
  backend.open({ task, key: null, seed: 1, faults: {}, infraTry: 0, pixels: null, frames: false });

async function successes(baseline: Baseline): Promise<number> {
  let count = 0;
  for (const task of tasks) count += (await attempt(await open(task), task, baseline)).success ? 1 : 0;
  return count;
}

describe('policies that have learned nothing', () => {
  it('never succeed by doing nothing, by waiting or by claiming at once', async () => {
    expect(await successes(waiting())).toBe(0);
    expect(await successes(claiming('done'))).toBe(0);
    expect(await successes(claiming('blocked'))).toBe(0);
  });

  it('wait to the step cap, and no further', async () => {
    const task = tasks[0]!;
    expect(await attempt(await open(task), task, waiting())).toEqual({
      success: false,
      steps: task.stepBudget,
      claim: null,
    });
  });

  it('hardly ever succeed at random, and the same seed does the same', async () => {
    const task = tasks[3]!;
    const once = await attempt(await open(task), task, randomBaseline(5));
    expect(await attempt(await open(task), task, randomBaseline(5))).toEqual(once);
    expect(await successes(randomBaseline(5))).toBeLessThan(0.05 * tasks.length);
  });

  it('finish their own instance by replaying its demonstration, and almost never another instance', async () => {
    let [own, other] = [0, 0];
    for (let i = 0; i < n; i++) {
      const task = tasks[i]!;
      const moves = await recordExpert(await open(task), task);
      expect(moves).toHaveLength(task.optimalSteps!);
      own += (await attempt(await open(task), task, replaying(moves))).success ? 1 : 0;
      const twin = tasks.slice(n).find((candidate) => candidate.template === task.template)!;
      other += (await attempt(await open(twin), twin, replaying(moves))).success ? 1 : 0;
    }
    expect(own).toBe(n);
    expect(other).toBeLessThan(0.1 * n);
  });
});
