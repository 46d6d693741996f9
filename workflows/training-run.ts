import {
  ParentClosePolicy,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { workflowTime } from './clock.ts';
import type { evaluation } from './evaluation.ts';
import { toApplicationFailure } from './failures.ts';
import { fatal } from './fatal.ts';
import { evaluationId, updateId } from './ids.ts';
import { executePausableChild } from './pause.ts';
import type { policyUpdate } from './policy-update.ts';
import { hostActivities, learnActivities } from './proxies.ts';
import { RunControl } from './run-control.ts';
import { RunState } from './run-state.ts';
import { DEMOS_PER_CHUNK, advance } from './stages.ts';
import type { StagePorts } from './stages.ts';
import type { Budget, ControlView, RunStatus, TrainingInput } from './types.ts';
import { startCursor } from './types.ts';

export const statusQuery = defineQuery<RunStatus>('status');
export const pauseUpdate = defineUpdate<ControlView>('pause');
export const resumeUpdate = defineUpdate<ControlView>('resume');
export const setBudgetUpdate = defineUpdate<ControlView, [Partial<Budget>]>('setBudget');
export const setEvaluationEveryUpdate = defineUpdate<ControlView, [number]>('setEvaluationEvery');
export const stopAfterUpdate = defineUpdate<ControlView, [number | null]>('stopAfterUpdate');

/** A whole run, stage by stage; continues as new before its history grows (temporal.md, "Limits"). */
export async function trainingRun(input: TrainingInput): Promise<RunStatus> {
  const { run, config, site } = input;
  // A cursor of an older version lacks what came later.
  const cursor = { ...startCursor(), ...input.cursor };
  const control = new RunControl(config, cursor, workflowTime);
  const state = new RunState(run, control, cursor, input.last ?? null);
  setHandler(statusQuery, () => state.status());
  steer(control);

  const child = { parentClosePolicy: ParentClosePolicy.TERMINATE };
  const ports: StagePorts = {
    openRun: (id) => learnActivities(site).openRun(id),
    demonstrate: (request) => {
      const host = site.hosts[Math.floor(request.from / DEMOS_PER_CHUNK) % site.hosts.length]!;
      return hostActivities(site, host).demonstrate(request);
    },
    sftChunk: (request) => learnActivities(site).sftChunk(request),
    update: async (phase, update, round, policy) => {
      const outcome = await executePausableChild<typeof policyUpdate>(control, 'policyUpdate', {
        ...child,
        workflowId: updateId(run, phase, update, round),
        args: [{ run, config, site, phase, update, round, policy }],
      });
      control.count(outcome.judgeCalls);
      return outcome;
    },
    evaluate: async (policy) => {
      const cells = await state.during('evaluation', () =>
        executePausableChild<typeof evaluation>(control, 'evaluation', {
          ...child,
          workflowId: evaluationId(run, policy.stage === 'train' ? policy.index : 0, ''),
          args: [{ run, config, site, policy, suite: config.suite, instances: config.evaluation.instances }],
        }),
      );
      for (const { judgeCalls } of cells) control.count(judgeCalls);
      return cells;
    },
    report: (id) => learnActivities(site).report(id, control.ends()),
  };

  return fatal(async () => {
    let sinceStart = 0;
    const done = (): boolean => cursor.stage === 'done';
    const full = (): boolean =>
      sinceStart >= config.workflow.continueAsNewEvery || workflowInfo().continueAsNewSuggested;
    while (!done()) {
      // Much can be asked of a run while it is paused: its history may be full before it goes on.
      await condition(() => !control.paused || full());
      if (!control.paused) {
        await advance(cursor, run, control.config(), ports, (change) => state.tell(change));
        sinceStart += 1;
      }
      if (full() && !done()) {
        await condition(allHandlersFinished);
        const carried = { ...cursor, control: control.carried() };
        await continueAsNew<typeof trainingRun>({ ...input, cursor: carried, last: state.status() });
      }
    }
    await condition(allHandlersFinished);
    return state.status();
  });
}

/** The handlers: each calls one method. */
function steer(control: RunControl): void {
  setHandler(pauseUpdate, () => control.pause(), { validator: checked(() => control.checkPause()) });
  setHandler(resumeUpdate, () => control.resume(), { validator: checked(() => control.checkResume()) });
  setHandler(setBudgetUpdate, (budget) => control.setBudget(budget), {
    validator: checked((budget: Partial<Budget>) => control.checkBudget(budget)),
  });
  setHandler(setEvaluationEveryUpdate, (every) => control.setEvaluationEvery(every), {
    validator: checked((every: number) => control.checkEvaluationEvery(every)),
  });
  setHandler(stopAfterUpdate, (update) => control.stopAfter(update), {
    validator: checked((update: number | null) => control.checkStop(update)),
  });
}

/** A validator whose refusal arrives at the client with its class. */
function checked<A extends unknown[]>(check: (...args: A) => void): (...args: A) => void {
  return (...args) => {
    try {
      check(...args);
    } catch (error) {
      throw toApplicationFailure(error);
    }
  };
}
