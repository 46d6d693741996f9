import { nfpChoices } from '../../configs/nfp.ts';
import { comparePaired, wilsonInterval } from '../../rl/statistics.ts';
import type { MetricsRow, ResultCell, RunFolder } from '../../store/index.ts';
import { episodeText } from '../episode.ts';
import { MAX_SERIES, lineChart, short } from './charts.ts';
import type { ChartOptions, Series } from './charts.ts';
import { escapeHtml, page, range, table } from './html.ts';

/** The report of a run as one HTML page: results, curves, a few episodes, and every choice that was made. */
export async function renderReport(run: RunFolder): Promise<string> {
  const [{ cells }, rows, header, episodes] = await Promise.all([
    run.results(),
    run.metrics.read(),
    run.header(),
    someEpisodes(run),
  ]);
  const { config } = run;
  const digest = await run.digest().catch(() => null);
  const body = [
    `<h1>${escapeHtml(run.id)}</h1>`,
    `<p class="dim">${escapeHtml(config.suite)}, seed ${config.seed}: ${config.learn.warmup} critic warm-ups and ${config.learn.updates} policy updates of ${config.learn.tasks} x ${config.learn.attempts} attempts (${config.learn.estimator}).</p>`,
    '<h2>Results</h2>',
    cells.length === 0 ? '<p>No evaluation was asked for.</p>' : resultsHtml(cells),
    '<h2>Curves</h2>',
    rows.length === 0 ? '<p>No updates yet.</p>' : `<div class="charts">${charts(rows).join('\n')}</div>`,
    '<h2>Some episodes</h2>',
    episodes.length === 0 ? '<p>No episodes yet.</p>' : episodes.join('\n'),
    '<h2>How it was made</h2>',
    definitions({ ...flat(header), ...(digest === null ? {} : { digest }) }),
    '<details><summary>Choices that are not from the paper (NFP)</summary>',
    table(
      ['key', 'value', ''],
      nfpChoices(config).map(({ key, value, why }) => [code(key), code(JSON.stringify(value) ?? ''), escapeHtml(why)]),
    ),
    '</details>',
  ].join('\n');
  return page(`Tapwright: ${run.id}`, body);
}

// Results ------------------------------------------------------------------------------------------------------------

const percent = (x: number): string => `${(100 * x).toFixed(1)}`;

function resultsHtml(cells: readonly ResultCell[]): string {
  const sorted = [...cells].sort((a, b) => order(a).localeCompare(order(b)));
  const rows = sorted.map((cell) => {
    const interval = wilsonInterval(cell.successes, cell.n);
    const masked = Object.entries(cell.masked).map(([name, count]) => `${name} ${count}`);
    return [
      escapeHtml(`${cell.suite} ${cell.split}`),
      escapeHtml(cell.policy),
      escapeHtml(`${cell.checkpoint}${cell.schedule === undefined ? '' : ` (${cell.schedule})`}`),
      cell.n === 0 ? '-' : percent(cell.successes / cell.n),
      interval === null ? '-' : `${percent(interval.low)} to ${percent(interval.high)}`,
      interval === null ? '' : range(cell.successes / cell.n, interval, cell.policy === 'sft' ? 6 : 1),
      String(cell.n),
      masked.length === 0 ? '0' : escapeHtml(masked.join(', ')),
    ];
  });
  const head = ['split', 'policy', 'checkpoint', 'success, %', '95 % (Wilson)', '0 to 100 %', 'n', 'masked'];
  return `${table(head, rows)}${comparisons(cells)}`;
}

/** Splits together, SFT first, then by update. */
function order(cell: ResultCell): string {
  const k = cell.checkpoint.split('-')[1] ?? '';
  return [cell.suite, cell.split, cell.policy === 'sft' ? '0' : '1', cell.policy, k.padStart(6, '0')].join(' ');
}

