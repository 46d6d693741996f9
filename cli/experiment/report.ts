import { openExperiment } from '../../store/index.ts';
import { escapeHtml, page, range, table as htmlTable } from '../report/html.ts';
import { curveCharts, curvesCsv, evaluationsCsv, readHistories } from './curves.ts';
import type { Histories } from './curves.ts';
import { COLUMNS, PAIRED_COLUMNS, columns, pairedColumns, rowLabel, tableMarkdown } from './markdown.ts';
import type { ExperimentPlan } from './plan.ts';
import { experimentTable } from './table.ts';
import type { ExperimentTable } from './table.ts';

/** Paths of what was written. */
export interface WrittenReport {
  table: ExperimentTable;
  markdown: string;
  html: string;
}

/** Writes table.md, table.json, curves.csv, evaluations.csv and report.html of an experiment from what its runs hold now. */
export async function writeExperimentReport(home: string, plan: ExperimentPlan): Promise<WrittenReport> {
  const folder = await openExperiment(home, plan.id);
  const histories = await readHistories(home, plan);
  const table = experimentTable(plan, (run) => histories.get(run)?.cells ?? null);
  const markdown = tableMarkdown(table);
  await folder.write('table.md', markdown);
  await folder.write('table.json', `${JSON.stringify(table, null, 2)}\n`);
  await folder.write('curves.csv', curvesCsv(plan, histories));
  await folder.write('evaluations.csv', evaluationsCsv(plan, histories));
  return { table, markdown, html: await folder.write('report.html', reportHtml(plan, table, histories)) };
}

/** One page that stands alone: nothing is loaded, no script runs. */
export function reportHtml(plan: ExperimentPlan, table: ExperimentTable, histories: Histories): string {
  const title = table.title === '' ? table.experiment : table.title;
  const arms = plan.rows.filter(({ note }, i, all) => note !== '' && all.findIndex((row) => row.note === note) === i);
  const charts = curveCharts(plan, histories);
  const scale = table.scale === null ? '' : `, scale ${table.scale}`;
  const body = [
    `<h1>${escapeHtml(title)}</h1>`,
    `<p class="dim">Experiment ${escapeHtml(`${table.experiment}${scale}, seeds ${table.seeds.join(', ')}`)}.</p>`,
    ...table.splits.map((split) => splitHtml(split)),
    table.splits.length === 0 ? '<p>Nothing has been evaluated yet.</p>' : '',
    table.missing.length === 0 ? '' : `<p>Not there yet: ${escapeHtml(table.missing.join(', '))}.</p>`,
    '<h2>Curves</h2>',
    charts.length === 0 ? '<p>No updates yet.</p>' : `<div class="charts">${charts.join('\n')}</div>`,
    '<h2>Arms</h2>',
    `<dl>${arms.map(({ arm, note }) => `<dt>${escapeHtml(arm)}</dt><dd>${escapeHtml(note)}</dd>`).join('')}</dl>`,
    '<h2>How to read it</h2>',
    `<ul>${table.footnotes.map((note) => `<li>${escapeHtml(note)}</li>`).join('')}</ul>`,
  ];
  return page(`Tapwright: ${title}`, body.join('\n'));
}

function splitHtml({ suite, split, rows, comparisons }: ExperimentTable['splits'][number]): string {
  const cells = rows.map((row) => {
    const interval = row.bootstrap ?? row.wilson;
    const bar = interval === null ? '' : range(row.successes / row.n, interval, row.fraction === 0 ? 6 : 1);
    const own = columns(row).map(escapeHtml);
    return [...own.slice(0, 4), bar, ...own.slice(4)];
  });
  const head = [...COLUMNS.slice(0, 4), '0 to 100 %', ...COLUMNS.slice(4)];
  // A table of its own: beside the intervals the tests would not fit on a page.
  const pairs = [...rows.flatMap(({ paired }) => paired ?? []), ...comparisons].map((pair) =>
    [rowLabel(pair.row), ...pairedColumns(pair)].map(escapeHtml),
  );
  const tests = pairs.length === 0 ? '' : `<p></p>${htmlTable(['paired', ...PAIRED_COLUMNS], pairs)}`;
  return `<h2>${escapeHtml(`${suite}, ${split}`)}</h2>${htmlTable(head, cells)}${tests}`;
}
