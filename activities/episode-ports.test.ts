import { describe, expect, it } from 'vitest';
import { createGrounderRouter } from '../agent/grounder.ts';
import { runEpisode } from '../agent/loop.ts';
import { formatPlan } from '../agent/parser.ts';
import { createPlanner, type SamplerPort } from '../agent/planner.ts';
import { createTokenizer, wordsOf } from '../agent/tokenizer.ts';
import { createRuleUser } from '../agent/user.ts';
import type { DeviceBackend, DeviceHandle } from '../devices/device.ts';
import { createLeaseTable } from '../devices/leases.ts';
import { createSimBackend } from '../devices/sim/backend.ts';
import { TapwrightError } from '../domain/index.ts';
import type { EpisodeSpec, TaskInstance } from '../domain/index.ts';
import { createRuleJudge, judgeFault } from '../judges/rule.ts';
import { createSimSuite } from '../suites/sim/suite.ts';
import { createDirectPorts } from './episode-ports.ts';

const suite = createSimSuite();
const vocabulary = createTokenizer({ words: suite.vocabulary() });
const tasks = Array.from({ length: 60 }, (_, i) => suite.instance('train', 5, i));
const taskWhere = (test: (task: TaskInstance) => boolean): TaskInstance => {
  const found = tasks.find((task) => test(task));
  if (!found) throw new Error('no such task among the first');
  return found;
};
const easy = taskWhere(
  (task) => task.possible && (task.optimalSteps ?? 0) >= 5 && Object.keys(task.userFacts).length === 0,
);

const specOf = (task: TaskInstance, more: Partial<EpisodeSpec> = {}): EpisodeSpec => ({
  key: { run: 'r', phase: 'train', update: 1, draw: 2, attempt: 3 },
  seed: 11,
  task,
  policy: 'tinker://test',
  temperature: 1,
  maxTokens: 48,
  decodeMask: 'grammar',
  grounder: 'large',
  maxUnparseable: 1,
  faults: {},
  keepScreens: false,
  deadlineMs: 60_000,
  infraTry: 0,
  ...more,
});

interface WorldOptions {
  /** Before each sample. */
  meanwhile?: () => void;
  /** Each sample waits for this. */
  thinking?: Promise<void>;
  /** Changes handles as they are opened. */
  handles?: (handle: DeviceHandle) => DeviceHandle;
  open?: DeviceBackend['open'];
  devices?: number;
  deviceTimeoutMs?: number;
}

/** Simulated phones whose policy is the expert of the device in use: it writes what the expert would do. */
function world({
  meanwhile,
  thinking = Promise.resolve(),
  handles = (handle) => handle,
  open,
  devices = 1,
  deviceTimeoutMs = 5000,
}: WorldOptions = {}) {
  let time = 0;
  let current: DeviceHandle | null = null;
  const counts = { opened: 0, closed: 0, performed: 0 };
  const sim = createSimBackend();
  const backend: DeviceBackend = {
    ...sim,
    async open(options) {
      const handle = handles(await (open ?? sim.open)(options));
      counts.opened++;
      return (current = {
        ...handle,
        perform: (action) => (counts.performed++, handle.perform(action)),
        close: () => (counts.closed++, handle.close()),
      });
    },
  };
  let text = '';
  const engine: SamplerPort = {
    async sample() {
      meanwhile?.();
      await thinking;
      const move = await current!.expert();
      text = formatPlan(move!);
      return { tokens: [], logprobs: [], hidden: null };
    },
  };
  const planner = createPlanner({ engine, tokenizer: talking(() => text), historySteps: 3 });
  const leases = createLeaseTable({ devices, ttlMs: 1000, now: () => time, failuresToQuarantine: 1 });
  const ports = createDirectPorts({
    backend,
    leases,
    planner,
    grounder: createGrounderRouter(),
    user: createRuleUser(),
    judge: createRuleJudge(),
    pixels: null,
    deviceTimeoutMs,
    judgeFault,
  });
  return { ports, leases, counts, pass: (ms: number) => void (time += ms) };
}

/** The suite's tokenizer, except that a response decodes to what was meant: held-out words have no fixed id to send. */
function talking(said: () => string): ReturnType<typeof createTokenizer> {
  return { ...vocabulary, decode: () => wordsOf(said()) };
}

