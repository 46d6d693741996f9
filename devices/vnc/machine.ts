import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { TapwrightError } from '../../domain/errors.ts';

/** What QEMU is called; Debian's package is qemu-system-x86. */
export const QEMU = 'qemu-system-x86_64';

export type Acceleration = 'kvm' | 'tcg';

/** What a saved state depends on: QEMU loads it into exactly this machine, or into none (devices.md, QEMU). */
export const machineManifest = z.strictObject({
  qemu: z.string(),
  accel: z.enum(['kvm', 'tcg']),
  cpu: z.string(),
  ramMb: z.number(),
  /** The other arguments, in order: devices get their places on the bus by it. */
  devices: z.array(z.string()),
  kernelArguments: z.string(),
  /** sha256 of what the guest is started from. */
  vmlinux: z.string(),
  initramfs: z.string(),
});
export type MachineManifest = z.output<typeof machineManifest>;

/** A guest on this machine's disk. */
export interface GuestFiles {
  vmlinux: string;
  initramfs: string;
  hashes: { vmlinux: string; initramfs: string };
}

const DEVICES = [
  ...['-machine', 'q35,usb=off,hpet=off,vmport=off,smbus=off,sata=off'],
  ...['-smp', '1', '-nodefaults', '-no-user-config', '-display', 'none', '-rtc', 'base=2026-01-01,clock=vm'],
  ...['-device', 'secondary-vga,edid=off,vgamem_mb=2'],
  ...['-device', 'virtio-tablet-pci', '-device', 'virtio-keyboard-pci'],
  ...['-device', 'isa-serial,chardev=serial'],
];
/** Nothing is printed: every byte of it would be drawn or sent while the guest could start. */
const KERNEL_ARGUMENTS = 'quiet console=ttyS1 tsc=reliable no_timer_check random.trust_cpu=on mitigations=off';
export const RAM_MB = 160;

/** Where set-up builds the guest; `TAPWRIGHT_GUEST` names another folder. */
export function guestFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env.TAPWRIGHT_GUEST ?? join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tapwright', 'guest');
}

/** The guest that set-up built. Error: `not_found`, with what to do. */
export function findGuest(folder = guestFolder()): GuestFiles {
  const about = join(folder, 'guest.json');
  if (!existsSync(about)) {
    throw new TapwrightError('not_found', `There is no guest in ${folder}; run \`npm run setup -- --only guest\`.`, {
      retryable: false,
    });
  }
  const { vmlinux, initramfs } = z
    .object({ vmlinux: z.string(), initramfs: z.string() })
    .parse(JSON.parse(readFileSync(about, 'utf8')));
  return {
    vmlinux: join(folder, 'vmlinux'),
    initramfs: join(folder, 'initramfs'),
    hashes: { vmlinux, initramfs },
  };
}

/**
 * Whether KVM runs Debian's kernel: the device may be opened, and the processor has the extensions. A hypervisor without
 * them may offer the device all the same, and then a guest only hangs.
 */
export function usableAcceleration(cpuinfo = '/proc/cpuinfo', device = '/dev/kvm'): Acceleration {
  try {
    accessSync(device, constants.R_OK | constants.W_OK);
    return /^flags\s*:.*\b(vmx|svm)\b/m.test(readFileSync(cpuinfo, 'utf8')) ? 'kvm' : 'tcg';
  } catch {
    return 'tcg';
  }
}

/** The manifest of the machine that would be started here. Errors: `not_found` without QEMU or guest. */
export async function describeMachine(guest: GuestFiles, accel = usableAcceleration()): Promise<MachineManifest> {
  const { stdout } = await promisify(execFile)(QEMU, ['--version'], { timeout: 10_000 }).catch((cause: unknown) => {
    throw new TapwrightError(
      'not_found',
      `There is no ${QEMU}. On Debian: apt-get install --no-install-recommends qemu-system-x86 qemu-utils.`,
      { cause, retryable: false },
    );
  });
  return {
    qemu: /version (.+)/.exec(stdout)?.[1]?.trim() ?? 'unknown',
    accel,
    cpu: accel === 'kvm' ? 'host' : 'max',
    ramMb: RAM_MB,
    devices: DEVICES,
    kernelArguments: KERNEL_ARGUMENTS,
    ...guest.hashes,
  };
}

/** What differs between two manifests, in words; null when a state of the one loads into the other. */
export function manifestDifference(saved: MachineManifest, now: MachineManifest): string | null {
  for (const key of Object.keys(now) as (keyof MachineManifest)[]) {
    const [a, b] = [JSON.stringify(saved[key]), JSON.stringify(now[key])];
    if (a !== b) return `${key} was ${a} and is ${b}`;
  }
  return null;
}

export interface MachinePaths {
  disk: string;
  qmp: string;
  vnc: string;
  serial: string;
}

/** QEMU's arguments. `load`: the state on the disk to start from, null to boot. */
export function qemuArguments(
  machine: MachineManifest,
  guest: GuestFiles,
  paths: MachinePaths,
  load: string | null,
): string[] {
  const socket = (path: string): string => `${path.replaceAll(',', ',,')},server=on,wait=off`;
  return [
    ...['-accel', machine.accel, '-cpu', machine.cpu, '-m', String(machine.ramMb)],
    ...['-chardev', `socket,id=serial,path=${socket(paths.serial)}`],
    ...machine.devices,
    ...['-kernel', guest.vmlinux, '-initrd', guest.initramfs, '-append', machine.kernelArguments],
    // Only the vmstate lies on it. Nothing on it is worth more than the machine, so nothing is flushed.
    ...['-drive', `if=none,id=state,format=qcow2,cache=unsafe,file=${paths.disk.replaceAll(',', ',,')}`],
    ...['-qmp', `unix:${socket(paths.qmp)}`, '-vnc', `unix:${paths.vnc.replaceAll(',', ',,')}`],
    ...(load === null ? [] : ['-loadvm', load]),
  ];
}
