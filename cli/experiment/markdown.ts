import type { ExperimentTable, PairedRows, TableRow } from './table.ts';

export const percent = (x: number): string => (100 * x).toFixed(1);
export const pValue = (p: number): string => (p < 1e-4 ? p.toExponential(1) : p.toFixed(4));
/** A row as people name it. */
export const label = (row: { arm: string; fraction: number; updates: number }): string =>
  row.updates === 0 || row.fraction === 1 ? row.arm : `${row.arm} at ${percent(row.fraction).replace(/\.0$/, '')} %`;
/** `ppo@0.5` as people name it. */
export const rowLabel = (name: string): string => {
  const [arm = '', fraction = '1'] = name.split('@');
  return fraction === '0' || fraction === '1' ? arm : `${arm} at ${100 * Number(fraction)} %`;
};

export const maskedText = (masked: Record<string, number>): string =>
  Object.entries(masked)
    .map(([code, count]) => `${code} ${count}`)
    .join(', ') || '0';

/** One row as columns, the same for Markdown and HTML. */
export const COLUMNS = [
  'arm',
  'updates',
  'seeds',
  'success, %',
  'n',
  'masked',
  'Wilson 95 %',
  'bootstrap 95 %',
] as const;
export function columns(row: TableRow): string[] {
  const range = (interval: { low: number; high: number } | null): string =>
    interval === null ? '-' : `${percent(interval.low)} to ${percent(interval.high)}`;
  return [
    label(row),
    String(row.updates),
    String(row.seeds.length),
    row.n === 0 ? '-' : percent(row.successes / row.n),
    String(row.n),
    maskedText(row.masked),
    range(row.wilson),
    range(row.bootstrap),
  ];
}

export const PAIRED_COLUMNS = ['against', 'pairs', 'points', 'won alone', 'lost alone', 'p'] as const;
export function pairedColumns(paired: PairedRows | null): string[] {
  if (paired === null) return ['-', '-', '-', '-', '-', '-'];
  const { reference, pairs, difference, onlyA, onlyB, p } = paired;
  const points = difference === null ? '-' : `${difference < 0 ? '' : '+'}${percent(difference)}`;
  return [rowLabel(reference), String(pairs), points, String(onlyA), String(onlyB), pValue(p)];
}

/** The whole table as Markdown: one part a split. */
export function tableMarkdown(table: ExperimentTable): string {
  const lines = [`# ${table.title === '' ? table.experiment : table.title}`, ''];
  const scale = table.scale === null ? '' : `, scale ${table.scale}`;
  lines.push(`Experiment ${table.experiment}${scale}, seeds ${table.seeds.join(', ')}.`, '');
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = (cells: readonly string[]): string => row(cells.map(() => '---'));
  if (table.splits.length === 0) lines.push('Nothing has been evaluated yet.', '');
  for (const { suite, split, rows, comparisons } of table.splits) {
    const head = [...COLUMNS, ...PAIRED_COLUMNS];
    lines.push(`## ${suite}, ${split}`, '', row(head), rule(head));
    for (const one of rows) lines.push(row([...columns(one), ...pairedColumns(one.paired)]));
    lines.push('');
    if (comparisons.length > 0) {
      const names = ['row', ...PAIRED_COLUMNS];
      lines.push(row(names), rule(names));
      for (const pair of comparisons) lines.push(row([rowLabel(pair.row), ...pairedColumns(pair)]));
      lines.push('');
    }
  }
  const notes = table.splits
    .flatMap(({ rows }) => rows)
    .filter(({ note }, i, all) => note !== '' && all.findIndex((other) => other.note === note) === i);
  if (notes.length > 0) lines.push(...notes.map(({ arm, note }) => `* ${arm}: ${note}.`), '');
  lines.push(...table.footnotes.map((note) => `* ${note}`), '');
  if (table.missing.length > 0) lines.push(`Not there yet: ${table.missing.join(', ')}.`, '');
  return lines.join('\n');
}
