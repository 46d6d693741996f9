import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectGuest } from './guest-link.ts';
import { connectQmp } from './qmp.ts';

const cleanup: (() => void)[] = [];
afterEach(() => {
  for (const each of cleanup.splice(0)) each();
});

const GREETING =
  '{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian"}, "capabilities": ["oob"]}}\r\n';

/** A server on the real wire: `on` hears lines and may answer. */
async function server(greeting: string, on: (line: string, socket: Socket) => void): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tapwright-qmp-'));
  const path = join(folder, 'socket');
  const sockets = new Set<Socket>();
  const listening = createServer((socket) => {
    sockets.add(socket);
    socket.write(greeting);
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      for (const line of chunk.split('\n').filter(Boolean)) on(line, socket);
    });
    socket.on('error', () => {});
  });
  await new Promise<void>((done) => listening.listen(path, done));
  cleanup.push(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
    rmSync(folder, { recursive: true });
  });
  return path;
}

interface Asked {
  execute: string;
  arguments?: Record<string, string>;
  id: number;
}
/** QEMU as far as `answers` goes; the rest is never answered. */
const qemu = (answers: Record<string, (asked: Asked) => string>): Promise<string> =>
  server(GREETING, (line, socket) => {
    const asked = JSON.parse(line) as Asked;
    const known: Record<string, (asked: Asked) => string> = { qmp_capabilities: () => '"return": {}', ...answers };
    const answer = known[asked.execute];
    if (answer !== undefined) socket.write(`{${answer(asked)}, "id": ${asked.id}}\r\n`);
  });

describe('QMP', () => {
  it('negotiates, matches answers that come out of order with events between, and keeps the events', async () => {
    const held: string[] = [];
    const path = await server(GREETING, (line, socket) => {
      const { execute, id } = JSON.parse(line) as Asked;
      if (execute === 'qmp_capabilities') return void socket.write(`{"return": {}, "id": ${id}}\r\n`);
      held.push(`{"return": "${execute}", "id": ${id}}\r\n`);
      // Cut in the middle of a line, as a socket may.
      if (held.length === 2) {
        const text = `${held[1]!}{"timestamp": {}, "event": "STOP"}\r\n${held[0]!}`;
        socket.write(text.slice(0, 20));
        setTimeout(() => socket.write(text.slice(20)), 5);
      }
    });
    const qmp = await connectQmp({ path });
    cleanup.push(() => qmp.close());
    expect(await Promise.all([qmp.execute('stop'), qmp.execute('cont')])).toEqual(['stop', 'cont']);
    expect(qmp.events()).toEqual(['STOP']);
  });

  it('gives what the human monitor prints, failures too: they are in the text', async () => {
    const path = await qemu({
      'human-monitor-command': ({ arguments: args }) =>
        `"return": ${JSON.stringify(args!['command-line'] === 'loadvm x' ? "Error: Snapshot 'x' does not exist\r\n" : '')}`,
    });
    const qmp = await connectQmp({ path });
    cleanup.push(() => qmp.close());
    expect(await qmp.human('savevm a')).toBe('');
    expect(await qmp.human('loadvm x')).toBe("Error: Snapshot 'x' does not exist");
  });

  it('says which command was refused, and which was not answered in time', async () => {
    const path = await qemu({ bad: () => '"error": {"class": "CommandNotFound", "desc": "no such command"}' });
    const qmp = await connectQmp({ path });
    cleanup.push(() => qmp.close());
    await expect(qmp.execute('bad')).rejects.toThrow('QEMU refused bad: no such command');
    await expect(qmp.execute('slow', {}, 30)).rejects.toMatchObject({ code: 'device_hung' });
  });

  it('ends what waits when QEMU goes away, speaks nonsense, or does not greet', async () => {
    const gone = await connectQmp({
      path: await server(GREETING, (line, socket) => {
        if (line.includes('qmp_capabilities')) socket.write('{"return": {}, "id": 1}\r\n');
        else socket.destroy();
      }),
    });
    await expect(gone.execute('query-status')).rejects.toMatchObject({ code: 'connection_dropped' });
    await expect(gone.execute('query-status')).rejects.toMatchObject({ code: 'connection_dropped' });
    await expect(connectQmp({ path: await server('HTTP/1.1 200\r\n', () => {}) })).rejects.toThrow(
      'does not speak QMP',
    );
    const silent = await server('', () => {});
    await expect(connectQmp({ path: silent, connectTimeoutMs: 30 })).rejects.toMatchObject({ code: 'device_hung' });
    await expect(connectQmp({ path: '/nowhere/socket' })).rejects.toMatchObject({ code: 'connection_dropped' });
  });
});

describe('the serial port of a guest', () => {
  it('waits for the guest, asks by number, and hands on what the guest refuses', async () => {
    const path = await server('noise\r\n0 {"ready":true}\n', (line, socket) => {
      const [id, ...words] = line.split(' ');
      const answer = { 'set bad 0 x': '{"error":"no such kind"}', ping: '{"events":7}' }[words.join(' ')];
      if (answer !== undefined) socket.write(`${id} ${answer}\n`);
    });
    const guest = connectGuest(path, 50);
    cleanup.push(() => guest.close());
    await guest.ready(1_000);
    expect(await guest.events()).toBe(7);
    await expect(guest.set(['bad 0 x'])).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(guest.set(['counter 1', 'note 0 naïve'])).rejects.toThrow('not a line for a guest');
    await expect(guest.state()).rejects.toMatchObject({ code: 'device_hung' });
  });

  it('says why a guest gave up, and that one never came up', async () => {
    const dead = connectGuest(await server('fatal there is no display\n', () => {}));
    await expect(dead.ready(1_000)).rejects.toThrow('gave up: there is no display');
    const silent = connectGuest(await server('', () => {}));
    cleanup.push(() => silent.close());
    await expect(silent.ready(30)).rejects.toMatchObject({ code: 'boot_timeout' });
  });
});
