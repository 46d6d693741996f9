import { TapwrightError, type Lease } from '../domain/index.ts';
import { openJournal, type Journal, type JournalOptions } from './journal.ts';
import { createLedgerRows, type StepEntry, type StepLedger } from './step-ledger.ts';

export interface LeaseTableOptions {
  /** How many devices the host has. */
  devices: number;
  ttlMs: number;
  /** Milliseconds; the table's only clock. */
  now?: () => number;
  /** How many askers may wait for a device. */
  maxWaiting?: number;
  /** So many failures within `failureWindowMs` put a device aside for `quarantineMs`; then one lease tries it again. */
  failuresToQuarantine?: number;
  failureWindowMs?: number;
  quarantineMs?: number;
  /** Where the table is kept; null: in this process only. */
  journal?: Journal<TableEntry> | null;
}

/** One line of the table's file: the whole row of a device, or a step of its present lease. The last one counts. */
export type TableEntry = ({ kind: 'device' } & Device) | StepEntry;

export interface LeaseTable {
  /** A free device, or a place in the queue until the signal aborts. Fails with `lease_lost` when the queue is full. */
  acquire(holder: string, signal?: AbortSignal | null): Promise<Lease>;
  /** Extends the lease; `lease_lost` when the token is no longer the device's. */
  renew(lease: Lease): void;
  /** Throws `lease_lost` for a command with an old token. */
  check(lease: Lease): void;
  /** Idempotent. `failed`: the device failed its attempt, which counts towards quarantine. */
  release(lease: Lease, failed?: boolean): void;
  /** Frees what has expired; called by acquire too. Returns the freed leases. */
  reap(): Lease[];
  /** What was done under the present leases. */
  steps: StepLedger;
  /** Gives back every lease and the file: the host stops. Who waits for a device is told. */
  close(): void;
  status(): { free: number; leased: number; quarantined: number; waiting: number };
}

interface Device {
  name: string;
  token: number;
  holder: string | null;
  expires: number;
  failures: number[];
  /** Half-open: was in quarantine and has not been clean since. */
  onTrial: boolean;
  quarantinedUntil: number;
}

/** Lines after which the file is written anew with the present rows only. */
const REWRITE_AFTER = 50_000;

/**
 * The lease table of a device host, kept in a file under the home: fencing tokens, quarantine and the step ledger outlive
 * the host. An append-only journal, because SQLite has no binding that installs without compiling for minutes.
 * One process at a time; the next one waits for an owner that is draining, then finds all devices free: the handles of a
 * process that is gone are gone with it, and its tokens are refused.
 */
export async function openLeaseTable(
  file: string,
  options: Omit<LeaseTableOptions, 'journal'>,
  journalOptions: JournalOptions = {},
): Promise<LeaseTable> {
  const journal = await openJournal<TableEntry>(file, journalOptions);
  return createLeaseTable({ ...options, journal });
}

