export type Split = 'train' | 'heldout-params' | 'heldout-skin' | 'heldout-tasks' | 'validation';

/** One concrete task: a template with parameters, a skin and a snapshot. Same seed, same instance (algorithms.md, 14). */
export interface TaskInstance {
  /** `<suite>/<template>/<seed hex>`. */
  id: string;
  suite: string;
  template: string;
  split: Split;
  /** Natural-language goal, lower-case words separated by single spaces. */
  goal: string;
  params: Record<string, string>;
  apps: string[];
  category: string;
  tags: string[];
  /** What the device rolls back to; opaque to all but its backend. JSON, small. */
  snapshot: string;
  /** Step cap for this instance: an attempt that reaches it is `step_limit`. */
  stepBudget: number;
  /** Fewest actions including the final Task_Complete; null when unknown. */
  optimalSteps: number | null;
  /** What the simulated user knows, by name; told only when asked. */
  userFacts: Record<string, string>;
  /** False: cannot be done; the right end is Task_Complete with claim `blocked`. */
  possible: boolean;
  seed: number;
}

/** Ground truth of a state, measured by the suite on the device's privileged state. Pure data. */
export interface Truth {
  /** Identity of the state (not of its pixels). */
  key: string;
  /** The task's check holds now. For an impossible task: the agent has seen the evidence that it is impossible. */
  goalHolds: boolean;
  /** Fewest further actions until `goalHolds` (Task_Complete not counted, Ask_User counted); null when unknown or unreachable. */
  distance: number | null;
  /** Name of the user fact that must be asked for next, when asking is on a shortest path; else null. */
  needsFact: string | null;
}