/** The last RL policy against SFT on the instances that both ran and nothing masked. */
function comparisons(all: readonly ResultCell[]): string {
  const cells = all.filter(({ schedule }) => schedule === undefined);
  const rows = cells
    .filter(({ policy }) => policy === 'sft')
    .flatMap((sft) => {
      const rl = cells
        .filter((c) => c.policy === 'rl' && c.suite === sft.suite && c.split === sft.split)
        .sort((a, b) => order(a).localeCompare(order(b)))
        .at(-1);
      if (rl === undefined) return [];
      const before = new Map(sft.perTask.map(({ task, success }) => [task, success]));
      const shared = rl.perTask.filter(({ task }) => before.has(task));
      const paired = comparePaired(
        shared.map(({ success }) => success),
        shared.map(({ task }) => before.get(task) ?? null),
      );
      const factor =
        sft.successes === 0 || rl.n === 0 ? '-' : (rl.successes / rl.n / (sft.successes / sft.n)).toFixed(2);
      return [
        [
          escapeHtml(`${sft.suite} ${sft.split}`),
          String(paired.pairs),
          paired.difference === null ? '-' : `${paired.difference < 0 ? '' : '+'}${percent(paired.difference)}`,
          factor,
          String(paired.onlyA),
          String(paired.onlyB),
          paired.p < 1e-4 ? paired.p.toExponential(1) : paired.p.toFixed(4),
        ],
      ];
    });
  if (rows.length === 0) return '';
  const head = [
    'RL against SFT',
    'pairs',
    'difference, points',
    'times SFT',
    'RL alone solved',
    'SFT alone solved',
    'McNemar p',
  ];
  return `<p></p>${table(head, rows)}`;
}

// Curves -------------------------------------------------------------------------------------------------------------

interface Wanted {
  title: string;
  note: string;
  /** Name -> keys; the first that has values counts. */
  series: Record<string, string[]>;
  include?: number[];
  percent?: boolean;
}

const CURVES: readonly Wanted[] = [
  {
    title: 'Success',
    note: 'of the attempts of each batch, sampled',
    series: { success: ['success/rate', 'rollout/success'] },
    include: [0],
    percent: true,
  },
  {
    title: 'Return by channel',
    note: 'mean of dense and terminal rewards, and of the return a step',
    series: {
      dense: ['reward/dense_mean'],
      terminal: ['reward/terminal_mean'],
      total: ['return/total_mean', 'reward/return_mean'],
    },
  },
  {
    title: 'Explained variance',
    note: 'of the critic, before it learns from the batch',
    series: { 'explained variance': ['critic/explained_variance'] },
    include: [0],
  },
  {
    title: 'Clip fraction',
    note: 'tokens whose ratio was clipped',
    series: { clipped: ['ppo/clip_fraction'] },
    include: [0],
  },
  { title: 'Entropy', note: 'nats a token', series: { entropy: ['ppo/entropy'] }, include: [0] },
  { title: 'Gradient norm', note: 'of the policy, before clipping', series: { norm: ['ppo/grad_norm'] }, include: [0] },
  {
    title: 'Steps',
    note: 'an attempt, mean',
    series: { steps: ['steps/mean', 'episode/steps_mean', 'batch/steps_mean'] },
    include: [0],
  },
  { title: 'Critic loss', note: 'last epoch', series: { loss: ['critic/loss'] }, include: [0] },
];

