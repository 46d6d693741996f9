import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRandom } from '../../rl/random.ts';
import { createPhoneOracle, createVncSuite } from './suite.ts';
import { hasCompiler, startHostPhone } from './testing.ts';
import type { HostPhone } from './testing.ts';

const suite = createVncSuite();
const oracle = createPhoneOracle();
const N = suite.templates.length;

describe('instances of vnc-phones', () => {
  it('gives every template the same number of instances, the same for the same seed', () => {
    const train = Array.from({ length: 2 * N }, (_, i) => suite.instance('train', 5, i));
    for (const name of suite.templates) expect(train.filter((task) => task.template === name)).toHaveLength(2);
    expect(suite.instance('train', 5, 3)).toEqual(train[3]);
    expect(N).toBeGreaterThanOrEqual(12);
  });

  it('never trains on parameters that are held out, nor on the unseen theme', () => {
    const key = (i: number, split: 'train' | 'validation' | 'heldout-params'): string => {
      const { template, params } = suite.instance(split, 3, i);
      return `${template} ${JSON.stringify(params)}`;
    };
    const trained = new Set(Array.from({ length: 40 * N }, (_, i) => key(i, 'train')));
    for (let i = 0; i < 10 * N; i++) {
      expect(trained.has(key(i, 'heldout-params'))).toBe(false);
      expect(trained.has(key(i, 'validation'))).toBe(false);
    }
    const themes = (split: 'train' | 'heldout-skin'): Set<number> =>
      new Set(Array.from({ length: 2 * N }, (_, i) => JSON.parse(suite.instance(split, 3, i).snapshot).seed as number));
    expect([...themes('train')].sort()).toEqual([0, 1, 2]);
    expect([...themes('heldout-skin')]).toEqual([3]);
  });

  it('knows the words of its goals, and names the splits it has', () => {
    const words = new Set(suite.vocabulary());
    for (let i = 0; i < 4 * N; i++) {
      for (const word of suite.instance('heldout-params', 9, i).goal.split(' ')) expect(words).toContain(word);
    }
    expect(() => suite.instance('demo' as never, 1, 0)).toThrow(/no split "demo"; it has train/);
  });
});

describe.runIf(hasCompiler())('the phone itself', () => {
  let phone: HostPhone;
  beforeAll(() => {
    phone = startHostPhone();
  });
  afterAll(() => phone.close());

  it('starts as the suite says, with a goal that does not hold, and the expert reaches it in the moves it counts', async () => {
    for (let index = 0; index < 3 * N; index++) {
      const split = index % 3 === 2 ? 'heldout-skin' : 'train';
      const task = suite.instance(split, 11, index);
      await phone.start(task);
      for (let left = task.optimalSteps! - 1; left >= 0; left--) {
        const state = await phone.state();
        const truth = oracle.truth(task, state);
        expect([task.id, truth.distance, truth.goalHolds]).toEqual([task.id, left, left === 0]);
        const { intent } = oracle.expert(task, state)!;
        if (left === 0) expect(intent).toEqual({ kind: 'task_complete', claim: 'done' });
        else await phone.act(intent);
      }
    }
  }, 60_000);

  it('is finished by the expert from wherever a curious thumb left it, or is known to be lost', async () => {
    let lost = 0;
    for (let index = 0; index < 2 * N; index++) {
      const task = suite.instance('train', 12, index);
      const random = createRandom(12, 'thumb', index);
      await phone.start(task);
      for (let i = 0; i < 6; i++) {
        const labels = (await phone.outline()).filter(({ role }) => role !== 'label').map(({ label }) => label);
        await phone.act(
          random.next() < 0.15 ? { kind: 'swipe', direction: 'up' } : { kind: 'tap', target: random.pick(labels) },
        );
      }
      let ended = false;
      for (let t = 0; t < 25 && !ended; t++) {
        const move = oracle.expert(task, await phone.state());
        if (move === null || move.intent.kind === 'task_complete') {
          ended = true;
          if (move === null) lost += 1;
        } else await phone.act(move.intent);
      }
      expect([task.id, ended]).toEqual([task.id, true]);
    }
    expect(lost).toBeLessThan(N / 4);
  }, 60_000);
});
