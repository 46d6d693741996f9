import { expect, it } from 'vitest';
import { startTally } from '../workflows/types.ts';
import { progressText, replayText } from './replay-text.ts';

const run = { run: 'my-run', policy: null };

it('says what is identical, what differs and how, and what failed', () => {
  const tally = { ...startTally(5), done: 5, identical: 2, different: 2, failed: 1 };
  const parted = { id: 'u0001/t00/a1', step: 3, field: 'screen_after' as const, recorded: 'a', now: 'b' };
  const text = replayText({
    ...{ ...run, ...tally, mode: 'recorded', why: { device_hung: 1, screen_after: 2 } },
    told: [
      { kind: 'different', ...parted, outcome: 'success', ended: 'step_limit', sentence: 'step 3 (tap wifi): so' },
      { kind: 'failed', id: 'u0002/t00/a0', failure: 'device_hung', message: 'no frame' },
    ],
  });
  expect(text.split('\n')).toEqual([
    '5 recorded attempts of run my-run, on fresh devices, with the recorded decisions',
    '',
    'u0001/t00/a1  differs in screen_after  (success then, step_limit now)',
    '  step 3 (tap wifi): so',
    '',
    'u0002/t00/a0  failed: device_hung',
    '  no frame',
    '',
    'and 1 more',
    '',
    'what differs first, or fails            attempts',
    '  screen_after                                 2',
    '  device_hung                                  1',
    '',
    '2 identical, 2 different, 1 failed',
  ]);
  expect(progressText({ ...tally, done: 3 })).toBe('replayed 3 of 5: 2 identical, 2 different, 1 failed');
});

it('of a live policy says how attempts came out then and now', () => {
  const outcomes = { 'step_limit > success': 3, 'success > success': 1 };
  const text = replayText({ ...run, ...startTally(4), mode: 'live', outcomes, identical: 1, different: 3, why: {} });
  expect(text).toMatch(/^4 recorded attempts .*, decided by the policy that recorded each\n/);
  expect(text).toMatch(/outcome recorded > now +attempts\n {2}step_limit > success +3\n {2}success > success +1\n/);
});
