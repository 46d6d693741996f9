import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TapwrightError, asTapwrightError } from '../../domain/errors.ts';
import { connectGuest } from './guest-link.ts';
import type { GuestLink } from './guest-link.ts';
import { QEMU, qemuArguments } from './machine.ts';
import type { GuestFiles, MachineManifest } from './machine.ts';
import { connectQmp } from './qmp.ts';
import type { QmpClient } from './qmp.ts';
import { connectRfb } from './rfb.ts';
import type { RfbClient } from './rfb.ts';
import { controlMachine } from './snapshots.ts';
import type { MachineControl } from './snapshots.ts';

export interface QemuOptions {
  machine: MachineManifest;
  guest: GuestFiles;
  /** A qcow2 to start from, copied, and the state on it; null: an empty one, and the guest boots. */
  from: { disk: string; tag: string } | null;
  /** Where the private folder is made. */
  scratch?: string;
  /** From the start of the process to a guest that answers, milliseconds. */
  bootTimeoutMs?: number;
  /** A verified rollback, and each of its parts, milliseconds. */
  rollbackTimeoutMs?: number;
}

/** One virtual machine: a QEMU process of ours with its control socket, its screen and its guest's serial port. */
export interface QemuMachine extends MachineControl {
  readonly pid: number;
  /** The qcow2 with its states. */
  readonly disk: string;
  readonly rfb: RfbClient;
  readonly guest: GuestLink;
  readonly qmp: QmpClient;
  /** Why it is no more; null while it runs. */
  failure(): TapwrightError | null;
  /** Ends the process and removes its folder. Twice is once. */
  stop(): Promise<void>;
}

const CONNECT_EVERY_MS = 10;
/** The process that owns a folder is in its name, so that those of the dead can be found. */
const FOLDER = 'tapwright-vm-';

/** Starts a machine and waits for its guest. Errors: `boot_timeout`, with QEMU's last words. */
export async function startQemu(options: QemuOptions): Promise<QemuMachine> {
  const { machine, guest: files, from, bootTimeoutMs = 60_000, rollbackTimeoutMs = 10_000 } = options;
  // Sockets in a folder for its owner alone: whoever may open them may do all with the machine.
  const folder = await mkdtemp(join(options.scratch ?? tmpdir(), `${FOLDER}${process.pid}-`));
  const paths = {
    disk: join(folder, 'state.qcow2'),
    qmp: join(folder, 'qmp'),
    vnc: join(folder, 'vnc'),
    serial: join(folder, 'serial'),
  };
  let child: ReturnType<typeof spawn> | null = null;
  let ended: Promise<void> = Promise.resolve();
  let failure: TapwrightError | null = null;
  let lastWords = '';
  const links: { close(): void }[] = [];
  let stopping: Promise<void> | null = null;

  const stop = (): Promise<void> =>
    (stopping ??= (async () => {
      failure ??= new TapwrightError('connection_dropped', 'the machine was stopped here');
      for (const link of links) link.close();
      // Nothing in it is worth a slow end, and a stopped process hears of nothing else.
      child?.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    })());

  try {
    if (from === null) await makeDisk(paths.disk);
    else await copyFile(from.disk, paths.disk);
    // It ends with this process, however that ends.
    const command = ['--pdeathsig', 'KILL', '--', QEMU, ...qemuArguments(machine, files, paths, from?.tag ?? null)];
    child = spawn('setpriv', command, { stdio: ['ignore', 'ignore', 'pipe'] });
    const running = child;
    running.stderr!.setEncoding('utf8').on('data', (text: string) => (lastWords = (lastWords + text).slice(-2_000)));
    ended = new Promise((resolve) => {
      running.once('error', (cause) => {
        failure ??= new TapwrightError('boot_timeout', `${QEMU} cannot be started: ${cause.message}`, { cause });
        resolve();
      });
      running.once('close', (code, signal) => {
        const words = lastWords.trim().split('\n').at(-1) ?? '';
        failure ??= new TapwrightError(
          'connection_dropped',
          `QEMU ended (${signal ?? `code ${code}`}) ${words}`.trim(),
        );
        resolve();
      });
    });
    const until = performance.now() + bootTimeoutMs;
    const guest = connectGuest(await whenThere(paths.serial, until));
    links.push(guest);
    const qmp = await connectQmp({ path: await whenThere(paths.qmp, until) });
    links.push(qmp);
    const rfb = await connectRfb({ at: { path: await whenThere(paths.vnc, until) } });
    links.push(rfb);
    // One that is loaded has said long ago that it is up: it is asked.
    if (from === null) await guest.ready(Math.max(1, until - performance.now()));
    else await guest.events();
    return {
      ...controlMachine({ qmp, rfb, guest, folder, rollbackTimeoutMs }),
      qmp,
      rfb,
      guest,
      pid: running.pid!,
      disk: paths.disk,
      failure: () => failure,
      stop,
    };
  } catch (error) {
    const why = failure ?? asTapwrightError(error, 'boot_timeout');
    await stop();
    throw new TapwrightError('boot_timeout', `the machine did not start: ${why.message} ${lastWords.trim()}`.trim(), {
      cause: error,
    });
  }

  /** The path, as soon as QEMU listens there. */
  async function whenThere(path: string, until: number): Promise<string> {
    for (;;) {
      if (failure !== null) throw failure;
      const there = existsSync(path);
      // A socket's name is there a moment before anybody listens.
      await sleep(CONNECT_EVERY_MS);
      if (there) return path;
      if (performance.now() > until) throw new TapwrightError('boot_timeout', `nobody listened at ${path} in time`);
    }
  }
}

/** Removes the folders of processes that ended without a chance to do it. */
export async function sweepFolders(scratch = tmpdir()): Promise<void> {
  for (const name of await readdir(scratch)) {
    const pid = new RegExp(`^${FOLDER}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      await rm(join(scratch, name), { recursive: true, force: true });
    }
  }
}

/** An empty disk to keep states on. Errors: `disk_full`, `not_found`. */
async function makeDisk(path: string): Promise<void> {
  await promisify(execFile)('qemu-img', ['create', '-q', '-f', 'qcow2', path, '4M'], { timeout: 30_000 }).catch(
    (cause: unknown) => {
      const words = String((cause as { stderr?: string }).stderr ?? cause).trim();
      const full = /No space left/.test(words);
      throw new TapwrightError(full ? 'disk_full' : 'not_found', `no disk for a machine's states: ${words}`, { cause });
    },
  );
}
