import { alternate, median, ratioOf } from '../lib/alternate.ts';
import type { CaseResult } from '../lib/alternate.ts';
import { timedRun } from '../lib/timed-run.ts';
import type { TimedRun } from '../lib/timed-run.ts';

const CONFIG = 'configs/quickstart.yaml';
/** A short imitation, then updates and nothing else. */
const sets = (updates: number): string[] => [
  ...['sft.demonstrations=1200', 'sft.steps=50', `learn.updates=${updates}`],
  ...['evaluation.instances.heldout-params=64', 'evaluation.instances.heldout-skin=0'],
  'evaluation.instances.train=0',
];
/** The policy stays what it is, so that two runs with different verdicts have the same attempts. */
const FROZEN = ['learn.learningRate=1e-12'];

/** Rows of metrics that pass before time counts, one of SFT and the first updates: several processes take longer to warm up. */
const WARM_ROWS = 5;

/** The same training as a plain loop and on Temporal: what durability costs. `address`: a third time on that server. */
export async function temporalCase(options: {
  rounds: number;
  updates: number;
  address?: string | undefined;
}): Promise<CaseResult> {
  const { rounds, updates, address } = options;
  const notes: string[] = [];
  let plain: TimedRun | null = null;
  const run = async (kind: 'bare' | 'temporal', on: string | null): Promise<number> => {
    const timed = await timedRun(kind, CONFIG, sets(updates), { address: on, after: WARM_ROWS });
    if (plain !== null && timed.work !== plain.work)
      throw new Error('the two did not do the same work: their metrics differ');
    plain ??= timed;
    return timed.seconds;
  };
  const found = await alternate(
    rounds,
    () => run('temporal', null),
    () => run('bare', null),
  );
  const ratios = [ratioOf('pipeline/temporal', 'time on Temporal / as a plain loop', found.ratios)];
  const rows = [
    ['plain loop', median(found.b).toFixed(1)],
    ['on Temporal', median(found.a).toFixed(1)],
  ];
  if (address !== undefined) {
    const there = await alternate(
      rounds,
      () => run('temporal', address),
      () => run('temporal', null),
    );
    ratios.push(ratioOf('pipeline/address', `time on the server at ${address} / on one with SQLite`, there.ratios));
    rows.push([`on the server at ${address}`, median(there.a).toFixed(1)]);
  }
  const title = `${updates - WARM_ROWS} updates of 16 x 8 attempts after ${WARM_ROWS}, seconds; the same metrics in all`;
  return { ratios, tables: [{ title, columns: ['', 'seconds'], rows }], notes };
}

/** Updates with the rule judges against updates with verdicts that cost nothing, the policy held still. */
export async function judgesCase(options: { rounds: number; updates: number }): Promise<CaseResult> {
  const all = [...sets(options.updates), ...FROZEN];
  const found = await alternate(
    options.rounds,
    async () => (await timedRun('bare', CONFIG, all, { after: 2 })).seconds,
    async () => (await timedRun('bare', CONFIG, all, { after: 2, flags: ['--unjudged'] })).seconds,
  );
  return {
    ratios: [ratioOf('pipeline/judges', 'update time with judges / without', found.ratios)],
    tables: [
      {
        title: `${options.updates - 2} updates of 16 x 8 attempts`,
        columns: ['', 'seconds'],
        rows: [
          ['with judges', median(found.a).toFixed(1)],
          ['without', median(found.b).toFixed(1)],
        ],
      },
    ],
    notes: [],
  };
}

/** Attempts a second and memory with 512 attempts at once against 128, on Temporal. */
export async function episodesCase(options: { rounds: number; updates: number }): Promise<CaseResult> {
  const memory = { 128: [] as number[], 512: [] as number[] };
  const run = async (attempts: 128 | 512): Promise<number> => {
    const wide = [
      ...sets(options.updates),
      ...FROZEN,
      `learn.tasks=${attempts / 8}`,
      `devices.count=${attempts}`,
      `engine.maxBatch=${attempts}`,
      `workflow.maxConcurrentEpisodes=${attempts}`,
    ];
    const timed = await timedRun('temporal', CONFIG, wide);
    memory[attempts].push(timed.memory);
    return (attempts * options.updates) / timed.seconds;
  };
  const found = await alternate(
    options.rounds,
    () => run(512),
    () => run(128),
  );
  const gigabytes = (attempts: 128 | 512): number => Math.max(...memory[attempts]) / 2 ** 30;
  return {
    ratios: [
      ratioOf('episodes/throughput', 'attempts/s with 512 at once / with 128', found.ratios),
      ratioOf('episodes/memory', 'resident memory with 512 at once / 2 GiB', [gigabytes(512) / 2]),
    ],
    tables: [
      {
        title: 'whole updates on Temporal; memory of all processes but Temporal’s server',
        columns: ['attempts at once', 'attempts/s', 'GiB resident'],
        rows: [
          [128, median(found.b).toFixed(1), gigabytes(128).toFixed(2)],
          [512, median(found.a).toFixed(1), gigabytes(512).toFixed(2)],
        ],
      },
    ],
    notes: [],
  };
}
