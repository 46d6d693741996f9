import { nfpChoices } from '../configs/nfp.ts';
import { asTapwrightError } from '../domain/errors.ts';
import { branchRun, createRun, openRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import type { BeginRequest } from './api.ts';

/**
 * The folder of a run of an experiment: as it is when it is there, else new, or a branch after the imitation of `from`.
 * Idempotent: a making that was cut off is made again. Errors: those of store/run-folder.ts and store/branch.ts.
 */
export async function beginRun(home: string, request: BeginRequest): Promise<{ finished: boolean }> {
  const { run, config, from } = request;
  const header = { ...request.header, nfp: nfpChoices(config) };
  const known = await openRun(home, run).catch((error: unknown) => {
    if (asTapwrightError(error).code === 'not_found') return null;
    throw error;
  });
  if (known === null && from !== null) {
    const source = await openRun(home, from);
    return { finished: await cameToItsEnd(await branchRun(home, source, { id: run, update: 'sft', config, header })) };
  }
  return { finished: await cameToItsEnd(await createRun(home, run, config, header)) };
}

/** A run that was stopped on its way has a reason there, one that goes on or never ended has nothing. */
async function cameToItsEnd(folder: RunFolder): Promise<boolean> {
  return (await folder.header())['ended'] === null;
}
