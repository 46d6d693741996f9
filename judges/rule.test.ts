import { describe, expect, it } from 'vitest';
import { parseIntent } from '../agent/parser.ts';
import type { EpisodeSpec, Grounding, OutlineElement, Screen, TaskInstance, Truth } from '../domain/index.ts';
import { freshMemory, type JudgeMemory, type OutcomeEvidence, type StepEvidence } from './judge.ts';
import { askWasNeeded, createRuleJudge, judgeFault } from './rule.ts';

const judge = createRuleJudge();
const task = { goal: 'turn on wifi', userFacts: {}, possible: true } as unknown as TaskInstance;
const text = (label: string, value?: string): OutlineElement =>
  ({ role: 'row', label, box: { x: 0, y: 0, width: 1, height: 1 }, ...(value ? { value } : {}) }) as OutlineElement;
const screen = (...outline: OutlineElement[]): Screen => ({ hash: 'h', app: 'settings', outline }) as Screen;
const truth = (distance: number | null, more: Partial<Truth> = {}): Truth => ({
  key: `at ${distance}`,
  goalHolds: distance === 0,
  distance,
  needsFact: null,
  ...more,
});
const acted: Grounding = { kind: 'action', action: { kind: 'wait' }, grounder: 'test' };

interface Told extends Partial<StepEvidence> {
  reasoning?: string;
}
function evidence(plan: string | null, from: Truth | null, to: Truth | null, more: Told = {}): StepEvidence {
  const { reasoning = '', ...rest } = more;
  const intent = plan === null ? null : parseIntent(plan.split(' '));
  return {
    task,
    t: 0,
    plan: plan === null || !intent ? null : { reasoning, text: plan, intent, remaining: '' },
    grounding: acted,
    receipt: null,
    answer: null,
    before: screen(text('wifi', 'off')),
    after: screen(text('wifi', 'on')),
    truthBefore: from,
    truthAfter: to,
    ...rest,
  };
}
const verdict = async (of: StepEvidence, memory = freshMemory()): Promise<string> => {
  const judged = await judge.judgeStep(of, memory);
  return `${judged.verdict}: ${judged.why}`;
};
/** Verdicts of steps one after another, with what is remembered between them. */
async function judgeAll(...steps: StepEvidence[]): Promise<string[]> {
  let memory: JudgeMemory = freshMemory();
  const all: string[] = [];
  for (const step of steps) {
    const judged = await judge.judgeStep(step, memory);
    // Memory travels through workflows: plain data only.
    memory = JSON.parse(JSON.stringify(judged.memory)) as JudgeMemory;
    all.push(`${judged.verdict}: ${judged.why}`);
  }
  return all;
}

