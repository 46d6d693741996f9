import { expect, it } from 'vitest';
import { createSlots } from './slots.ts';

it('lets so many in, and the next one when one has left', async () => {
  const slots = createSlots(2);
  const [first] = [await slots(), await slots()];
  let third = false;
  const waiting = slots().then((release) => ((third = true), release));
  await new Promise((resolve) => setImmediate(resolve));
  expect(third).toBe(false);
  first();
  (await waiting)();
  expect(third).toBe(true);
});
