import { describe, expect, it } from 'vitest';
import type { Episode, JudgedStep, OutlineElement, Screen } from '../domain/index.ts';
import { episodeDifference, startDifference } from './replay-differences.ts';
import type { DecisionCheck } from './replay-differences.ts';

const wifi: OutlineElement = { role: 'switch', label: 'wifi', value: 'off', box: { x: 0, y: 0, width: 9, height: 9 } };
const screen = (more: Partial<Screen> = {}): Screen => ({
  ...{ png: null, width: 90, height: 180, scale: 1, space: 'pixel', frame: 0, hash: '0f', degenerate: false },
  ...{ app: 'settings', outline: [wifi] },
  ...more,
});
const step = (t: number, more: Partial<JudgedStep> = {}): JudgedStep => ({
  t,
  sample: {
    promptTokens: [1, 2],
    responseTokens: [3],
    logprobs: [-0.5],
    hidden: null,
    allowed: null,
    text: 'tap wifi',
  },
  plan: { reasoning: '', text: 'tap wifi', intent: { kind: 'tap', target: 'wifi' }, remaining: '' },
  grounding: { kind: 'action', action: { kind: 'tap', at: { x: 4, y: 4 } }, grounder: 'small' },
  receipt: { verified: true, strategy: 'touch' },
  answer: null,
  before: screen(),
  truthBefore: { key: '{"wifi":"off"}', goalHolds: false, distance: 1, needsFact: null },
  after: screen({ hash: 'f0', outline: [{ ...wifi, value: 'on' }] }),
  truthAfter: { key: '{"wifi":"on"}', goalHolds: true, distance: 0, needsFact: null },
  ...{ dense: 'success', why: 'goal_reached' },
  ...more,
});
const episode = (steps: JudgedStep[], more: Partial<Episode> = {}): Episode => ({
  ...{ id: 'u0001/t00/a0', key: { run: 'r', phase: 'train', update: 1, draw: 0, attempt: 0 } },
  task: { id: 'x/y/0', goal: 'turn on wifi' } as Episode['task'],
  ...{ policy: 'p', steps, claim: 'done', terminal: 'success', outcome: 'success' },
  ...more,
});
const old = episode([step(0), step(1)]);
const sentence = (second: Partial<JudgedStep>, decision: DecisionCheck = 'none'): string | undefined =>
  episodeDifference(old, episode([step(0), step(1, second)]), decision)?.sentence;

describe('the first difference of two attempts', () => {
  it('is none where they are equal; pixels, frames, and a reason in other words do not count', () => {
    const now = step(1, { before: screen({ frame: 7, png: 'sha256:1' }), why: 'other words' });
    expect(episodeDifference(old, episode([step(0), now]), 'bits')).toBeNull();
    // What a record has lost by being written: keys without a value.
    expect(sentence({ receipt: { verified: true, strategy: 'touch', note: undefined } as never })).toBeUndefined();
  });

  it.each<[Partial<JudgedStep>, RegExp]>([
    [
      { after: screen({ hash: 'ff', outline: [wifi] }) },
      /^step 1 \(tap wifi\): the screen after it is another one: hash f0 was recorded, now it is hash ff; switch "wifi" was on and is off$/,
    ],
    [
      { after: screen({ hash: 'f0', outline: [] }) },
      /one outline was recorded, now it is another one of the same hash; switch "wifi" is missing$/,
    ],
    [{ after: screen({ hash: 'f0', app: 'mail' }) }, /app settings was recorded, now it is app mail$/],
    [{ before: screen({ outline: [wifi, { ...wifi, label: 'radio' }] }) }, /screen before it .*switch "radio" is new$/],
    [{ before: screen({ width: 91 }) }, /screen before it .*"width":90.*"width":91/],
    [{ receipt: { verified: false, strategy: 'touch', note: 'off_screen' } }, /device's receipt .*off_screen/],
    [{ grounding: { kind: 'refused', reason: 'not_on_screen', grounder: 'small' } }, /now it is refused \(not_on_scr/],
    [{ answer: 'alice' }, /the user answered otherwise: null was recorded, now it is alice$/],
    [
      { truthAfter: { key: '{}', goalHolds: false, distance: null, needsFact: null } },
      /goal holds, 0 steps to go was recorded, now it is goal does not hold, no known way there$/,
    ],
    [
      { truthAfter: { key: '{"wifi":"an"}', goalHolds: true, distance: 0, needsFact: null } },
      /state after it .*"wifi":"on.* was recorded, now it is .*"wifi":"an/,
    ],
    [{ dense: 'fail', why: 'no_progress' }, /judged otherwise: success \(goal_reached\) .* fail \(no_progress\)$/],
  ])('is said in one sentence %#', (second, expected) => {
    expect(sentence(second)).toMatch(expected);
  });

  it('looks at decisions only where they were made anew, at their bits only of the same policy', () => {
    const { sample } = step(1);
    const likelier = { sample: { ...sample, logprobs: [-0.25] } };
    expect(sentence(likelier, 'text')).toBeUndefined();
    expect(sentence(likelier, 'bits')).toMatch(/came with other probabilities/);
    const prompted = { sample: { ...sample, promptTokens: [1, 9] } };
    expect(sentence(prompted, 'none')).toBeUndefined();
    expect(sentence(prompted, 'text')).toMatch(/shown something else: 2 tokens .*token 1 was 2 and is 9$/);
    const other = { sample: { ...sample, responseTokens: [4], text: 'home' } };
    expect(sentence(other, 'text')).toMatch(/decided otherwise: "tap wifi" was recorded, now it is "home"$/);
  });

  it('may be the length, the claim, the terminal verdict, or the goal', () => {
    const at = (now: Episode): string | undefined => episodeDifference(old, now, 'none')?.sentence;
    expect(at(episode([step(0)]))).toMatch(/^step 1: the replay ends where the recorded attempt went on: 2 steps/);
    expect(at(episode([step(0), step(1), step(2)]))).toMatch(
      /^step 2: the replay goes on where the recorded attempt en/,
    );
    expect(at(episode(old.steps, { claim: 'blocked' }))).toMatch(/^at the end: the agent claimed something else/);
    expect(at(episode(old.steps, { terminal: 'fail' }))).toMatch(/terminal judge judged otherwise: success was/);
    const goal = { task: { ...old.task, goal: 'turn on radio' } };
    expect(at(episode(old.steps, goal))).toMatch(/^before the first step: the device set another goal: turn on wifi/);
    expect(startDifference(old.steps[1]!, { before: screen(), truthBefore: null })).toMatchObject({
      ...{ step: 1, field: 'truth_before', now: 'no ground truth' },
    });
  });
});
