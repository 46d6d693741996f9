import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TapwrightError } from '../domain/errors.ts';
import { createFiles } from './files.ts';

/** `experiments/<id>/`: what was asked for, and the tables that are made of its runs. */
export interface ExperimentFolder {
  dir: string;
  /** Writes a file, whole or not at all; its path. */
  write(name: string, text: string): Promise<string>;
}

/** Folder of an experiment. Error: `invalid_input` for an id that is no plain file name. */
export function experimentDir(home: string, id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$/.test(id)) {
    throw new TapwrightError(
      'invalid_input',
      `"${id}" cannot be an experiment's id: letters, digits, dashes and underscores can, at most 60`,
    );
  }
  return join(resolve(home), 'experiments', id);
}

/** Makes or opens it. */
export async function openExperiment(home: string, id: string): Promise<ExperimentFolder> {
  const dir = experimentDir(home, id);
  await mkdir(dir, { recursive: true });
  const files = createFiles();
  return {
    dir,
    write: async (name, text) => {
      const path = join(dir, name);
      await files.write(path, Buffer.from(text));
      return path;
    },
  };
}

/** What was asked for: experiment.json. Error: `not_found`. */
export async function readPlan<T>(home: string, id: string): Promise<T> {
  const path = join(experimentDir(home, id), 'experiment.json');
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new TapwrightError(
      'not_found',
      `no experiment ${id} in ${resolve(home)}: tapwright experiment FILE begins one`,
      {
        cause: error,
      },
    );
  });
  return JSON.parse(text) as T;
}
