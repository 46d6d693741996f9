import { timedRun } from '../lib/timed-run.ts';
import type { CaseResult } from '../lib/alternate.ts';

interface Spent {
  seconds: number;
  here: Record<string, number>;
  engine: Record<string, number>;
}

/** In the order of an update. */
const PARTS = [
  'sample',
  'environment',
  'render',
  'hash',
  'judge',
  'record',
  'assemble',
  'critic',
  'train',
  'checkpoint',
  'wire',
];
const SCALES = [
  { name: '4 x 8', tasks: 4 },
  { name: '16 x 8', tasks: 16 },
  { name: '64 x 8', tasks: 64 },
];
/** Updates, and those of them that pass before time counts: several processes take longer to warm up than one. */
const UPDATES = 8;
const WARM = 3;
/** Rows of metrics before the first update: SFT and the warm-up. */
const ROWS_BEFORE = 2;

/**
 * Where an update's time goes, at three sizes of a batch, with a critic. Parts are the busy time of the loop's process and of
 * the engine's added up; `rest` is what is left of the time that passed: waiting, prompts, files, the loop itself.
 * `orchestrate`: what the same updates take longer on Temporal.
 */
export async function splitCase(): Promise<CaseResult> {
  const columns = ['part'];
  const rows: (string | number)[][] = [...PARTS, 'rest', 'orchestrate', 'an update, seconds'].map((part) => [part]);
  for (const { name, tasks } of SCALES) {
    columns.push(`${name}, %`);
    const sets = [
      ...['sft.demonstrations=1200', 'sft.steps=50', 'learn.estimator=ppo', 'learn.warmup=1'],
      ...[`learn.updates=${UPDATES}`, `learn.tasks=${tasks}`, `devices.count=${tasks * 8}`],
      ...[
        `engine.maxBatch=${tasks * 8}`,
        `workflow.maxConcurrentEpisodes=${tasks * 8}`,
        `rollout.parcel=${Math.min(128, tasks * 8)}`,
      ],
      ...['evaluation.instances.heldout-params=0', 'evaluation.instances.heldout-skin=0'],
      'evaluation.instances.train=0',
    ];
    const after = ROWS_BEFORE + WARM - 1;
    const bare = await timedRun('bare', 'configs/quickstart.yaml', sets, { flags: ['--spent'], after });
    process.stderr.write('.');
    const durable = await timedRun('temporal', 'configs/quickstart.yaml', sets, { after });
    const all = bare.lines
      .filter((line) => line.startsWith('spent '))
      .map((line) => JSON.parse(line.slice(6)) as Spent);
    // One a batch, the warm-up's first.
    const [first, last] = [all[WARM]!, all.at(-1)!];
    const updates = UPDATES - WARM;
    const seconds = (last.seconds - first.seconds) / updates;
    const part = (key: string): number => {
      const of = (spent: Spent): number => (spent.here[key] ?? 0) + (spent.engine[key] ?? 0);
      return (of(last) - of(first)) / updates;
    };
    const parts = PARTS.map(part);
    const rest = seconds - parts.reduce((sum, value) => sum + value, 0);
    const orchestrate = (durable.seconds - bare.seconds) / updates;
    const shown = [...parts, rest, orchestrate].map((value) => ((100 * value) / seconds).toFixed(1));
    [...shown, seconds.toFixed(2)].forEach((value, i) => rows[i]!.push(value));
  }
  return { ratios: [], tables: [{ title: 'time of a PPO update as a plain loop', columns, rows }], notes: [] };
}
