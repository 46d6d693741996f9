import { expect, it } from 'vitest';
import { createFutures } from './futures.ts';

it('gives a result again for a while after it was fetched, and keeps what nobody has fetched', async () => {
  const futures = createFutures({ keep: 100, keepFetched: 2 });
  const ids = [1, 2, 3, 4].map((n) => futures.start(Promise.resolve(n)).request_id);
  const value = async (i: number): Promise<unknown> => {
    const settled = await futures.wait(ids[i]!, 1000);
    return typeof settled === 'string' ? settled : settled.ok && settled.value;
  };
  expect([await value(0), await value(1), await value(0)]).toEqual([1, 2, 1]);
  // The third that is fetched pushes out the one that was asked for longest ago.
  expect(await value(2)).toBe(3);
  expect([await value(1), await value(0), await value(2), await value(3)]).toEqual(['unknown', 1, 3, 4]);
});

it('forgets the oldest settled ones beyond its bound, and says pending of what is not ready', async () => {
  const futures = createFutures({ keep: 2, keepFetched: 2 });
  const open = futures.start(new Promise(() => {})).request_id;
  const first = futures.start(Promise.resolve(1)).request_id;
  await futures.wait(first, 10);
  for (const n of [2, 3]) futures.start(Promise.resolve(n));
  expect(await futures.wait(first, 10)).toBe('unknown');
  expect(await futures.wait(open, 5)).toBe('pending');
});
