/**
 * Where a process's time goes: a stopwatch for synchronous work, by name. Not part of the vocabulary's index, because it
 * reads a clock and workflow code must not.
 */
export type SpanName =
  | 'sample'
  | 'environment'
  | 'render'
  | 'hash'
  | 'judge'
  | 'record'
  | 'assemble'
  | 'critic'
  | 'train'
  | 'checkpoint'
  | 'wire';

export interface Stopwatch {
  /** Runs `work` and adds its time to `name`; a span inside another one is not counted twice. */
  span<T>(name: SpanName, work: () => T): T;
  /** Seconds by name so far. */
  spent(): Partial<Record<SpanName, number>>;
}

/** `now`: a clock in milliseconds. */
export function createStopwatch(now: () => number): Stopwatch {
  const totals = new Map<SpanName, number>();
  /** Milliseconds that spans inside each open span have taken. */
  const inner: number[] = [];
  return {
    span: (name, work) => {
      const started = now();
      inner.push(0);
      try {
        return work();
      } finally {
        const took = now() - started;
        totals.set(name, (totals.get(name) ?? 0) + took - inner.pop()!);
        if (inner.length > 0) inner[inner.length - 1]! += took;
      }
    },
    spent: () => Object.fromEntries([...totals].map(([name, ms]) => [name, ms / 1000])),
  };
}

/** This process's own. */
export const { span, spent } = createStopwatch(() => performance.now());
