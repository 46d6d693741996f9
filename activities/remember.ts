/** The function with its results kept by key; concurrent callers share one making, and a failure is not kept. */
export function remember<T>(make: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const held = new Map<string, Promise<T>>();
  return (key) => {
    const known = held.get(key);
    if (known !== undefined) return known;
    const fresh = make(key);
    held.set(key, fresh);
    fresh.catch(() => held.delete(key));
    return fresh;
  };
}