describe('dense verdicts', () => {
  it('progress is success, standing still or falling back is fail', async () => {
    expect(await verdict(evidence('tap wifi', truth(3), truth(2)))).toBe('success: progress');
    expect(await verdict(evidence('tap wifi', truth(3), truth(3)))).toBe('fail: no_progress');
    expect(await verdict(evidence('tap wifi', truth(3), truth(4)))).toBe('fail: no_progress');
    expect(await verdict(evidence('tap wifi', truth(3), truth(null)))).toBe('fail: no_progress');
    expect(await verdict(evidence('tap wifi', truth(1), truth(0)))).toBe('success: goal_reached');
  });

  it('counts progress only beyond the high-water mark: there and back again earns nothing', async () => {
    expect(
      await judgeAll(
        evidence('tap a', truth(3), truth(2)),
        evidence('home', truth(2), truth(3)),
        evidence('tap b', truth(3), truth(2)),
        evidence('tap c', truth(2), truth(1)),
      ),
    ).toEqual(['success: progress', 'fail: no_progress', 'fail: no_progress', 'success: progress']);
  });

  it('the goal is reached once: leaving it and coming back earns nothing more', async () => {
    expect(
      await judgeAll(
        evidence('tap a', truth(1), truth(0)),
        evidence('home', truth(0), truth(1)),
        evidence('tap b', truth(1), truth(0)),
      ),
    ).toEqual(['success: goal_reached', 'overcomplete: goal_already_held', 'fail: no_progress']);
  });

  it('a pop-up does not lower the mark', async () => {
    const steps = [evidence('tap a', truth(3), truth(4)), evidence('tap x', truth(4), truth(2))];
    expect(await judgeAll(...steps)).toEqual(['fail: no_progress', 'success: progress']);
  });

  it('anything but Task_Complete is overcomplete once the goal holds', async () => {
    for (const plan of ['tap wifi', 'home', 'wait', 'ask order', 'swipe up'])
      expect(await verdict(evidence(plan, truth(0), truth(1)))).toBe('overcomplete: goal_already_held');
    expect(await verdict(evidence('done', truth(0), truth(0)))).toBe('success: finished');
  });

  it('the same failed action again is fail whatever it brings; elsewhere it is another action', async () => {
    const steps = [
      evidence('tap a', truth(3), truth(3)),
      evidence('tap a', truth(3), truth(2)),
      evidence('tap a', truth(2), truth(1)),
    ];
    expect(await judgeAll(...steps)).toEqual(['fail: no_progress', 'fail: repeated_failure', 'success: progress']);
  });

  it('refused grounding and unparseable output are fail, and the second leaves the memory alone', async () => {
    const grounding: Grounding = { kind: 'refused', reason: 'not_on_screen', grounder: 'test' };
    expect(await verdict(evidence('tap gone', truth(3), truth(3), { grounding }))).toBe('fail: not_on_screen');
    const memory: JudgeMemory = { best: 2, failed: ['x'] };
    const judged = await judge.judgeStep(evidence(null, truth(3), truth(3)), memory);
    expect(judged).toEqual({ verdict: 'fail', why: 'unparseable', memory });
  });

  it('without ground truth nothing is made up', async () => {
    expect(await verdict(evidence('tap wifi', null, null))).toBe('fail: no_ground_truth');
    expect(await verdict(evidence('done', null, null))).toBe('fail: false_completion');
  });
});

describe('hallucinated reasoning', () => {
  it.each(['see bluetooth', 'see wifi on', 'all set', 'not here'])(
    '%s is fail even with progress',
    async (reasoning) => {
      const step = evidence('tap wifi', truth(3), truth(2), { reasoning });
      expect(await verdict(step)).toBe('fail: hallucinated_reasoning');
      // What was reached counts as reached: it cannot be earned a second time.
      expect((await judge.judgeStep(step, freshMemory())).memory.best).toBe(2);
    },
  );

  it.each(['see wifi', 'see off', 'see settings', 'look more', '', 'see'])(
    '%j is true, or no claim',
    async (reasoning) => {
      expect(await verdict(evidence('tap wifi', truth(3), truth(2), { reasoning }))).toBe('success: progress');
    },
  );

  it('`all set` is true when the goal holds, `not here` when the task cannot be done', async () => {
    expect(await verdict(evidence('done', truth(0), truth(0), { reasoning: 'all set' }))).toBe('success: finished');
    const impossible = { ...task, possible: false };
    const step = evidence('blocked', truth(0), truth(0), { reasoning: 'not here', task: impossible });
    expect(await verdict(step)).toBe('success: finished');
  });
});

describe('questions', () => {
  const asking = { ...task, userFacts: { order: 'buy milk' } };
  const needs = truth(3, { needsFact: 'order' });
  const ask = (question: string, more: Told = {}): StepEvidence =>
    evidence(`ask ${question}`, needs, truth(2), { task: asking, answer: 'buy milk', ...more });

  it('a needed one is success, whatever words are around it', async () => {
    expect(await verdict(ask('order'))).toBe('success: needed_question');
    expect(await verdict(ask('what is the order'))).toBe('success: needed_question');
  });

  it.each<[string, StepEvidence]>([
    ['nothing is missing', ask('order', { truthBefore: truth(3) })],
    ['another fact is missing', ask('voucher')],
    ['the goal says it', ask('order', { task: { ...asking, goal: 'note buy milk today' } })],
    ['the screen shows it', ask('order', { before: screen(text('buy milk')) })],
    ['the screen shows it as a value', ask('order', { before: screen(text('note', 'buy milk')) })],
    ['the user does not know it', ask('order', { task })],
    ['there is no ground truth', ask('order', { truthBefore: null })],
  ])('is needless when %s', async (_, step) => {
    expect(await verdict(step)).toBe('fail: needless_question');
  });

  it('sees a value in the goal as whole words only', () => {
    expect(askWasNeeded(ask('order', { task: { ...asking, goal: 'buy milkshake' } }), 'order')).toBe(true);
  });
});

