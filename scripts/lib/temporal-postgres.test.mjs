import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { choosePorts, parseCommandLine } from '../temporal-postgres.mjs';
import { createCrew, freePorts, isFree, runs } from './crew.mjs';
import { clusterPlaces, ensureFolder, ensurePostgres } from './postgres.mjs';
import { PORTS, serverConfig, shardsDiffer } from './temporal-postgres.mjs';

const dir = mkdtempSync(join(tmpdir(), 'tapwright-postgres-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const executable = (path, text) => {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text, { mode: 0o755 });
};
const numbered = Object.fromEntries(PORTS.map((name, i) => [name, 20_000 + i]));

describe('serverConfig', () => {
  it('is YAML with the password, the shards, and all on loopback', () => {
    const password = 'a"b: #\\c';
    const config = parse(
      serverConfig({ ports: numbered, shards: 8, password, dynamicConfig: '/with a space/dynamic.yaml' }),
    );
    expect(config.persistence.numHistoryShards).toBe(8);
    for (const store of Object.values(config.persistence.datastores)) {
      expect(store.sql).toMatchObject({ password, connectAddr: `127.0.0.1:${numbered.postgres}` });
    }
    expect(config.dynamicConfigClient.filepath).toBe('/with a space/dynamic.yaml');
    const services = Object.values(config.services).map(({ rpc }) => rpc);
    expect(services.every((rpc) => rpc.bindOnLocalHost === true)).toBe(true);
    const used = services.flatMap((rpc) => [rpc.grpcPort, rpc.membershipPort]);
    expect(new Set([...used, numbered.postgres])).toEqual(new Set(Object.values(numbered)));
  });
});

describe('the command line', () => {
  it('has its data in TAPWRIGHT_HOME', () => {
    expect(parseCommandLine([], { TAPWRIGHT_HOME: '/home' })).toEqual({
      ...{ command: 'up', data: '/home/postgres', port: null, shards: null, install: false },
    });
    expect(parseCommandLine(['stop', '--data', '/d', '--port', '7233', '--shards', '8', '--install'])).toEqual({
      ...{ command: 'stop', data: '/d', port: 7233, shards: 8, install: true },
    });
  });
  it.each([
    [['down'], 'unknown argument down.'],
    [['--shards', '2'], '--shards is a whole number from 4 to 16384, not 2.'],
    [['--port', 'x'], '--port is a whole number from 1 to 65535, not x.'],
    [['--fast'], "Unknown option '--fast'"],
  ])('refuses %j', (args, message) => {
    expect(() => parseCommandLine(args)).toThrow(message);
  });
});

describe('ports', () => {
  it('are those of the last start; one that is taken gives way, but never the one that others know', async () => {
    const taken = numbered.history;
    const choose = (kept, wanted, busy) =>
      choosePorts(kept, wanted, { free: async (port) => port !== busy, more: async () => [30_000] });
    expect(await choose(numbered, null, -1)).toEqual(numbered);
    expect(await choose(numbered, null, taken)).toEqual({ ...numbered, history: 30_000 });
    expect(await choose(numbered, taken, -1)).toEqual({ ...numbered, frontend: taken, history: 30_000 });
    await expect(choose(numbered, null, numbered.frontend)).rejects.toThrow(
      `Port ${numbered.frontend} on 127.0.0.1 is taken by another program.`,
    );
  });
  it('are looked for on loopback', async () => {
    const ports = await freePorts(3);
    expect(new Set(ports).size).toBe(3);
    const other = createServer();
    await new Promise((resolve) => other.listen(ports[0], '127.0.0.1', resolve));
    expect(await isFree(ports[0])).toBe(false);
    await new Promise((resolve) => other.close(resolve));
    expect(await isFree(ports[0])).toBe(true);
  });
});

describe('PostgreSQL', () => {
  const version = (number) => {
    const bin = join(dir, `pg-${number}`);
    executable(join(bin, 'postgres'), `#!/bin/sh\necho "postgres (PostgreSQL) ${number} (Debian)"\n`);
    return bin;
  };
  it('is the newest, or the one that made the folder', async () => {
    const folders = () => [version('16.2'), version('15.18')];
    const data = join(dir, 'made-by-15');
    expect(await ensurePostgres(data, { folders })).toMatchObject({ major: 16, version: '16.2' });
    mkdirSync(clusterPlaces(data).cluster, { recursive: true });
    writeFileSync(join(clusterPlaces(data).cluster, 'PG_VERSION'), '15\n');
    expect(await ensurePostgres(data, { folders })).toMatchObject({ major: 15 });
    await expect(ensurePostgres(data, { folders: () => [version('16.2')] })).rejects.toThrow(
      `The database in ${data} was made by PostgreSQL 15, and of that version there is none here (found: 16.2).`,
    );
  });
  it('is asked for when there is none, or only an old one', async () => {
    for (const folders of [() => [], () => [version('9.6')]]) {
      const error = await ensurePostgres(join(dir, 'none'), { folders }).catch((reason) => reason);
      expect(error.message).toBe('There is no PostgreSQL on this machine.');
      expect(error.whatToDo).toContain('-- --install');
    }
  });
});

it('says that a folder cannot be used, and that shards are for ever', async () => {
  writeFileSync(join(dir, 'file'), '');
  await expect(ensureFolder(join(dir, 'file', 'data'), {})).rejects.toThrow(/cannot be written to \(ENOTDIR\)/);
  expect(shardsDiffer('/d', 4, 8).message).toContain('was made with 4 history shards, and 8 are asked for');
});

describe('the crew', () => {
  it('is taken down in the reverse order, and tells who fell', async () => {
    const crew = createCrew();
    const logFile = join(dir, 'crew.log');
    const script = (name) =>
      `process.on('SIGTERM', () => { console.log('${name}'); process.exit(); }); setInterval(() => {}, 1e3); console.log('up');`;
    const member = (name) =>
      crew.start({ name, command: process.execPath, args: ['-e', script(name)], logFile, stopSignal: 'SIGTERM' });
    const [first, second, third] = [member('first'), member('second'), member('third')];
    for (const [name, one] of Object.entries({ first, second, third })) crew.mind(name, one);
    expect(runs(first.pid, 'setInterval')).toBe(process.platform === 'linux');
    expect(runs(first.pid, 'something else')).toBe(false);
    const lines = () => readFileSync(logFile, 'utf8').trim().split('\n');
    while (lines().filter((line) => line === 'up').length < 3) await sleep(20);
    process.kill(third.pid, 'SIGKILL');
    expect(await crew.ended).toEqual({ name: 'third', how: 'SIGKILL' });
    await crew.stop();
    expect(lines().slice(3)).toEqual(['second', 'first']);
    expect(() => member('late')).toThrow('told to stop');
  });
});