describe('an attempt on a simulated phone', () => {
  it.each([
    ['many steps', easy],
    ['a question', taskWhere((task) => Object.keys(task.userFacts).length > 0)],
  ])('of the expert succeeds from end to end: %s', async (_, task) => {
    const { ports, leases, counts } = world();
    const episode = await runEpisode(specOf(task), ports);
    expect(episode).toMatchObject({ outcome: 'success', claim: 'done', terminal: 'success', id: 'u0001/t02/a3' });
    expect(episode.steps.map((step) => step.dense)).toEqual(episode.steps.map(() => 'success'));
    expect(episode.steps.length).toBe(task.optimalSteps);
    expect(counts).toMatchObject({ opened: 1, closed: 1 });
    expect(leases.status()).toMatchObject({ free: 1, leased: 0, quarantined: 0 });
  });

  it('of what cannot be done ends blocked', async () => {
    const episode = await runEpisode(specOf(taskWhere((task) => !task.possible)), world().ports);
    expect(episode).toMatchObject({ outcome: 'blocked_complete', claim: 'blocked' });
  });

  it('gives the same record every time', async () => {
    const again = async (): Promise<string> =>
      JSON.stringify(await runEpisode(specOf(easy, { grounder: 'hybrid' }), world().ports));
    expect(await again()).toBe(await again());
  });
});

describe('faults end in their class, and the device comes back', () => {
  it.each([
    ['crash', 'app_crashed'],
    ['hang', 'device_hung'],
    ['slow_answer', 'deadline'],
    ['frozen_frame', 'frame_stale'],
    ['stale_snapshot', 'rollback_unverified'],
    ['judge_down', 'judge_unavailable'],
    ['judge_garbage', 'judge_unparseable'],
  ])('%s: %s', async (fault, code) => {
    const { ports, leases, counts } = world();
    await expect(runEpisode(specOf(easy, { faults: { [fault]: 1 } }), ports)).rejects.toMatchObject({ code });
    expect(counts).toMatchObject({ opened: 1, closed: 1 });
    // A judge that fails says nothing about the device.
    const device = code.startsWith('judge') ? { free: 1, quarantined: 0 } : { free: 0, quarantined: 1 };
    expect(leases.status()).toMatchObject({ leased: 0, ...device });
  });

  it('dropped_text: text_mismatch', async () => {
    const typing = taskWhere((task) => JSON.stringify(task.snapshot).includes('\\"drafts\\":{\\"'));
    const attempt = runEpisode(specOf(typing, { faults: { dropped_text: 1 } }), world().ports);
    await expect(attempt).rejects.toMatchObject({ code: 'text_mismatch' });
  });

  it('an engine that fails leaves the device in good standing', async () => {
    const meanwhile = (): never => {
      throw new TapwrightError('engine_unavailable', 'no engine');
    };
    const { ports, leases } = world({ meanwhile });
    await expect(runEpisode(specOf(easy), ports)).rejects.toMatchObject({ code: 'engine_unavailable' });
    expect(leases.status()).toMatchObject({ free: 1, quarantined: 0 });
  });

  it.each(['rollback', 'observe', 'truth', 'perform'] as const)('%s without an answer: device_hung', async (call) => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const { ports, leases, counts } = world({
      handles: (handle) => ({ ...handle, [call]: never, close: never }),
      deviceTimeoutMs: 20,
    });
    await expect(runEpisode(specOf(easy), ports)).rejects.toMatchObject({ code: 'device_hung' });
    expect(counts.closed).toBe(1);
    expect(leases.status().quarantined).toBe(1);
  });

  it('a device that opens too late is closed', async () => {
    let closed = 0;
    let finish = (): void => undefined;
    const handle = { close: () => Promise.resolve(void closed++) } as unknown as DeviceHandle;
    const open = (): Promise<DeviceHandle> => new Promise((resolve) => (finish = () => resolve(handle)));
    const { ports } = world({ open, deviceTimeoutMs: 20 });
    await expect(ports.open(specOf(easy))).rejects.toMatchObject({ code: 'device_hung' });
    finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(1);
  });
});

