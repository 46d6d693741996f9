import type { Command } from 'commander';
import { TapwrightError } from '../domain/errors.ts';
import type { Budget } from '../workflows/types.ts';
import { openHomeRun } from './home.ts';
import { orderRun } from './server.ts';
import { controlLines } from './status.ts';

interface SetOptions {
  updates?: string;
  minutes?: string;
  judgeCalls?: string;
  evaluateEvery?: string;
}

/** `tapwright pause|resume|stop|set <id>`: orders to a run that is running. */
export function registerControl(program: Command): void {
  program
    .command('pause')
    .description('let a running run pause: what is in flight finishes, no attempt, step or update begins')
    .argument('<id>', 'the run')
    .action(async (id: string) => {
      await order(id, 'pause', [], `run ${id} is paused; go on with: tapwright resume ${id}`);
    });
  program
    .command('resume')
    .description('let a paused run go on where it was')
    .argument('<id>', 'the run')
    .action(async (id: string) => {
      await order(id, 'resume', [], `run ${id} goes on`);
    });
  program
    .command('stop')
    .description('end a running run cleanly: after the update in hand, with an evaluation; tapwright run goes on later')
    .argument('<id>', 'the run')
    .option('--after <update>', 'end after this update instead')
    .action(async (id: string, options: { after?: string }) => {
      const after = options.after === undefined ? null : number('--after', options.after);
      const when = after === null ? 'the work in hand' : `update ${after}`;
      await order(id, 'stopAfterUpdate', [after], `run ${id} ends after ${when}, with an evaluation`);
    });
  program
    .command('set')
    .description('change what a running run may use up, and how often it is evaluated; "none" takes a bound away')
    .argument('<id>', 'the run')
    .option('--updates <n>', 'policy updates in all')
    .option('--minutes <m>', 'minutes at work in all, pauses left out')
    .option('--judge-calls <j>', 'calls of judges in all')
    .option('--evaluate-every <m>', 'evaluate every so many updates; 0: only at the end')
    .action(async (id: string, options: SetOptions) => {
      const budget = budgetOf(options);
      const some = Object.keys(budget).length > 0;
      if (!some && options.evaluateEvery === undefined) {
        throw new TapwrightError(
          'invalid_input',
          `nothing to set: give --updates, --minutes, --judge-calls or --evaluate-every (now: tapwright status ${id})`,
        );
      }
      const every = options.evaluateEvery === undefined ? null : number('--evaluate-every', options.evaluateEvery);
      if (every !== null) await order(id, 'setEvaluationEvery', [every], some ? null : `run ${id} has a new interval`);
      if (some) await order(id, 'setBudget', [budget], `run ${id} has a new budget`);
    });
}

/** Only what was given: the rest of the budget stays. */
function budgetOf(options: SetOptions): Partial<Budget> {
  const budget: Partial<Budget> = {};
  const { updates, minutes, judgeCalls } = options;
  if (updates !== undefined) budget.updates = bound('--updates', updates);
  if (minutes !== undefined) budget.minutes = bound('--minutes', minutes);
  if (judgeCalls !== undefined) budget.judgeCalls = bound('--judge-calls', judgeCalls);
  return budget;
}

const bound = (option: string, text: string): number | null => (text === 'none' ? null : number(option, text));

function number(option: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    throw new TapwrightError('invalid_input', `${option} is a number, not "${text}"`);
  }
  return value;
}

/** `done` null: another order follows and will say how things stand. */
async function order(id: string, update: string, args: unknown[], done: string | null): Promise<void> {
  // A run that is not there is told from one that does not run.
  await openHomeRun(id);
  const control = await orderRun(id, update, args);
  if (done !== null) process.stdout.write(`${[done, ...controlLines(control)].join('\n')}\n`);
}