/** Leases with fencing tokens (devices.md): a device has one holder at a time, and an old token is refused. */
export function createLeaseTable(options: LeaseTableOptions): LeaseTable {
  const { journal = null } = options;
  const { ttlMs, now = Date.now, maxWaiting = 10_000 } = options;
  const { failuresToQuarantine = 3, failureWindowMs = 60_000, quarantineMs = 30_000 } = options;
  const fresh = (name: string): Device => ({
    name,
    token: 0,
    holder: null,
    expires: 0,
    failures: [],
    onTrial: false,
    quarantinedUntil: 0,
  });
  const known = new Map<string, Device>();
  let lines = 0;
  const write = (entry: TableEntry): void => {
    if (journal === null) return;
    journal.append(entry);
    lines += 1;
    if (lines < REWRITE_AFTER) return;
    lines = 0;
    journal.rewrite([...rows(), ...steps.rows()]);
  };
  const steps = createLedgerRows(write, () => journal?.sync() ?? Promise.resolve());
  const rows = (): TableEntry[] => [...known.values()].map((device) => ({ kind: 'device', ...device }));
  const save = (device: Device): void => write({ kind: 'device', ...device });

  for (const entry of journal?.entries ?? []) {
    if (entry.kind === 'step') {
      steps.restore(entry);
    } else {
      const { kind: _kind, ...device } = entry;
      known.set(device.name, device);
    }
  }
  // Whoever held a lease lost its device's handle with the process that had it.
  for (const device of known.values()) device.holder = null;
  const devices = Array.from({ length: options.devices }, (_, i) => {
    const name = `device-${i}`;
    const device = known.get(name) ?? fresh(name);
    known.set(name, device);
    return device;
  });
  journal?.rewrite([...rows(), ...steps.rows()]);

  const waiting: { holder: string; grant: (lease: Lease) => void; refuse: (error: Error) => void }[] = [];
  let wake: NodeJS.Timeout | undefined;
  let closed = false;

  const find = (lease: Lease): Device | undefined => devices.find((d) => d.name === lease.device);
  const current = (lease: Lease): Device => {
    const device = find(lease);
    if (!device || device.token !== lease.token || device.holder === null || device.expires <= now())
      throw new TapwrightError(
        'lease_lost',
        `${lease.holder} no longer holds ${lease.device} (token ${lease.token}${device ? `, now ${device.token}` : ''}); the attempt starts again on another device.`,
      );
    return device;
  };

  const give = (device: Device, holder: string): Lease => {
    device.token++;
    device.holder = holder;
    device.expires = now() + ttlMs;
    save(device);
    return { device: device.name, holder, token: device.token, ttlMs };
  };
  const free = (): Device | undefined => {
    const time = now();
    const candidates = devices.filter((d) => d.holder === null && d.quarantinedUntil <= time);
    // The device used least comes first, so that work and wear spread.
    return candidates.reduce<Device | undefined>((best, d) => (!best || d.token < best.token ? d : best), undefined);
  };
  const reap = (): Lease[] => {
    const expired = devices.filter((d) => d.holder !== null && d.expires <= now());
    return expired.map((d) => {
      const lease = { device: d.name, holder: d.holder!, token: d.token, ttlMs };
      d.holder = null;
      save(d);
      return lease;
    });
  };
  const serve = (): void => {
    reap();
    while (waiting.length > 0) {
      const device = free();
      if (!device) break;
      const next = waiting.shift()!;
      next.grant(give(device, next.holder));
    }
    clearTimeout(wake);
    wake = undefined;
    if (waiting.length === 0) return;
    // Nobody may release what makes the next device free: an expiry or the end of a quarantine.
    const times = devices.map((d) => (d.holder !== null ? d.expires : d.quarantinedUntil));
    wake = setTimeout(serve, Math.max(1, Math.min(...times) - now()));
    wake.unref();
  };

  const stopping = (): TapwrightError =>
    new TapwrightError('lease_lost', 'The device host stops; the attempt starts again when it is back.');
  // Expired leases are freed though nobody asks.
  const reaper = setInterval(serve, ttlMs);
  reaper.unref();

  return {
    acquire(holder, signal = null) {
      if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
      if (closed) return Promise.reject(stopping());
      if (waiting.length >= maxWaiting)
        return Promise.reject(
          new TapwrightError('lease_lost', `${maxWaiting} attempts wait for ${devices.length} devices; add devices.`),
        );
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          waiting.splice(waiting.indexOf(place), 1);
          reject(signal?.reason as Error);
        };
        const place = {
          holder,
          grant: (lease: Lease): void => {
            signal?.removeEventListener('abort', leave);
            resolve(lease);
          },
          refuse: reject,
        };
        signal?.addEventListener('abort', leave, { once: true });
        waiting.push(place);
        serve();
      });
    },
    renew(lease) {
      const device = current(lease);
      device.expires = now() + ttlMs;
      save(device);
    },
    check: (lease) => void current(lease),
    release(lease, failed = false) {
      if (closed) return;
      const device = find(lease);
      if (!device || device.token !== lease.token || device.holder === null) return;
      device.holder = null;
      const time = now();
      // One clean attempt after a quarantine re-admits the device: what was held against it is forgotten.
      device.failures = failed ? [...device.failures.filter((f) => f > time - failureWindowMs), time] : [];
      // On trial a single further failure sends it back, however long ago the others were.
      const aside = failed && (device.onTrial || device.failures.length >= failuresToQuarantine);
      if (aside) device.quarantinedUntil = time + quarantineMs;
      device.onTrial = failed && (device.onTrial || aside);
      save(device);
      serve();
    },
    reap,
    steps: steps.ledger,
    close() {
      if (closed) return;
      closed = true;
      clearTimeout(wake);
      clearInterval(reaper);
      for (const place of waiting.splice(0)) place.refuse(stopping());
      for (const device of devices.filter((d) => d.holder !== null)) {
        device.holder = null;
        save(device);
      }
      journal?.close();
    },
    status() {
      const time = now();
      const leased = devices.filter((d) => d.holder !== null).length;
      const quarantined = devices.filter((d) => d.holder === null && d.quarantinedUntil > time).length;
      return { free: devices.length - leased - quarantined, leased, quarantined, waiting: waiting.length };
    },
  };
}
