/** Faults a simulated phone knows; each is a rate per attempt. */
export const SIM_FAULTS = ['crash', 'hang', 'frozen_frame', 'stale_snapshot', 'dropped_text', 'slow_answer'] as const;
export type SimFault = (typeof SIM_FAULTS)[number];

/** Failures of the judge that can be injected, as rates per attempt. */
export const JUDGE_FAULTS = ['judge_down', 'judge_garbage'] as const;

/** Every fault that a config may ask for. */
export const FAULT_NAMES = [...SIM_FAULTS, ...JUDGE_FAULTS] as const;
