import { TemporalFailure } from '@temporalio/workflow';
import { toApplicationFailure } from './failures.ts';

/** Runs a workflow's body; an error of ours fails the workflow. (A bare error would only fail the task, to be tried for ever.) */
export async function fatal<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof TemporalFailure || (error instanceof Error && error.name === 'ContinueAsNew')) throw error;
    throw toApplicationFailure(error);
  }
}
