import { openRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
import { readHomeState } from '../workers/home-state.ts';
import { settings } from '../workers/settings.ts';

/** The run of an id in TAPWRIGHT_HOME. Error: `not_found`, with the runs that are there. */
export function openHomeRun(id: string): Promise<RunFolder> {
  return openRun(settings().home, id);
}

/** True while a process of this id lives on this machine. */
export function alive(pid: number | null): boolean {
  if (pid === null) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Where this home's Temporal server should be: TEMPORAL_ADDRESS, or the one a supervisor keeps. Null: there is none. */
export async function serverAddress(): Promise<string | null> {
  const { temporal, home } = settings();
  return temporal ?? (await readHomeState(home)).temporal?.address ?? null;
}
