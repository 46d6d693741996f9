import { DefaultLogger, Runtime } from '@temporalio/worker';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { findTemporal } from '../workers/temporal-server.ts';

/** A Temporal server of the tests' own, whatever TEMPORAL_ADDRESS says. */
export async function localTemporal(): Promise<TestWorkflowEnvironment> {
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch {
    // Another test file of this process was first.
  }
  const found = findTemporal({ ...process.env, TEMPORAL_ADDRESS: undefined });
  if (found.kind !== 'binary') throw new Error('no Temporal binary');
  return TestWorkflowEnvironment.createLocal({
    server: { executable: { type: 'existing-path', path: found.path } },
  });
}
