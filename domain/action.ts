import type { Point } from './screen.ts';

export type Direction = 'up' | 'down' | 'left' | 'right';

/** What the planner means, before grounding: the parsed form of a step plan. `target` is a label as shown on the screen. */
export type Intent =
  | { kind: 'tap'; target: string }
  | { kind: 'long_press'; target: string }
  | { kind: 'swipe'; direction: Direction; target?: string }
  | { kind: 'text_entry'; text: string }
  | { kind: 'navigate_home' }
  | { kind: 'wait' }
  | { kind: 'ask_user'; question: string }
  | { kind: 'task_complete'; claim: 'done' | 'blocked' };

export type IntentKind = Intent['kind'];

/** What a device performs. Points are in the screen's coordinate space. */
export type DeviceAction =
  | { kind: 'tap'; at: Point }
  | { kind: 'long_press'; at: Point }
  | { kind: 'swipe'; from: Point; to: Point }
  | { kind: 'text_entry'; text: string }
  | { kind: 'navigate_home' }
  | { kind: 'wait' };

/** What the grounder made of an intent: an action, nothing to do on the device, or a refusal told to the planner. */
export type Grounding =
  | { kind: 'action'; action: DeviceAction; grounder: string }
  | { kind: 'none' }
  | { kind: 'refused'; reason: 'not_on_screen' | 'ambiguous' | 'unsupported'; grounder: string };

/** What the device says of an action it was given. `changed`: the screen differs from the one before. */
export interface ActionReceipt {
  /** The backend checked that the action arrived (text read back, element hit). */
  verified: boolean;
  strategy: string;
  /** e.g. `no_focus`, `off_screen`: a fact for the planner and the judge, never an exception. */
  note?: string;
}
