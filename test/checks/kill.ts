import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createRandom } from '../../rl/random.ts';
import type { Random } from '../../rl/random.ts';
import { openRun } from '../../store/index.ts';
import type { ProcessRow } from '../../workers/supervisor.ts';

/**
 * `npm run check:kill [-- --runs 10 --kills 3 --seed S --grain episode|step|both]`: smoke-size runs whose processes are
 * killed by SIGKILL at random moments, the command line started again whenever it was among them. Each must end with the
 * digest of a run that was left alone. The plan of kills depends on the seed alone, which is printed.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN = 'killed';
/**
 * Who can be hit; `supervisor` is the command line that was typed, `all` is everything at the same moment, `device-term` the
 * device host by SIGTERM, which lets it give its devices back.
 */
const VICTIMS = ['engine', 'learn', 'device', 'device-term', 'workflow', 'temporal', 'supervisor', 'all'] as const;
type Victim = (typeof VICTIMS)[number];
interface Kill {
  victim: Victim;
  /** Share of an undisturbed run's time, counted in time that the run was up. */
  at: number;
}
/** However slow the machine: a run that needs so many times its undisturbed time does not come to an end. */
const PATIENCE = 12;

/** One run's kills, in order of time. All victims come up before one comes again. */
function planKills(random: Random, kills: number, deck: Victim[]): Kill[] {
  const plan = Array.from({ length: kills }, (): Kill => {
    if (deck.length === 0) deck.push(...random.shuffle([...VICTIMS]));
    return { victim: deck.pop()!, at: 0.05 + 0.7 * random.next() };
  });
  return plan.sort((a, b) => a.at - b.at);
}

interface Started {
  child: ChildProcess;
  ended: Promise<number | string>;
  isOver(): boolean;
}

/** `tapwright run configs/smoke.yaml` in a home of its own. */
function start(home: string, sets: string[]): Started {
  const log = createWriteStream(join(home, 'cli.log'), { flags: 'a' });
  const args = [
    'bin/tapwright.mjs',
    'run',
    'configs/smoke.yaml',
    '--id',
    RUN,
    ...sets.flatMap((set) => ['--set', set]),
  ];
  const env = { ...process.env, TAPWRIGHT_HOME: home };
  delete (env as NodeJS.ProcessEnv)['TEMPORAL_ADDRESS'];
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  let over = false;
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      over = true;
      log.end();
      resolve(signal ?? code ?? -1);
    });
  });
  return { child, ended, isOver: () => over };
}

/** The run's processes by role. The list may be older than they are: an id is believed only of a process of this home. */
async function pids(home: string): Promise<Map<string, number>> {
  const ours = new Map<string, number>();
  for (const [role, pid] of await listed(home)) if (await belongs(pid, home)) ours.set(role, pid);
  return ours;
}

async function belongs(pid: number, home: string): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
  return environment.split('\0').includes(`TAPWRIGHT_HOME=${home}`);
}

/** A run that has ended has no process left, neither of its own nor of a supervisor that was killed. */
async function leavesNothing(home: string): Promise<void> {
  if (process.platform !== 'linux') return;
  let left: string[] = [];
  // Workers whose supervisor was killed have some seconds for what they had begun.
  for (let tries = 0; tries < 60; tries++) {
    const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const ours = await Promise.all(all.map((pid) => belongs(Number(pid), home)));
    left = all.filter((_, i) => ours[i]);
    if (left.length === 0) return;
    await sleep(500);
  }
  throw new Error(`processes ${left.join(', ')} were left behind`);
}

async function listed(home: string): Promise<Map<string, number>> {
  try {
    const text = await readFile(join(home, 'runs', RUN, 'processes.json'), 'utf8');
    const rows = JSON.parse(text) as ProcessRow[];
    return new Map(rows.flatMap(({ role, pid }) => (pid === null ? [] : [[role, pid] as const])));
  } catch {
    return new Map();
  }
}

