import { TapwrightError, type DeviceAction, type Lease } from '../domain/index.ts';

/** How far the action of one step has come: `issued` is written before the device sees it, `done` after it answered. */
export type StepState = 'planned' | 'issued' | 'done';

/** One line of the ledger. */
export interface StepEntry {
  kind: 'step';
  device: string;
  /** The lease's fencing token: a token and a step number name one action for ever. */
  token: number;
  t: number;
  holder: string;
  action: DeviceAction['kind'];
  state: StepState;
}

/** Says of every action whether a device may have performed it, also after a crash (design.md, 5). */
export interface StepLedger {
  /** Error: `worker_lost` when an action of this step was planned before: it is not to be performed again. */
  check(lease: Lease, t: number): void;
  /** Notes what is about to be done; the same error. */
  plan(lease: Lease, t: number, action: DeviceAction): void;
  /** Resolves when it is on the disk: only then may the device be told. */
  issue(lease: Lease, t: number): Promise<void>;
  done(lease: Lease, t: number): void;
  /** Actions that were issued, and nobody knows their end. */
  doubtful(): StepEntry[];
}

/** The ledger's rows, the newest lease of each device only, and what their changes are written with. */
export interface LedgerRows {
  ledger: StepLedger;
  /** Takes a line from the file. */
  restore(entry: StepEntry): void;
  rows(): StepEntry[];
}

export function createLedgerRows(write: (entry: StepEntry) => void, sync: () => Promise<void>): LedgerRows {
  const devices = new Map<string, { token: number; steps: Map<number, StepEntry> }>();
  const restore = (entry: StepEntry): void => {
    let of = devices.get(entry.device);
    // A device's new lease begins with a rollback: what was done under the old one is of no interest any more.
    if (of === undefined || of.token < entry.token)
      devices.set(entry.device, (of = { token: entry.token, steps: new Map() }));
    if (of.token === entry.token) of.steps.set(entry.t, entry);
  };
  const find = (lease: Lease, t: number): StepEntry | undefined => {
    const of = devices.get(lease.device);
    return of?.token === lease.token ? of.steps.get(t) : undefined;
  };
  const move = (lease: Lease, t: number, state: StepState): void => {
    const entry = find(lease, t);
    if (entry === undefined) throw new TapwrightError('internal', `step ${t} is ${state} but was never planned`);
    const moved = { ...entry, state };
    restore(moved);
    write(moved);
  };
  const check = (lease: Lease, t: number): void => {
    const before = find(lease, t);
    if (before === undefined) return;
    throw new TapwrightError(
      'worker_lost',
      `The ${before.action} of step ${t} was ${before.state} on ${lease.device} (token ${lease.token}) before: it is not performed again, the attempt starts anew on a device that is rolled back.`,
    );
  };
  const rows = (): StepEntry[] => [...devices.values()].flatMap(({ steps }) => [...steps.values()]);
  return {
    restore,
    rows,
    ledger: {
      check,
      plan(lease, t, action) {
        check(lease, t);
        const { device, token, holder } = lease;
        const entry: StepEntry = { kind: 'step', device, token, t, holder, action: action.kind, state: 'planned' };
        restore(entry);
        write(entry);
      },
      issue(lease, t) {
        move(lease, t, 'issued');
        return sync();
      },
      done: (lease, t) => move(lease, t, 'done'),
      doubtful: () => rows().filter((entry) => entry.state === 'issued'),
    },
  };
}
