import { escapeHtml } from './html.ts';

/** Line charts as inline SVG: no script, no network; colours are CSS variables of the page (light and dark). */

export interface Series {
  name: string;
  /** One value an x; null: no value there. */
  values: readonly (number | null)[];
}

export interface ChartOptions {
  title: string;
  /** What is measured, with its unit. */
  note: string;
  x: readonly number[];
  series: readonly Series[];
  /** Values that the axis must show, e.g. [0, 1] for a rate. */
  include?: readonly number[];
  format?: (value: number) => string;
  xName: string;
  /** Names of a single series are left out unless they say what the title does not. */
  legend?: boolean;
}

const WIDTH = 460;
const HEIGHT = 220;
const LEFT = 52;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 34;
/** A curve with more points is drawn faint, with its moving mean over it. */
const SMOOTH_FROM = 25;
const WINDOW = 9;
/** Colours of the page: `--s1` to `--s6`. */
export const MAX_SERIES = 6;

/** One figure: heading, legend, plot with a tooltip at every x, and a summary for screen readers. */
export function lineChart(options: ChartOptions): string {
  const { title, note, x, series, include = [], format = short, xName, legend: named = series.length > 1 } = options;
  const all = series.flatMap(({ values }) => values.filter((v) => v !== null));
  if (all.length === 0) return '';
  const ticks = niceTicks(Math.min(...all, ...include), Math.max(...all, ...include));
  const [low, high] = [ticks[0]!, ticks.at(-1)!];
  const [first, last] = [Math.min(...x), Math.max(...x)];
  const px = (value: number): number =>
    LEFT + (last === first ? 0.5 : (value - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
  const py = (value: number): number =>
    TOP + (1 - (high === low ? 0.5 : (value - low) / (high - low))) * (HEIGHT - TOP - BOTTOM);

  const parts: string[] = [];
  for (const tick of ticks) {
    const y = n(py(tick));
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>`);
    parts.push(
      `<text class="tick" x="${LEFT - 6}" y="${n(py(tick) + 4)}" text-anchor="end">${escapeHtml(format(tick))}</text>`,
    );
  }
  for (const tick of niceTicks(first, last).filter((t) => t >= first && t <= last && Number.isInteger(t))) {
    parts.push(`<text class="tick" x="${n(px(tick))}" y="${HEIGHT - 18}" text-anchor="middle">${tick}</text>`);
  }
  parts.push(
    `<text class="tick" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 3}" text-anchor="middle">${escapeHtml(xName)}</text>`,
  );
  if (first < 0 && last > 0) {
    parts.push(`<line class="mark" x1="${n(px(0.5))}" x2="${n(px(0.5))}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>`);
  }
  series.forEach(({ values }, i) => {
    const smooth = values.filter((v) => v !== null).length >= SMOOTH_FROM;
    const line = (points: readonly (number | null)[], style: string): void => {
      parts.push(`<path class="line ${style}" style="stroke:var(--s${i + 1})" d="${path(points, x, px, py)}"/>`);
    };
    line(values, smooth ? 'faint' : '');
    if (smooth) line(smoothed(values, x), '');
    if (values.filter((v) => v !== null).length === 1) {
      const at = values.findIndex((v) => v !== null);
      parts.push(`<circle r="3" cx="${n(px(x[at]!))}" cy="${n(py(values[at]!))}" style="fill:var(--s${i + 1})"/>`);
    }
  });
  const band = (WIDTH - LEFT - RIGHT) / Math.max(1, x.length);
  x.forEach((value, j) => {
    const told = series
      .filter(({ values }) => values[j] !== null && values[j] !== undefined)
      .map(({ name, values }) => `${name}: ${format(values[j]!)}`);
    if (told.length === 0) return;
    parts.push(
      `<rect class="hit" x="${n(px(value) - band / 2)}" y="${TOP}" width="${n(band)}" height="${HEIGHT - TOP - BOTTOM}"><title>${escapeHtml(`${xName} ${value}\n${told.join('\n')}`)}</title></rect>`,
    );
  });
  const ends = series.map(({ name, values }) => {
    const given = values.filter((v) => v !== null);
    return `${name} from ${format(given[0] ?? NaN)} to ${format(given.at(-1) ?? NaN)}`;
  });
  const legend = !named
    ? ''
    : `<ul class="legend">${series.map(({ name }, i) => `<li><i style="background:var(--s${i + 1})"></i>${escapeHtml(name)}</li>`).join('')}</ul>`;
  return `<figure class="chart"><figcaption><b>${escapeHtml(title)}</b> <span>${escapeHtml(note)}</span></figcaption>${legend}
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(`${title}: ${ends.join('; ')}`)}">${parts.join('')}</svg></figure>`;
}

function path(
  values: readonly (number | null)[],
  x: readonly number[],
  px: (value: number) => number,
  py: (value: number) => number,
): string {
  let out = '';
  let pen = false;
  values.forEach((value, j) => {
    if (value === null) {
      // A gap stays a gap.
      pen = false;
      return;
    }
    out += `${pen ? 'L' : 'M'}${n(px(x[j]!))} ${n(py(value))}`;
    pen = true;
  });
  return out;
}

/** Warm-up and training are smoothed apart: what happens between them is a step, not a slope. */
function smoothed(values: readonly (number | null)[], x: readonly number[]): (number | null)[] {
  const cut = x.filter((at) => at <= 0).length;
  return [...movingMean(values.slice(0, cut), WINDOW), ...movingMean(values.slice(cut), WINDOW)];
}

/** Mean of the values at most half a window away; null where there is no value itself. */
export function movingMean(values: readonly (number | null)[], window: number): (number | null)[] {
  const half = Math.floor(window / 2);
  return values.map((value, i) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, i - half), i + half + 1).filter((v) => v !== null);
    return near.reduce((sum, v) => sum + v, 0) / near.length;
  });
}

/** Three to seven round numbers that reach from below `low` to above `high`. */
export function niceTicks(low: number, high: number): number[] {
  if (!(high > low)) {
    const by = low === 0 ? 1 : Math.abs(low) / 2;
    return niceTicks(low - by, low + by);
  }
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999)!;
  const from = Math.floor(low / step + 1e-9);
  const to = Math.ceil(high / step - 1e-9);
  return Array.from({ length: to - from + 1 }, (_, i) => Number(((from + i) * step).toPrecision(12)));
}

/** A number in as few characters as a reader needs. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

const n = (value: number): string => String(Math.round(value * 10) / 10);
