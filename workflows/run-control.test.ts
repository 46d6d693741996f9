import { describe, expect, it } from 'vitest';
import { runConfigSchema } from '../configs/schema.ts';
import { RunControl } from './run-control.ts';
import type { StagePorts } from './stages.ts';
import { advance } from './stages.ts';
import { startCursor } from './types.ts';
import type { Cursor } from './types.ts';

const config = runConfigSchema.parse({
  name: 'test',
  seed: 1,
  suite: 'sim-phones',
  sft: { demonstrations: 10, steps: 100, chunk: 50 },
  learn: { warmup: 2, updates: 6 },
  evaluation: { every: 0, instances: { train: 2 } },
});
const MINUTE = 60_000;

function steered(cursor: Cursor = startCursor()) {
  const clock = { minutes: 0 };
  return { clock, cursor, control: new RunControl(config, cursor, () => clock.minutes * MINUTE) };
}

/** Runs all stages; `before` is called ahead of each step. What was done, in order. */
async function run(before: (control: RunControl, log: string[], pass: (minutes: number) => void) => void) {
  const { clock, cursor, control } = steered();
  const log: string[] = [];
  const policy = (stage: 'sft' | 'warmup' | 'train', index: number) => ({ stage, index, sampler: `${stage}${index}` });
  const ports: StagePorts = {
    openRun: async () => ({ sftChunks: 0, warmups: 0, updates: 0, policy: null, evaluations: [] }),
    demonstrate: async () => ({ ref: 'sha256:x', demonstrations: 1, rows: 1 }),
    sftChunk: async ({ chunk }) => (log.push(`sft ${chunk + 1}`), { policy: policy('sft', chunk + 1), metrics: {} }),
    update: async (phase, update) => {
      log.push(`${phase} ${update}`);
      control.count(10);
      return { kind: 'done', policy: policy(phase, update), metrics: {} };
    },
    evaluate: async ({ sampler }) => (log.push(`eval ${sampler}`), []),
    report: async () => ({ path: '', digest: '' }),
  };
  while (cursor.stage !== 'done') {
    before(control, log, (minutes) => void (clock.minutes += minutes));
    await advance(cursor, 'r', control.config(), ports, () => {});
  }
  return { log: log.slice(log.indexOf('eval sft2') + 1), all: log, control };
}
const once = (at: string, act: (control: RunControl) => void) => {
  let done = false;
  return (control: RunControl, log: string[]): void => {
    if (done || !log.includes(at)) return;
    done = true;
    act(control);
  };
};

describe('a run under control', () => {
  it('goes to its end when nobody says anything', async () => {
    const { log, control } = await run(() => {});
    expect(log).toEqual(['warmup 1', 'warmup 2', ...[1, 2, 3, 4, 5, 6].map((k) => `train ${k}`), 'eval train6']);
    expect(control.ends()).toBeNull();
  });

  it('ends with an evaluation when a budget is spent', async () => {
    const updates = await run(once('train 1', (control) => control.setBudget({ updates: 3 })));
    expect(updates.log.slice(2)).toEqual(['train 1', 'train 2', 'train 3', 'eval train3']);
    expect(updates.control.ends()).toBe('the budget of 3 updates is spent');
    // Two warm-ups and two updates of ten calls each.
    const judges = await run(once('eval sft2', (control) => control.setBudget({ judgeCalls: 35 })));
    expect(judges.log.slice(2)).toEqual(['train 1', 'train 2', 'eval train2']);
    const minutes = await run((control, log, pass) => {
      if (log.at(-1)?.startsWith('train') === true) pass(10);
      if (log.length === 1) control.setBudget({ minutes: 25 });
    });
    expect(minutes.log.slice(2)).toEqual(['train 1', 'train 2', 'train 3', 'eval train3']);
    expect(minutes.control.ends()).toBe('the budget of 25 minutes is spent');
  });

  it('can be given more updates than its config has', async () => {
    const { log } = await run(once('train 1', (control) => control.setBudget({ updates: 8 })));
    expect(log.slice(-3)).toEqual(['train 7', 'train 8', 'eval train8']);
  });

  it('is evaluated as often as it is told', async () => {
    const { log } = await run(once('train 2', (control) => control.setEvaluationEvery(2)));
    expect(log.filter((line) => line.startsWith('eval'))).toEqual(['eval train2', 'eval train4', 'eval train6']);
  });

  it('stops after an update, or after what is in hand at any stage', async () => {
    const after = await run(once('train 1', (control) => control.stopAfter(2)));
    expect(after.log.slice(2)).toEqual(['train 1', 'train 2', 'eval train2']);
    expect((await run(once('train 2', (c) => c.stopAfter(null)))).log.slice(-2)).toEqual(['train 2', 'eval train2']);
    // The policy of the warm-up is that of SFT, which has its evaluation.
    expect((await run(once('warmup 1', (c) => c.stopAfter(null)))).log).toEqual(['warmup 1']);
    expect((await run(once('sft 1', (c) => c.stopAfter(null)))).all).toEqual(['sft 1', 'eval sft1']);
  });
});

