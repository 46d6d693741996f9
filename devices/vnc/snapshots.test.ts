import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { TapwrightError } from '../../domain/errors.ts';
import { findGuest, manifestDifference, qemuArguments, usableAcceleration } from './machine.ts';
import type { MachineManifest } from './machine.ts';
import { sweepFolders } from './qemu.ts';
import { readState } from './saved-state.ts';
import { controlMachine, markOf, readPpm } from './snapshots.ts';
import type { MachineControl } from './snapshots.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'tapwright-machine-'));
  folders.push(made);
  return made;
};

const screen = (shade: number) => ({
  sequence: 0,
  width: 40,
  height: 60,
  pixels: new Uint8Array(40 * 60 * 4).fill(shade),
});

/** A machine as its three connections show it; each part can be made to fail as QEMU's does. */
function machine(): MachineControl & {
  at: { shown: number; running: boolean; echoes: boolean; says: string; waits: Promise<void> | null; lines: string[] };
} {
  const at = {
    shown: 10,
    running: true,
    echoes: true,
    says: '',
    waits: null as Promise<void> | null,
    lines: [] as string[],
  };
  let events = 0;
  let sequence = 0;
  const frame = () => ({ ...screen(at.shown), sequence: ++sequence });
  const control = controlMachine({
    folder: '/nowhere',
    rollbackTimeoutMs: 1_000,
    qmp: {
      execute: (command) => {
        at.lines.push(command);
        if (command === 'cont') at.running = true;
        return Promise.resolve({ running: at.running });
      },
      human: async (line) => {
        at.lines.push(line);
        await at.waits;
        if (at.says !== '') at.running = false;
        return at.says;
      },
      events: () => [],
      close: () => {},
    },
    rfb: {
      sequence: () => sequence,
      hover: () => void (at.echoes && events++),
      lift: () => void at.lines.push('lift'),
      refresh: () => Promise.resolve(frame()),
      observe: () => Promise.reject(new TapwrightError('frame_stale', 'nothing new')),
    } as never,
    guest: { events: () => Promise.resolve(events) },
  });
  return { ...control, at };
}

describe('a rollback', () => {
  it('lifts the pointer, loads, lets the machine go on, and is proven by a frame, an echo and every pixel', async () => {
    const vm = machine();
    const mark = await vm.save('base');
    vm.at.lines.length = 0;
    vm.at.running = false;
    const frame = await vm.rollback('base', mark);
    expect(vm.at.lines).toEqual(['lift', 'loadvm base', 'query-status', 'cont', 'query-status']);
    expect(markOf(frame)).toEqual(mark);
  });

  it('fails with what the monitor prints, though QMP calls it a success', async () => {
    const vm = machine();
    const mark = await vm.save('base');
    vm.at.says = "Error: Snapshot 'other' does not exist in one or more devices";
    await expect(vm.rollback('other', mark)).rejects.toMatchObject({
      code: 'rollback_failed',
      message: expect.stringContaining('does not exist') as string,
    });
    // The failed load has left the machine standing; a good one makes it go on.
    vm.at.says = '';
    expect(vm.at.running).toBe(false);
    await vm.rollback('base', mark);
    expect(vm.at.running).toBe(true);
  });

  it('is not verified when another screen comes up, and the guest hangs when no input reaches it', async () => {
    const vm = machine();
    const mark = await vm.save('base');
    vm.at.shown = 200;
    await expect(vm.rollback('base', mark)).rejects.toMatchObject({ code: 'rollback_unverified' });
    vm.at.shown = 10;
    vm.at.echoes = false;
    await expect(vm.echo(30)).rejects.toMatchObject({ code: 'device_hung' });
  });

  it('refuses a save and a load at once, a bad tag, and tells a full disk', async () => {
    const vm = machine();
    const mark = await vm.save('base');
    let go = (): void => {};
    vm.at.waits = new Promise((resolve) => (go = resolve));
    const first = vm.save('second');
    await expect(vm.rollback('base', mark)).rejects.toThrow('loadvm base was refused: savevm second is not over');
    go();
    await first;
    await expect(vm.save('a b; quit')).rejects.toMatchObject({ code: 'invalid_input' });
    vm.at.says = 'Error: Error -28 while writing VM state: No space left on device';
    await expect(vm.save('third')).rejects.toMatchObject({ code: 'disk_full' });
  });
});

