import type { WithWorkflowArgs } from '@temporalio/common';
import type { ChildWorkflowOptions, Workflow, WorkflowResultType } from '@temporalio/workflow';
import { condition, defineSignal, setHandler, startChild } from '@temporalio/workflow';

/** From a run to its children, and from a batch to its episodes. Pausing a run itself is an Update (training-run.ts). */
export const pausedSignal = defineSignal<[boolean]>('paused');

/** Says whether work may begin. */
export interface Gate {
  readonly paused: boolean;
  /** How often it was closed: an attempt that saw it close was held up by us, not by its device. */
  readonly pauses: number;
}

/** The gate of a child workflow, driven by its parent's signals. */
export function signalledGate(): Gate {
  const gate = { paused: false, pauses: 0 };
  setHandler(pausedSignal, (paused) => {
    if (paused && !gate.paused) gate.pauses += 1;
    gate.paused = paused;
  });
  return gate;
}

/** Waits at a closed gate, then calls. An open one costs nothing, not even a turn of the event loop. */
export function whenOpen<T>(gate: Gate, call: () => Promise<T>): Promise<T> {
  if (!gate.paused) return call();
  // Once more through here: it may have closed again before our turn.
  return condition(() => !gate.paused).then(() => whenOpen(gate, call));
}

/** Runs a child workflow and keeps it told whether the gate is open: one signal at a time, so none overtakes another. */
export async function executePausableChild<W extends Workflow>(
  gate: { readonly paused: boolean },
  type: string,
  options: WithWorkflowArgs<W, ChildWorkflowOptions>,
): Promise<WorkflowResultType<W>> {
  const child = await startChild<W>(type, options);
  let told = false;
  let ended = false;
  const tell = async (): Promise<void> => {
    for (;;) {
      await condition(() => ended || gate.paused !== told);
      if (ended) return;
      told = gate.paused;
      // A child that has just ended cannot be told, and need not be.
      await child.signal(pausedSignal, told).catch(() => {});
    }
  };
  const telling = tell().catch(() => {});
  try {
    return (await child.result()) as WorkflowResultType<W>;
  } finally {
    ended = true;
    await telling;
  }
}