describe('control', () => {
  it('counts minutes at work, not those of a pause, across continue-as-new', () => {
    const { clock, cursor, control } = steered();
    clock.minutes = 5;
    control.pause();
    clock.minutes = 65;
    expect(control.view().used.minutes).toBe(5);
    control.resume();
    clock.minutes = 68;
    cursor.control = control.carried();
    const next = new RunControl(config, JSON.parse(JSON.stringify(cursor)) as Cursor, () => clock.minutes * MINUTE);
    clock.minutes = 70;
    expect(next.view().used.minutes).toBe(10);
  });

  it('is carried paused', () => {
    const { cursor, control } = steered();
    control.pause();
    cursor.control = control.carried();
    expect(new RunControl(config, cursor, () => 1e9).view()).toMatchObject({ paused: true, used: { minutes: 0 } });
  });

  it('lifts the pause of a run that is to stop: its last policy has to be evaluated', () => {
    const { control } = steered();
    control.pause();
    expect(control.stopAfter(null)).toMatchObject({ paused: false, ends: 'stopped as asked' });
  });

  it.each([
    ['pause twice', (c: RunControl) => (c.pause(), c.checkPause()), /paused already/],
    ['resume what runs', (c: RunControl) => c.checkResume(), /not paused/],
    ['an empty budget', (c: RunControl) => c.checkBudget({}), /at least one/],
    ['an unknown budget', (c: RunControl) => c.checkBudget({ euros: 3 } as never), /at least one/],
    ['fewer updates than done', (c: RunControl) => c.checkBudget({ updates: 2 }), /3 updates are done already/],
    ['half an update', (c: RunControl) => c.checkBudget({ updates: 3.5 }), /positive whole number/],
    ['too many updates', (c: RunControl) => c.checkBudget({ updates: 20_000 }), /at most 10000/],
    ['minutes gone by', (c: RunControl) => c.checkBudget({ minutes: 7 }), /7.0 minutes are used/],
    ['text for minutes', (c: RunControl) => c.checkBudget({ minutes: 'x' as never }), /positive number, or none/],
    ['judge calls made', (c: RunControl) => c.checkBudget({ judgeCalls: 40 }), /40 judge calls are made/],
    ['a negative interval', (c: RunControl) => c.checkEvaluationEvery(-1), /no such number/],
    ['a stop in the past', (c: RunControl) => c.checkStop(2), /3 updates are done/],
    ['a stop after the end', (c: RunControl) => c.checkStop(7), /ends after update 6 anyway/],
  ])('refuses %s', (_what, act, sentence) => {
    const { clock, control } = steered({ ...startCursor(), stage: 'train', updates: 3 });
    clock.minutes = 7;
    control.count(40);
    expect(() => act(control)).toThrow(sentence);
  });

  it('refuses everything once the run has ended', () => {
    const { control } = steered({ ...startCursor(), stage: 'done' });
    const checks = [
      () => control.checkPause(),
      () => control.checkResume(),
      () => control.checkBudget({ updates: 9 }),
      () => control.checkEvaluationEvery(3),
      () => control.checkStop(null),
    ];
    for (const check of checks) expect(check).toThrow(/has ended/);
  });
});
