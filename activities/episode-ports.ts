import type { DeviceBackend, DeviceHandle, PixelSink } from '../devices/device.ts';
import type { LeaseTable } from '../devices/leases.ts';
import { episodeId } from '../domain/episode.ts';
import { TapwrightError, asTapwrightError } from '../domain/index.ts';
import type { EpisodeSpec, FailureClass, Lease, Step } from '../domain/index.ts';
import type { Judge } from '../judges/judge.ts';
import type { Grounder } from '../agent/grounder.ts';
import type { Planner } from '../agent/planner.ts';
import type { EpisodePorts, Opened, StepRequest } from '../agent/ports.ts';
import type { SimulatedUser } from '../agent/user.ts';
import { cutShort } from './deadline.ts';

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

/** The ports of an attempt as direct calls, and what a device host needs besides. */
export interface DirectPorts extends EpisodePorts {
  /** The same ports, each of which ends with the signal's reason when that aborts. Only `close` is never cut short. */
  until(signal: AbortSignal | null): EpisodePorts;
  /** Lets go of every device still held here: the host stops. */
  drain(): Promise<void>;
}

/** A device that does not even close is left after this long; the time a host has to stop is short. */
const CLOSE_TIMEOUT_MS = 4_000;

/**
 * The loop's ports as direct calls on a device host. Sessions are kept by lease, so the same ports also serve the
 * activities of grain `step`. An action is performed at most once; after any failure of it the attempt is over.
 */
