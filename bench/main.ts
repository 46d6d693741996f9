import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { engineCase } from './cases/engine.ts';
import { growthCase } from './cases/growth.ts';
import { hashCase } from './cases/hash.ts';
import { episodesCase, judgesCase, temporalCase } from './cases/pipeline.ts';
import { splitCase } from './cases/split.ts';
import type { CaseResult } from './lib/alternate.ts';
import { boundOf, readBudget, verdictOf } from './lib/budget.ts';
import type { Budget } from './lib/budget.ts';
import { cleanUpOnSignals } from './lib/clean-up.ts';
import { markdown } from './lib/markdown.ts';

const HELP = `npm run bench [-- --only CASE,CASE] [--rounds N] [--updates N] [--address HOST:PORT] [--check]

Measures ratios, both sides of each in turn in one run, and writes them to bench/results/ with the commit.
A quarter of an hour on two idle cores; a dot on stderr is one measurement; other work on the machine widens the spread.
Each case is written when it is done. The packages must be there: npm ci, npm run setup.

  engine     training and sampling tokens/s against PyTorch on the CPU (TAPWRIGHT_BENCH_PYTHON: a python with torch, numpy)
  hash       the screen hash against Python's imagehash (the same python, imagehash 4.3.2 and pillow < 13)
  temporal   the pipeline on Temporal against the same training as a plain loop
  judges     updates with judges against updates without
  episodes   512 attempts at once against 128: throughput and memory
  split      where an update's time goes, at three sizes of a batch
  growth     time and memory with model width, prompt length and episodes

--rounds     measurements of each side; --updates: of a training (temporal: 25 at least)
--check      compares with bench/budget.json and ends with 1 when a ratio is past its bound or was not measured
--address    temporal: also on the server there, e.g. that of npm run temporal:postgres
`;
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'bench', 'results');

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      rounds: { type: 'string' },
      updates: { type: 'string', default: '6' },
      address: { type: 'string' },
      check: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const given = values.rounds === undefined ? null : whole('--rounds', values.rounds);
  const rounds = (usual: number): number => given ?? usual;
  const updates = whole('--updates', values.updates);
  const cases: Record<string, () => Promise<CaseResult>> = {
    engine: () => engineCase({ rounds: rounds(9) }),
    hash: () => hashCase({ rounds: rounds(9) }),
    temporal: () => temporalCase({ rounds: rounds(3), updates: Math.max(25, updates), address: values.address }),
    judges: () => judgesCase({ rounds: rounds(3), updates }),
    episodes: () => episodesCase({ rounds: rounds(2), updates }),
    split: splitCase,
    growth: growthCase,
  };
  const names = values.only?.split(',') ?? Object.keys(cases);
  const unknown = names.filter((name) => cases[name] === undefined);
  if (unknown.length > 0) {
    throw new Error(`there is no case ${JSON.stringify(unknown.join(', '))}: ${Object.keys(cases).join(', ')}`);
  }
  const budget = await readBudget();
  const past: string[] = [];
  let within = 0;
  for (const name of names) {
    process.stdout.write(`\n## ${name}\n\n`);
    const result = await cases[name]!();
    process.stdout.write(markdown(result, budget));
    // What could not be measured takes no earlier result away, and holds no bound.
    if (result.ratios.length + result.tables.length > 0) await keep(name, result);
    else if (name in MEASURED_BY && boundsOf(MEASURED_BY[name]!, budget)) past.push(`${name} was not measured`);
    for (const ratio of result.ratios.filter((one) => boundOf(one, budget) !== '')) {
      const verdict = verdictOf(ratio, budget);
      if (verdict === null) within += 1;
      else past.push(verdict);
    }
  }
  if (!values.check) return 0;
  for (const verdict of past) process.stdout.write(`past its bound: ${verdict}\n`);
  process.stdout.write(`${within} ratios within bench/budget.json, ${past.length} past it\n`);
  return past.length === 0 ? 0 : 1;
}

/** Cases that another program is needed for, and how the keys of their ratios begin. */
const MEASURED_BY: Record<string, string> = { engine: 'engine/', hash: 'hash/' };
const boundsOf = (prefix: string, budget: Budget): boolean => Object.keys(budget).some((key) => key.startsWith(prefix));

/** A case's result as JSON, by commit; a tree with changes says so. What an earlier run of other cases found there stays. */
async function keep(name: string, result: CaseResult): Promise<void> {
  const git = async (...args: string[]): Promise<string> =>
    (await execa('git', args, { cwd: ROOT, reject: false })).stdout?.trim() ?? '';
  await mkdir(FOLDER, { recursive: true });
  const changed = (await git('status', '--porcelain', '--', '.', ':!bench/results')) !== '';
  const commit = `${(await git('rev-parse', '--short', 'HEAD')) || 'unknown'}${changed ? '+' : ''}`;
  const file = join(FOLDER, `${commit}.json`);
  const before = JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as { results?: object };
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version };
  // Load: other work on the machine is what spreads the rounds.
  const measured = { date: new Date().toISOString(), load: Number(loadavg()[1]!.toFixed(1)), ...result };
  const written = { commit, machine, results: { ...before.results, [name]: measured } };
  await writeFile(file, `${JSON.stringify(written, null, 2)}\n`);
  process.stdout.write(`\nwritten to bench/results/${commit}.json\n`);
}

function whole(name: string, value: string): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < 1) throw new Error(`${name} must be a whole number from 1, not ${value}`);
  return n;
}

cleanUpOnSignals();
main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
