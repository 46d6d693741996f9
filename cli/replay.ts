import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import type { Command } from 'commander';
import { TapwrightError } from '../domain/errors.ts';
import type { ReplayMode } from '../domain/index.ts';
import { parseWhere, selectEpisodes } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { settings } from '../workers/settings.ts';
import { replayId } from '../workflows/ids.ts';
import { queues } from '../workflows/queues.ts';
import type { ReplayInput, ReplayTally } from '../workflows/types.ts';
import { openHomeRun } from './home.ts';
import { progressText, replayText } from './replay-text.ts';
import { startOrAttach, unreachable } from './run.ts';
import { withSite } from './site.ts';

interface ReplayCommand {
  where: string[];
  limit?: string;
  live?: boolean;
  update?: string;
  judge?: boolean;
  json?: boolean;
}

/** Attempts of one replay: their ids travel through Temporal in one piece. */
const MAX_EPISODES = 20_000;
/** How it stands is asked for so often, in milliseconds. */
const POLL_MS = 500;
/** A server that is started again is back by then. */
const AWAY_MS = 30_000;

/** `tapwright replay <id> [episode] [--where k=v] [--limit n] [--live [--update k] | --judge] [--json]`. */
export function registerReplay(program: Command): void {
  program
    .command('replay')
    .description(
      'do recorded attempts over on fresh devices and compare screens, receipts and verdicts: names the first step that differs, and why',
    )
    .argument('<id>', 'the run')
    .argument('[episode]', 'e.g. u0012/t03/a1, or the beginning of several: u0012/')
    .option(
      '--where <key=value...>',
      'those of an outcome (failure: all but success), phase, update, split, task, suite',
      [],
    )
    .option('--limit <n>', 'the first so many')
    .option('--live', 'let the newest policy decide, with the recorded seeds')
    .option('--update <k>', 'with --live: the policy of this update instead; "recorded": the one that recorded each')
    .option('--judge', 'only judge the recorded steps again, without a device')
    .option('--json', 'print it as JSON')
    .action(async (id: string, episode: string | undefined, options: ReplayCommand) => {
      await replay(id, episode, options);
    });
}

async function replay(id: string, episode: string | undefined, options: ReplayCommand): Promise<void> {
  const mode = modeOf(options);
  const run = await openHomeRun(id);
  const episodes = await select(run, episode, options);
  const policy = mode === 'live' ? await policyOf(run, options.update) : null;
  const { prefix, host } = settings();
  const input: ReplayInput = {
    ...{ run: id, config: run.config, site: { prefix, hosts: [host] } },
    ...{ mode, policy, episodes },
  };
  // The same attempts replayed in the same way are one workflow: what was interrupted goes on where it stands.
  const label = createHash('sha256')
    .update(JSON.stringify([mode, policy, episodes]))
    .digest('hex')
    .slice(0, 8);
  const goOn = `tapwright ${process.argv.slice(2).join(' ')}`;
  const without = mode === 'live' ? (['learn'] as const) : (['engine', 'learn'] as const);
  await withSite(run, { goOn, without }, async (client, failed) => {
    const taskQueue = queues(prefix).workflow;
    const handle = await startOrAttach(client, 'replay', replayId(id, label), taskQueue, [input]);
    const tally = await Promise.race([follow(handle), failed]);
    const all = { run: id, mode, policy, ...tally };
    process.stdout.write(`${options.json === true ? JSON.stringify(all, null, 2) : replayText(all)}\n`);
    if (tally.identical < tally.of) process.exitCode = 1;
  });
}

function modeOf({ live, judge, update }: ReplayCommand): ReplayMode {
  if (live === true && judge === true) {
    throw new TapwrightError('invalid_input', '--live plays attempts again and --judge does not: give one of them');
  }
  if (update !== undefined && live !== true) {
    throw new TapwrightError('invalid_input', '--update names the policy that decides, so it needs --live');
  }
  if (live === true) return 'live';
  return judge === true ? 'judge' : 'recorded';
}

