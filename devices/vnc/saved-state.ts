import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { TapwrightError } from '../../domain/errors.ts';
import { guestFolder, machineManifest, manifestDifference } from './machine.ts';
import type { GuestFiles, MachineManifest } from './machine.ts';
import { startQemu } from './qemu.ts';
import type { ScreenMark } from './snapshots.ts';

const stateFile = z.strictObject({
  machine: machineManifest,
  tag: z.string(),
  mark: z.strictObject({ digest: z.string(), hash: z.string(), degenerate: z.boolean() }),
});

/** A machine's state on disk: any number of machines start from it. */
export interface SavedState {
  machine: MachineManifest;
  /** qcow2 with the state in it. */
  disk: string;
  tag: string;
  mark: ScreenMark;
}

const TAG = 'base';

/** Where the machines of this user start from: beside the guest, since it is as dear to make and as easy to make again. */
export const stateFolder = (guest = guestFolder()): string => `${guest}-state`;

/**
 * The state in a folder. Errors: `not_found`; `rollback_failed`, with what differs, when it is of another machine: QEMU would
 * refuse it too, or load it wrong.
 */
export async function readState(folder: string, machine: MachineManifest): Promise<SavedState> {
  const about = join(folder, 'state.json');
  if (!existsSync(about)) throw new TapwrightError('not_found', `there is no saved machine in ${folder}`);
  const parsed = stateFile.safeParse(JSON.parse(await readFile(about, 'utf8')));
  if (!parsed.success) throw new TapwrightError('rollback_failed', `${about} describes no saved machine`);
  const difference = manifestDifference(parsed.data.machine, machine);
  if (difference !== null) {
    throw new TapwrightError('rollback_failed', `the machine saved in ${folder} is another one: ${difference}`);
  }
  return { ...parsed.data, disk: join(folder, 'state.qcow2') };
}

/**
 * A machine booted once and saved in `folder`: what is there when it fits, else a new one. Errors: those of a boot and of a
 * save.
 */
export async function ensureState(folder: string, machine: MachineManifest, guest: GuestFiles): Promise<SavedState> {
  try {
    return await readState(folder, machine);
  } catch {
    // None there, or of another machine: it is made anew.
  }
  await mkdir(dirname(folder), { recursive: true });
  const making = await mkdtemp(`${folder}.making-`);
  try {
    const booted = await startQemu({ machine, guest, from: null, scratch: making });
    try {
      const mark = await booted.save(TAG);
      await copyFile(booted.disk, join(making, 'state.qcow2'));
      await writeFile(join(making, 'state.json'), `${JSON.stringify({ machine, tag: TAG, mark }, null, 2)}\n`);
    } finally {
      await booted.stop();
    }
    await rm(folder, { recursive: true, force: true });
    await rename(making, folder);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return readState(folder, machine);
}
