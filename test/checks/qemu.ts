import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describeMachine, findGuest } from '../../devices/vnc/machine.ts';
import type { GuestFiles, MachineManifest } from '../../devices/vnc/machine.ts';
import { startQemu } from '../../devices/vnc/qemu.ts';
import type { QemuMachine } from '../../devices/vnc/qemu.ts';
import { ensureState, readState } from '../../devices/vnc/saved-state.ts';
import type { SavedState } from '../../devices/vnc/saved-state.ts';
import { markOf } from '../../devices/vnc/snapshots.ts';
import { asTapwrightError } from '../../domain/errors.ts';
import type { FailureClass } from '../../domain/errors.ts';
import { createRandom } from '../../rl/random.ts';

/**
 * `npm run check:qemu`: real machines, and what goes wrong with them. Installs QEMU where it may, builds the guest, boots,
 * saves, and rolls back 100 times, each time against what QEMU itself says of the screen and what the guest says of itself;
 * then failures on purpose, each told in time and as what it is; then a training run on three machines of which one is
 * killed and one stopped on the way.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ROLLBACKS = 100;
const problems: string[] = [];
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const wrong = (what: string): void => {
  problems.push(what);
  say(`  FAILED ${what}`);
};

const quantile = (values: readonly number[], q: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))]!;
const times = (values: readonly number[]): string =>
  `p50 ${quantile(values, 0.5).toFixed(0)} ms, p95 ${quantile(values, 0.95).toFixed(0)} ms`;

/** What a machine and we hold: open files, resident memory in MiB, bytes of the disk. */
async function holdings(vm: QemuMachine): Promise<Record<string, number>> {
  const resident = async (pid: number | 'self'): Promise<number> =>
    Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
  return {
    'our files': (await readdir('/proc/self/fd')).length,
    'its files': (await readdir(`/proc/${vm.pid}/fd`)).length,
    'our MiB': await resident('self'),
    'its MiB': await resident(vm.pid),
    'disk MiB': (await stat(vm.disk)).size / 1024 / 1024,
  };
}

async function rollbacks(vm: QemuMachine, state: SavedState): Promise<void> {
  const random = createRandom(1, 'check-qemu');
  const home = JSON.stringify({ ...(await vm.guest.state()), events: 0 });
  const verified: number[] = [];
  const raw: number[] = [];
  let before = await holdings(vm);
  for (let i = 0; i < ROLLBACKS; i++) {
    for (let n = 0; n < 2; n++) await vm.rfb.tap({ x: random.int(vm.rfb.width), y: 60 + random.int(600) });
    const began = performance.now();
    const frame = await vm.rollback(state.tag, state.mark);
    verified.push(performance.now() - began);
    const itself = markOf(await vm.screendump());
    const told = JSON.stringify({ ...(await vm.guest.state()), events: 0 });
    if (markOf(frame).digest !== state.mark.digest) wrong(`rollback ${i}: the frame is not the state's`);
    if (itself.digest !== state.mark.digest) wrong(`rollback ${i}: QEMU shows another screen than VNC`);
    if (told !== home) wrong(`rollback ${i}: the guest says it is elsewhere`);
    // What the first few build up is no leak.
    if (i === 9) before = await holdings(vm);
  }
  const after = await holdings(vm);
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    await vm.qmp.human(`loadvm ${state.tag}`);
    raw.push(performance.now() - began);
  }
  say(`  ${ROLLBACKS} verified rollbacks: ${times(verified)}; loadvm alone: ${times(raw)}`);
  say(`  held after 10 and after ${ROLLBACKS}:`);
  for (const [what, value] of Object.entries(after)) {
    say(`    ${what.padEnd(10)} ${before[what]!.toFixed(0).padStart(6)} ${value.toFixed(0).padStart(6)}`);
    const grown = value - before[what]!;
    if (grown > (what.endsWith('files') ? 2 : 64)) wrong(`${what} grew by ${grown.toFixed(0)}`);
  }
}

/** `work` must fail as `codes` say, within its time. */
async function fails(
  what: string,
  codes: readonly FailureClass[],
  deadlineMs: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const began = performance.now();
  const code = await work().then(
    () => 'no failure at all',
    (error: unknown) => asTapwrightError(error).code,
  );
  const ms = performance.now() - began;
  say(`  ${what.padEnd(52)} ${code.padEnd(20)} ${ms.toFixed(0).padStart(6)} ms`);
  if (!(codes as readonly string[]).includes(code)) wrong(`${what}: ${code}, expected ${codes.join(' or ')}`);
  if (ms > deadlineMs) wrong(`${what}: found after ${ms.toFixed(0)} ms, expected within ${deadlineMs}`);
}

