import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runBare } from '../../bench/bare.ts';
import { loadConfig } from '../../configs/loader.ts';
import type { RunConfig } from '../../configs/schema.ts';
import { SIM_FAULTS } from '../../domain/faults.ts';
import type { Episode, EpisodeResult, EpisodeSpec } from '../../domain/index.ts';
import { twoChannelReturns } from '../../rl/returns.ts';
import { rewardOfOutcome, rewardOfVerdict } from '../../rl/rewards.ts';
import { createRun, openRun } from '../../store/index.ts';
import { drawnFaults, expectedFailure, FAULT_CLASSES } from './expected-failures.ts';
import type { FaultName } from './expected-failures.ts';

/**
 * `npm run check:faults`: a short training with injected faults beside the same one without, same seeds. As long as the
 * policy is the same (warm-ups and the first update), every try must fail in exactly the class that its faults predict, and
 * every attempt that comes through, at once or again, must be the fault-free one to the byte, rewards and returns included.
 */
const RATES: Record<FaultName, number> = {
  ...Object.fromEntries(SIM_FAULTS.map((name) => [name, 0.12])),
  // Few attempts type, few judges fail at the same time as nothing else does.
  dropped_text: 0.5,
  judge_down: 0.1,
  judge_garbage: 0.1,
} as Record<FaultName, number>;
const RUN = 'check-faults';
const SETS = [
  // More devices than failures: none is put aside, which would only take time.
  'devices.count=256',
  'devices.keepScreens=none',
  // A policy that acts now and then, in attempts that do not end with its first slip.
  ...['sft.demonstrations=300', 'sft.steps=100', 'sft.batch=24', 'sft.chunk=100', 'agent.maxUnparseable=8'],
  ...['learn.warmup=2', 'learn.updates=1', 'learn.tasks=8', 'learn.attempts=4'],
  // The same attempts in both runs: none added because others failed.
  ...['learn.minValidFraction=0', 'learn.maxTopUps=0', 'rollout.infraRetries=1'],
  ...['heldout-params', 'heldout-skin', 'train'].map((split) => `evaluation.instances.${split}=0`),
];

interface Try {
  spec: EpisodeSpec;
  result: EpisodeResult;
}
interface Trained {
  tries: Try[];
  record(result: EpisodeResult): Promise<Episode>;
  metrics: Record<string, unknown>[];
}

async function train(config: RunConfig, home: string): Promise<Trained> {
  await createRun(home, RUN, config, {});
  const tries: Try[] = [];
  await runBare(config, {
    run: RUN,
    home,
    onMetrics: (stage, update) => process.stdout.write(`  ${stage} ${update}\n`),
    onAttempt: (spec, result) => void tries.push({ spec, result }),
  });
  const folder = await openRun(home, RUN);
  return {
    tries,
    metrics: (await folder.metrics.read()) as Record<string, unknown>[],
    record: (result) => {
      if (result.kind !== 'finished') throw new Error(`${result.id} has no record`);
      return folder.episodes.get(result.id, result.ref as `sha256:${string}`);
    },
  };
}

/** What the learner makes of an attempt. */
function returnsOf({ steps, outcome }: Episode, { rewards }: RunConfig): string {
  const dense = steps.map((step) => rewardOfVerdict(step.dense, rewards));
  const terminal = rewardOfOutcome(outcome, rewards);
  return JSON.stringify({ dense, terminal, returns: twoChannelReturns(dense, terminal, rewards.gammaDense) });
}

/** Where two records differ first, null when they are the same bytes. The policy's address is the engine's own name for it. */
function difference(a: unknown, b: unknown, path = ''): string | null {
  if (path === '.policy' || Object.is(a, b)) return null;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return `${path}: ${JSON.stringify(a)?.slice(0, 60)} for ${JSON.stringify(b)?.slice(0, 60)}`;
  }
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key of new Set([...Object.keys(y), ...Object.keys(x)])) {
    const found = difference(x[key], y[key], `${path}.${key}`);
    if (found !== null) return found;
  }
  return null;
}

