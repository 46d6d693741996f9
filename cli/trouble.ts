import type { Client } from '@temporalio/client';

/** A call that has failed and is being tried again: why a run does not move. */
export interface Trouble {
  /** The activity's name, e.g. `learn`. */
  activity: string;
  /** Tries so far. */
  tries: number;
  /** How the last of them failed. */
  message: string;
}

/** A run, its update, the attempts of that. */
const LEVELS = 3;
/** Of a batch in trouble a few are enough to tell. */
const CHILDREN = 8;

/**
 * What a workflow and those below it are trying again, the most tried first, each activity once. Empty when all goes well;
 * a workflow that ends meanwhile has no trouble.
 */
export async function troubleOf(client: Client, workflowId: string, levels = LEVELS): Promise<Trouble[]> {
  const described = await client.workflow.getHandle(workflowId).describe();
  const { pendingActivities, pendingChildren } = described.raw;
  const own = (pendingActivities ?? []).flatMap(({ activityType, attempt, lastFailure }): Trouble[] => {
    const message = lastFailure?.message ?? '';
    if (message === '') return [];
    return [{ activity: activityType?.name ?? '?', tries: (attempt ?? 2) - 1, message }];
  });
  const children = levels > 1 ? (pendingChildren ?? []).slice(0, CHILDREN) : [];
  const below = await Promise.all(
    children.map((child) => troubleOf(client, child.workflowId ?? '', levels - 1).catch(() => [])),
  );
  const worst = new Map<string, Trouble>();
  for (const trouble of [...own, ...below.flat()]) {
    if ((worst.get(trouble.activity)?.tries ?? 0) < trouble.tries) worst.set(trouble.activity, trouble);
  }
  return [...worst.values()].toSorted((a, b) => b.tries - a.tries);
}

/** One line for a terminal. */
export const troubleText = ({ activity, tries, message }: Trouble): string =>
  `waiting: ${activity} has failed ${tries === 1 ? 'once' : `${tries} times`} and is tried again: ${message.split('\n')[0]!}`;
