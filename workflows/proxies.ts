import type { ActivityOptions } from '@temporalio/workflow';
import { proxyActivities } from '@temporalio/workflow';
import type { DeviceActivities, ExperimentActivities, LearnActivities } from '../activities/api.ts';
import type { RunConfig } from '../configs/schema.ts';
import { queues } from './queues.ts';
import type { Site } from './types.ts';

/**
 * Activity proxies with their time limits. Two kinds of waiting: a failed call is tried again for about
 * `OUTAGE_ATTEMPTS` x 15 s, which outlives the restart of an engine or a worker; nothing waits without end.
 */
const OUTAGE_ATTEMPTS = 80;
const outage: ActivityOptions['retry'] = {
  initialInterval: '500ms',
  backoffCoefficient: 1.6,
  maximumInterval: '15s',
  maximumAttempts: OUTAGE_ATTEMPTS,
};
/** More than the heartbeat's throttle (0.8 x this), less than anybody's patience. */
const HEARTBEAT = '30s';

/** Pure or repeatable work of a device host: tasks, demonstrations. */
export const hostActivities = (site: Site, host: string): DeviceActivities =>
  proxyActivities<DeviceActivities>({
    taskQueue: queues(site.prefix).device(host),
    startToCloseTimeout: '10m',
    heartbeatTimeout: HEARTBEAT,
    retry: outage,
  });

/**
 * Whole attempts. Doing one again is right: the device is rolled back and the seeds are the same. But one that does not
 * even end by its own deadline is masked, not tried for ever: the next try is another host's.
 */
export const episodeActivities = (site: Site, host: string, config: RunConfig): DeviceActivities =>
  proxyActivities<DeviceActivities>({
    taskQueue: queues(site.prefix).device(host),
    startToCloseTimeout: config.rollout.deadlineMs + 30_000,
    heartbeatTimeout: HEARTBEAT,
    retry: { ...outage, nonRetryableErrorTypes: ['TemporalTimeout:StartToClose'] },
  });

/** Replays: as whole attempts, but nobody learns from them, so that a host which is away is not waited for as long. */
export const replayActivities = (site: Site, host: string, config: RunConfig): DeviceActivities =>
  proxyActivities<DeviceActivities>({
    taskQueue: queues(site.prefix).device(host),
    startToCloseTimeout: config.rollout.deadlineMs + 30_000,
    heartbeatTimeout: HEARTBEAT,
    retry: {
      ...outage,
      maximumAttempts: REPLAY_ATTEMPTS,
      nonRetryableErrorTypes: ['TemporalTimeout:StartToClose'],
    },
  });
const REPLAY_ATTEMPTS = 12;

/** One step of an attempt. Never tried again: after doubt the state of the device is unknown (design.md, 5). */
export const stepActivities = (site: Site, host: string, config: RunConfig): DeviceActivities =>
  proxyActivities<DeviceActivities>({
    taskQueue: queues(site.prefix).device(host),
    startToCloseTimeout: config.rollout.deadlineMs,
    scheduleToCloseTimeout: config.rollout.deadlineMs + 120_000,
    heartbeatTimeout: HEARTBEAT,
    retry: { maximumAttempts: 1 },
  });

/** Judging and recording touch no device: a few tries. */
export const judgeActivities = (site: Site, host: string, config: RunConfig): DeviceActivities =>
  proxyActivities<DeviceActivities>({
    taskQueue: queues(site.prefix).device(host),
    startToCloseTimeout: config.rollout.judgeTimeoutMs,
    heartbeatTimeout: HEARTBEAT,
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '10s', maximumAttempts: 5 },
  });

/** The learner: one at a time, idempotent by checkpoint. */
export const learnActivities = (site: Site): LearnActivities & ExperimentActivities =>
  proxyActivities<LearnActivities & ExperimentActivities>({
    taskQueue: queues(site.prefix).learn,
    startToCloseTimeout: '60m',
    heartbeatTimeout: HEARTBEAT,
    retry: outage,
  });
