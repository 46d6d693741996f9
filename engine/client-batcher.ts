/**
 * Collects the items given within one turn of the event loop and works on them together, at most `max` at a time.
 * `work` answers in the order of its items; when it throws, all of them fail.
 */
export function createBatcher<Item, Result>(options: {
  max: number;
  work: (items: Item[]) => Promise<PromiseSettledResult<Result>[]>;
}): (item: Item) => Promise<Result> {
  const { max, work } = options;
  interface Waiting {
    item: Item;
    resolve: (result: Result) => void;
    reject: (error: unknown) => void;
  }
  let waiting: Waiting[] = [];

  async function flush(batch: Waiting[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, i) => {
        const result = results[i]!;
        if (result.status === 'fulfilled') resolve(result.value);
        else reject(result.reason);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (waiting.length > 1) return;
      setImmediate(() => {
        const all = waiting;
        waiting = [];
        for (let i = 0; i < all.length; i += max) void flush(all.slice(i, i + max));
      });
    });
}
