import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Lease } from '../domain/index.ts';
import { createLeaseTable, openLeaseTable, type LeaseTable, type LeaseTableOptions } from './leases.ts';

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

const table = (more: Partial<LeaseTableOptions> = {}): LeaseTable =>
  createLeaseTable({ devices: 1, ttlMs: 1000, now: () => Date.now(), ...more });
const lost = expect.objectContaining({ code: 'lease_lost' }) as unknown;
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** What became of an asker: its lease, or null while it waits. */
function ask(leases: LeaseTable, holder: string): { lease: Lease | null } {
  const asked: { lease: Lease | null } = { lease: null };
  void leases.acquire(holder).then((lease) => (asked.lease = lease));
  return asked;
}

describe('fencing', () => {
  it('gives a device to one holder at a time, with a token that grows', async () => {
    const leases = table({ devices: 2 });
    const [a, b] = [await leases.acquire('a'), await leases.acquire('b')];
    expect(a.device).not.toBe(b.device);
    expect(leases.status()).toEqual({ free: 0, leased: 2, quarantined: 0, waiting: 0 });
    leases.release(a);
    const c = await leases.acquire('c');
    expect(c).toMatchObject({ device: a.device, holder: 'c', token: a.token + 1 });
    expect(() => leases.check(a)).toThrow(lost);
    expect(() => leases.renew(a)).toThrow(lost);
    leases.check(c);
  });

  it('refuses a device it does not have', () => {
    expect(() => table().check({ device: 'other', holder: 'a', token: 1, ttlMs: 1 })).toThrow(lost);
  });

  it('takes an old or repeated release for nothing', async () => {
    const leases = table();
    const a = await leases.acquire('a');
    leases.release(a);
    leases.release(a, true);
    const b = await leases.acquire('b');
    leases.release(a);
    leases.check(b);
    expect(leases.status().leased).toBe(1);
  });
});

describe('expiry', () => {
  it('ends a lease that is not renewed, at its time and not before', async () => {
    const leases = table();
    const a = await leases.acquire('a');
    await pass(999);
    leases.check(a);
    leases.renew(a);
    await pass(999);
    leases.check(a);
    await pass(1);
    expect(() => leases.renew(a)).toThrow(lost);
    expect(leases.reap()).toEqual([a]);
    expect(leases.reap()).toEqual([]);
    expect(leases.status().free).toBe(1);
  });

  it('wakes who waits, though nobody releases', async () => {
    const leases = table();
    const a = await leases.acquire('a');
    const b = ask(leases, 'b');
    await pass(900);
    leases.renew(a);
    await pass(900);
    expect(b.lease).toBeNull();
    await pass(100);
    expect(b.lease).toMatchObject({ holder: 'b', token: 2 });
    // A late release by the first holder takes nothing from the second.
    leases.release(a, true);
    leases.check(b.lease!);
  });
});

describe('the queue', () => {
  it('is served in order and bounded', async () => {
    const leases = table({ maxWaiting: 2 });
    const a = await leases.acquire('a');
    const [b, c] = [ask(leases, 'b'), ask(leases, 'c')];
    await expect(leases.acquire('d')).rejects.toMatchObject({ code: 'lease_lost' });
    expect(leases.status().waiting).toBe(2);
    leases.release(a);
    await pass(0);
    expect([b.lease?.holder, c.lease]).toEqual(['b', null]);
    leases.release(b.lease!);
    await pass(0);
    expect(c.lease?.holder).toBe('c');
    expect(leases.status().waiting).toBe(0);
  });

  it('is left by who is cut short, and the device goes to the next', async () => {
    const leases = table();
    const a = await leases.acquire('a');
    const gone = new AbortController();
    const b = leases.acquire('b', gone.signal);
    const c = ask(leases, 'c');
    gone.abort(new Error('too late'));
    await expect(b).rejects.toThrow('too late');
    await expect(leases.acquire('d', gone.signal)).rejects.toThrow('too late');
    leases.release(a);
    await pass(0);
    expect(c.lease?.holder).toBe('c');
    expect(leases.status().waiting).toBe(0);
  });

  it('spreads work: the device used least comes first', async () => {
    const leases = table({ devices: 3 });
    const used = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const lease = await leases.acquire('a');
      used.add(lease.device);
      leases.release(lease);
    }
    expect(used.size).toBe(3);
  });
});