async function compare(config: RunConfig, plain: Trained, faulty: Trained): Promise<boolean> {
  const problems: string[] = [];
  const base = new Map<string, { result: EpisodeResult; episode: Episode }>();
  for (const { result } of plain.tries) {
    if (result.kind === 'masked') problems.push(`${result.id} is masked without faults: ${result.message}`);
    else base.set(result.id, { result, episode: await plain.record(result) });
  }

  const drawn = new Map<FaultName, number>();
  const predicted = new Map<string, number>();
  const counted = new Map<string, number>();
  const last = new Map<string, Try>();
  const add = <K>(to: Map<K, number>, key: K): void => void to.set(key, (to.get(key) ?? 0) + 1);
  for (const one of faulty.tries) {
    const { spec, result } = one;
    last.set(result.id, one);
    const known = base.get(result.id);
    if (known === undefined) continue;
    for (const name of drawnFaults(spec)) add(drawn, name);
    const expected = expectedFailure(spec, known.episode);
    const seen = result.kind === 'masked' ? result.failure : null;
    if (expected !== null) add(predicted, expected);
    if (seen !== null) add(counted, seen);
    if (seen !== expected) {
      const message = result.kind === 'masked' ? ` (${result.message})` : '';
      problems.push(`${result.id} try ${spec.infraTry}: expected ${expected ?? 'no failure'}, was ${seen}${message}`);
    }
  }

  let atOnce = 0;
  let again = 0;
  const masked = new Map<string, number>();
  for (const { spec, result } of last.values()) {
    if (result.kind === 'masked') {
      add(masked, `${spec.key.phase} ${spec.key.update} ${result.failure}`);
      continue;
    }
    const known = base.get(result.id)!;
    const episode = await faulty.record(result);
    const other = difference(episode, known.episode);
    if (other !== null) problems.push(`${result.id} differs from the fault-free one: ${other}`);
    if (returnsOf(episode, config) !== returnsOf(known.episode, config))
      problems.push(`${result.id}: other rewards or returns than without faults`);
    if (spec.infraTry === 0) atOnce += 1;
    else again += 1;
  }
  if (last.size !== base.size) problems.push(`${last.size} attempts with faults, ${base.size} without`);

  // What the run itself reports of its masked attempts.
  for (const row of faulty.metrics.filter((r) => r['stage'] !== 'sft')) {
    const { stage, update } = row as { stage: string; update: number };
    const of = [...masked].filter(([key]) => key.startsWith(`${stage} ${update} `));
    for (const [key, n] of of) {
      const metric = `mask/${key.split(' ')[2]!}`;
      if (row[metric] !== n) problems.push(`${stage} ${update}: ${metric} is ${String(row[metric])}, not ${n}`);
    }
    const total = of.reduce((sum, [, n]) => sum + n, 0);
    if (row['rollout/masked'] !== total) problems.push(`${stage} ${update}: rollout/masked is not ${total}`);
  }

  const unmet: FaultName[] = [];
  const line = (cells: (string | number)[]): string =>
    cells
      .map((cell) => String(cell).padEnd(21))
      .join('')
      .trimEnd();
  process.stdout.write(`\n${line(['fault', 'class', 'rate', 'drawn', 'met', 'counted'])}\n`);
  for (const [name, failure] of Object.entries(FAULT_CLASSES) as [FaultName, string][]) {
    const cells = [drawn.get(name) ?? 0, predicted.get(failure) ?? 0, counted.get(failure) ?? 0];
    process.stdout.write(`${line([name, failure, RATES[name], ...cells])}\n`);
    if (cells[1] === 0) unmet.push(name);
  }
  process.stdout.write(
    `drawn: of ${faulty.tries.length} tries; met: those that ended by it (an attempt may end before its fault comes)\n` +
      `${base.size} attempts: ${atOnce} untouched and ${again} made again, all compared with the fault-free run; ` +
      `${last.size - atOnce - again} masked\n`,
  );
  for (const name of unmet) problems.push(`${name} was never met: nothing is said of it`);
  if (atOnce === 0 || again === 0) problems.push('no attempt was compared');
  for (const problem of problems.slice(0, 20)) process.stdout.write(`FAILED ${problem}\n`);
  return problems.length === 0;
}

async function main(): Promise<boolean> {
  const home = await mkdtemp(join(tmpdir(), 'tapwright-faults-'));
  try {
    const path = fileURLToPath(new URL('../../configs/smoke.yaml', import.meta.url));
    const config = loadConfig({ path, sets: SETS });
    process.stdout.write('without faults\n');
    const plain = await train(config, join(home, 'plain'));
    process.stdout.write('with faults\n');
    const faulty = await train({ ...config, devices: { ...config.devices, faults: RATES } }, join(home, 'faulty'));
    return await compare(config, plain, faulty);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

main().then(
  (good) => {
    process.stdout.write(good ? 'faults: ok\n' : 'faults: FAILED\n');
    process.exit(good ? 0 : 1);
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
