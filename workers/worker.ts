import { Runtime, DefaultLogger, Worker } from '@temporalio/worker';
import { TapwrightError } from '../domain/errors.ts';
import { queues } from '../workflows/queues.ts';
import { workflowBundle } from './bundle.ts';
import { dataConverter } from './claim-check.ts';
import { connectWorker } from './connect.ts';
import { settings } from './settings.ts';

export type Role = 'workflow' | 'device' | 'learn';

/**
 * Seconds a worker may use to finish what it has begun when it is told to stop. Then its attempts are cut short and their
 * devices closed, which has to be over when the supervisor's patience is (workers/child.ts).
 */
const GRACE = '8s';

/** Creates the worker of a role; its activities' rooms are loaded only by the role that needs them. */
async function createWorker(role: Role, slots: number): Promise<{ worker: Worker; close: () => Promise<void> }> {
  const site = settings();
  if (site.temporal === null) {
    throw new TapwrightError('invalid_config', 'a worker needs TEMPORAL_ADDRESS, the address of its Temporal server');
  }
  const names = queues(site.prefix);
  const connection = await connectWorker(site.temporal);
  const common = {
    connection,
    namespace: site.namespace,
    dataConverter: dataConverter(site.home),
    shutdownGraceTime: GRACE,
    // Cancellation reaches an activity through its heartbeats only (temporal.md, rule 1).
    maxHeartbeatThrottleInterval: '15s',
    defaultHeartbeatThrottleInterval: '10s',
  } as const;
  const close = (): Promise<void> => connection.close();
  if (role === 'workflow') {
    const worker = await Worker.create({
      ...common,
      taskQueue: names.workflow,
      workflowBundle: { codePath: await workflowBundle(site.home) },
      // More than the open episodes of a batch at grain `step` (temporal.md, rule 2).
      maxCachedWorkflows: Math.max(600, 2 * slots),
    });
    return { worker, close };
  }
  if (role === 'device') {
    const { createDeviceActivities } = await import('../activities/device.ts');
    const activities = await createDeviceActivities({ home: site.home, engineUrl: site.engine, host: site.host });
    const worker = await Worker.create({
      ...common,
      taskQueue: names.device(site.host),
      activities: activities.activities as unknown as Record<string, (...args: never[]) => unknown>,
      maxConcurrentActivityTaskExecutions: slots,
    });
    return {
      worker,
      close: async () => {
        await activities.close();
        await close();
      },
    };
  }
  const { createLearnActivities } = await import('../activities/learn.ts');
  const activities = await createLearnActivities({ home: site.home, engineUrl: site.engine });
  const worker = await Worker.create({
    ...common,
    taskQueue: names.learn,
    activities: activities.activities as unknown as Record<string, (...args: never[]) => unknown>,
    // One learner, one training model: its work is done in turn.
    maxConcurrentActivityTaskExecutions: 1,
  });
  return {
    worker,
    close: async () => {
      await activities.close();
      await close();
    },
  };
}

/** Runs one role until it is told to stop, or until the process that started it is gone. */
export async function runWorker(role: string, slots: number): Promise<void> {
  if (role !== 'workflow' && role !== 'device' && role !== 'learn') {
    throw new TapwrightError('invalid_config', `a worker's role is workflow, device or learn, not ${role}`);
  }
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: ['SIGTERM', 'SIGINT'] });
  const { worker, close } = await createWorker(role, slots);
  process.once('disconnect', () => worker.shutdown());
  process.send?.({ ready: role });
  process.stderr.write(`worker ${role} ready, pid ${process.pid}\n`);
  await worker.run();
  await close();
}
