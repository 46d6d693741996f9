import type { ScheduleClient, ScheduleDescription, ScheduleHandle, ScheduleUpdateOptions } from '@temporalio/client';
import { ScheduleAlreadyRunning, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client';
import { TapwrightError } from '../domain/errors.ts';
import type { Split } from '../domain/task.ts';
import { queues } from '../workflows/queues.ts';
import type { ScheduledEvaluationInput } from '../workflows/types.ts';

/** A time that came while the server was away is made up for when it is not longer ago than this. */
const CATCHUP_WINDOW = '10m';

export interface ListedSchedule {
  /** `<run>/<suite>/<split>`. */
  name: string;
  cron: string;
  n: number;
  paused: boolean;
  next: Date | null;
  last: Date | null;
}

/** Schedules that evaluate a run's newest checkpoint. One of a run, suite and split: put again, it is changed. */
export interface EvaluationSchedules {
  /** Error: `invalid_input` for a cron expression that the server does not take. */
  put(input: Omit<ScheduledEvaluationInput, 'schedule'>): Promise<ListedSchedule & { created: boolean }>;
  list(): Promise<ListedSchedule[]>;
  /** Errors of these: `not_found`, with the schedules there are. */
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  remove(name: string): Promise<void>;
}

export const scheduleName = (run: string, suite: string, split: Split): string => `${run}/${suite}/${split}`;

/** `prefix`: the home's queue prefix; two homes on one server do not see each other's schedules. */
export function createEvaluationSchedules(client: ScheduleClient, prefix: string): EvaluationSchedules {
  const own = `${prefix}/evaluate/`;
  const handleOf = (name: string): ScheduleHandle => client.getHandle(`${own}${name}`);

  const describe = async (name: string): Promise<ScheduleDescription | null> => {
    try {
      return await handleOf(name).describe();
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return null;
      throw error;
    }
  };
  const list = async (): Promise<ListedSchedule[]> => {
    const names: string[] = [];
    for await (const { scheduleId } of client.list()) {
      if (scheduleId.startsWith(own)) names.push(scheduleId.slice(own.length));
    }
    const described = await Promise.all(names.sort().map(async (name) => ({ name, about: await describe(name) })));
    return described.flatMap(({ name, about }) => (about === null ? [] : [listed(name, about)]));
  };
  /** Describe before the order: the server takes an order for a schedule that is not there in silence. */
  const existing = async (name: string): Promise<ScheduleHandle> => {
    if ((await describe(name)) !== null) return handleOf(name);
    const known = (await list()).map((schedule) => schedule.name);
    throw new TapwrightError(
      'not_found',
      `no schedule ${name}: ${known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`}`,
    );
  };

  return {
    put: async (input) => {
      const { run, suite, split, site, cron } = input;
      const name = scheduleName(run, suite, split);
      const args: [ScheduledEvaluationInput] = [{ ...input, schedule: name }];
      const options = {
        spec: { cronExpressions: [cron] },
        action: {
          type: 'startWorkflow' as const,
          workflowType: 'scheduledEvaluation',
          // The server adds the time.
          workflowId: `${run}/scheduled/${suite}-${split}`,
          taskQueue: queues(site.prefix).workflow,
          args,
        },
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_WINDOW },
      };
      const change = (): Promise<void> =>
        handleOf(name).update(({ state }): ScheduleUpdateOptions => ({ ...options, state }) as ScheduleUpdateOptions);
      let created = (await describe(name)) === null;
      try {
        if (created) await client.create({ scheduleId: `${own}${name}`, ...options });
        else await change();
      } catch (error) {
        // Somebody else made it in between.
        if (!(error instanceof ScheduleAlreadyRunning)) throw badCron(error, cron);
        await change();
        created = false;
      }
      return { ...listed(name, await handleOf(name).describe()), created };
    },
    list,
    pause: async (name) => (await existing(name)).pause('paused by tapwright'),
    resume: async (name) => (await existing(name)).unpause('resumed by tapwright'),
    remove: async (name) => (await existing(name)).delete(),
  };
}

function listed(name: string, { state, info, action }: ScheduleDescription): ListedSchedule {
  const [input] = (action.args ?? []) as [ScheduledEvaluationInput?];
  return {
    name,
    cron: input?.cron ?? '',
    n: input?.n ?? 0,
    paused: state.paused,
    next: info.nextActionTimes[0] ?? null,
    last: info.recentActions.at(-1)?.takenAt ?? null,
  };
}

/** A schedule's spec that the server does not take is a TypeError of the client; all of it that can be wrong is the cron. */
function badCron(error: unknown, cron: string): unknown {
  if (!(error instanceof TypeError)) return error;
  return new TapwrightError(
    'invalid_input',
    `"${cron}" is no cron expression (${error.message}): five fields are, e.g. "0 * * * *" for every full hour (UTC)`,
    { cause: error },
  );
}