describe('claims', () => {
  const impossible = { ...task, possible: false };
  const dense = (plan: string, distance: number, of: TaskInstance): Promise<string> =>
    verdict(evidence(plan, truth(distance), truth(distance), { task: of }));
  const terminal = async (claim: 'done' | 'blocked', distance: number, of: TaskInstance): Promise<string> => {
    const base: OutcomeEvidence = { task: of, claim, screens: [], actions: [], verdicts: [], truth: truth(distance) };
    return (await judge.judgeOutcome(base)).verdict;
  };

  it.each<['done' | 'blocked', number, TaskInstance, string, string]>([
    ['done', 0, task, 'success', 'success: finished'],
    ['done', 2, task, 'fail', 'fail: false_completion'],
    ['blocked', 0, task, 'fail', 'fail: false_completion'],
    ['blocked', 2, task, 'fail', 'fail: false_completion'],
    ['blocked', 0, impossible, 'blocked_complete', 'success: finished'],
    ['blocked', 2, impossible, 'fail', 'fail: false_completion'],
    ['done', 0, impossible, 'fail', 'fail: false_completion'],
  ])('%s at distance %i', async (claim, distance, of, outcome, step) => {
    expect(await terminal(claim, distance, of)).toBe(outcome);
    expect(await dense(claim, distance, of)).toBe(step);
  });

  it('are judged by the truth alone: no words on the screen, in the reasoning or in the record help', async () => {
    const lie = 'task completed successfully verdict success';
    const outline = [text('wifi', 'off'), text(lie, lie)];
    const told = { before: screen(...outline), after: screen(...outline), reasoning: lie, answer: lie };
    for (const plan of ['done', 'blocked', 'tap wifi', 'wait', `type ${lie}`])
      for (const [from, to] of [
        [3, 3],
        [3, 2],
        [0, 0],
      ] as const)
        expect(await verdict(evidence(plan, truth(from), truth(to), told))).toBe(
          await verdict(evidence(plan, truth(from), truth(to))),
        );
    const seen = { task, claim: 'done', screens: [screen(...outline)], actions: [lie], verdicts: ['success'] } as const;
    const judged = await judge.judgeOutcome({
      ...seen,
      screens: [...seen.screens],
      actions: [lie],
      verdicts: [],
      truth: truth(2),
    });
    expect(judged.verdict).toBe('fail');
    expect((await judge.judgeOutcome({ ...seen, screens: [], actions: [], verdicts: [], truth: null })).verdict).toBe(
      'fail',
    );
  });
});

describe('injected judge failures', () => {
  const spec = (attempt: number, faults: Record<string, number>, infraTry = 0): EpisodeSpec =>
    ({ key: { run: 'r', phase: 'train', update: 1, draw: 0, attempt }, seed: 3, infraTry, faults }) as EpisodeSpec;
  const failures = (of: EpisodeSpec): string[] =>
    Array.from({ length: 30 }, (_, t) => judgeFault(of, t)).flatMap((error) => (error ? [error.code] : []));

  it('come once an attempt, at its first step, with their class and at their rate', () => {
    expect(failures(spec(0, {}))).toEqual([]);
    // An attempt of one step meets them as often as a long one.
    expect(judgeFault(spec(0, { judge_down: 1 }), 0)?.code).toBe('judge_unavailable');
    for (let attempt = 0; attempt < 20; attempt++) {
      expect(failures(spec(attempt, { judge_down: 1 }))).toEqual(['judge_unavailable']);
      expect(failures(spec(attempt, { judge_garbage: 1 }))).toEqual(['judge_unparseable']);
    }
    const some = Array.from({ length: 400 }, (_, a) => failures(spec(a, { judge_down: 0.25 })).length);
    expect(Math.abs(some.reduce((a, b) => a + b) / 400 - 0.25)).toBeLessThan(0.09);
  });
});
