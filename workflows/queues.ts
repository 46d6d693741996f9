/** Names of the task queues, in one place. `prefix` is the home's: two homes on one server never share a queue. */
export interface Queues {
  workflow: string;
  device: (host: string) => string;
  learn: string;
}

/** Device queues are per host, not per device: a host knows which of its devices are free (temporal.md, 3). */
export function queues(prefix: string): Queues {
  return {
    workflow: `${prefix}-workflow`,
    device: (host) => `${prefix}-device-${host}`,
    learn: `${prefix}-learn`,
  };
}
