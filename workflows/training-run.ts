import {
  ParentClosePolicy,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  executeChild,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { evaluation } from './evaluation.ts';
import { fatal } from './fatal.ts';
import { evaluationId, updateId } from './ids.ts';
import type { policyUpdate } from './policy-update.ts';
import { hostActivities, learnActivities } from './proxies.ts';
import { RunState } from './run-state.ts';
import { DEMOS_PER_CHUNK, advance } from './stages.ts';
import type { StagePorts } from './stages.ts';
import type { RunStatus, TrainingInput } from './types.ts';
import { startCursor } from './types.ts';

export const statusQuery = defineQuery<RunStatus>('status');

/** A whole run, stage by stage; continues as new before its history grows (temporal.md, "Limits"). */
export async function trainingRun(input: TrainingInput): Promise<RunStatus> {
  const { run, config, site } = input;
  const cursor = input.cursor ?? startCursor();
  const state = new RunState(run, config, cursor, input.last ?? null);
  setHandler(statusQuery, () => state.status());

  const child = { parentClosePolicy: ParentClosePolicy.TERMINATE };
  const ports: StagePorts = {
    openRun: (id) => learnActivities(site).openRun(id),
    demonstrate: (request) => {
      const host = site.hosts[Math.floor(request.from / DEMOS_PER_CHUNK) % site.hosts.length]!;
      return hostActivities(site, host).demonstrate(request);
    },
    sftChunk: (request) => learnActivities(site).sftChunk(request),
    update: (phase, update, round, policy) =>
      executeChild<typeof policyUpdate>('policyUpdate', {
        ...child,
        workflowId: updateId(run, phase, update, round),
        args: [{ run, config, site, phase, update, round, policy }],
      }),
    evaluate: (policy) =>
      state.during('evaluation', () =>
        executeChild<typeof evaluation>('evaluation', {
          ...child,
          workflowId: evaluationId(run, policy.stage === 'train' ? policy.index : 0, ''),
          args: [{ run, config, site, policy, suite: config.suite, instances: config.evaluation.instances }],
        }),
      ),
    report: (id) => learnActivities(site).report(id),
  };

  return fatal(async () => {
    let sinceStart = 0;
    const done = (): boolean => cursor.stage === 'done';
    while (!done()) {
      await advance(cursor, run, config, ports, (change) => state.tell(change));
      sinceStart += 1;
      const full = sinceStart >= config.workflow.continueAsNewEvery || workflowInfo().continueAsNewSuggested;
      if (full && !done()) {
        await condition(allHandlersFinished);
        await continueAsNew<typeof trainingRun>({ ...input, cursor, last: state.status() });
      }
    }
    await condition(allHandlersFinished);
    return state.status();
  });
}
