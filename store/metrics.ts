import { readFile } from 'node:fs/promises';
import { TapwrightError } from '../domain/errors.ts';
import { canonicalJson } from './canonical-json.ts';
import type { Files } from './files.ts';

export type MetricsStage = 'sft' | 'warmup' | 'train' | 'eval';

/** One line of metrics.jsonl. Keys are paths (`reward/dense_mean`); `time/*` are the only ones a repeat may change. */
export type MetricsRow = { stage: MetricsStage; update: number } & Record<string, number | string | null>;

export interface MetricsLog {
  /**
   * One row a stage and update. A row that is there already stays; the new one must equal it apart from `time/*` keys,
   * else `determinism_broken` (`conflict: 'keep'` keeps the old one silently: for engines that do not repeat their bits).
   * NaN and infinities become null. Append before the checkpoint is committed: then no committed update lacks its row.
   */
  append(row: MetricsRow, options?: { conflict?: 'fail' | 'keep' }): Promise<void>;
  /** All rows in order of stage and update; a torn last line is left out. */
  read(): Promise<MetricsRow[]>;
}

const STAGES: readonly string[] = ['sft', 'warmup', 'train', 'eval'];

export function createMetricsLog(options: { path: string; files: Files }): MetricsLog {
  const { path, files } = options;
  let last: Promise<unknown> = Promise.resolve();
  /** Appends of this process come one after another: each looks before it writes. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => {});
    return next;
  };

  return {
    append: (row, { conflict = 'fail' } = {}) =>
      inTurn(async () => {
        const line = canonicalJson(finite(row));
        const { rows, torn } = parse(await text(path));
        const held = rows.find((other) => other.stage === row.stage && other.update === row.update);
        if (held === undefined) {
          // A line that was cut off gets its end, so that ours begins on its own.
          await files.append(path, Buffer.from(`${torn ? '\n' : ''}${line}\n`));
          return;
        }
        const [old, fresh] = [withoutTimes(held), withoutTimes(finite(row))];
        if (conflict === 'keep' || canonicalJson(old) === canonicalJson(fresh)) return;
        const keys = [...new Set([...Object.keys(old), ...Object.keys(fresh)])].filter((k) => old[k] !== fresh[k]);
        throw new TapwrightError(
          'determinism_broken',
          `${row.stage} ${row.update} was done again and came out different (${keys.slice(0, 4).join(', ')}): was the run moved to another machine or backend? Start a new run from its checkpoint`,
        );
      }),
    read: async () =>
      parse(await text(path)).rows.sort(
        (a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage) || a.update - b.update,
      ),
  };
}

/** The row without its `time/*` keys: what two runs of the same config share. */
export function withoutTimes(row: MetricsRow): MetricsRow {
  return Object.fromEntries(Object.entries(row).filter(([key]) => !key.startsWith('time/'))) as MetricsRow;
}

function finite(row: MetricsRow): MetricsRow {
  return Object.fromEntries(
    Object.entries(row).map(([key, value]) => [
      key,
      typeof value === 'number' && !Number.isFinite(value) ? null : value,
    ]),
  ) as MetricsRow;
}

async function text(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

/** Lines that are no JSON were cut off by a kill; their row is written again when its update is done again. */
function parse(content: string): { rows: MetricsRow[]; torn: boolean } {
  const rows = content.split('\n').flatMap((line) => {
    if (line === '') return [];
    try {
      return [JSON.parse(line) as MetricsRow];
    } catch {
      return [];
    }
  });
  return { rows, torn: content !== '' && !content.endsWith('\n') };
}
