import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { LineCounter, isMap, parseDocument } from 'yaml';
import { z } from 'zod';
import { TapwrightError } from '../domain/errors.ts';
import { SCALES } from './scale.ts';

/** An experiment: arms (configs) x seeds, all begun from the same imitated policy and compared on the same task instances. */

const NAME = /^[a-z0-9][a-z0-9-]{0,29}$/;
const name = z.string().regex(NAME, 'expected lower-case letters, digits and dashes, at most 30');
const fraction = z.number().min(0).max(1);

const armSchema = z.strictObject({
  config: z.string().describe('a preset, relative to the experiment file'),
  set: z.array(z.string()).default([]).describe('key=value each, over the preset'),
  reference: z.string().optional().describe('row that its rows are compared with; default: that of the experiment'),
  at: z
    .array(fraction)
    .optional()
    .describe('fractions of its updates that are reported; default: those of the experiment'),
  note: z.string().default('').describe('what it is, in a few words'),
});

const experimentSchema = z.strictObject({
  id: name,
  title: z.string().default(''),
  scale: z.enum(SCALES).optional().describe('dial of all arms'),
  seeds: z.array(z.number().int().min(0).max(0xffffffff)).min(1).default([1, 2, 3]),
  concurrency: z.number().int().min(1).max(16).default(1).describe('runs at once'),
  at: z.array(fraction).default([0, 0.5, 1]).describe('fractions of the updates that are reported'),
  partial: z
    .enum(['checkpoint', 'run'])
    .default('checkpoint')
    .describe('a row at a fraction is the whole run there, or a run of its own whose rate schedule ends there'),
  set: z.array(z.string()).default([]).describe('key=value each, over every arm'),
  reference: z
    .string()
    .default('sft')
    .describe('row that others are compared with; sft: the policy that the arm begins with'),
  arms: z.record(name, armSchema),
  comparisons: z
    .array(z.tuple([z.string(), z.string()]))
    .default([])
    .describe('further pairs of rows, each arm or arm@fraction'),
});

export type Experiment = z.output<typeof experimentSchema>;
export type ExperimentArm = Experiment['arms'][string];

/** The row that every arm begins with: the imitated policy. */
export const SFT_ROW = 'sft';

/** `ppo@0.5` as arm and fraction; without one the whole run. Error: `invalid_config`. */
export function parseRow(text: string): { arm: string; fraction: number } {
  const [arm = '', part, more] = text.split('@');
  const value = part === undefined ? (arm === SFT_ROW ? 0 : 1) : Number(part);
  if (more !== undefined || !(value >= 0 && value <= 1) || part === '') {
    throw new TapwrightError('invalid_config', `"${text}" names no row: expected arm or arm@fraction, e.g. ppo@0.5`);
  }
  return { arm, fraction: value };
}

/**
 * An experiment's file, checked; `config` of each arm made absolute. Error: `invalid_config`, one line a problem:
 * `file:line:column: key: what was expected`.
 */
export function loadExperiment(path: string): Experiment {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new TapwrightError(
      'invalid_config',
      `${path}: the experiment cannot be read: ${missing ? 'there is no such file' : String(error)}`,
    );
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const fail = (problems: string[]): never => {
    throw new TapwrightError('invalid_config', problems.join('\n'));
  };
  if (document.errors.length > 0) fail(document.errors.map((error) => `${at(error.pos[0])}: ${error.message}`));
  if (!isMap(document.contents)) fail([`${path}:1:1: an experiment is a map of keys, like "id: paper-table"`]);
  const where = (keys: readonly PropertyKey[]): string => {
    for (let n = keys.length; n > 0; n--) {
      const node = document.getIn(keys.slice(0, n), true) as { range?: [number, number, number] } | undefined;
      if (node?.range !== undefined) return at(node.range[0]);
    }
    return `${path}:1:1`;
  };
  const parsed = experimentSchema.safeParse(document.toJS());
  if (!parsed.success) {
    return fail(
      parsed.error.issues.map((issue) => {
        const key = issue.path.map(String).join('.');
        const known = issue.code === 'unrecognized_keys' ? issue.keys : [];
        const spot = known.length > 0 ? [...issue.path, known[0]!] : issue.path;
        return `${where(spot)}: ${known.length > 0 ? [key, known[0]].filter(Boolean).join('.') : key}: ${issue.message}`;
      }),
    );
  }
  const problems = rowProblems(parsed.data).map(({ keys, message }) => `${where(keys)}: ${keys.join('.')}: ${message}`);
  if (problems.length > 0) fail(problems);
  const arms = Object.entries(parsed.data.arms).map(([arm, of]): [string, ExperimentArm] => {
    return [arm, { ...of, config: resolve(dirname(path), of.config) }];
  });
  return { ...parsed.data, arms: Object.fromEntries(arms) };
}

/** Rows that are named and are none. */
function rowProblems(experiment: Experiment): { keys: (string | number)[]; message: string }[] {
  const { arms, reference, comparisons, at } = experiment;
  const problems: { keys: (string | number)[]; message: string }[] = [];
  const names = Object.keys(arms);
  if (names.length === 0) problems.push({ keys: ['arms'], message: 'expected at least one arm' });
  if (names.includes(SFT_ROW)) {
    problems.push({
      keys: ['arms', SFT_ROW],
      message: 'this is the name of the policy that all arms begin with: take another',
    });
  }
  const check = (keys: (string | number)[], text: string): void => {
    let row: { arm: string; fraction: number };
    try {
      row = parseRow(text);
    } catch (error) {
      problems.push({ keys, message: (error as Error).message });
      return;
    }
    const { arm, fraction } = row;
    if (arm === SFT_ROW) {
      if (fraction > 0) problems.push({ keys, message: `${SFT_ROW} has no fraction: it is where every run begins` });
    } else if (arms[arm] === undefined) {
      problems.push({ keys, message: `there is no arm "${arm}"; there are ${[...names, SFT_ROW].join(', ')}` });
    } else if (fraction < 1 && ![0, ...(arms[arm].at ?? at)].includes(fraction)) {
      problems.push({ keys, message: `${arm} is not reported at ${fraction}: add it to "at"` });
    }
  };
  check(['reference'], reference);
  for (const arm of names) {
    const own = arms[arm]!.reference;
    if (own !== undefined) check(['arms', arm, 'reference'], own);
  }
  comparisons.forEach((pair, i) => pair.forEach((row, j) => check(['comparisons', i, j], row)));
  return problems;
}