export function createDirectPorts(options: DirectPortsOptions): DirectPorts {
  const { backend, leases, planner, grounder, user, judge, pixels, deviceTimeoutMs = 30_000 } = options;
  const sessions = new Map<string, { session: Session; lease: Lease }>();
  const nameOf = (lease: Lease): string => `${lease.device}#${lease.token}`;

  const bounded = async <T>(what: string, work: Promise<T>, timeoutMs = deviceTimeoutMs): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new TapwrightError('device_hung', `The device gave no answer to ${what} within ${timeoutMs} ms.`));
      }, timeoutMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  };

  /** The device's answer, within its time. An attempt cut short in a device call was held up by that device. */
  const ask = async <T>(held: Session, what: string, work: Promise<T>, signal: AbortSignal | null): Promise<T> => {
    try {
      return await cutShort(signal, bounded(what, work));
    } catch (error) {
      held.failed ||= blames(error, signal, true);
      throw error;
    }
  };

  const sessionOf = (lease: Lease): Session => {
    leases.check(lease);
    const found = sessions.get(nameOf(lease));
    if (!found) throw new TapwrightError('lease_lost', `This host has no session for ${nameOf(lease)}.`);
    leases.renew(lease);
    return found.session;
  };

  const shut = async (handle: DeviceHandle): Promise<void> => {
    const timeoutMs = Math.min(deviceTimeoutMs, CLOSE_TIMEOUT_MS);
    await bounded('close', handle.close(), timeoutMs).catch(() => undefined);
  };

  /** Handles of attempts that lost this device without a close: their worker is gone or their lease expired. */
  const shutForerunners = async (lease: Lease): Promise<void> => {
    const left = [...sessions].filter(([name]) => name.startsWith(`${lease.device}#`));
    for (const [name] of left) sessions.delete(name);
    await Promise.all(left.map(([, old]) => shut(old.session.handle)));
  };

  const openHandle = async (spec: EpisodeSpec, signal: AbortSignal | null): Promise<DeviceHandle> => {
    const { task, key, seed, faults, infraTry, keepScreens } = spec;
    const opening = backend.open({ task, key, seed, faults, infraTry, pixels: keepScreens ? pixels : null });
    try {
      return await cutShort(signal, bounded('open', opening));
    } catch (error) {
      // One that opens too late has no owner.
      opening.then(shut, () => undefined);
      throw error;
    }
  };

  const open = async (spec: EpisodeSpec, signal: AbortSignal | null): Promise<Opened> => {
    const lease = await leases.acquire(`${episodeId(spec.key)}#${spec.infraTry}`, signal);
    let held: Session | null = null;
    try {
      await shutForerunners(lease);
      const handle = await openHandle(spec, signal);
      held = { handle, failed: false };
      sessions.set(nameOf(lease), { session: held, lease });
      const proof = await ask(held, 'rollback', handle.rollback(), signal);
      const screen = await ask(held, 'observe', handle.observe(), signal);
      if (screen.hash !== proof.hash || screen.frame < proof.frame)
        throw new TapwrightError(
          'rollback_unverified',
          `After rollback the screen's hash is ${screen.hash}, the snapshot's ${proof.hash}.`,
        );
      const truth = await ask(held, 'truth', handle.truth(), signal);
      const goal = proof.instruction;
      return { lease, screen, truth, ...(goal === undefined ? {} : { goal }) };
    } catch (error) {
      sessions.delete(nameOf(lease));
      if (held) await shut(held.handle);
      leases.release(lease, blames(error, signal, true));
      throw error;
    }
  };

  const step = async (request: StepRequest, signal: AbortSignal | null): Promise<Step> => {
    const { spec, lease, t, screen, truth, history } = request;
    const { task } = spec;
    const held = sessionOf(lease);
    leases.steps.check(lease, t);
    const { handle } = held;
    // Sampling may outlast the lease: it is renewed as long as the step goes on, which the deadline bounds.
    const renewal = setInterval(() => renewIfHeld(lease), lease.ttlMs / 3);
    try {
      const { sample, plan } = await cutShort(signal, planner.plan(spec, t, task, screen, history));
      const unmoved = { after: screen, truthAfter: truth };
      const base = { t, sample, plan, before: screen, truthBefore: truth };
      if (!plan) return { ...base, grounding: { kind: 'none' }, receipt: null, answer: null, ...unmoved };
      const grounding = await cutShort(signal, grounder.ground(plan.intent, screen, spec, t));
      if (plan.intent.kind === 'ask_user') {
        const answer = await cutShort(signal, user.answer(task, plan.intent.question));
        handle.noteAnswer(answer.fact);
        const truthAfter = await ask(held, 'truth', handle.truth(), signal);
        return { ...base, grounding, receipt: null, answer: answer.text, after: screen, truthAfter };
      }
      if (grounding.kind !== 'action') return { ...base, grounding, receipt: null, answer: null, ...unmoved };
      // Sampling can take long: the lease must still be ours at the moment the device is touched.
      leases.renew(lease);
      const { action } = grounding;
      leases.steps.plan(lease, t, action);
      await leases.steps.issue(lease, t);
      signal?.throwIfAborted();
      const receipt = await ask(held, action.kind, handle.perform(action), signal);
      leases.steps.done(lease, t);
      const after = await ask(held, 'observe', handle.observe(), signal);
      const truthAfter = await ask(held, 'truth', handle.truth(), signal);
      return { ...base, grounding, receipt, answer: null, after, truthAfter };
    } catch (error) {
      // A device that failed has this held against it: so many times and it is put aside.
      held.failed ||= blames(error, signal, false);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  };

  const renewIfHeld = (lease: Lease): void => {
    try {
      leases.renew(lease);
    } catch {
      // Lost: the step hears of it before it touches the device.
    }
  };

  const close = async (lease: Lease): Promise<void> => {
    const held = sessions.get(nameOf(lease))?.session;
    sessions.delete(nameOf(lease));
    // Nobody else gets the device before this attempt has let go of it.
    if (held) await shut(held.handle);
    leases.release(lease, held?.failed ?? false);
  };

  const until = (signal: AbortSignal | null): EpisodePorts => ({
    open: (spec) => open(spec, signal),
    step: (request) => step(request, signal),
    async judgeStep(spec, evidence, memory) {
      const fault = options.judgeFault?.(spec, evidence.t);
      if (fault) throw fault;
      return cutShort(signal, judge.judgeStep(evidence, memory, spec));
    },
    judgeOutcome: (_spec, evidence) => cutShort(signal, judge.judgeOutcome(evidence)),
    close: (_spec, lease) => close(lease),
  });

  return {
    ...until(null),
    until,
    drain: async () => {
      await Promise.all([...sessions.values()].map(({ lease }) => close(lease)));
    },
  };
}

/** Does this failure count against the device? Not one from elsewhere, nor a cut while something else was waited for. */
function blames(error: unknown, signal: AbortSignal | null, inDeviceCall: boolean): boolean {
  const { code } = asTapwrightError(error);
  if (signal?.aborted === true && error === signal.reason) return inDeviceCall && code === 'deadline';
  return !NOT_THE_DEVICE.includes(code);
}
