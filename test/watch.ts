import type { Client, WorkflowHandle } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import type { ControlView, RunStatus } from '../workflows/types.ts';

/** What tests of running workflows watch them by: their histories. */
export const update = (handle: WorkflowHandle, name: string, ...args: unknown[]): Promise<ControlView> =>
  handle.executeUpdate<ControlView, [unknown]>(name, { args: args as [unknown] });
export const statusOf = (handle: WorkflowHandle): Promise<RunStatus> => handle.query<RunStatus>('status');

const { EventType } = temporal.api.enums.v1;
export type Kind = keyof typeof EventType;
export type History = temporal.api.history.v1.IHistory;
const historyOf = (client: Client, workflowId: string, runId?: string): Promise<History> =>
  client.workflow.getHandle(workflowId, runId).fetchHistory();
export const kindsOf = (history: History): Kind[] =>
  (history.events ?? []).map((event) => EventType[event.eventType!] as Kind);
/** Kinds of the events of a workflow so far, in order; none before it was started. */
const events = (client: Client, workflowId: string): Promise<Kind[]> =>
  historyOf(client, workflowId).then(kindsOf, () => []);
/** All executions of a run, from continue-as-new to continue-as-new. */
export async function chainOf(client: Client, handle: WorkflowHandle): Promise<History[]> {
  const chain: History[] = [];
  for (let runId: string | null | undefined = firstRunId(handle); typeof runId === 'string';) {
    const history = await historyOf(client, handle.workflowId, runId);
    chain.push(history);
    runId = history.events!.at(-1)!.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return chain;
}
export const SIGNALED: Kind = 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED';
export const SCHEDULED: Kind = 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED';
export const COMPLETED: Kind = 'EVENT_TYPE_ACTIVITY_TASK_COMPLETED';
const TASK_DONE: Kind = 'EVENT_TYPE_WORKFLOW_TASK_COMPLETED';
export const count = (kinds: Kind[], kind: Kind): number => kinds.filter((other) => other === kind).length;
/** Waits until the events of a workflow are as said. */
export async function until(client: Client, workflowId: string, test: (kinds: Kind[]) => boolean): Promise<Kind[]> {
  for (;;) {
    const kinds = await events(client, workflowId);
    if (test(kinds)) return kinds;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
/** The same, and it has dealt with the last of them and had nothing to do. */
export const untilIdle = (client: Client, workflowId: string, test: (kinds: Kind[]) => boolean): Promise<Kind[]> =>
  until(client, workflowId, (kinds) => kinds.at(-1) === TASK_DONE && test(kinds));

/** Something that a test lets happen. */
export function latch(): { wait: Promise<void>; open: () => void } {
  let open = (): void => {};
  const wait = new Promise<void>((resolve) => (open = resolve));
  return { wait, open };
}

/** First execution of a run's chain. */
export const firstRunId = (handle: WorkflowHandle): string =>
  (handle as { firstExecutionRunId?: string }).firstExecutionRunId!;
