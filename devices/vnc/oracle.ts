import type { TaskInstance, Truth } from '../../domain/index.ts';
import type { ExpertMove } from '../device.ts';
import type { GuestState } from './guest-link.ts';

/** What a task's device starts with: a seed for the phone as a whole and `set` lines for what the task wants of it. */
export interface VncSnapshot {
  seed: number;
  set: readonly string[];
}

/** Ground truth of phones, supplied by the suite: the backend knows nothing of tasks. Pure. */
export interface PhoneOracle {
  truth(task: TaskInstance, state: GuestState): Truth;
  expert(task: TaskInstance, state: GuestState): ExpertMove | null;
}
