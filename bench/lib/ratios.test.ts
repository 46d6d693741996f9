import { describe, expect, it } from 'vitest';
import { alternate, median, ratioOf } from './alternate.ts';
import { boundOf, readBudget, verdictOf } from './budget.ts';
import { markdown } from './markdown.ts';

describe('ratios of the bench', () => {
  it('takes the middle value, or the mean of the middle two', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it('measures both sides in turn, the first of a pair changing, and leaves out the warm round', async () => {
    const order: string[] = [];
    let figure = 0;
    const side = (name: string) => () => {
      order.push(name);
      return ++figure;
    };
    const found = await alternate(2, side('a'), side('b'), { warm: true });
    expect(order).toEqual(['a', 'b', 'b', 'a', 'a', 'b']);
    expect(found).toEqual({ a: [4, 5], b: [3, 6], ratios: [4 / 3, 5 / 6] });
  });

  it('holds medians to the budget, which names ratios that there are', async () => {
    const ratio = ratioOf('hash/imagehash', 'ours / theirs', [0.9, 1.2, 1.1]);
    const budget = { 'hash/imagehash': { max: 1 }, 'engine/train': { min: 1 } };
    expect(boundOf(ratio, budget)).toBe('<= 1');
    expect(verdictOf(ratio, budget)).toBe('hash/imagehash: 1.100, allowed <= 1 (ours / theirs)');
    expect(verdictOf({ ...ratio, median: 1 }, budget)).toBeNull();
    expect(verdictOf({ ...ratio, key: 'engine/train', median: 0.99 }, budget)).toContain('allowed >= 1');
    expect(verdictOf({ ...ratio, key: 'free', median: 9 }, budget)).toBeNull();
    expect(Object.keys(await readBudget())).toContain('pipeline/temporal');
    expect(markdown({ ratios: [ratio], tables: [], notes: ['a note'] }, budget)).toContain(
      '| ours / theirs | 1.100 | 0.900 to 1.200 | 3 | <= 1 |',
    );
  });
});
