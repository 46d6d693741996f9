import { rmSync } from 'node:fs';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const children = new Set<ChildProcess>();
const folders = new Set<string>();
/** Milliseconds that a run has to stop its own processes. */
const STOP_MS = 15_000;

/** A child and a folder that must not outlive this process; both are forgotten by the function that comes back. */
export function untilDone(child: ChildProcess | null, folder: string): () => void {
  if (child !== null) children.add(child);
  folders.add(folder);
  return () => {
    if (child !== null) children.delete(child);
    folders.delete(folder);
  };
}

/** On Ctrl-C, a kill or a lost terminal: children are ended, their folders removed, and the process ends. */
export function cleanUpOnSignals(): void {
  let ending = false;
  const end = async (code: number): Promise<void> => {
    if (ending) return;
    ending = true;
    const open = [...children].filter((child) => child.exitCode === null && child.signalCode === null);
    const gone = open.map((child) => new Promise<void>((resolve) => void child.once('close', () => resolve())));
    for (const child of open) child.kill('SIGINT');
    await Promise.race([Promise.all(gone), sleep(STOP_MS)]);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    process.exit(code);
  };
  process.on('SIGINT', () => void end(130));
  process.on('SIGTERM', () => void end(143));
  process.on('SIGHUP', () => void end(129));
}
