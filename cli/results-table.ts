import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { comparePaired, wilsonInterval } from '../rl/statistics.ts';
import type { ResultCell, Results } from '../store/index.ts';

/** The results of a run as text: each policy on each split, with its denominator and interval, and RL against SFT. */
export async function resultsTable(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'results.json'), 'utf8').catch(() => null);
  if (text === null) return 'no evaluation was asked for (evaluation.instances)';
  return tableOf((JSON.parse(text) as Results).cells);
}

const percent = (x: number): string => (100 * x).toFixed(1);

export function tableOf(cells: readonly ResultCell[]): string {
  const head = ['suite', 'split', 'policy', 'success %', '95 % interval', 'n', 'masked'];
  const rows = cells.map((cell) => {
    const interval = wilsonInterval(cell.successes, cell.n);
    const masked = Object.values(cell.masked).reduce((a, b) => a + b, 0);
    return [
      cell.suite,
      cell.split,
      `${cell.policy} ${cell.checkpoint}${cell.schedule === undefined ? '' : ` (${cell.schedule})`}`,
      cell.n === 0 ? '-' : percent(cell.successes / cell.n),
      interval === null ? '-' : `${percent(interval.low)} to ${percent(interval.high)}`,
      String(cell.n),
      String(masked),
    ];
  });
  rows.sort((a, b) => (`${a[0]} ${a[1]}` < `${b[0]} ${b[1]}` ? -1 : 1));
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const line = (row: string[]): string =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((w) => '-'.repeat(w))), ...rows.map(line), ...comparisons(cells)].join('\n');
}

/** RL's last policy against SFT's, on the same task instances. */
function comparisons(all: readonly ResultCell[]): string[] {
  // A schedule looks at what is newest, often on fewer tasks: a measurement of progress, not the run's result.
  const cells = all.filter(({ schedule }) => schedule === undefined);
  const lines: string[] = [];
  for (const sft of cells.filter((cell) => cell.policy === 'sft')) {
    const rl = cells.filter((c) => c.policy === 'rl' && c.suite === sft.suite && c.split === sft.split).at(-1);
    if (rl === undefined) continue;
    const bySft = new Map(sft.perTask.map((row) => [row.task, row.success]));
    const shared = rl.perTask.filter((row) => bySft.has(row.task));
    const paired = comparePaired(
      shared.map((row) => row.success),
      shared.map((row) => bySft.get(row.task) ?? null),
    );
    const factor = sft.successes === 0 ? '' : `, ${(rl.successes / rl.n / (sft.successes / sft.n)).toFixed(2)}x`;
    lines.push(
      `${sft.split}: RL against SFT on ${shared.length} shared tasks: McNemar p = ${paired.p.toPrecision(2)}${factor}`,
    );
  }
  return lines.length === 0 ? [] : ['', ...lines];
}
