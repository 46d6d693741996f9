import type { Command } from 'commander';
import { TapwrightError } from '../domain/errors.ts';
import type { Split } from '../domain/task.ts';
import { createEvaluationSchedules } from '../workers/evaluation-schedules.ts';
import type { EvaluationSchedules, ListedSchedule } from '../workers/evaluation-schedules.ts';
import { settings } from '../workers/settings.ts';
import { openHomeRun } from './home.ts';
import { KNOWN_SUITES } from './known-suites.ts';
import { withServer } from './server.ts';

interface CreateOptions {
  cron: string;
  suite?: string;
  split: string;
  n: string;
}

const NEEDS =
  'A schedule lives in the Temporal server and its work is done by the workers: it fires only while both are up, as they are during tapwright run. A time missed by more than 10 minutes is left out.';

/** `tapwright schedule create|list|pause|resume|delete`: evaluations by the clock. */
export function registerSchedule(program: Command): void {
  const schedule = program
    .command('schedule')
    .description("evaluate a run's newest checkpoint by the clock")
    .addHelpText('after', `\n${NEEDS}`);
  schedule
    .command('create')
    .description(
      'make a schedule, or change the one of this run, suite and split; results go to results.json of the run',
    )
    .argument('<run>', 'the run')
    .requiredOption('--cron <expression>', 'when, in UTC: "0 * * * *" is every full hour')
    .option('--suite <suite>', 'suite (default: the one it was trained on)')
    .option('--split <split>', 'train, heldout-params, heldout-skin, heldout-tasks or validation', 'heldout-params')
    .option('--n <n>', 'task instances', '100')
    .action(create);
  schedule
    .command('list')
    .description('the schedules of this home: when, how many instances, next and last time')
    .action(async () => {
      const all = await withSchedules((schedules) => schedules.list());
      say(all.length === 0 ? 'there are no schedules: tapwright schedule create makes one' : all.map(line).join('\n'));
    });
  const orders = { pause: 'paused', resume: 'resumed', delete: 'deleted' } as const;
  for (const [order, done] of Object.entries(orders) as [keyof typeof orders, string][]) {
    schedule
      .command(order)
      .description(`${order} a schedule`)
      .argument('<schedule>', 'its name, as list shows it')
      .action(async (name: string) => {
        await withSchedules((schedules) => schedules[order === 'delete' ? 'remove' : order](name));
        say(`schedule ${name} is ${done}`);
      });
  }
}

async function create(id: string, options: CreateOptions): Promise<void> {
  const n = Number(options.n);
  if (!Number.isInteger(n) || n < 1) {
    throw new TapwrightError('invalid_input', `--n is a positive whole number of task instances, not ${options.n}`);
  }
  const run = await openHomeRun(id);
  const suite = options.suite ?? run.config.suite;
  const known = KNOWN_SUITES.find((other) => other.id === suite);
  if (known === undefined) {
    const names = KNOWN_SUITES.map((other) => other.id).join(', ');
    throw new TapwrightError('invalid_input', `there is no suite "${suite}"; known suites: ${names}`);
  }
  if (!known.splits.includes(options.split)) {
    throw new TapwrightError('invalid_input', `${suite} has no split ${options.split}: ${known.splits.join(', ')}`);
  }
  const { prefix, host } = settings();
  const split = options.split as Split;
  const input = { run: id, config: run.config, site: { prefix, hosts: [host] }, suite, split, n, cron: options.cron };
  const schedule = await withSchedules((schedules) => schedules.put(input));
  say(`schedule ${schedule.name} is ${schedule.created ? 'made' : 'changed'}\n${line(schedule)}\n${NEEDS}`);
}

function withSchedules<T>(body: (schedules: EvaluationSchedules) => Promise<T>): Promise<T> {
  return withServer((client) => body(createEvaluationSchedules(client.schedule, settings().prefix)));
}

function line({ name, cron, n, paused, next, last }: ListedSchedule): string {
  const time = (date: Date | null): string => date?.toISOString().replace(/\.\d+Z$/, 'Z') ?? '-';
  return `${name}  "${cron}"  n ${n}  ${paused ? 'paused' : `next ${time(next)}`}  last ${time(last)}`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
