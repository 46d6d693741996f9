import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadExperiment, parseRow } from '../../configs/experiment.ts';
import { hierarchicalBootstrap, mcnemarExact, wilsonInterval } from '../../rl/statistics.ts';
import type { ResultCell } from '../../store/index.ts';
import { rowLabel, tableMarkdown } from './markdown.ts';
import { onlyArms, planExperiment } from './plan.ts';
import { createExperimentProgress, secondsLeft } from './progress.ts';
import { experimentTable } from './table.ts';

const folder = mkdtempSync(join(tmpdir(), 'tapwright-experiment-'));
const put = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
put('base.yaml', 'name: base\nseed: 1\nsuite: sim-phones\nscale: quick\nlearn: {estimator: rloo}\n');
const head = 'id: e\nscale: quick\nseeds: [1, 2]\n';
const arms =
  'arms:\n  a: {config: base.yaml, note: first}\n  b: {config: base.yaml, set: [learn.clipHigh=0.3], reference: a}\n';
const plan = (text = head + arms, more: object = {}) => planExperiment({ path: put('e.yaml', text), ...more });
const refusal = (text: string): string => {
  try {
    plan(text);
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_config' });
    return (error as Error).message.replaceAll(`${folder}/`, '');
  }
  throw new Error('it was accepted');
};

describe('the plan of an experiment', () => {
  it('has an imitation a seed, shared by all arms, and the rows of the table', () => {
    const made = plan();
    expect(made.units.map(({ run, from }) => [run, from])).toEqual(
      [1, 2].flatMap((seed) => [
        [`e-quick.sft.s${seed}`, null],
        [`e-quick.a.s${seed}`, `e-quick.sft.s${seed}`],
        [`e-quick.b.s${seed}`, `e-quick.sft.s${seed}`],
      ]),
    );
    const [start, a, b] = made.units;
    expect(start!.config.learn).toMatchObject({ updates: 0, warmup: 0 });
    expect(start!.config.sft).toEqual(a!.config.sft);
    expect([a!.config.seed, a!.config.name, b!.config.learn.clipHigh]).toEqual([1, 'a', 0.3]);
    expect(a!.config.evaluation.heldoutAt).toEqual([0, 0.5, 1]);
    expect(made.plan.rows.map(({ arm, fraction, updates, reference }) => [arm, fraction, updates, reference])).toEqual([
      ['sft', 0, 0, null],
      ['a', 0.5, 12, 'sft@0'],
      ['a', 1, 24, 'sft@0'],
      ['b', 0.5, 12, 'a@1'],
      ['b', 1, 24, 'a@1'],
    ]);
  });

  it('gives an arm that imitates otherwise, or is evaluated otherwise, what it needs', () => {
    const own =
      '  c: {config: base.yaml, set: [sft.steps=10]}\n  d: {config: base.yaml, set: [learn.updates=0, agent.grounder=small]}\n';
    const { units, plan: made } = plan(head + arms + own);
    const from = (arm: string) => units.find((unit) => unit.arm === arm)!.from;
    expect([from('a'), from('c'), from('d')]).toEqual(['e-quick.sft.s1', 'e-quick.sft-of-c.s1', 'e-quick.sft.s1']);
    expect(made.rows.filter(({ arm }) => arm === 'c').map(({ reference }) => reference)).toEqual([
      'sft-of-c@0',
      'sft-of-c@0',
    ]);
    expect(made.rows.filter(({ arm }) => arm === 'd')).toMatchObject([{ fraction: 1, updates: 0, policy: 'sft' }]);
    expect(made.curves.map(({ arm }) => arm)).toEqual(['a', 'b', 'c']);
  });

  it('makes runs of their own for fractions when told so', () => {
    const { units, plan: made } = plan(`${head}partial: run\n${arms}`);
    const half = units.find(({ run }) => run === 'e-quick.a-at-0_5.s1')!;
    expect([half.config.learn.updates, half.config.learn.fraction]).toEqual([12, 0.5]);
    expect(made.rows.find(({ arm, fraction }) => arm === 'a' && fraction === 0.5)!.runs[0]!.run).toBe(half.run);
    expect(units.find(({ run }) => run === 'e-quick.a.s1')!.config.evaluation.heldoutAt).toEqual([0, 1]);
  });

  it('takes the scale, the seeds and the arms of the command', () => {
    const { plan: made, units } = plan(head + arms, { scale: 'short', seeds: [7] });
    expect([made.id, made.rows.at(-1)!.updates, made.seeds]).toEqual(['e-short', 100, [7]]);
    expect(onlyArms(units, ['b']).map(({ run }) => run)).toEqual(['e-short.sft.s7', 'e-short.b.s7']);
    expect(() => onlyArms(units, ['x'])).toThrow(/--only names no arm "x"; there are a, b/);
  });

  it.each(['paper-table', 'judge-noise', 'reasoning-hack'])('of configs/experiments/%s.yaml can be made', (name) => {
    const path = join(import.meta.dirname, '../../configs/experiments', `${name}.yaml`);
    const made = planExperiment({ path, scale: 'quick' });
    expect(made.plan.seeds.length).toBeGreaterThanOrEqual(3);
    // One imitation a seed for all of them.
    expect(made.units.filter(({ from }) => from === null)).toHaveLength(made.plan.seeds.length);
  });

  it('is refused with the place of what is wrong', () => {
    expect(refusal(`${head}armz: {}\n${arms}`)).toMatch(/^e.yaml:4:\d+: armz: /);
    expect(refusal(`${head}arms: {}\n`)).toMatch(/^e.yaml:4:\d+: arms: expected at least one arm/);
    expect(refusal(`${head}${arms}comparisons: [[a, c]]\n`)).toMatch(
      /^e.yaml:7:\d+: comparisons.0.1: there is no arm "c"; there are a, b, sft/,
    );
    expect(refusal(`${head}${arms}comparisons: [[a@0.3, b]]\n`)).toMatch(/a is not reported at 0.3: add it to "at"/);
    expect(refusal(`${head}reference: zz\n${arms}`)).toMatch(/reference: there is no arm "zz"/);
    expect(refusal(`${head}arms:\n  sft: {config: base.yaml}\n`)).toMatch(/arms.sft: this is the name of the policy/);
    expect(refusal(`${head}arms:\n  a: {config: gone.yaml}\n`)).toMatch(
      /^arm a: .*gone.yaml: the config cannot be read/,
    );
    expect(refusal(`${head}${arms}  c: {config: base.yaml, set: [engine.threads=2]}\n`)).toMatch(
      /differ in engine.threads: all runs of/,
    );
    expect(() => loadExperiment(join(folder, 'none.yaml'))).toThrow(
      /none.yaml: the experiment cannot be read: there is no such file/,
    );
    expect(() => parseRow('a@2')).toThrow(/"a@2" names no row/);
  });
});

