import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { LineCounter, isMap, isScalar, parse, parseDocument } from 'yaml';
import type { z } from 'zod';
import { TapwrightError } from '../domain/errors.ts';
import { crossFieldProblems } from './checks.ts';
import type { KnownSuite } from './checks.ts';
import { closestKey, isPlain, knownKeys } from './paths.ts';
import type { Plain } from './paths.ts';
import { scaleDefaults } from './scale.ts';
import { runConfigSchema } from './schema.ts';
import type { RunConfig } from './schema.ts';

export interface LoadOptions {
  path: string;
  /** `key=value` each, applied in order over the file. */
  sets?: readonly string[];
  /** Suites that can be named; without them any name passes. */
  suites?: readonly KnownSuite[];
}

/** Where a value comes from: `file:line:column` or `--set key=value`. */
type Origins = Map<string, string>;

/** Files that may extend one another in a row. */
const MAX_DEPTH = 8;

/**
 * A run's config from a YAML file, with all defaults filled in. `extends: base.yaml` (relative to the file) takes
 * everything from another file that this one does not say; `sets` overrule both; what none of them says and `scale` does
 * is as scale.ts has it.
 * Error: `invalid_config`, one line a problem: `file:line:column: key: what was expected`.
 */
export function loadConfig(options: LoadOptions): RunConfig {
  const { path, sets = [], suites } = options;
  const origins: Origins = new Map();
  let value = readYaml(resolve(path), origins, []);
  for (const set of sets) value = applySet(value, set, origins);
  value = merged(scaleDefaults(value, suites), value);
  const where = (keys: readonly PropertyKey[]): string => nearest(origins, keys) ?? `${shown(path)}:1:1`;

  const parsed = runConfigSchema.safeParse(value);
  if (!parsed.success) {
    throw invalid(parsed.error.issues.flatMap((issue) => explain(issue, value, origins, where)));
  }
  const problems = crossFieldProblems(parsed.data, suites);
  if (problems.length > 0) {
    throw invalid(problems.map(({ key, message }) => `${where(key.split('.'))}: ${key}: ${message}`));
  }
  return parsed.data;
}

/** The file's values over those of the file it extends. */
function readYaml(file: string, origins: Origins, above: readonly string[]): Plain {
  const name = shown(file);
  if (above.includes(file)) throw invalid([`${name}: extends itself: ${[...above, file].map(shown).join(' -> ')}`]);
  if (above.length >= MAX_DEPTH) throw invalid([`${name}: more than ${MAX_DEPTH} files extend one another`]);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const by = above.length === 0 ? '' : ` (extended by ${shown(above.at(-1)!)})`;
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : String(error);
    throw invalid([`${name}: the config cannot be read${by}: ${reason}`]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    throw invalid(document.errors.map((error) => `${at(error.pos[0])}: ${error.message}`));
  }
  if (!isMap(document.contents)) throw invalid([`${name}:1:1: a config is a map of keys, like "seed: 1"`]);

  const own = document.toJS() as Plain;
  const base = own['extends'];
  delete own['extends'];
  if (base !== undefined && typeof base !== 'string') throw invalid([`${name}: extends: expected the name of a file`]);
  const under = base === undefined ? {} : readYaml(resolve(dirname(file), base), origins, [...above, file]);

  const note = (node: unknown, path: string[]): void => {
    if (!isMap(node)) return;
    for (const pair of node.items) {
      if (!isScalar(pair.key)) continue;
      const here = [...path, String(pair.key.value)];
      origins.set(here.join('.'), at(pair.key.range?.[0] ?? 0));
      note(pair.value, here);
    }
  };
  note(document.contents, []);
  return merged(under, own);
}

function merged(under: Plain, over: Plain): Plain {
  const out: Plain = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = out[key];
    out[key] = isPlain(value) && isPlain(below) ? merged(below, value) : value;
  }
  return out;
}

/** One `key=value`; the value is read as YAML reads it: 3 is a number, true a boolean, [1, 2] a list. */
function applySet(value: Plain, set: string, origins: Origins): Plain {
  const cut = set.indexOf('=');
  const path = cut < 1 ? [] : set.slice(0, cut).trim().split('.');
  if (path.length === 0 || path.some((part) => part === '')) {
    throw invalid([`--set ${set}: expected key=value, e.g. --set learn.updates=50`]);
  }
  let item: unknown;
  try {
    item = parse(set.slice(cut + 1));
  } catch (error) {
    throw invalid([`--set ${set}: the value is no YAML: ${(error as Error).message.split('\n')[0]}`]);
  }
  origins.set(path.join('.'), `--set ${set}`);
  return merged(value, path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), item) as Plain);
}

/** One problem of the schema as lines for a person. */
function explain(
  issue: z.core.$ZodIssue,
  value: Plain,
  origins: Origins,
  where: (keys: readonly PropertyKey[]) => string,
): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((wrong) => {
      const path = [...issue.path, wrong];
      const meant = closestKey(runConfigSchema, issue.path, wrong);
      const known = knownKeys(runConfigSchema, issue.path);
      const hint = meant === null ? `known keys: ${known.join(', ')}` : `did you mean ${meant}?`;
      return `${where(path)}: ${path.map(String).join('.')}: unknown key; ${hint}`;
    });
  }
  const key = issue.path.map(String).join('.');
  const given = issue.path.reduce<unknown>((inner, part) => (inner as Plain | undefined)?.[String(part)], value);
  const expected = issue.message
    .replace(/^(Invalid input|Too small|Too big|Invalid option): /, '')
    .replace(/, received.*$/, '');
  // Nothing there and nothing said: the key is missing.
  const got = given === undefined && !origins.has(key) ? 'it is missing' : `got ${JSON.stringify(given)}`;
  return [`${where(issue.path)}: ${key}: ${expected}, ${got}`];
}

/** Origin of the key itself, else of the section around it. */
function nearest(origins: Origins, keys: readonly PropertyKey[]): string | undefined {
  for (let n = keys.length; n > 0; n--) {
    const found = origins.get(keys.slice(0, n).map(String).join('.'));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** As a person would name it: from the working directory, unless that leads far away. */
function shown(path: string): string {
  const short = relative(process.cwd(), resolve(path));
  return short.startsWith('..') || short === '' ? path : short;
}

function invalid(lines: string[]): TapwrightError {
  return new TapwrightError('invalid_config', lines.join('\n'));
}