describe('quarantine', () => {
  const limits = { failuresToQuarantine: 3, failureWindowMs: 10_000, quarantineMs: 4000 };
  async function attempt(leases: LeaseTable, failed: boolean): Promise<void> {
    leases.release(await leases.acquire('a'), failed);
  }

  it('puts a device aside after K failures in the window, and a waiting attempt gets it when that ends', async () => {
    const leases = table(limits);
    for (let i = 0; i < 3; i++) await attempt(leases, true);
    expect(leases.status()).toEqual({ free: 0, leased: 0, quarantined: 1, waiting: 0 });
    const b = ask(leases, 'b');
    await pass(3999);
    expect(b.lease).toBeNull();
    await pass(1);
    expect(b.lease).not.toBeNull();
  });

  it('forgets failures older than the window, and all of them after a clean attempt', async () => {
    const leases = table(limits);
    for (let i = 0; i < 5; i++) {
      await attempt(leases, true);
      await pass(6000);
    }
    expect(leases.status().free).toBe(1);
    for (const failed of [true, false, true, true]) await attempt(leases, failed);
    expect(leases.status().free).toBe(1);
  });

  it('is half-open: one further failure sends the device back, whenever; one clean attempt re-admits it', async () => {
    const leases = table(limits);
    for (let i = 0; i < 3; i++) await attempt(leases, true);
    await pass(60_000);
    await attempt(leases, true);
    expect(leases.status().quarantined).toBe(1);
    await pass(4000);
    await attempt(leases, false);
    for (let i = 0; i < 2; i++) await attempt(leases, true);
    expect(leases.status().free).toBe(1);
    await attempt(leases, true);
    expect(leases.status().quarantined).toBe(1);
  });
});

describe('a table in a file', () => {
  let home = '';
  beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'tapwright-'))));
  afterEach(() => rmSync(home, { recursive: true, force: true }));
  const limits = { devices: 2, ttlMs: 1000, now: () => Date.now(), failuresToQuarantine: 2, quarantineMs: 5000 };
  const open = (): Promise<LeaseTable> => openLeaseTable(join(home, 'devices', 'host.journal'), limits);

  it('goes on with growing tokens; leases of the host before are refused, their devices free', async () => {
    const before = await open();
    const a = await before.acquire('a');
    before.release(await before.acquire('b'));
    before.close();
    const after = await open();
    expect(after.status()).toMatchObject({ free: 2, leased: 0 });
    for (const act of [() => after.check(a), () => after.renew(a)]) expect(act).toThrow(lost);
    const c = await after.acquire('c');
    const d = await after.acquire('d');
    expect([c.token, d.token]).toEqual([2, 2]);
    // Not even a release by the old one has an effect.
    after.release(a, true);
    after.check(c);
    after.check(d);
    after.close();
  });

  it('remembers failures and quarantine', async () => {
    const before = await open();
    const [a, b] = [await before.acquire('a'), await before.acquire('b')];
    before.release(a, true);
    before.release(b, true);
    const again = await before.acquire('c');
    before.release(again, true);
    expect(before.status().quarantined).toBe(1);
    before.close();
    const after = await open();
    expect(after.status()).toMatchObject({ free: 1, quarantined: 1 });
    after.release(await after.acquire('d'), true);
    expect(after.status()).toMatchObject({ free: 0, quarantined: 2 });
    after.close();
  });

  it('knows fewer or more devices as the config says, and forgets no token', async () => {
    const many = await open();
    const taken = [await many.acquire('a'), await many.acquire('b')];
    many.close();
    const one = await openLeaseTable(join(home, 'devices', 'host.journal'), { ...limits, devices: 1 });
    expect(one.status().free).toBe(1);
    one.close();
    const three = await openLeaseTable(join(home, 'devices', 'host.journal'), { ...limits, devices: 3 });
    const leases = [await three.acquire('x'), await three.acquire('y'), await three.acquire('z')];
    expect(leases.map((lease) => lease.token).sort()).toEqual([1, 2, 2]);
    expect(() => three.check(taken[1]!)).toThrow(lost);
    three.close();
  });

  it('says what was issued under a lease and never done', async () => {
    const before = await open();
    const a = await before.acquire('a');
    for (const t of [0, 1, 2]) before.steps.plan(a, t, { kind: 'wait' });
    await before.steps.issue(a, 0);
    before.steps.done(a, 0);
    await before.steps.issue(a, 1);
    before.close();
    const after = await open();
    expect(after.steps.doubtful()).toMatchObject([{ holder: 'a', token: 1, t: 1, state: 'issued' }]);
    for (const t of [0, 1, 2]) {
      expect(() => after.steps.plan(a, t, { kind: 'wait' })).toThrow(
        expect.objectContaining({ code: 'worker_lost', retryable: true }) as Error,
      );
    }
    // The device's next lease starts with a rollback, and with a clean page.
    const b = await after.acquire('b');
    const c = b.device === a.device ? b : await after.acquire('c');
    after.steps.plan(c, 1, { kind: 'wait' });
    expect(after.steps.doubtful()).toEqual([]);
    after.close();
  });

  it('gives back all leases when the host stops, and tells who waits', async () => {
    const leases = await open();
    await leases.acquire('a');
    await leases.acquire('b');
    const waiting = leases.acquire('c');
    leases.close();
    await expect(waiting).rejects.toMatchObject({ code: 'lease_lost' });
    await expect(leases.acquire('d')).rejects.toMatchObject({ code: 'lease_lost' });
    leases.close();
  });
});
