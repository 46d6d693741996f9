import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { engineCase } from './cases/engine.ts';
import { growthCase } from './cases/growth.ts';
import { hashCase } from './cases/hash.ts';
import { episodesCase, judgesCase, temporalCase } from './cases/pipeline.ts';
import { splitCase } from './cases/split.ts';
import type { CaseResult, Ratio } from './lib/alternate.ts';
import { readBudget, verdictOf } from './lib/budget.ts';
import { markdown } from './lib/markdown.ts';

const HELP = `npm run bench [-- --only CASE,CASE] [--rounds N] [--updates N] [--address HOST:PORT] [--check]

Measures ratios, both sides of each in turn in one run, and writes them to bench/results/ with the commit.
Some ten minutes on two idle cores; other work on the machine widens the spread.

  engine     training and sampling tokens/s against PyTorch on the CPU (TAPWRIGHT_BENCH_PYTHON: a python with torch)
  hash       the screen hash against Python's imagehash (the same python)
  temporal   the pipeline on Temporal against the same training as a plain loop
  judges     updates with judges against updates without
  episodes   512 attempts at once against 128: throughput and memory
  split      where an update's time goes, at three sizes of a batch
  growth     time and memory with model width, prompt length and episodes

--check      compares with bench/budget.json and ends with 1 when a ratio is past its bound
--address    temporal: also on the server there, e.g. that of npm run temporal:postgres
`;
const FOLDER = fileURLToPath(new URL('./results', import.meta.url));

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
  const rounds = (usual: number): number => whole('--rounds', values.rounds ?? String(usual));
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
  if (unknown.length > 0) throw new Error(`there is no case ${unknown.join(', ')}: ${Object.keys(cases).join(', ')}`);
  const budget = await readBudget();
  const results: Record<string, CaseResult> = {};
  for (const name of names) {
    process.stdout.write(`\n## ${name}\n\n`);
    results[name] = await cases[name]!();
    process.stdout.write(markdown(results[name], budget));
  }
  await keep(results);
  if (!values.check) return 0;
  const ratios: Ratio[] = Object.values(results).flatMap((result) => result.ratios);
  const verdicts = ratios.map((ratio) => verdictOf(ratio, budget)).filter((verdict) => verdict !== null);
  for (const verdict of verdicts) process.stdout.write(`past its bound: ${verdict}\n`);
  process.stdout.write(
    `${ratios.length - verdicts.length} ratios within bench/budget.json, ${verdicts.length} past it\n`,
  );
  return verdicts.length === 0 ? 0 : 1;
}

/** The results as JSON, by commit; a tree with changes says so. What an earlier run of other cases found there stays. */
async function keep(results: Record<string, CaseResult>): Promise<void> {
  const git = async (...args: string[]): Promise<string> =>
    (await execa('git', args, { cwd: FOLDER, reject: false })).stdout?.trim() ?? '';
  await mkdir(FOLDER, { recursive: true });
  const changed = (await git('status', '--porcelain', '--', '..', ':!results')) !== '';
  const commit = `${(await git('rev-parse', '--short', 'HEAD')) || 'unknown'}${changed ? '+' : ''}`;
  const file = join(FOLDER, `${commit}.json`);
  const before = JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as { results?: object };
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version };
  const written = { commit, date: new Date().toISOString(), machine, results: { ...before.results, ...results } };
  await writeFile(file, `${JSON.stringify(written, null, 2)}\n`);
  process.stdout.write(`\nwritten to bench/results/${commit}.json\n`);
}

function whole(name: string, value: string): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < 1) throw new Error(`${name} must be a whole number from 1, not ${value}`);
  return n;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
