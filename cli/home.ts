import { openRun } from '../store/index.ts';
import type { RunFolder } from '../store/index.ts';
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
