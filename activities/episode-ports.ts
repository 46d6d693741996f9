import type { DeviceBackend, DeviceHandle, PixelSink } from '../devices/device.ts';
import type { LeaseTable } from '../devices/leases.ts';
import { episodeId } from '../domain/episode.ts';
import { TapwrightError, asTapwrightError } from '../domain/index.ts';
import type { EpisodeSpec, FailureClass, Lease, Step } from '../domain/index.ts';
import type { Judge } from '../judges/judge.ts';
import type { Grounder } from '../agent/grounder.ts';
import type { Planner } from '../agent/planner.ts';
import type { EpisodePorts, StepRequest } from '../agent/ports.ts';
import type { SimulatedUser } from '../agent/user.ts';

export interface DirectPortsOptions {
  backend: DeviceBackend;
  leases: LeaseTable;
  planner: Planner;
  grounder: Grounder;
  user: SimulatedUser;
  judge: Judge;
  /** Where kept screens go; null keeps none. */
  pixels: PixelSink;
  /** Deadline of one device call, ms: a device that hangs costs this, not the batch. */
  deviceTimeoutMs?: number;
  /** Injected judge failures; null: none for this step. */
  judgeFault?(spec: EpisodeSpec, t: number): TapwrightError | null;
}

/** Failures of a step that say nothing about its device. */
const NOT_THE_DEVICE: readonly FailureClass[] = [
  'engine_unavailable',
  'engine_refused',
  'grounder_unavailable',
  'user_unavailable',
  'lease_lost',
  'invalid_input',
];

interface Session {
  handle: DeviceHandle;
  failed: boolean;
}

/**
 * The loop's ports as direct calls on a device host. Sessions are kept by lease, so the same ports also serve the
 * activities of grain `step`. An action is performed at most once; after any failure of it the attempt is over.
 */
export function createDirectPorts(options: DirectPortsOptions): EpisodePorts {
  const { backend, leases, planner, grounder, user, judge, pixels, deviceTimeoutMs = 30_000 } = options;
  const sessions = new Map<string, Session>();
  const nameOf = (lease: Lease): string => `${lease.device}#${lease.token}`;

  const bounded = async <T>(what: string, work: Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () =>
          reject(
            new TapwrightError('device_hung', `The device gave no answer to ${what} within ${deviceTimeoutMs} ms.`),
          ),
        deviceTimeoutMs,
      );
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  };

  const session = (lease: Lease): Session => {
    leases.check(lease);
    const found = sessions.get(nameOf(lease));
    if (!found) throw new TapwrightError('lease_lost', `This host has no session for ${nameOf(lease)}.`);
    leases.renew(lease);
    return found;
  };

  /** Runs `work` for a session and remembers that its device failed: that counts towards quarantine. */
  const onDevice = async <T>(held: Session, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      held.failed ||= !NOT_THE_DEVICE.includes(asTapwrightError(error).code);
      throw error;
    }
  };

  const shut = async (handle: DeviceHandle): Promise<void> => {
    await bounded('close', handle.close()).catch(() => undefined);
  };

  /** Handles of attempts that lost this device without a close: their worker is gone or their lease expired. */
  const shutForerunners = async (lease: Lease): Promise<void> => {
    const left = [...sessions].filter(([name]) => name.startsWith(`${lease.device}#`));
    for (const [name] of left) sessions.delete(name);
    await Promise.all(left.map(([, old]) => shut(old.handle)));
  };

  const openHandle = async (spec: EpisodeSpec): Promise<DeviceHandle> => {
    const { task, key, seed, faults, infraTry, keepScreens } = spec;
    const opening = backend.open({ task, key, seed, faults, infraTry, pixels: keepScreens ? pixels : null });
    try {
      return await bounded('open', opening);
    } catch (error) {
      // One that opens too late has no owner.
      opening.then(shut, () => undefined);
      throw error;
    }
  };

  return {
    async open(spec) {
      const lease = await leases.acquire(`${episodeId(spec.key)}#${spec.infraTry}`);
      let held: Session | null = null;
      try {
        await shutForerunners(lease);
        const handle = await openHandle(spec);
        held = { handle, failed: false };
        sessions.set(nameOf(lease), held);
        const proof = await bounded('rollback', handle.rollback());
        const screen = await bounded('observe', handle.observe());
        if (screen.hash !== proof.hash || screen.frame < proof.frame)
          throw new TapwrightError(
            'rollback_unverified',
            `After rollback the screen's hash is ${screen.hash}, the snapshot's ${proof.hash}.`,
          );
        const truth = await bounded('truth', handle.truth());
        const goal = proof.instruction;
        return { lease, screen, truth, ...(goal === undefined ? {} : { goal }) };
      } catch (error) {
        sessions.delete(nameOf(lease));
        if (held) await shut(held.handle);
        leases.release(lease, true);
        throw error;
      }
    },

    async step(request) {
      const held = session(request.lease);
      return onDevice(held, () => step(held.handle, request));
    },

    async judgeStep(spec, evidence, memory) {
      const fault = options.judgeFault?.(spec, evidence.t);
      if (fault) throw fault;
      return judge.judgeStep(evidence, memory);
    },

    judgeOutcome: (_spec, evidence) => judge.judgeOutcome(evidence),

    async close(_spec, lease) {
      const held = sessions.get(nameOf(lease));
      sessions.delete(nameOf(lease));
      // Nobody else gets the device before this attempt has let go of it.
      if (held) await shut(held.handle);
      leases.release(lease, held?.failed ?? false);
    },
  };

  async function step(handle: DeviceHandle, { spec, lease, t, screen, truth, history }: StepRequest): Promise<Step> {
    const { task } = spec;
    const { sample, plan } = await planner.plan(spec, t, task, screen, history);
    const unmoved = { after: screen, truthAfter: truth };
    const base = { t, sample, plan, before: screen, truthBefore: truth };
    if (!plan) return { ...base, grounding: { kind: 'none' }, receipt: null, answer: null, ...unmoved };
    const grounding = await grounder.ground(plan.intent, screen, spec, t);
    if (plan.intent.kind === 'ask_user') {
      const answer = await user.answer(task, plan.intent.question);
      handle.noteAnswer(answer.fact);
      return {
        ...base,
        grounding,
        receipt: null,
        answer: answer.text,
        after: screen,
        truthAfter: await bounded('truth', handle.truth()),
      };
    }
    if (grounding.kind !== 'action') return { ...base, grounding, receipt: null, answer: null, ...unmoved };
    // Sampling can take long: the lease must still be ours at the moment the device is touched.
    leases.renew(lease);
    const receipt = await bounded(grounding.action.kind, handle.perform(grounding.action));
    const after = await bounded('observe', handle.observe());
    const truthAfter = await bounded('truth', handle.truth());
    return { ...base, grounding, receipt, answer: null, after, truthAfter };
  }
}
