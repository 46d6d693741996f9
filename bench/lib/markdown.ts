import type { CaseResult, Table } from './alternate.ts';
import { boundOf } from './budget.ts';
import type { Budget } from './budget.ts';

/** A case's ratios with their bounds, its tables and its notes. */
export function markdown({ ratios, tables, notes }: CaseResult, budget: Budget): string {
  const parts = [...tables];
  if (ratios.length > 0) {
    parts.unshift({
      title: '',
      columns: ['ratio', 'median', 'lowest to highest', 'rounds', 'allowed'],
      rows: ratios.map((ratio) => [
        ratio.what,
        ratio.median.toFixed(3),
        `${ratio.low.toFixed(3)} to ${ratio.high.toFixed(3)}`,
        ratio.rounds,
        boundOf(ratio, budget),
      ]),
    });
  }
  return [...parts.map(table), ...notes.map((note) => `${note}\n`)].join('\n');
}

function table({ title, columns, rows }: Table): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |\n`;
  const head = title === '' ? '' : `${title}\n\n`;
  return head + line(columns) + line(columns.map(() => '---')) + rows.map(line).join('');
}
