import type { DeviceHandle } from '../devices/device.ts';
import type { DeviceAction, Intent, Screen, TaskInstance } from '../domain/index.ts';
import { createRandom } from '../rl/random.ts';

/** A policy that has learned nothing: what it does next, from what is on the screen. */
export type Baseline = (screen: Screen, t: number, task: TaskInstance) => Intent;

export interface BaselineResult {
  /** The task was done and claimed done, or rightly claimed blocked after the evidence was seen. */
  success: boolean;
  /** Actions taken, the final claim included. */
  steps: number;
  claim: 'done' | 'blocked' | null;
}

/** Does nothing until the step cap. */
export const waiting = (): Baseline => () => ({ kind: 'wait' });

/** Claims at once. A suite where this succeeds has a task whose check holds at the start. */
export const claiming =
  (claim: 'done' | 'blocked'): Baseline =>
  () => ({ kind: 'task_complete', claim });

/** Taps, swipes, words of the goal and claims, at random from a seed. */
export function randomBaseline(seed: number): Baseline {
  return (screen, t, task) => {
    const random = createRandom(seed, task.id, 'baseline', t);
    const labels = (screen.outline ?? []).filter((e) => e.role !== 'label').map((e) => e.label);
    const u = random.next();
    if (u < 0.7 && labels.length > 0) return { kind: 'tap', target: random.pick(labels) };
    if (u < 0.75 && labels.length > 0) return { kind: 'long_press', target: random.pick(labels) };
    if (u < 0.85) return { kind: 'text_entry', text: random.pick(task.goal.split(' ')) };
    if (u < 0.9) return { kind: 'swipe', direction: random.pick(['up', 'down']) };
    if (u < 0.95) return { kind: 'navigate_home' };
    return { kind: 'task_complete', claim: 'done' };
  };
}

/** Repeats a list of moves without looking, then claims done: what memorising one instance is worth on another. */
export const replaying =
  (moves: readonly Intent[]): Baseline =>
  (_screen, t) =>
    moves[t] ?? { kind: 'task_complete', claim: 'done' };

/** What the device performs for an intent; null when its label is not on the screen or there is nothing to perform. */
function toAction(intent: Intent, screen: Screen): DeviceAction | null {
  switch (intent.kind) {
    case 'tap':
    case 'long_press': {
      const box = screen.outline?.find((e) => e.label === intent.target)?.box;
      return box
        ? { kind: intent.kind, at: { x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2) } }
        : null;
    }
    case 'swipe': {
      const x = Math.round(screen.width / 2);
      const [low, high] = [
        { x, y: Math.round(screen.height * 0.8) },
        { x, y: Math.round(screen.height * 0.2) },
      ];
      const up = intent.direction === 'up';
      return { kind: 'swipe', from: up ? low : high, to: up ? high : low };
    }
    case 'ask_user':
    case 'task_complete':
      return null;
    default:
      return intent;
  }
}

/** One attempt of a baseline on an open device, from rollback to its claim or the task's step budget. */
export async function attempt(handle: DeviceHandle, given: TaskInstance, baseline: Baseline): Promise<BaselineResult> {
  const { instruction } = await handle.rollback();
  const task = { ...given, goal: instruction ?? given.goal };
  for (let t = 0; t < task.stepBudget; t++) {
    const screen = await handle.observe();
    const intent = baseline(screen, t, task);
    if (intent.kind === 'task_complete') {
      const truth = await handle.truth();
      const right = (intent.claim === 'done') === task.possible;
      return { success: right && truth?.goalHolds === true, steps: t + 1, claim: intent.claim };
    }
    if (intent.kind === 'ask_user' && intent.question in task.userFacts) handle.noteAnswer(intent.question);
    const action = toAction(intent, screen);
    if (action) await handle.perform(action);
  }
  return { success: false, steps: task.stepBudget, claim: null };
}

/** The expert's moves on an instance, the final claim included; ends early where the expert has no move. */
export async function recordExpert(handle: DeviceHandle, task: TaskInstance): Promise<Intent[]> {
  await handle.rollback();
  const moves: Intent[] = [];
  while (moves.length < task.stepBudget) {
    const screen = await handle.observe();
    const move = await handle.expert();
    if (!move) break;
    moves.push(move.intent);
    if (move.intent.kind === 'task_complete') break;
    if (move.intent.kind === 'ask_user') handle.noteAnswer(move.intent.question);
    const action = toAction(move.intent, screen);
    if (action) await handle.perform(action);
  }
  return moves;
}
