import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a home remembers between runs, in `site.json`: ports that stay the same, so that a restarted engine keeps its URL. */
export interface HomeState {
  enginePort?: number;
  /** The home's own Temporal server, while a supervisor keeps it. */
  temporal?: { address: string; pid: number };
  supervisor?: number;
}

const file = (home: string): string => join(home, 'site.json');

export const readHomeState = (home: string): Promise<HomeState> => readJson<HomeState>(file(home), {});
export const writeHomeState = (home: string, state: HomeState): Promise<void> => writeJson(file(home), state);

async function readJson<T>(path: string, fallback: T): Promise<T> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch {
    return fallback;
  }
}

/** Whole or not at all. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  const part = `${path}.part`;
  await writeFile(part, `${JSON.stringify(value, null, 2)}\n`);
  await rename(part, path);
}
