import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import { connectRfb } from '../../devices/vnc/rfb.ts';
import type { RfbClient } from '../../devices/vnc/rfb.ts';
import { createByteStream } from '../../devices/vnc/byte-stream.ts';
import { rect, update } from '../../devices/vnc/testing.ts';

/**
 * `npm run check:vnc`: 512 VNC connections in one process and a whole frame of each, time and memory: raw pixels from a server
 * of our own in another process, and TigerVNC's servers where they are installed.
 */
const CONNECTIONS = 512;
const [WIDTH, HEIGHT] = [390, 844];
/** TigerVNC shares its work among so many servers, as a farm would. */
const SERVERS = 8;
const FRAME_MS = 60_000;
/** Connections that greet at once with each server: TigerVNC lets five wait, and the system drops the others for seconds. */
const GREETINGS = 4;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

/** Serves a gradient, raw, to whoever asks for a whole frame. Runs in a process of its own. */
function serve(): void {
  const pixels = Buffer.alloc(WIDTH * HEIGHT * 4);
  for (let i = 0; i < pixels.length; i++) pixels[i] = (i * 7 + (i >> 9)) & 255;
  const frame = update(rect([0, 0, WIDTH, HEIGHT], 0, pixels));
  const server = createServer((socket) => {
    const stream = createByteStream(socket, 'the client');
    const talk = async (): Promise<never> => {
      stream.write(Buffer.from('RFB 003.008\n'));
      await stream.read(12);
      stream.write(Buffer.of(1, 1));
      await stream.read(1);
      stream.write(Buffer.alloc(4));
      await stream.read(1);
      const init = Buffer.alloc(27);
      init.writeUInt16BE(WIDTH, 0);
      init.writeUInt16BE(HEIGHT, 2);
      init.writeUInt32BE(3, 20);
      init.write('toy', 24);
      stream.write(init);
      for (;;) {
        const type = (await stream.read(1))[0]!;
        if (type === 0) await stream.read(19);
        else if (type === 2) await stream.read(4 * (await stream.read(3)).readUInt16BE(1));
        else if ((await stream.read(9))[0] === 0) stream.write(frame);
      }
    };
    talk().catch(() => socket.destroy());
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: CONNECTIONS }, () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
  });
  process.stdin.resume().on('end', () => process.exit(0));
}

/** Opens all connections, draws a whole frame of each, twice, and says what that took. */
async function pull(name: string, ports: readonly number[]): Promise<boolean> {
  const before = residentMiB(process.pid);
  let began = performance.now();
  const lap = (): string => {
    const ms = performance.now() - began;
    began = performance.now();
    return `${(ms / 1000).toFixed(2)} s`;
  };
  const clients: RfbClient[] = [];
  const greeting = ports.map(() => pLimit(GREETINGS));
  try {
    const opened = await Promise.allSettled(
      Array.from({ length: CONNECTIONS }, (_, i) =>
        greeting[i % ports.length]!(() =>
          connectRfb({ at: { host: '127.0.0.1', port: ports[i % ports.length]! }, connectTimeoutMs: FRAME_MS }),
        ),
      ),
    );
    for (const one of opened) if (one.status === 'fulfilled') clients.push(one.value);
    const connected = lap();
    const first = await Promise.allSettled(clients.map((client) => client.observe({ timeout: FRAME_MS })));
    const framed = lap();
    const second = await Promise.allSettled(clients.map((client) => client.refresh(FRAME_MS)));
    const again = lap();
    const whole = [first, second].map((of) => of.filter(({ status }) => status === 'fulfilled').length);
    say(
      `${name}: ${clients.length} connected in ${connected}; ${whole[0]} first frames in ${framed}, ${whole[1]} more in ${again}; ` +
        `${residentMiB(process.pid).toFixed(0)} MiB resident (${before.toFixed(0)} before)`,
    );
    return clients.length === CONNECTIONS && whole.every((n) => n === CONNECTIONS);
  } finally {
    for (const client of clients) client.close();
  }
}

async function main(): Promise<boolean> {
  const children: ChildProcess[] = [];
  try {
    const toy = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), 'server'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    children.push(toy);
    const port = await new Promise<number>((resolve) =>
      toy.stdout.once('data', (line: Buffer) => resolve(Number(line))),
    );
    let good = await pull('raw pixels, one server of ours', [port]);

    const first = 40 + (process.pid % 50);
    const displays = Array.from({ length: SERVERS }, (_, i) => first + i);
    for (const display of displays) {
      // It puts an address aside that connects too often, and a farm's devices all come from one.
      const options = ['-SecurityTypes', 'None', '-BlacklistThreshold', '1000000', '-AlwaysShared', '-localhost'];
      const size = ['-geometry', `${WIDTH}x${HEIGHT}`, '-depth', '24', '-rfbport', String(21_000 + display)];
      const xvnc = spawn('Xtigervnc', [`:${display}`, ...size, ...options], { stdio: 'ignore' });
      xvnc.once('error', () => {});
      children.push(xvnc);
    }
    await sleep(3_000);
    const up = children.slice(1).filter(({ pid, exitCode }) => pid !== undefined && exitCode === null).length;
    if (up === SERVERS)
      good =
        (await pull(
          `TigerVNC, ${SERVERS} servers`,
          displays.map((d) => 21_000 + d),
        )) && good;
    else say('TigerVNC: not tried (Debian: apt-get install tigervnc-standalone-server)');
    return good;
  } finally {
    for (const child of children) child.kill();
  }
}

if (process.argv[2] === 'server') serve();
else {
  main().then(
    (good) => {
      process.stdout.write(good ? 'vnc: ok\n' : 'vnc: FAILED\n');
      process.exit(good ? 0 : 1);
    },
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
}