async function failures(machine: MachineManifest, guest: GuestFiles, state: SavedState, folder: string): Promise<void> {
  const fresh = (): Promise<QemuMachine> => startQemu({ machine, guest, from: state, rollbackTimeoutMs: 3_000 });
  const use = async (body: (vm: QemuMachine) => Promise<void>): Promise<void> => {
    const vm = await fresh();
    try {
      await body(vm);
    } finally {
      await vm.stop();
    }
  };
  await use(async (vm) => {
    await fails('a state that is not there', ['rollback_failed'], 2_000, () => vm.rollback('nowhere', state.mark));
    await vm.rollback(state.tag, state.mark);
    await fails('another screen than the state has', ['rollback_unverified'], 5_000, () =>
      vm.rollback(state.tag, { ...state.mark, digest: 'other' }),
    );
    await fails('a save while a load goes on', ['rollback_failed'], 3_000, async () => {
      const both = [vm.rollback(state.tag, state.mark), vm.save('other')] as const;
      await Promise.allSettled(both);
      return both[1];
    });
    await vm.qmp.execute('stop');
    await fails('a machine that is paused', ['device_hung'], 5_000, () => vm.echo());
    await vm.rollback(state.tag, state.mark);
    say('  and a rollback made it go on');
    // What was done a moment before a save is in it.
    await vm.guest.set(['counter 42']);
    const mark = await vm.save('written');
    await vm.guest.set(['counter 7']);
    await vm.rollback('written', mark);
    const { counter } = await vm.guest.state();
    if (counter !== 42) wrong(`a save right after a write holds ${counter}, expected 42`);
  });
  await use(async (vm) => {
    vm.guest.freeze();
    await sleep(200);
    const frame = await vm.rfb.refresh(3_000);
    say(`  a frozen guest still shows frame ${frame.sequence} over VNC`);
    await fails('a guest that is frozen', ['device_hung'], 5_000, () => vm.echo());
    await vm.rollback(state.tag, state.mark);
    say('  and a rollback made it go on');
  });
  await use(async (vm) => {
    process.kill(vm.pid, 'SIGSTOP');
    await fails('QEMU stopped: a frame', ['frame_stale'], 2_500, () => vm.rfb.refresh(2_000));
    await fails('QEMU stopped: an echo', ['device_hung'], 5_000, () => vm.echo());
    await fails('QEMU stopped: a rollback', ['device_hung'], 5_000, () => vm.rollback(state.tag, state.mark));
  });
  await use(async (vm) => {
    process.kill(vm.pid, 'SIGKILL');
    await fails('QEMU killed: a rollback', ['connection_dropped'], 1_000, () => vm.rollback(state.tag, state.mark));
    await fails('QEMU killed: a frame', ['connection_dropped'], 1_000, () => vm.rfb.refresh(2_000));
  });
  await fails('a state of a machine with more memory', ['rollback_failed'], 1_000, () =>
    readState(join(folder, 'state'), { ...machine, ramMb: machine.ramMb + 32 }),
  );
  await fails('the same, put to QEMU itself', ['boot_timeout'], 20_000, () =>
    startQemu({ machine: { ...machine, ramMb: machine.ramMb + 32 }, guest, from: state }),
  );
  await fullDisk(machine, guest, state, folder);
}

/** A file system that holds the state and little more. Only root may make one. */
async function fullDisk(machine: MachineManifest, guest: GuestFiles, state: SavedState, folder: string): Promise<void> {
  const small = join(folder, 'small');
  await mkdir(small);
  const megabytes = Math.ceil((await stat(state.disk)).size / 1024 / 1024) + 16;
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', small]).status !== 0) {
    say('  a full disk: not tried, no small file system can be mounted here');
    return;
  }
  try {
    const vm = await startQemu({ machine, guest, from: state, scratch: small });
    try {
      await fails('a disk that is full', ['disk_full'], 10_000, () => vm.save('second'));
      await vm.rollback(state.tag, state.mark);
      say('  and the state before is whole');
    } finally {
      await vm.stop();
    }
  } finally {
    execFileSync('umount', [small]);
  }
}

const RUN = 'check-qemu';
const SETS = [
  ...['sft.demonstrations=24', 'sft.steps=10', 'learn.updates=3', 'learn.tasks=3', 'learn.attempts=3'],
  // What fails is to be counted, not made again.
  ...['rollout.infraRetries=0', 'learn.minValidFraction=0'],
  ...['rollout.maxSteps=8', 'evaluation.instances.heldout-params=3', 'evaluation.instances.heldout-skin=0'],
];

/** Machines of processes below `root`, by their private folders. */
async function machinesBelow(root: number): Promise<number[]> {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const [status, command] = await Promise.all(
      ['stat', 'cmdline'].map((file) => readFile(`/proc/${name}/${file}`, 'latin1').catch(() => '')),
    );
    parents.set(Number(name), Number(status!.slice(status!.lastIndexOf(')') + 2).split(' ')[1]));
    if (command!.startsWith('qemu-system-x86_64\0')) found.push(Number(name));
  }
  const isBelow = (pid: number): boolean => pid === root || (pid > 1 && isBelow(parents.get(pid) ?? 0));
  return found.filter(isBelow);
}