function kill(pid: number, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

interface Outcome {
  digest: string;
  seconds: number;
  hits: string[];
}

/** Drives one run to its end through its kills. Throws when it does not come to one. */
async function drive(home: string, sets: string[], plan: readonly Kill[], undisturbed: number): Promise<Outcome> {
  await mkdir(home, { recursive: true });
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  const hits: string[] = [];
  const left = [...plan];
  let run = start(home, sets);
  for (;;) {
    const next = left[0];
    const due = next === undefined ? Infinity : next.at * undisturbed;
    if (run.isOver()) {
      const how = await run.ended;
      if (how === 0) break;
      // Killed by us, or given up for want of something we killed: it is started again, as a person would.
      if (how !== 'SIGKILL') hits.push(`exit ${how}`);
      if (hits.filter((hit) => hit.startsWith('exit')).length > 3) throw new Error(`gave up: see ${home}/cli.log`);
      run = start(home, sets);
    }
    if (seconds() > PATIENCE * Math.max(undisturbed, 30)) {
      for (const pid of (await pids(home)).values()) kill(pid);
      run.child.kill('SIGKILL');
      throw new Error(`no end after ${Math.round(seconds())} s: see ${home}`);
    }
    if (seconds() >= due) {
      left.shift();
      const of = await pids(home);
      const { victim } = next!;
      const gently = victim === 'device-term';
      const targets = victim === 'all' ? [...of.values()] : [of.get(gently ? 'device' : victim)];
      const hit = targets.filter((pid) => pid !== undefined && kill(pid, gently ? 'SIGTERM' : 'SIGKILL')).length > 0;
      hits.push(hit ? `${victim} ${seconds().toFixed(0)}s` : `(${victim} was not up)`);
      // A missed one is tried again a little later: the number of kills is a promise.
      if (!hit && !run.isOver()) left.unshift({ ...next!, at: (seconds() + 1) / undisturbed });
    }
    await Promise.race([sleep(100), run.ended]);
  }
  await leavesNothing(home);
  return { digest: await (await openRun(home, RUN, { warn: () => {} })).digest(), seconds: seconds(), hits };
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '10' },
      kills: { type: 'string', default: '3' },
      seed: { type: 'string', default: String(Math.floor(Date.now() / 1000) % 1_000_000) },
      grain: { type: 'string', default: 'both' },
      keep: { type: 'boolean', default: false },
    },
  });
  const [runs, kills, seed] = [Number(values.runs), Number(values.kills), Number(values.seed)];
  const grains = values.grain === 'both' ? ['episode', 'step'] : [values.grain];
  process.stdout.write(`seed ${seed}: ${runs} runs with ${kills} kills each\n`);
  const scratch = await mkdtemp(join(tmpdir(), 'tapwright-kill-'));
  let failed = 0;
  let landed = 0;
  const random = createRandom(seed, 'kill-plan');
  const deck: Victim[] = [];
  // A killed host costs an attempt of many steps one of its tries: there must be more tries than kills.
  const setsOf = (grain: string): string[] => [`rollout.grain=${grain}`, `rollout.infraRetries=${kills + 2}`];
  const left = new Map<string, Outcome>();
  for (const grain of grains) {
    const outcome = await drive(join(scratch, `alone-${grain}`), setsOf(grain), [], 600);
    left.set(grain, outcome);
    process.stdout.write(
      `left alone, grain ${grain}: ${outcome.digest.slice(0, 16)} in ${outcome.seconds.toFixed(0)} s\n`,
    );
  }
  if (new Set([...left.values()].map(({ digest }) => digest)).size > 1) {
    process.stdout.write('FAILED the two grains do not come to the same digest\n');
    failed += 1;
  }
  // A run that is done before its last kill comes short of it: there are more runs then, but not without end.
  let made = 0;
  for (let i = 0; i < 2 * runs && (i < runs || landed < runs * kills); i++) {
    made += 1;
    const grain = grains[i % grains.length]!;
    const plan = planKills(random, kills, deck);
    const alone = left.get(grain)!;
    const home = join(scratch, `run-${i}`);
    try {
      const outcome = await drive(home, setsOf(grain), plan, alone.seconds);
      const same = outcome.digest === alone.digest;
      const hits = outcome.hits.filter((hit) => !/^(exit|\()/.test(hit)).length;
      landed += hits;
      if (!same) failed += 1;
      const word = same ? 'same digest' : `FAILED digest ${outcome.digest.slice(0, 16)}`;
      const time = `${outcome.seconds.toFixed(0)} s`;
      process.stdout.write(`run ${i + 1} (${grain}): ${outcome.hits.join(', ')}: ${word}, ${time}\n`);
      if (same) await rm(home, { recursive: true, force: true });
    } catch (error) {
      failed += 1;
      const planned = plan.map(({ victim, at }) => `${victim} at ${at.toFixed(2)}`).join(', ');
      process.stdout.write(`run ${i + 1} (${grain}): FAILED ${String(error)} (${planned})\n`);
    }
  }
  if (failed === 0 && !values.keep) await rm(scratch, { recursive: true, force: true });
  else process.stdout.write(`kept: ${scratch}\n`);
  process.stdout.write(`${landed} kills in ${made} runs, ${failed} failed (repeat with --seed ${seed})\n`);
  if (landed < runs * kills) process.stdout.write(`FAILED ${runs * kills} kills were asked for\n`);
  return failed === 0 && landed >= runs * kills;
}

main().then(
  (good) => process.exit(good ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
