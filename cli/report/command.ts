import type { Command } from 'commander';
import type { RunFolder } from '../../store/index.ts';
import { tensorboardEvents } from '../../store/tensorboard.ts';
import { openHomeRun } from '../home.ts';
import { renderReport } from './render.ts';

/** Writes report.html and tb/ of a run; the report's path. Both are made anew from metrics, results and episodes. */
export async function writeReport(run: RunFolder): Promise<string> {
  const rows = await run.metrics.read();
  const stages = ['sft', 'warmup', 'train', 'eval'] as const;
  for (const stage of stages) {
    const own = rows.filter((row) => row.stage === stage);
    if (own.length > 0) await run.write(`tb/${stage}/events.out.tfevents.0.tapwright`, tensorboardEvents(own));
  }
  return run.write('report.html', await renderReport(run));
}

/** `tapwright report <id>`. */
export function registerReport(program: Command): void {
  program
    .command('report')
    .description("write a run's report.html and TensorBoard events anew, and say where they are")
    .argument('<id>', 'the run')
    .action(async (id: string) => {
      process.stdout.write(`${await writeReport(await openHomeRun(id))}\n`);
    });
}

/** `tapwright digest <id>`. */
export function registerDigest(program: Command): void {
  program
    .command('digest')
    .description('one line: sha256 over the final checkpoint and the metrics without times; equal runs have equal ones')
    .argument('<id>', 'the run')
    .action(async (id: string) => {
      process.stdout.write(`${await (await openHomeRun(id)).digest()}\n`);
    });
}