async function training(folder: string): Promise<void> {
  const home = join(folder, 'home');
  const env: NodeJS.ProcessEnv = { ...process.env, TAPWRIGHT_HOME: home };
  delete env['TEMPORAL_ADDRESS'];
  const sets = SETS.flatMap((set) => ['--set', set]);
  const began = performance.now();
  const child = spawn(process.execPath, ['bin/tapwright.mjs', 'run', 'configs/vnc.yaml', '--id', RUN, ...sets], {
    ...{ cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] },
  });
  const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)));
  let over = false;
  void ended.then(() => (over = true));
  const inTraining = async (): Promise<boolean> =>
    (await readdir(join(home, 'runs', RUN, 'episodes')).catch(() => [])).some((name) => name.startsWith('u0001'));
  while (!over && !(await inTraining())) await sleep(250);
  const victims = await machinesBelow(child.pid!);
  if (victims.length < 2) wrong(`${victims.length} machines run in training, expected 3`);
  if (victims[0] !== undefined) process.kill(victims[0], 'SIGKILL');
  await sleep(2_000);
  const stopped = (await machinesBelow(child.pid!)).find((pid) => pid === victims[1]) ?? victims[2];
  if (stopped !== undefined) process.kill(stopped, 'SIGSTOP');
  const code = await ended;
  if (code !== 0) wrong(`the run ended with code ${code}`);
  const lines = (await readFile(join(home, 'runs', RUN, 'metrics.jsonl'), 'utf8').catch(() => '')).trim().split('\n');
  const metrics = lines.filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>);
  const sums = new Map<string, number>();
  for (const row of metrics) {
    for (const [key, value] of Object.entries(row)) {
      if (/^(mask|rollout)\/(?!success)/.test(key) && typeof value === 'number')
        sums.set(key, (sums.get(key) ?? 0) + value);
    }
  }
  say(
    `  ${((performance.now() - began) / 1000).toFixed(0)} s; ${[...sums].map(([key, n]) => `${key} ${n}`).join(', ')}`,
  );
  const updates = metrics.filter((row) => row['stage'] === 'train').length;
  if (updates !== 3) wrong(`${updates} updates were made, expected 3`);
  const log = await readFile(join(home, 'runs', RUN, 'logs', 'device.log'), 'utf8').catch(() => '');
  const replaced = log.split('\n').filter((line) => line.includes('is replaced'));
  for (const line of replaced) say(`  ${line}`);
  if (replaced.length < 2) wrong(`${replaced.length} machines were replaced, expected 2`);
  const masked = sums.get('rollout/masked') ?? 0;
  if (masked === 0 || masked > replaced.length) wrong(`${masked} attempts are masked, of ${replaced.length} machines`);
  await replayed(env);
  await sleep(500);
  const left = (await readdir(tmpdir())).filter((name) => name.startsWith('tapwright-vm-'));
  if (left.length > 0) wrong(`folders of machines were left: ${left.join(', ')}`);
}

/** Recorded attempts once more, on machines that never saw them. */
async function replayed(env: NodeJS.ProcessEnv): Promise<void> {
  const args = ['bin/tapwright.mjs', 'replay', RUN, '--where', 'phase=train', '--limit', '6', '--json'];
  const { stdout } = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8', timeout: 300_000 });
  const said = JSON.parse(stdout) as { of: number; identical: number; told: unknown[] };
  say(`  ${said.identical} of ${said.of} attempts are identical on other machines`);
  if (said.of === 0 || said.identical !== said.of) wrong(`replays differ: ${JSON.stringify(said.told)}`);
}

async function main(): Promise<boolean> {
  for (const part of ['qemu', 'guest']) {
    execFileSync(process.execPath, ['scripts/setup.mjs', '--only', part], { cwd: ROOT, stdio: 'inherit' });
  }
  const only = process.argv.slice(2);
  const wants = (part: string): boolean => only.length === 0 || only.includes(part);
  const folder = await mkdtemp(join(tmpdir(), 'tapwright-qemu-'));
  try {
    const guest = findGuest();
    const machine = await describeMachine(guest);
    let began = performance.now();
    const lap = (): string => {
      const ms = (performance.now() - began).toFixed(0);
      began = performance.now();
      return `${ms} ms`;
    };
    say(`QEMU ${machine.qemu}, ${machine.accel}, ${machine.ramMb} MiB`);
    const state = await ensureState(join(folder, 'state'), machine, guest);
    say(`  booted and saved: ${lap()}, ${((await stat(state.disk)).size / 1024 / 1024).toFixed(0)} MiB`);
    const vm = await startQemu({ machine, guest, from: state });
    say(`  one more from the saved state: ${lap()}`);
    try {
      if (wants('rollbacks')) await rollbacks(vm, state);
    } finally {
      await vm.stop();
    }
    if (wants('failures')) {
      say('failures on purpose');
      await failures(machine, guest, state, folder);
    }
    if (wants('training')) {
      say('a run on three machines, one killed, one stopped');
      await training(folder);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return problems.length === 0;
}

main().then(
  (good) => {
    process.stdout.write(good ? 'qemu: ok\n' : 'qemu: FAILED\n');
    process.exit(good ? 0 : 1);
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
