import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { RunConfig } from '../configs/schema.ts';
import { runConfigSchema } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';

/** A run as its folder describes it. */
export interface RunContext {
  run: string;
  folder: string;
  config: RunConfig;
}

/** Runs by id, read once: a run's config never changes. */
export function createRunContexts(home: string): (run: string) => Promise<RunContext> {
  const known = new Map<string, Promise<RunContext>>();
  const read = async (run: string): Promise<RunContext> => {
    const folder = join(home, 'runs', run);
    let text: string;
    try {
      text = await readFile(join(folder, 'config.yaml'), 'utf8');
    } catch (error) {
      throw new TapwrightError('not_found', `no run ${run} in ${home}: its config.yaml cannot be read`, {
        cause: error,
      });
    }
    return { run, folder, config: runConfigSchema.parse(parse(text)) };
  };
  return (run) => {
    const held = known.get(run) ?? read(run);
    known.set(run, held);
    // A failure is not remembered: the folder may come.
    held.catch(() => known.delete(run));
    return held;
  };
}