/** Train updates at 1, 2, ...; warm-ups before them, ending at 0. */
function charts(rows: readonly MetricsRow[]): string[] {
  const warmups = rows.filter(({ stage }) => stage === 'warmup');
  const last = Math.max(0, ...warmups.map(({ update }) => update));
  const learned = rows.filter(({ stage }) => stage === 'warmup' || stage === 'train');
  const x = learned.map(({ stage, update }) => (stage === 'warmup' ? update - last : update));
  const valuesOf = (key: string, empty: number | null): (number | null)[] =>
    learned.map((row) => (typeof row[key] === 'number' ? row[key] : empty));
  const xName = warmups.length > 0 ? 'update (critic warm-up up to 0)' : 'update';
  const draw = (options: Omit<ChartOptions, 'x' | 'xName'>): string => lineChart({ ...options, x, xName });

  const fixed = CURVES.map(({ series, percent: rate, ...rest }) => {
    const found = Object.entries(series).flatMap(([name, keys]): Series[] => {
      const key = keys.find((candidate) => learned.some((row) => typeof row[candidate] === 'number'));
      return key === undefined ? [] : [{ name, values: valuesOf(key, null) }];
    });
    return draw({ ...rest, series: found, ...(rate ? { format: (v: number) => `${short(100 * v)} %` } : {}) });
  });
  const group = (prefix: string, title: string, note: string, empty: number | null): string => {
    const keys = [...new Set(learned.flatMap((row) => Object.keys(row)))].filter((key) => key.startsWith(prefix));
    const series = keys.map((key) => ({ name: key.slice(prefix.length), values: valuesOf(key, empty) }));
    return draw({ title, note, series: few(series), include: [0], legend: true });
  };
  return [
    ...fixed.slice(0, 2),
    group('outcome/', 'Outcomes', 'fraction of the attempts that count', 0),
    group('mask/', 'Masked attempts', 'by failure class', 0),
    ...fixed.slice(2),
    group('time/', 'Time', 'seconds an update', null),
  ].filter((chart) => chart !== '');
}

/** The largest series, and the sum of the rest: more colours than that cannot be told apart. */
function few(series: readonly Series[]): Series[] {
  const sum = ({ values }: Series): number => values.reduce<number>((total, v) => total + (v ?? 0), 0);
  const ranked = [...series].sort((a, b) => sum(b) - sum(a));
  if (ranked.length <= MAX_SERIES) return ranked;
  const rest = ranked.slice(MAX_SERIES - 1);
  const values = rest[0]!.values.map((_, i) => rest.reduce<number>((total, s) => total + (s.values[i] ?? 0), 0));
  return [...ranked.slice(0, MAX_SERIES - 1), { name: 'other', values }];
}

// Episodes and small parts -------------------------------------------------------------------------------------------

const SHOWN = 6;

/** The first attempts of the last update's tasks, and of the last evaluation. */
async function someEpisodes(run: RunFolder): Promise<string[]> {
  const ids = await run.episodes.list();
  const newest = (stage: string): string[] => {
    const own = ids.filter((id) => id.startsWith(stage));
    const batch = own.at(-1)?.split('/')[0];
    return own.filter((id) => id.startsWith(`${batch}/`) && id.endsWith('/a0')).slice(0, SHOWN / 2);
  };
  return Promise.all(
    [...newest('u'), ...newest('e')].map(async (id) => {
      const episode = await run.episodes.get(id).catch(() => null);
      if (episode === null) return `<p>${escapeHtml(id)} cannot be read.</p>`;
      const head = `${id}: ${episode.task.goal}: ${episode.outcome} in ${episode.steps.length} steps`;
      return `<details><summary>${escapeHtml(head)}</summary><pre tabindex="0">${escapeHtml(episodeText(episode, run.config.rewards))}</pre></details>`;
    }),
  );
}

const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;

function definitions(entries: Record<string, unknown>): string {
  const items = Object.entries(entries).map(
    ([key, value]) =>
      `<dt>${escapeHtml(key)}</dt><dd>${escapeHtml(typeof value === 'string' ? value : JSON.stringify(value))}</dd>`,
  );
  return `<dl>${items.join('')}</dl>`;
}

/** Header keys one level deep; the NFP list has a table of its own, and the config a file. */
function flat(header: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(header).flatMap(([key, value]): [string, unknown][] => {
      if (key === 'nfp' || key === 'config' || value === null) return [];
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[key, value]];
      return Object.entries(value).map(([inner, item]): [string, unknown] => [`${key}.${inner}`, item]);
    }),
  );
}
