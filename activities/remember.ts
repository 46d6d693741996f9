/** The function with its results kept by key; concurrent callers share one making, and a failure is not kept. */
export function remember<T>(make: (key: string) => Promise<T>): ((key: string) => Promise<T>) & {
  /** The next call of this key makes it anew. */
  forget(key: string): void;
} {
  const held = new Map<string, Promise<T>>();
  const get = (key: string): Promise<T> => {
    const known = held.get(key);
    if (known !== undefined) return known;
    const fresh = make(key);
    held.set(key, fresh);
    fresh.catch(() => held.delete(key));
    return fresh;
  };
  return Object.assign(get, { forget: (key: string) => void held.delete(key) });
}