describe('what a saved state depends on', () => {
  const manifest: MachineManifest = {
    qemu: '7.2.22',
    accel: 'tcg',
    cpu: 'max',
    ramMb: 160,
    devices: ['-device', 'a', '-device', 'b'],
    kernelArguments: 'quiet',
    vmlinux: '11',
    initramfs: '22',
  };

  it('is refused when anything differs, with what does', async () => {
    const changed: [Partial<MachineManifest>, string][] = [
      [{ ramMb: 256 }, 'ramMb was 160 and is 256'],
      [{ qemu: '8.0' }, 'qemu was "7.2.22"'],
      [{ devices: ['-device', 'b', '-device', 'a'] }, 'devices was'],
      [{ initramfs: '23' }, 'initramfs was'],
    ];
    const kept = folder();
    const mark = { digest: 'd', hash: 'h', degenerate: false };
    writeFileSync(join(kept, 'state.json'), JSON.stringify({ machine: manifest, tag: 'base', mark }));
    expect((await readState(kept, manifest)).mark).toEqual(mark);
    for (const [change, words] of changed) {
      expect(manifestDifference(manifest, { ...manifest, ...change })).toContain(words);
      await expect(readState(kept, { ...manifest, ...change })).rejects.toThrow(words);
    }
    await expect(readState(folder(), manifest)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('becomes arguments in which a comma of a path stays a comma of a path', () => {
    const paths = { disk: '/a,b/state.qcow2', qmp: '/q', vnc: '/v', serial: '/s' };
    const args = qemuArguments(manifest, { vmlinux: '/k', initramfs: '/i', hashes: manifest }, paths, 'base');
    expect(args).toContain('if=none,id=state,format=qcow2,cache=unsafe,file=/a,,b/state.qcow2');
    expect(args.slice(-2)).toEqual(['-loadvm', 'base']);
  });

  it('takes KVM only where the processor has it', () => {
    const at = folder();
    writeFileSync(join(at, 'kvm'), '');
    for (const [flags, accel] of [
      ['fpu vme svm', 'kvm'],
      ['fpu vme', 'tcg'],
    ] as const) {
      writeFileSync(join(at, 'cpuinfo'), `processor : 0\nflags\t\t: ${flags}\n`);
      expect(usableAcceleration(join(at, 'cpuinfo'), join(at, 'kvm'))).toBe(accel);
      expect(usableAcceleration(join(at, 'cpuinfo'), join(at, 'none'))).toBe('tcg');
    }
  });

  it('says how to get the guest that is not there', () => {
    expect(() => findGuest('/nowhere')).toThrow('npm run setup -- --only guest');
  });
});

it("reads QEMU's pictures, and no others", () => {
  const bytes = Buffer.concat([Buffer.from('P6\n2 1\n255\n'), Buffer.of(1, 2, 3, 4, 5, 6)]);
  expect(readPpm(bytes)).toEqual({ width: 2, height: 1, pixels: Uint8Array.of(1, 2, 3, 255, 4, 5, 6, 255) });
  expect(() => readPpm(Buffer.from('P5\n'))).toThrow('no picture');
});

it('removes the folders of processes that are gone, and those only', async () => {
  const scratch = folder();
  const names = [`tapwright-vm-${process.pid}-a`, 'tapwright-vm-999999999-b', 'other'];
  for (const name of names) mkdirSync(join(scratch, name));
  await sweepFolders(scratch);
  const left = (await import('node:fs')).readdirSync(scratch);
  expect(left.sort()).toEqual(['other', names[0]]);
});
