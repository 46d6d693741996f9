import {
  ParentClosePolicy,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  executeChild,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { ExperimentState } from './experiment-state.ts';
import { fromFailure } from './failures.ts';
import { fatal } from './fatal.ts';
import { learnActivities } from './proxies.ts';
import type { trainingRun } from './training-run.ts';
import type { ExperimentInput, ExperimentStatus, ExperimentUnit } from './types.ts';

export const experimentQuery = defineQuery<ExperimentStatus>('experiment');
/** The same command with a changed file, while the experiment runs: arms that were added. */
export const wantedSignal = defineSignal<[ExperimentUnit[]]>('wanted');

/** Runs before it continues as new: at most 30 events each, far below the bound on a history (temporal.md, "Limits"). */
const RUNS_PER_HISTORY = 40;

/**
 * Many runs, so many at once, each a `trainingRun` of its own that can be paused and looked at by its id. A run that came to its
 * end before is not made again; one that fails is told, and the others go on. Continues as new between runs.
 */
export async function experiment(input: ExperimentInput): Promise<ExperimentStatus> {
  const { site, header } = input;
  const state = new ExperimentState(input.units, input.states);
  setHandler(experimentQuery, () => state.view(input.experiment));
  setHandler(wantedSignal, (units) => state.want(units));

  const make = async ({ run, config, from }: ExperimentUnit): Promise<void> => {
    try {
      const activities = learnActivities(site);
      const { finished } = await activities.beginRun({ run, config, from, header });
      if (!finished) {
        await executeChild<typeof trainingRun>('trainingRun', {
          workflowId: run,
          args: [{ run, config, site }],
          parentClosePolicy: ParentClosePolicy.TERMINATE,
        });
        await activities.endRun(run);
      }
      state.done(run);
    } catch (error) {
      if (isCancellation(error)) throw error;
      const { code, message } = fromFailure(error);
      state.failed(run, `${code}: ${message}`);
    }
  };

  return fatal(async () => {
    let begun = 0;
    const full = (): boolean => begun >= RUNS_PER_HISTORY || workflowInfo().continueAsNewSuggested;
    const lane = async (): Promise<void> => {
      for (;;) {
        await condition(() => full() || state.ready || state.over);
        const unit = full() ? null : state.take();
        if (unit === null) return;
        begun += 1;
        await make(unit);
      }
    };
    while (!state.over && !full()) await Promise.all(Array.from({ length: input.concurrency }, lane));
    await condition(allHandlersFinished);
    if (state.over) return state.view(input.experiment);
    return continueAsNew<typeof experiment>({ ...input, ...state.carried() });
  });
}
