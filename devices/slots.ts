import pLimit from 'p-limit';

/**
 * So many places at once; further askers wait their turn. Resolves to the function that gives the place back: it is held from
 * open to close, so that a burst of attempts never opens more than there may be.
 */
export function createSlots(count: number): () => Promise<() => void> {
  const limit = pLimit(count);
  return async () => {
    let release: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (release = resolve));
    await new Promise<void>((granted) => {
      void limit(() => {
        granted();
        return closed;
      });
    });
    return release;
  };
}
