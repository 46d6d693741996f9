import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ReplayTally } from '../../workflows/types.ts';
import { openRun } from '../../store/index.ts';

/**
 * `npm run check:replay`: a short run, then 100 of its recorded attempts replayed on fresh devices in fresh processes, which
 * must all be identical; the newest policy's own attempts by that policy, identical to the bit; every verdict again. Then the
 * same 100 by a copy of this project in which one byte of the simulated apps is another one: the first step that differs.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN = 'check-replay';
const N = 100;
const SETS = [
  // A policy that acts now and then, in attempts that do not end with its first slip.
  ...['sft.demonstrations=600', 'sft.steps=150', 'sft.batch=24', 'sft.chunk=150', 'agent.maxUnparseable=8'],
  ...['learn.warmup=1', 'learn.updates=2', 'learn.tasks=8', 'learn.attempts=5'],
  ...['evaluation.instances.heldout-params=24', 'evaluation.instances.heldout-skin=0', 'evaluation.instances.train=0'],
];
/** One byte of what a switch does when it is tapped. */
const FILE = join('devices', 'sim', 'transition.ts');
const BEFORE = "scalar(phone, effect.key) === 'on' ? 'off' : 'on')";
const AFTER = "scalar(phone, effect.key) === 'on' ? 'off' : 'an')";

type Said = ReplayTally & { policy: string | null };

/** A command line in a process of its own, as a person gives it; its standard output. */
function tapwright(root: string, home: string, args: string[]): Promise<{ code: number; out: string }> {
  const env = { ...process.env, TAPWRIGHT_HOME: home };
  delete (env as NodeJS.ProcessEnv)['TEMPORAL_ADDRESS'];
  const child = spawn(process.execPath, ['bin/tapwright.mjs', ...args], {
    ...{ cwd: root, env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (data: Buffer) => (out += data.toString('utf8')));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === null) reject(new Error(`tapwright ${args[0]} ended by ${signal}`));
      else resolve({ code, out });
    });
  });
}

/** This project once more, with one byte changed. */
async function changedCopy(folder: string): Promise<string> {
  const copy = join(folder, 'changed');
  const left = new Set(['node_modules', '.git', '.tapwright', 'dist', 'coverage']);
  for (const name of await readdir(ROOT)) {
    if (!left.has(name)) await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const text = await readFile(join(copy, FILE), 'utf8');
  if (text.split(BEFORE).length !== 2) throw new Error(`${FILE} does not have this once: ${BEFORE}`);
  await writeFile(join(copy, FILE), text.replace(BEFORE, AFTER));
  return copy;
}

async function main(): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'tapwright-replay-'));
  const home = join(folder, 'home');
  const problems: string[] = [];
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const replay = async (root: string, args: string[]): Promise<Said & { seconds: number }> => {
    const began = performance.now();
    const { code, out } = await tapwright(root, home, ['replay', RUN, ...args, '--json']);
    const said = JSON.parse(out) as Said;
    if ((code === 0) !== (said.identical === said.of))
      problems.push(`replay ${args.join(' ')} ended with code ${code}`);
    return { ...said, seconds: (performance.now() - began) / 1000 };
  };
  try {
    say('a run whose attempts are recorded');
    const began = performance.now();
    const sets = SETS.flatMap((set) => ['--set', set]);
    const { code } = await tapwright(ROOT, home, ['run', 'configs/smoke.yaml', '--id', RUN, ...sets]);
    if (code !== 0) throw new Error(`the run ended with code ${code}`);
    const run = await openRun(home, RUN);
    const ids = await run.episodes.list();
    say(`  ${ids.length} recorded attempts, ${((performance.now() - began) / 1000).toFixed(1)} s\n`);

    const asked = ['--where', 'phase=train', 'phase=warmup', '--limit', String(N)];
    const recorded = await replay(ROOT, asked);
    const live = await replay(ROOT, ['--where', 'phase=eval', 'update=2', '--live']);
    const judged = await replay(ROOT, ['--limit', '100000', '--judge']);
    const changed = await replay(await changedCopy(folder), asked);

    const row = (cells: (string | number)[]): void =>
      say(
        `${String(cells[0]).padEnd(44)}${cells
          .slice(1)
          .map((cell) => String(cell).padStart(11))
          .join('')}`,
      );
    row(['replay', 'attempts', 'identical', 'different', 'failed', 'seconds']);
    for (const [name, said] of [
      ['recorded decisions, fresh devices', recorded],
      ['newest policy, recorded seeds, to the bit', live],
      ['judge alone', judged],
      ['recorded decisions, one byte changed', changed],
    ] as const) {
      row([name, said.of, said.identical, said.different, said.failed, said.seconds.toFixed(1)]);
    }
    const outcomes = new Map<string, { attempts: number; steps: number }>();
    for (const id of ids.filter((one) => !one.startsWith('e')).slice(0, N)) {
      const { outcome, steps } = await run.episodes.get(id);
      const of = outcomes.get(outcome) ?? { attempts: 0, steps: 0 };
      outcomes.set(outcome, { attempts: of.attempts + 1, steps: of.steps + steps.length });
    }
    const counts = [...outcomes].map(([outcome, of]) => `${of.attempts} ${outcome} (${of.steps} steps)`);
    say(`\nthe ${N}: ${counts.join(', ')}`);
    say(`${recorded.identical} identical`);

    say(`\none byte of ${FILE} changed, ${AFTER} for ${BEFORE}:`);
    const differing = changed.told.filter((one) => one.kind === 'different');
    for (const { id, sentence } of differing.slice(0, 5)) say(`  ${id}  ${sentence}`);
    if (differing.length > 5) say(`  and ${changed.different - 5} more`);

    if (recorded.of !== N || recorded.identical !== N)
      problems.push(`of ${N} replays ${recorded.identical} are identical`);
    if (live.of === 0 || live.identical !== live.of)
      problems.push('the policy that recorded attempts decided otherwise');
    if (judged.of !== ids.length || judged.identical !== judged.of) problems.push('a verdict is another one');
    if (!differing.some(({ field }) => field === 'screen_after')) problems.push('the changed byte was not found');
    if (changed.identical === 0) problems.push('attempts that never tapped a switch differ as well');
    for (const said of [recorded, live, judged]) {
      for (const one of said.told.slice(0, 5)) {
        problems.push(`${one.id}: ${one.kind === 'failed' ? one.message : one.sentence}`);
      }
    }
    for (const problem of problems) say(`FAILED ${problem}`);
    return problems.length === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

main().then(
  (good) => {
    process.stdout.write(good ? 'replay: ok\n' : 'replay: FAILED\n');
    process.exit(good ? 0 : 1);
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
