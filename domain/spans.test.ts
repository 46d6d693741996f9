import { expect, it } from 'vitest';
import { createStopwatch } from './spans.ts';

it('gives each span its own time, whatever is inside of it, and hands on results and errors', () => {
  let clock = 0;
  const pass = (ms: number): void => void (clock += ms);
  const { span, spent } = createStopwatch(() => clock);
  const result = span('environment', () => {
    pass(2);
    span('render', () => span('hash', () => pass(20)));
    pass(3);
    return 7;
  });
  expect(result).toBe(7);
  expect(() =>
    span('judge', () => {
      pass(1);
      throw new Error('no');
    }),
  ).toThrow('no');
  // The one that threw is closed: what follows is not inside of it.
  span('wire', () => pass(5));
  span('wire', () => pass(5));
  expect(spent()).toEqual({ environment: 0.005, render: 0, hash: 0.02, judge: 0.001, wire: 0.01 });
});
