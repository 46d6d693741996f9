import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { untilDone } from './clean-up.ts';
import { familyMemory } from './memory.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** A server that outlives this process may hold an open workflow of an earlier one that was broken off. */
const RUN = `bench-${process.pid}`;
const POLL_MS = 20;
/** Reading the memory of all processes takes a few milliseconds: every so many polls. */
const MEMORY_POLLS = 25;

const COMMANDS = { bare: ['--import', 'tsx', 'bench/bare.ts'], temporal: ['bin/tapwright.mjs', 'run'] };

export interface TimedRun {
  /** From row `after` of the metrics to the last, so that the start of processes does not count. */
  seconds: number;
  /** The rows without times, to see that two runs did the same work. */
  work: string;
  /** Largest sum of the resident memory of the run's processes without Temporal's server, bytes. */
  memory: number;
  /** What it printed. */
  lines: string[];
}

/**
 * One training, as a plain loop (bench/bare.ts) or on Temporal (`tapwright run`), in a home of its own that is removed
 * afterwards. `address`: the Temporal server to use; else one of the run's own, on SQLite. `after`: the row of metrics from
 * which time counts.
 */
export async function timedRun(
  kind: keyof typeof COMMANDS,
  config: string,
  sets: readonly string[],
  {
    address = null,
    flags = [],
    after = 0,
  }: { address?: string | null; flags?: readonly string[]; after?: number } = {},
): Promise<TimedRun> {
  const home = await mkdtemp(join(tmpdir(), 'tapwright-bench-'));
  const file = join(home, 'runs', RUN, 'metrics.jsonl');
  const written = async (): Promise<string[]> =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((row) => row.endsWith('}'));
  const env: NodeJS.ProcessEnv = { ...process.env, TAPWRIGHT_HOME: home };
  delete env['TEMPORAL_ADDRESS'];
  if (address !== null) env['TEMPORAL_ADDRESS'] = address;
  const args = [...COMMANDS[kind], config, '--id', RUN, ...flags, ...sets.flatMap((set) => ['--set', set])];
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  let complaints = '';
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  child.stderr.on('data', (chunk: Buffer) => (complaints = (complaints + chunk.toString()).slice(-2_000)));
  const done = untilDone(child, home);
  let ended: number | string | null = null;
  child.once('close', (code, signal) => (ended = signal ?? code));
  try {
    let count = 0;
    let first = 0;
    let last = 0;
    let memory = 0;
    for (let poll = 0; ended === null; poll++) {
      const now = (await written()).length;
      if (now > count) {
        last = performance.now();
        if (count <= after) first = last;
        count = now;
      }
      if (poll % MEMORY_POLLS === 0) memory = Math.max(memory, await familyMemory(child.pid!));
      await sleep(POLL_MS);
    }
    if (ended !== 0) throw new Error(`${args.join(' ')} ended with ${String(ended)}: ${complaints.trim()}`);
    const all = await written();
    return {
      seconds: (last - first) / 1000,
      work: all.join('\n').replaceAll(/"time\/[^,}]*,?/g, ''),
      memory,
      lines,
    };
  } finally {
    child.kill();
    await rm(home, { recursive: true, force: true });
    done();
  }
}