async function select(run: RunFolder, episode: string | undefined, options: ReplayCommand): Promise<string[]> {
  const where = parseWhere(options.where);
  const limit = options.limit === undefined ? Infinity : Number(options.limit);
  if (limit !== Infinity && !(Number.isInteger(limit) && limit > 0)) {
    throw new TapwrightError('invalid_input', `--limit is a positive whole number of attempts, not ${options.limit}`);
  }
  if (episode === undefined && options.where.length === 0 && limit === Infinity) {
    throw new TapwrightError(
      'invalid_input',
      'which attempts? Name one or the beginning of several (u0012/), or give --where or --limit',
    );
  }
  const whole = episode !== undefined && /\/a\d+$/.test(episode);
  const ids = await selectEpisodes(run.episodes, {
    where,
    limit: whole ? Infinity : limit,
    ...(episode === undefined ? {} : { prefix: episode }),
  });
  // u0001/t00/a1 is not the beginning of u0001/t00/a10.
  const found = whole ? ids.filter((one) => one === episode) : ids;
  if (found.length === 0) {
    const asked = [...(episode === undefined ? [] : [whole ? episode : `${episode}...`]), ...options.where].join(', ');
    throw new TapwrightError(
      'not_found',
      `run ${run.id} has no recorded attempt ${asked}: tapwright episode ${run.id} lists them (a masked one has no record)`,
    );
  }
  if (found.length > MAX_EPISODES) {
    throw new TapwrightError(
      'invalid_input',
      `${found.length} attempts are more than one replay takes (${MAX_EPISODES}): add --limit or --where`,
    );
  }
  return found;
}

/** Sampler checkpoint that is to decide; null: each attempt's own. */
async function policyOf({ id, checkpoints }: RunFolder, update: string | undefined): Promise<string | null> {
  if (update === 'recorded') return null;
  if (update !== undefined && !/^\d+$/.test(update)) {
    throw new TapwrightError('invalid_input', `--update is a number of an update or "recorded", not ${update}`);
  }
  if (update === undefined) {
    const latest = await checkpoints.latest();
    if (latest === null)
      throw new TapwrightError('not_found', `run ${id} has no checkpoint yet, so no policy to decide`);
    return latest.sampler;
  }
  const listed = await checkpoints.list();
  const before = listed.filter(({ stage }) => stage !== 'train').at(-1);
  const k = Number(update);
  const found =
    k > 0
      ? await checkpoints.get('train', k)
      : before === undefined
        ? null
        : await checkpoints.get(before.stage, before.k);
  if (found !== null) return found.sampler;
  const there = [
    ...(before === undefined ? [] : [0]),
    ...listed.flatMap((one) => (one.stage === 'train' ? [one.k] : [])),
  ];
  throw new TapwrightError(
    'not_found',
    `run ${id} has no whole checkpoint of update ${k}: there are ${there.join(', ') || 'none'}`,
  );
}

/** Shows how far it is, on standard error, until it has ended. A server that is away for a moment is waited for. */
async function follow(handle: WorkflowHandle): Promise<ReplayTally> {
  const tty = process.stderr.isTTY;
  let ended = false;
  let seen = Date.now();
  const result = (async (): Promise<ReplayTally> => {
    for (;;) {
      try {
        return (await handle.result()) as ReplayTally;
      } catch (error) {
        if (!unreachable(error) || Date.now() - seen > AWAY_MS) throw error;
        await sleep(POLL_MS);
      }
    }
  })().finally(() => (ended = true));
  result.catch(() => {});
  let shown = '';
  while (!ended) {
    const tally = await handle.query<ReplayTally>('replayed').catch(() => null);
    if (tally !== null) seen = Date.now();
    const text = tally === null ? shown : progressText(tally);
    if (tty && text !== shown) process.stderr.write(`\r\x1b[2K${text}`);
    shown = text;
    await Promise.race([sleep(POLL_MS), result.catch(() => {})]);
  }
  if (tty && shown !== '') process.stderr.write('\r\x1b[2K');
  return result;
}
