/** Entry of the workflow bundle: what a worker of role `workflow` can run. */
export { episode } from './episode.ts';
export { evaluation } from './evaluation.ts';
export { experiment } from './experiment.ts';
export { policyUpdate } from './policy-update.ts';
export { replay } from './replay.ts';
export { scheduledEvaluation } from './scheduled-evaluation.ts';
export { trainingRun } from './training-run.ts';
