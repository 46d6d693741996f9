import type { DeviceBackend, DeviceHandle, ExpertMove } from '../devices/device.ts';
import type { DeviceAction, EpisodeSpec, OutlineElement, Screen, TaskInstance, Truth } from '../domain/index.ts';
import { hashSeed } from '../rl/random.ts';

/** State of the smallest phone that has everything a loop meets: two pages, a switch, a field, a fact to ask for. */
interface ToyState {
  page: 'home' | 'settings';
  wifi: boolean;
  typed: string;
  knows: boolean;
}

export type ToyGoal = 'wifi' | 'message' | 'radar';

const GOALS: Record<ToyGoal, string> = {
  wifi: 'turn on wifi',
  message: 'write the name',
  radar: 'turn on radar',
};

export const TOY_WORDS = ['settings', 'wifi', 'name', 'alice', 'turn', 'write', 'the', 'radar', 'phone', 'message'];

/** `wifi` can be done in two taps, `message` needs the user's `name`, `radar` cannot be done: nothing of the name is there. */
export function toyTask(goal: ToyGoal, stepBudget = 8): TaskInstance {
  return {
    id: `toy/${goal}/0`,
    suite: 'toy',
    template: goal,
    split: 'train',
    goal: GOALS[goal],
    params: {},
    apps: ['settings'],
    category: 'toy',
    tags: [],
    snapshot: '{}',
    stepBudget,
    optimalSteps: null,
    userFacts: goal === 'message' ? { name: 'alice' } : {},
    possible: goal !== 'radar',
    seed: 0,
  };
}

export function toySpec(task: TaskInstance, more: Partial<EpisodeSpec> = {}): EpisodeSpec {
  return {
    key: { run: 'r', phase: 'train', update: 1, draw: 2, attempt: 3 },
    seed: 7,
    task,
    policy: 'tinker://toy',
    temperature: 1,
    maxTokens: 24,
    decodeMask: 'grammar',
    grounder: 'large',
    maxUnparseable: 1,
    faults: {},
    keepScreens: false,
    deadlineMs: 1000,
    infraTry: 0,
    ...more,
  };
}

function outlineOf(state: ToyState): OutlineElement[] {
  const at = (row: number): OutlineElement['box'] => ({ x: 0, y: row * 20, width: 100, height: 20 });
  if (state.page === 'home') return [{ role: 'row', label: 'settings', box: at(0) }];
  return [
    { role: 'switch', label: 'wifi', value: state.wifi ? 'on' : 'off', box: at(0) },
    { role: 'field', label: 'name', value: state.typed, box: at(1) },
  ];
}

function truthOf(goal: ToyGoal, state: ToyState): Truth {
  const away = state.page === 'home' ? 1 : 0;
  const distance =
    goal === 'wifi'
      ? state.wifi
        ? 0
        : away + 1
      : goal === 'radar'
        ? away
        : state.typed === 'alice'
          ? 0
          : away + (state.knows ? 1 : 2);
  const needsFact = goal === 'message' && !state.knows ? 'name' : null;
  return { key: JSON.stringify(state), goalHolds: distance === 0, distance, needsFact };
}

function expertOf(goal: ToyGoal, state: ToyState): ExpertMove {
  const done = { kind: 'task_complete', claim: goal === 'radar' ? 'blocked' : 'done' } as const;
  if (truthOf(goal, state).goalHolds)
    return { intent: done, reasoning: goal === 'radar' ? 'not here' : 'all set', remaining: '' };
  const tap = (target: string): ExpertMove => ({
    intent: { kind: 'tap', target },
    reasoning: `see ${target}`,
    remaining: done.claim,
  });
  if (goal === 'message' && !state.knows)
    return { intent: { kind: 'ask_user', question: 'name' }, reasoning: 'need name', remaining: 'pick write done' };
  if (state.page === 'home') return tap('settings');
  if (goal === 'message')
    return { intent: { kind: 'text_entry', text: 'alice' }, reasoning: 'write it', remaining: 'done' };
  return tap('wifi');
}

export interface ToyOptions {
  /** Calls that never answer. */
  hang?: (keyof DeviceHandle)[];
  /** Rollback proves another screen than the one observed. */
  staleSnapshot?: boolean;
  /** The instruction that only the device knows. */
  instruction?: string;
}

/** A backend of toy phones that counts what was done to them. */
export function createToyBackend(
  options: ToyOptions = {},
): DeviceBackend & { log: DeviceAction[]; inUse: () => number } {
  const log: DeviceAction[] = [];
  let open = 0;
  const stuck = (call: keyof DeviceHandle): boolean => options.hang?.includes(call) ?? false;
  const answer = <T>(call: keyof DeviceHandle, value: () => T): Promise<T> =>
    stuck(call) ? new Promise<never>(() => undefined) : Promise.resolve().then(value);

  return {
    name: 'toy',
    log,
    inUse: () => open,
    capabilities: { touch: true, unicodeText: true, snapshot: 'machine', outline: true, groundTruth: true },
    health: () => Promise.resolve({ ok: true, detail: '' }),
    close: () => Promise.resolve(),
    open({ task }) {
      const goal = task.template as ToyGoal;
      const fresh: ToyState = { page: 'home', wifi: false, typed: '', knows: false };
      let state = fresh;
      let frame = 0;
      open++;
      const hash = (): string =>
        hashSeed(JSON.stringify(outlineOf(state)))
          .toString(16)
          .padStart(16, '0');
      const observe = (): Screen => ({
        png: null,
        width: 100,
        height: 100,
        scale: 1,
        space: 'pixel',
        frame,
        hash: hash(),
        degenerate: false,
        app: state.page === 'home' ? 'phone' : 'settings',
        outline: outlineOf(state),
      });
      const act = (action: DeviceAction): void => {
        log.push(action);
        frame++;
        if (action.kind === 'navigate_home') state = { ...state, page: 'home' };
        if (action.kind === 'text_entry' && state.page === 'settings') state = { ...state, typed: action.text };
        if (action.kind !== 'tap') return;
        const hit = outlineOf(state).find((e) => action.at.y >= e.box.y && action.at.y < e.box.y + e.box.height);
        if (hit?.label === 'settings') state = { ...state, page: 'settings' };
        if (hit?.label === 'wifi') state = { ...state, wifi: !state.wifi };
      };
      return Promise.resolve<DeviceHandle>({
        rollback: () =>
          answer('rollback', () => {
            state = fresh;
            const proof = { frame, hash: options.staleSnapshot ? 'ffffffffffffffff' : hash() };
            return options.instruction ? { ...proof, instruction: options.instruction } : proof;
          }),
        observe: () => answer('observe', observe),
        perform: (action) =>
          answer('perform', () => {
            act(action);
            return { verified: true, strategy: 'toy' };
          }),
        truth: () => answer('truth', () => truthOf(goal, state)),
        expert: () => answer('expert', () => expertOf(goal, state)),
        noteAnswer: (fact) => void (fact === 'name' && (state = { ...state, knows: true })),
        close: () =>
          answer('close', () => {
            open--;
          }),
      });
    },
  };
}
