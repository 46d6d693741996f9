/** Text as it may stand in HTML and in attributes. */
export function escapeHtml(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => names[character]!);
}

/** A whole page: one file, nothing loaded from anywhere. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main>${body}</main></body></html>
`;
}

/** A table whose cells are HTML. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const th = head.map((title) => `<th scope="col">${escapeHtml(title)}</th>`).join('');
  const tr = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n');
  return `<div class="scroll"><table><thead><tr>${th}</tr></thead><tbody>${tr}</tbody></table></div>`;
}

/** A rate and its interval on a line from 0 to 100 %, in a series' colour. */
export function range(rate: number, interval: { low: number; high: number }, colour: number): string {
  const x = (value: number): string => (4 + 172 * value).toFixed(1);
  return `<svg class="range" viewBox="0 0 180 14" aria-hidden="true"><line class="whole" x1="4" x2="176" y1="7" y2="7"/><line x1="${x(interval.low)}" x2="${x(interval.high)}" y1="7" y2="7" stroke-width="3" style="stroke:var(--s${colour})"/><circle cx="${x(rate)}" cy="7" r="4" style="fill:var(--s${colour})"/></svg>`;
}

/** Series colours keep 3:1 against the page in both schemes and differ in lightness, not only in hue. */
const STYLE = `
:root{--bg:#fff;--ink:#1b1f24;--dim:#59636e;--line:#d9dee3;--box:#f6f8fa;
--s1:#1f5fbf;--s2:#c2570c;--s3:#1a7f5a;--s4:#8a3fc7;--s5:#b3261e;--s6:#59636e}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e6e9ec;--dim:#9aa4ae;--line:#343b43;--box:#1d2227;
--s1:#6ea8ff;--s2:#f29a4b;--s3:#4fc99a;--s4:#c792f5;--s5:#ff7b72;--s6:#aab4be}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1040px;margin:0 auto;padding:24px 16px 64px}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px}
p{margin:4px 0 12px}.dim,figcaption span{color:var(--dim)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}th{font-weight:600;color:var(--dim)}
td.num,th.num{text-align:right}.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:24px}
figure{margin:0}svg{width:100%;height:auto;display:block}.grid{stroke:var(--line)}.mark{stroke:var(--dim);stroke-dasharray:3 3}
.tick{fill:var(--dim);font-size:11px}.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.faint{stroke-width:1;opacity:.35}
.hit{fill:transparent}.hit:hover{fill:var(--ink);fill-opacity:.07}
.legend{list-style:none;margin:2px 0;padding:0;display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px}.legend i{display:inline-block;width:12px;height:3px;margin-right:5px;vertical-align:middle}
.range{width:180px;display:inline-block}.range .whole{stroke:var(--line)}
details{margin:6px 0}summary{cursor:pointer}pre{background:var(--box);padding:12px;overflow-x:auto;font:13px/1.45 ui-monospace,monospace}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:8px 0}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
code{font:13px ui-monospace,monospace}`;