describe('an attempt that is cut short', () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const late = new TapwrightError('deadline', 'too late');
  /** A world, and the attempt in it, which ends when `stop` aborts. */
  const cut = (options: (stop: AbortController) => WorldOptions) => {
    const stop = new AbortController();
    const made = world(options(stop));
    return { ...made, stop, attempt: () => runEpisode(specOf(easy), made.ports.until(stop.signal)) };
  };

  it.each(['rollback', 'observe', 'truth', 'perform'] as const)(
    'by its deadline in %s: the device is given back, and it counts against the device',
    async (call) => {
      const { attempt, counts, leases } = cut((stop) => ({
        handles: (handle) => ({ ...handle, [call]: () => (stop.abort(late), never()) }),
      }));
      await expect(attempt()).rejects.toMatchObject({ code: 'deadline' });
      expect(counts).toMatchObject({ opened: 1, closed: 1 });
      expect(leases.status()).toMatchObject({ leased: 0, quarantined: 1 });
    },
  );

  it('while the policy is asked: the device is given back in good standing and touched no more', async () => {
    let answer = (): void => undefined;
    const thinking = new Promise<void>((resolve) => (answer = resolve));
    const { attempt, counts, leases } = cut((stop) => ({ meanwhile: () => stop.abort(late), thinking }));
    await expect(attempt()).rejects.toMatchObject({ code: 'deadline' });
    expect(leases.status()).toMatchObject({ free: 1, quarantined: 0 });
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ opened: 1, closed: 1, performed: 0 });
  });

  it('while it waits for a device: it leaves the queue', async () => {
    const { attempt, leases, stop } = cut(() => ({}));
    const lease = await leases.acquire('other');
    const waiting = attempt();
    stop.abort(late);
    await expect(waiting).rejects.toMatchObject({ code: 'deadline' });
    expect(leases.status().waiting).toBe(0);
    leases.release(lease);
    expect(leases.status()).toMatchObject({ free: 1 });
  });

  it('by who called it: with the reason given, nothing held against the device', async () => {
    const { attempt, leases } = cut((stop) => ({
      handles: (handle) => ({ ...handle, perform: () => (stop.abort(new Error('stop')), never()) }),
    }));
    await expect(attempt()).rejects.toThrow('stop');
    expect(leases.status()).toMatchObject({ free: 1, quarantined: 0 });
  });

  it('by a host that stops: all devices are let go of', async () => {
    const { ports, counts, leases } = world({ devices: 2 });
    for (const draw of [1, 2]) await ports.open(specOf(easy, { key: { ...specOf(easy).key, draw } }));
    await ports.drain();
    expect(counts).toMatchObject({ opened: 2, closed: 2 });
    expect(leases.status()).toMatchObject({ free: 2, leased: 0 });
  });
});

describe('leases', () => {
  const request = async (ports: ReturnType<typeof world>['ports'], spec = specOf(easy)) => {
    const { lease, screen, truth } = await ports.open(spec);
    return { spec, lease, t: 0, screen, truth, history: [] };
  };

  it('an old token is refused, and its device belongs to the next attempt', async () => {
    const { ports, leases, counts, pass } = world();
    const first = await request(ports);
    pass(1000);
    await expect(ports.step(first)).rejects.toMatchObject({ code: 'lease_lost' });
    const second = await request(ports);
    expect(second.lease.token).toBe(first.lease.token + 1);
    // The handle that nobody gave back is closed by the next attempt on the device.
    expect(counts.closed).toBe(1);
    await expect(ports.step(first)).rejects.toMatchObject({ code: 'lease_lost' });
    await ports.close(first.spec, first.lease);
    expect(counts).toMatchObject({ closed: 1, performed: 0 });
    expect((await ports.step(second)).plan).not.toBeNull();
    expect(leases.status()).toMatchObject({ leased: 1 });
  });

  it('one that ran out while the policy was asked touches the device no more', async () => {
    const made: ReturnType<typeof world> = world({ meanwhile: () => made.pass(1000) });
    await expect(runEpisode(specOf(easy), made.ports)).rejects.toMatchObject({ code: 'lease_lost' });
    expect(made.counts).toEqual({ opened: 1, closed: 1, performed: 0 });
  });

  it('every step renews its lease', async () => {
    const made: ReturnType<typeof world> = world({ meanwhile: () => made.pass(900) });
    expect((await runEpisode(specOf(easy), made.ports)).outcome).toBe('success');
  });

  it('close may be called again, and by who holds nothing', async () => {
    const { ports, leases, counts } = world();
    const { spec, lease } = await request(ports);
    await ports.close(spec, lease);
    await ports.close(spec, lease);
    await ports.close(spec, { ...lease, device: 'other' });
    expect(counts.closed).toBe(1);
    expect(leases.status()).toMatchObject({ free: 1, leased: 0 });
    await expect(
      ports.step({ spec, lease, t: 0, screen: {} as never, truth: null, history: [] }),
    ).rejects.toMatchObject({
      code: 'lease_lost',
    });
  });

  it('performs no step twice under one lease, whoever asks again', async () => {
    const { ports, counts, leases } = world();
    const first = await request(ports);
    await ports.step(first);
    expect(counts.performed).toBe(1);
    await expect(ports.step(first)).rejects.toMatchObject({ code: 'worker_lost' });
    expect(counts.performed).toBe(1);
    expect(leases.steps.doubtful()).toEqual([]);
  });

  it('is given back only when the device is let go of', async () => {
    const seen: number[] = [];
    const made: ReturnType<typeof world> = world({
      handles: (handle) => ({ ...handle, close: () => Promise.resolve(void seen.push(made.leases.status().leased)) }),
    });
    await runEpisode(specOf(easy), made.ports);
    expect(seen).toEqual([1]);
  });
});
