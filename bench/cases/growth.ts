import { execa } from 'execa';
import { fileURLToPath } from 'node:url';
import type { CaseResult, Table } from '../lib/alternate.ts';

interface Point {
  train: number;
  sample: number;
  memory: number;
}
interface Size {
  width: number;
  prompt: number;
  rows: number;
}

const SCRIPT = fileURLToPath(new URL('./growth-point.ts', import.meta.url));
const BASE: Size = { width: 64, prompt: 40, rows: 128 };
const SWEEPS: { title: string; key: keyof Size; values: number[] }[] = [
  { title: 'model width', key: 'width', values: [32, 64, 128, 256] },
  { title: 'prompt length, tokens', key: 'prompt', values: [40, 80, 160, 320] },
  { title: 'episodes', key: 'rows', values: [32, 128, 512, 2048] },
];

/** The size that all sweeps share is measured once. */
const known = new Map<string, Promise<Point>>();
function point(size: Size): Promise<Point> {
  const key = JSON.stringify(Object.values(size));
  const found = known.get(key) ?? measure(size);
  known.set(key, found);
  return found;
}

async function measure({ width, prompt, rows }: Size): Promise<Point> {
  const args = ['--import', 'tsx', SCRIPT, String(width), String(prompt), String(rows)];
  const { stdout } = await execa(process.execPath, args, { stderr: 'inherit' });
  process.stderr.write('.');
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Point;
}

/** How time and memory of the engine grow with the work: each against the line before it. */
export async function growthCase(): Promise<CaseResult> {
  const tables: Table[] = [];
  for (const { title, key, values } of SWEEPS) {
    const rows: (string | number)[][] = [];
    let before: Point | null = null;
    for (const value of values) {
      const now = await point({ ...BASE, [key]: value });
      const times = (of: keyof Point): string => (before === null ? '' : `x ${(now[of] / before[of]).toFixed(2)}`);
      rows.push([
        value,
        `${(1000 * now.train).toFixed(0)} ms ${times('train')}`.trim(),
        `${(1000 * now.sample).toFixed(0)} ms ${times('sample')}`.trim(),
        `${(now.memory / 2 ** 20).toFixed(0)} MiB ${times('memory')}`.trim(),
      ]);
      before = now;
    }
    const { width, prompt, rows: episodes } = BASE;
    tables.push({
      title: `growth with ${title} (else width ${width}, prompt ${prompt}, ${episodes} episodes)`,
      columns: [title, 'training pass', 'sampling 8 tokens each', 'memory'],
      rows,
    });
  }
  return { ratios: [], tables, notes: [] };
}
