import { join } from 'node:path';
import type { Command } from 'commander';
import { loadConfig } from '../configs/loader.ts';
import { hasCritic } from '../configs/schema.ts';
import { nfpChoices } from '../configs/nfp.ts';
import { TapwrightError } from '../domain/errors.ts';
import { branchRun } from '../store/index.ts';
import { settings } from '../workers/settings.ts';
import { openHomeRun } from './home.ts';
import { KNOWN_SUITES } from './known-suites.ts';
import { fingerprint, machineHeader } from './run-folder.ts';
import { train } from './run.ts';

interface BranchCommand {
  fromUpdate: string;
  id?: string;
  set: string[];
  prepare?: boolean;
}

/** `tapwright branch <id> --from-update k [--id NEW] [--set k=v] [--prepare]`. */
export function registerBranch(program: Command): void {
  program
    .command('branch')
    .description('a new run that goes on from a checkpoint of another one, which stays as it is')
    .argument('<id>', 'the run to branch from')
    .requiredOption('--from-update <k>', 'policy updates to begin with; 0: after imitation and critic warm-up')
    .option('--id <id>', 'name of the new run (default: from the old one, the update and what is set)')
    .option('--set <key=value...>', 'change one key of the config; the seed stays unless it is set', [])
    .option('--prepare', 'only make its folder; tapwright run goes on with it')
    .action(async (id: string, options: BranchCommand) => {
      await branch(id, options);
    });
}

async function branch(from: string, options: BranchCommand): Promise<void> {
  const update = Number(options.fromUpdate);
  if (!Number.isInteger(update) || update < 0) {
    throw new TapwrightError('invalid_input', `--from-update is a number of updates, not ${options.fromUpdate}`);
  }
  const old = await openHomeRun(from);
  const config = loadConfig({ path: join(old.dir, 'config.yaml'), sets: options.set, suites: KNOWN_SUITES });
  if (hasCritic(config) !== hasCritic(old.config)) {
    throw new TapwrightError(
      'invalid_config',
      `learn.estimator cannot change from ${old.config.learn.estimator} to ${config.learn.estimator} in a branch: one has a critic and the other has none. Start a new run`,
    );
  }
  const mark = options.set.length === 0 ? '' : `-${fingerprint(config)}`;
  const id = options.id ?? `${from}-u${String(update).padStart(4, '0')}${mark}`;
  const header = { ...(await machineHeader()), nfp: nfpChoices(config) };
  const run = await branchRun(settings().home, old, { id, update, config, header });
  process.stdout.write(`run ${id} in ${run.dir}, from update ${update} of ${from}\n`);
  if (options.prepare === true) {
    process.stdout.write(`go on with it: tapwright run ${join(run.dir, 'config.yaml')} --id ${id}\n`);
    return;
  }
  await train({ id, config, folder: run.dir });
}
