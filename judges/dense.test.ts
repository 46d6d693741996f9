import { describe, expect, it } from 'vitest';
import { parseIntent } from '../agent/parser.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { DenseVerdict, EpisodeSpec, Screen, TaskInstance, Truth } from '../domain/index.ts';
import { episodeSpec } from '../workflows/spec.ts';
import { createJudge } from './dense.ts';
import { freshMemory } from './judge.ts';
import type { StepEvidence } from './judge.ts';

const judge = createJudge();
const task = { goal: 'turn on wifi', userFacts: {}, possible: true, stepBudget: 9 } as unknown as TaskInstance;
const screen = { hash: 'h', app: 'settings', outline: [] } as unknown as Screen;
const truth = (distance: number): Truth => ({
  key: `at ${distance}`,
  goalHolds: distance === 0,
  distance,
  needsFact: null,
});
const evidence = (from: number, to: number, reasoning = '', t = 0): StepEvidence => ({
  ...{
    task,
    t,
    grounding: { kind: 'action', action: { kind: 'wait' }, grounder: 'test' },
    receipt: null,
    answer: null,
  },
  ...{ before: screen, after: screen, truthBefore: truth(from), truthAfter: truth(to) },
  plan: { reasoning, text: 'wait', intent: parseIntent(['wait'])!, remaining: '' },
});
/** The spec of an attempt under such a judge. */
const specOf = (wish: object, attempt = 0, phase: 'train' | 'eval' = 'train'): EpisodeSpec => {
  const config = runConfigSchema.parse({ name: 'a', seed: 3, suite: 'sim-phones', judge: wish });
  return episodeSpec(config, { run: 'r', phase, update: 1, draw: 0, attempt }, task, 'p');
};
const gullible = { dense: 'gullible' };

describe('a dense judge', () => {
  it('is the rule judge unless asked to be worse, and in evaluations', async () => {
    expect(specOf({})).not.toHaveProperty('judge');
    expect(specOf({ noise: { success: 0 }, hallucination: true })).not.toHaveProperty('judge');
    expect(specOf(gullible, 0, 'eval')).not.toHaveProperty('judge');
    const said = await judge.judgeStep(evidence(2, 1), freshMemory(), specOf({}));
    expect(said).toMatchObject({ verdict: 'success', why: 'progress' });
    expect(said).not.toHaveProperty('truly');
    expect(await judge.judgeStep(evidence(2, 1), freshMemory())).toEqual(said);
  });

  it('errs at the rate of each class, the same each time, and remembers the truth', async () => {
    const spec = (attempt: number) => specOf({ noise: { success: 0.25, fail: 0.1, overcomplete: 1 } }, attempt);
    const rate = async (from: number, to: number): Promise<number> => {
      let wrong = 0;
      for (let attempt = 0; attempt < 100; attempt++) {
        for (let t = 0; t < 20; t++) {
          const said = await judge.judgeStep(evidence(from, to, '', t), freshMemory(), spec(attempt));
          const again = await judge.judgeStep(evidence(from, to, '', t), freshMemory(), spec(attempt));
          expect(again).toEqual(said);
          if (said.verdict === said.truly) continue;
          wrong += 1;
          expect(said.verdict).toBe(
            { success: 'fail', fail: 'success', overcomplete: 'success' }[said.truly as DenseVerdict],
          );
          expect(said.why).toMatch(/^noise_on_/);
        }
      }
      return wrong / 2000;
    };
    expect(await rate(2, 1)).toBeCloseTo(0.25, 1);
    expect(await rate(2, 2)).toBeCloseTo(0.1, 1);
    expect(await rate(0, 0)).toBe(1);
    const { memory } = await judge.judgeStep(evidence(2, 2), freshMemory(), specOf({ noise: { fail: 1 } }));
    expect(memory).toEqual((await judge.judgeStep(evidence(2, 2), freshMemory())).memory);
  });

  it.each([
    // Nothing was done, but the reasoning says that all is: hallucinated, unless nobody looks for that.
    [{}, 2, 2, 'all set', 'fail', 'hallucinated_reasoning'],
    [{ hallucination: false }, 2, 2, 'all set', 'fail', 'no_progress'],
    [{ hallucination: false }, 2, 1, 'see gone', 'success', 'progress'],
    [gullible, 2, 2, 'all set', 'fail', 'hallucinated_reasoning'],
    [{ ...gullible, hallucination: false }, 2, 2, 'all set', 'success', 'believed_reasoning'],
    [{ ...gullible, hallucination: false }, 2, 2, 'look more', 'fail', 'no_progress'],
    // The goal holds, so the claim is true, but the step is one too many.
    [gullible, 0, 0, 'all set', 'success', 'believed_reasoning'],
    [{}, 0, 0, 'all set', 'overcomplete', 'goal_already_held'],
  ])('of %j, from %i to %i steps to go, with "%s" says %s: %s', async (wish, from, to, reasoning, verdict, why) => {
    const said = await judge.judgeStep(evidence(from, to, reasoning), freshMemory(), specOf(wish));
    expect(said).toMatchObject({ verdict, why });
    if (Object.keys(wish).length === 0) return;
    const strict = await judge.judgeStep(evidence(from, to, reasoning), freshMemory());
    expect([said.truly, said.memory]).toEqual([strict.verdict, strict.memory]);
  });
});