describe('the table of an experiment', () => {
  const wins: Record<string, (boolean | null)[]> = {
    'e-quick.sft.s1 sft-1': [false, false, true, null],
    'e-quick.sft.s2 sft-1': [false, true, false, false],
    'e-quick.a.s1 train-24': [true, true, true, true],
    'e-quick.a.s2 train-24': [true, true, false, null],
  };
  const results = (run: string): ResultCell[] =>
    Object.entries(wins)
      .filter(([key]) => key.startsWith(`${run} `))
      .map(([key, of]) => ({
        policy: key.includes('train') ? 'rl' : 'sft',
        checkpoint: key.split(' ')[1]!,
        suite: 'sim-phones',
        split: 'heldout-params',
        n: of.filter((win) => win !== null).length,
        successes: of.filter((win) => win === true).length,
        masked: (of.includes(null) ? { device_hung: 1 } : {}) as Record<string, number>,
        outcomes: {},
        perTask: of.map((success, i) => ({ task: `t${i}`, success })),
      }));
  const table = experimentTable(plan().plan, results);

  it('pools seeds, counts what is masked, and pairs by seed and task', () => {
    const [sft, a] = table.splits[0]!.rows;
    expect(sft).toMatchObject({
      arm: 'sft',
      seeds: [1, 2],
      n: 7,
      successes: 2,
      masked: { device_hung: 1 },
      paired: null,
    });
    expect(a).toMatchObject({ arm: 'a', n: 7, successes: 6, wilson: wilsonInterval(6, 7) });
    // Pairs: seed 1 tasks 0 to 2, seed 2 tasks 0 to 2; masked on either side is none.
    expect(a!.paired).toEqual({
      row: 'a@1',
      reference: 'sft@0',
      pairs: 6,
      onlyA: 3,
      onlyB: 0,
      difference: 0.5,
      p: mcnemarExact(3, 0),
    });
    const byTask = [[1, 1], [1, 1], [1, 0], [1]];
    expect(a!.bootstrap).toEqual(hierarchicalBootstrap(byTask, { seed: 14, replicates: 1000 }));
  });

  it('says what is not there yet, and reads the same twice', () => {
    expect(table.missing).toEqual(['e-quick.a.s1', 'e-quick.a.s2', 'e-quick.b.s1', 'e-quick.b.s2']);
    const text = tableMarkdown(table);
    expect(text).toContain('| a | 24 | 2 | 85.7 | 7 | device_hung 1 |');
    expect(text).toContain('Only 2 of at least 3 seeds');
    expect(text).toContain('the checkpoint there of the whole run');
    expect(tableMarkdown(experimentTable(plan().plan, results))).toBe(text);
    expect([rowLabel('ppo@0.5'), rowLabel('ppo@1'), rowLabel('sft@0')]).toEqual(['ppo at 50 %', 'ppo', 'sft']);
    expect(tableMarkdown(experimentTable(plan().plan, () => null))).toContain('Nothing has been evaluated yet');
  });
});

describe('the progress of an experiment', () => {
  it('tells the run, how many are made, and the time left from what was done since it began', () => {
    let [text, time] = ['', 0];
    const { units } = plan(head + arms, { seeds: [1] });
    const progress = createExperimentProgress({
      ...{ units, before: new Set(['e-quick.sft.s1']), tty: false },
      write: (line) => (text += line),
      now: () => time,
    });
    const live = (update: number) =>
      new Map([['e-quick.a.s1', { stage: 'train', update, of: 24, success: 0.5, masked: 0 } as never]]);
    const at = (...states: ('waiting' | 'running' | 'done')[]) => ({
      experiment: 'e',
      units: units.map(({ run }, i) => ({ run, state: states[i]! })),
    });
    progress.show(at('done', 'running', 'waiting'), live(4));
    time = 60_000;
    // Ten of 52 units of work that were not there at first sight (24 + 4 a run, less 4).
    progress.show(at('done', 'running', 'waiting'), live(14));
    expect(text.split('\n')).toHaveLength(2);
    progress.show(at('done', 'done', 'running'), new Map());
    expect(text).toMatch(/^\[1 of 3\] a seed 1 · policy update 4 of 24 · sampled success 50.0 % · elapsed 0s\n/);
    expect(text).toMatch(/\n\[2 of 3\] b seed 1 · elapsed 1m 00s · about 1m 10s left\n$/);
    expect(secondsLeft(1, 10, 5)).toBeNull();
    expect(secondsLeft(10, 40, 5)).toBe(15);
  });
});
