import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * `npm run bench:overhead [-- --rounds 2 --updates 12] [--address HOST:PORT]`: the same training once as a plain loop
 * (bench/bare.ts) and once by `tapwright run`, in turn, and the ratio of their times. Measured from the first row of metrics
 * to the last (evaluation of the SFT policy, all updates), so that the start of processes counts for neither.
 * `--address`: a third time on the Temporal server there, for instance that of `npm run temporal:postgres`.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A server that outlives this process may hold an open workflow of an earlier one that was broken off. */
const RUN = `overhead-${process.pid}`;
const POLL_MS = 20;

interface Timed {
  seconds: number;
  /** The metrics without times, to see that both did the same work. */
  metrics: string;
}

/** `address`: the Temporal server to use; null: one of the run's own, on SQLite. */
async function time(command: readonly string[], sets: readonly string[], address: string | null): Promise<Timed> {
  const home = await mkdtemp(join(tmpdir(), 'tapwright-overhead-'));
  const file = join(home, 'runs', RUN, 'metrics.jsonl');
  const rows = async (): Promise<string[]> =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((row) => row.endsWith('}'));
  const env: NodeJS.ProcessEnv = { ...process.env, TAPWRIGHT_HOME: home };
  delete env['TEMPORAL_ADDRESS'];
  if (address !== null) env['TEMPORAL_ADDRESS'] = address;
  const args = [...command, 'configs/quickstart.yaml', '--id', RUN, ...sets.flatMap((set) => ['--set', set])];
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] });
  let ended: number | string | null = null;
  child.once('close', (code, signal) => (ended = signal ?? code));
  try {
    let count = 0;
    let first = 0;
    let last = 0;
    while (ended === null) {
      const now = (await rows()).length;
      if (now > count) {
        last = performance.now();
        if (count === 0) first = last;
        count = now;
      }
      await sleep(POLL_MS);
    }
    if (ended !== 0) throw new Error(`${command.join(' ')} ended with ${String(ended)}`);
    const metrics = (await rows()).join('\n').replaceAll(/"time\/[^,}]*,?/g, '');
    return { seconds: (last - first) / 1000, metrics };
  } finally {
    child.kill();
    await rm(home, { recursive: true, force: true });
  }
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const bareLoop = ['--import', 'tsx', 'bench/bare.ts'];
const durableRun = ['bin/tapwright.mjs', 'run'];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '2' },
      updates: { type: 'string', default: '12' },
      address: { type: 'string' },
    },
  });
  const sets = [
    ...['sft.demonstrations=1200', 'sft.steps=50', `learn.updates=${values.updates}`],
    ...['evaluation.instances.heldout-params=200', 'evaluation.instances.heldout-skin=0'],
    'evaluation.instances.train=0',
  ];
  const ratios: number[] = [];
  const otherRatios: number[] = [];
  for (let round = 1; round <= Number(values.rounds); round++) {
    const bare = await time(bareLoop, sets, null);
    const check = ({ metrics }: Timed): void => {
      if (metrics !== bare.metrics) throw new Error('the two did not do the same work: their metrics differ');
    };
    // In turn first and second: what drifts on a shared machine then favours neither server.
    const other = async (): Promise<Timed | null> =>
      values.address === undefined ? null : await time(durableRun, sets, values.address);
    const early = round % 2 === 0 ? await other() : null;
    const durable = await time(durableRun, sets, null);
    const there = early ?? (await other());
    check(durable);
    ratios.push(durable.seconds / bare.seconds);
    process.stdout.write(
      `round ${round}: plain loop ${bare.seconds.toFixed(1)} s, on Temporal ${durable.seconds.toFixed(1)} s, ` +
        `ratio ${ratios.at(-1)!.toFixed(3)}\n`,
    );
    if (there === null) continue;
    check(there);
    otherRatios.push(there.seconds / durable.seconds);
    process.stdout.write(
      `  on the server at ${values.address} ${there.seconds.toFixed(1)} s, ` +
        `${otherRatios.at(-1)!.toFixed(3)} times SQLite\n`,
    );
  }
  process.stdout.write(`ratio ${mean(ratios).toFixed(3)} (mean of ${ratios.length}), the same metrics in all\n`);
  if (otherRatios.length === 0) return;
  process.stdout.write(
    `${values.address} against SQLite: ratio ${mean(otherRatios).toFixed(3)} (mean of ${otherRatios.length})\n`,
  );
}

await main();
