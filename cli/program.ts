import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { TapwrightError } from '../domain/errors.ts';
import type { FailureClass } from '../domain/errors.ts';

/** Codes that say that what was typed cannot be done; everything else is a run that failed. */
const BAD_INPUT: readonly FailureClass[] = ['invalid_config', 'invalid_input', 'not_found'];
/** Commands that need neither the Temporal client nor workers: they start in a fraction of the time without them. */
const LIGHT = ['status', 'episode', 'digest', 'report', 'doctor'];

const HELP = `
Examples:
  $ tapwright run configs/quickstart.yaml --id my-run          train, evaluate, write the report
  $ tapwright run configs/short.yaml --set learn.updates=50    one key changed
  $ tapwright status my-run                                    where a run stands
  $ tapwright pause my-run                                     until: tapwright resume my-run
  $ tapwright set my-run --updates 80 --minutes 120            what it may use up
  $ tapwright branch my-run --from-update 50 --set learn.learningRate=1e-4
  $ tapwright schedule create my-run --cron "0 * * * *"        evaluate its newest checkpoint every hour
  $ tapwright episode my-run u0040/t03/a1                      one attempt, step by step
  $ tapwright replay my-run u0040/t03/a1                       the same again on a fresh device: is it identical?
  $ tapwright replay my-run --where outcome=failure --judge    judge all that failed again
  $ tapwright experiment configs/experiments/paper-table.yaml --scale quick    arms x seeds, and a table
  $ tapwright experiment status paper-table-quick              which of its runs are made

TAPWRIGHT_HOME is the folder of runs and of the server's database (default .tapwright/ here).
Exit codes: 0 done, 1 the run failed, 2 something typed cannot be done.`;

/** All commands. `only`: the command that will run, when it is known. */
export async function createProgram(only?: string): Promise<Command> {
  const own = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  const program = new Command('tapwright')
    .description('Durable pipelines that train phone agents by online reinforcement learning.')
    .version(own.version)
    .option('--verbose', 'print the stack of an error')
    .addHelpText('after', HELP)
    .showHelpAfterError('(tapwright --help lists the commands)')
    .exitOverride();
  if (only === undefined || !LIGHT.includes(only)) {
    const [
      { registerRun, registerEval, registerWorker },
      { registerControl },
      { registerBranch },
      { registerSchedule },
      { registerReplay },
      { registerExperiment },
    ] = await Promise.all([
      import('./run.ts'),
      import('./control.ts'),
      import('./branch.ts'),
      import('./schedule.ts'),
      import('./replay.ts'),
      import('./experiment/command.ts'),
    ]);
    registerRun(program);
    registerEval(program);
    registerControl(program);
    registerBranch(program);
    registerSchedule(program);
    registerReplay(program);
    registerExperiment(program);
    registerWorker(program);
  }
  const [{ registerStatus }, { registerEpisode }, { registerReport, registerDigest }, { registerDoctor }] =
    await Promise.all([
      import('./status.ts'),
      import('./episode.ts'),
      import('./report/command.ts'),
      import('./doctor.ts'),
    ]);
  registerStatus(program);
  registerEpisode(program);
  registerReport(program);
  registerDigest(program);
  registerDoctor(program);
  return program;
}

/** Runs one command line (without `node` and script); its exit code. An error is one clear sentence on standard error. */
export async function main(args: string[]): Promise<number> {
  const verbose = args.includes('--verbose');
  // A global option may stand anywhere.
  const rest = args.filter((arg) => arg !== '--verbose');
  try {
    const program = await createProgram(rest.find((arg) => !arg.startsWith('-')));
    if (rest.length === 0) program.outputHelp();
    else await program.parseAsync(rest, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has said what it had to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`${errorText(error, verbose)}\n`);
    return error instanceof TapwrightError && BAD_INPUT.includes(error.code) ? 2 : 1;
  }
}

/** What a person is told of an error. */
export function errorText(error: unknown, verbose: boolean): string {
  if (!(error instanceof Error)) return `error: ${String(error)}`;
  if (!verbose) return `error: ${error.message}`;
  const causes: string[] = [];
  for (let e: unknown = error; e instanceof Error && causes.length < 8; e = e.cause) causes.push(e.stack ?? e.message);
  return causes.join('\ncaused by ');
}
