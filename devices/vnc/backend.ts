import { asTapwrightError } from '../../domain/errors.ts';
import type { DeviceBackend } from '../device.ts';
import { createSlots } from '../slots.ts';
import { describeMachine, findGuest } from './machine.ts';
import { loadOcrModels } from './ocr/models.ts';
import { outlineOfText } from './ocr/outline.ts';
import type { ReadScreen } from './ocr/outline.ts';
import { createTextReader } from './ocr/reader.ts';
import type { PhoneOracle } from './oracle.ts';
import { createPhoneHandle } from './phone-handle.ts';
import { startQemu, sweepFolders } from './qemu.ts';
import type { QemuMachine } from './qemu.ts';
import { ensureState, stateFolder } from './saved-state.ts';
import { STATUS_BAR } from './snapshots.ts';

export interface VncBackendOptions {
  oracle: PhoneOracle;
  /** Machines at once; further attempts wait for one. */
  maxMachines: number;
  /** Hears of what is worth a line: a machine that is replaced. */
  log?(line: string): void;
}

/** Outlines and first screens that are remembered. */
const MAX_KNOWN = 5_000;

/**
 * Virtual phones: QEMU machines cloned from one saved state, seen over VNC, their screens read by OCR. Snapshots are of the
 * whole machine. A machine that failed in any way is ended, and the next attempt gets a new one from the same state.
 */
export function createVncBackend({ oracle, maxMachines, log = () => {} }: VncBackendOptions): DeviceBackend {
  const slots = createSlots(maxMachines);
  const idle: QemuMachine[] = [];
  const all = new Set<QemuMachine>();
  const outlines = new Map<string, ReadScreen>();
  const firstScreens = new Map<string, string>();
  const keep = <T>(map: Map<string, T>, key: string, value: T): T => {
    if (map.size >= MAX_KNOWN) map.delete(map.keys().next().value!);
    map.set(key, value);
    return value;
  };

  /** What all machines start from, and what reads their screens: made once, by the first attempt. */
  let ready: ReturnType<typeof prepare> | null = null;
  const prepare = async () => {
    await sweepFolders();
    const guest = findGuest();
    const machine = await describeMachine(guest);
    const models = await loadOcrModels();
    return {
      guest,
      machine,
      models,
      reader: createTextReader(models),
      state: await ensureState(stateFolder(), machine, guest),
    };
  };
  const prepared = (): ReturnType<typeof prepare> => {
    ready ??= prepare();
    // The next one may find what was missing.
    ready.catch(() => (ready = null));
    return ready;
  };
  const fresh = async (): Promise<QemuMachine> => {
    const { machine, guest, state } = await prepared();
    const started = await startQemu({ machine, guest, from: state });
    all.add(started);
    return started;
  };
  const discard = async (machine: QemuMachine): Promise<void> => {
    all.delete(machine);
    await machine.stop();
  };

  return {
    name: 'vnc',
    capabilities: { touch: true, unicodeText: false, snapshot: 'machine', outline: true, groundTruth: true },
    async open(open) {
      const release = await slots();
      try {
        const { reader, state } = await prepared();
        let machine = idle.pop();
        // One that died while nobody used it is nobody's failure.
        while (machine !== undefined && machine.failure() !== null) {
          await discard(machine);
          machine = idle.pop();
        }
        const mine = machine ?? (await fresh());
        return createPhoneHandle({
          machine: mine,
          state,
          open,
          oracle,
          read: async (frame, digest) =>
            outlines.get(digest) ?? keep(outlines, digest, outlineOfText(frame, await reader.read(frame), STATUS_BAR)),
          firstScreen: (task, digest) => firstScreens.get(task) ?? keep(firstScreens, task, digest),
          onClose: async (fit) => {
            if (fit) idle.push(mine);
            else {
              log(
                `a virtual phone (process ${mine.pid}) is replaced: ${mine.failure()?.message ?? 'its attempt failed'}`,
              );
              await discard(mine);
            }
            release();
          },
        });
      } catch (error) {
        release();
        throw error;
      }
    },
    async health() {
      try {
        const { machine } = await prepared();
        return { ok: true, detail: `QEMU ${machine.qemu}, ${machine.accel}, ${all.size} machines` };
      } catch (error) {
        return { ok: false, detail: asTapwrightError(error).message };
      }
    },
    async close() {
      idle.length = 0;
      await Promise.all([...all].map(discard));
      const made = await ready?.catch(() => null);
      ready = null;
      await made?.models.close();
    },
  };
}
