import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { findTemporal, endServerLeftBehind, startTemporalServer } from './temporal-server.ts';
import type { TemporalServer } from './temporal-server.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'tapwright-temporal-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const executable = (path: string, text = '#!/bin/sh\nexit 0\n'): string => {
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
};

describe('findTemporal', () => {
  it('prefers TEMPORAL_ADDRESS, then PATH, and says what to do when there is nothing', () => {
    const empty = { PATH: join(dir, 'none'), XDG_CACHE_HOME: join(dir, 'none') };
    expect(() => findTemporal(empty)).toThrow(/no Temporal server.*npm run setup.*TEMPORAL_ADDRESS/s);
    const path = executable(join(dir, 'temporal'));
    expect(findTemporal({ ...empty, PATH: dir })).toEqual({ kind: 'binary', path, source: 'PATH' });
    expect(findTemporal({ ...empty, PATH: dir, TEMPORAL_ADDRESS: 'farm:7233' })).toMatchObject({
      address: 'farm:7233',
    });
    rmSync(path);
  });
});

describe('startTemporalServer', () => {
  const servers: TemporalServer[] = [];
  afterEach(async () => {
    vi.unstubAllEnvs();
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });
  const files = (name: string) => ({
    dbFile: join(dir, name, 'temporal.db'),
    logFile: join(dir, name, 'temporal.log'),
  });
  const describeDefault = async (address: string): Promise<string> => {
    const connection = await Connection.connect({ address, connectTimeout: '5s' });
    const reply = await connection.workflowService.describeNamespace({ namespace: 'default' });
    await connection.close();
    return reply.namespaceInfo?.id ?? '';
  };

  it('answers, survives being killed with its data and its port, and is gone after stop', async () => {
    const pids: (number | null)[] = [];
    const server = await startTemporalServer({ ...files('a'), onPid: (pid) => pids.push(pid) });
    servers.push(server);
    const before = await describeDefault(server.address);
    const first = server.pid;
    process.kill(first, 'SIGKILL');
    await vi.waitUntil(() => pids.length === 3, { timeout: 10_000 });
    await vi.waitFor(async () => expect(await describeDefault(server.address)).toBe(before), { timeout: 20_000 });
    expect(pids).toEqual([first, null, server.pid]);
    const last = server.pid;
    await server.stop();
    await server.stop();
    expect(() => process.kill(last, 0)).toThrow();
  }, 60_000);

  it.runIf(process.platform === 'linux')(
    'ends one that was left behind, and no other process',
    async () => {
      const left = await startTemporalServer({ ...files('left'), keep: false });
      expect(await endServerLeftBehind(left.pid, files('other').dbFile)).toBe(false);
      expect(await endServerLeftBehind(process.pid, files('left').dbFile)).toBe(false);
      await describeDefault(left.address);
      expect(await endServerLeftBehind(left.pid, files('left').dbFile)).toBe(true);
      expect(await endServerLeftBehind(left.pid, files('left').dbFile)).toBe(false);
      // Its successor takes its port and its database.
      const port = Number(left.address.split(':').at(-1));
      const next = await startTemporalServer({ ...files('left'), port });
      expect(next.address).toBe(left.address);
      await next.stop();
    },
    60_000,
  );

  it('says that a port is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    await expect(startTemporalServer({ ...files('b'), port })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is taken by another program: choose another port`,
    );
    other.close();
  });

  it('quotes the log of a server that ends at once', async () => {
    const bad = join(dir, 'bin');
    rmSync(bad, { recursive: true, force: true });
    mkdirSync(bad);
    executable(join(bad, 'temporal'), '#!/bin/sh\necho "database is locked" >&2\nexit 1\n');
    vi.stubEnv('PATH', `${bad}:${process.env['PATH']}`);
    await expect(startTemporalServer(files('c'))).rejects.toThrow(/ended at once.*database is locked/s);
  });
});
