/** Workflow time in milliseconds: the one place in workflows/ that has a clock, and a replay finds the same times. */
// eslint-disable-next-line no-restricted-properties -- inside a workflow this is Temporal's deterministic clock
export const workflowTime = (): number => Date.now();
