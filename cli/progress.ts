import type { RunStatus } from '../workflows/types.ts';

/** Live progress of a run: one line that is written over on a terminal, a plain line per update elsewhere. */
export interface Progress {
  show(status: RunStatus, waiting?: string): void;
  /** Leaves the last line standing. */
  end(): void;
}

/** Stages in words, in live progress and in a status. */
export const STAGES: Record<RunStatus['stage'], string> = {
  start: 'demonstrations',
  sft: 'imitation (SFT)',
  warmup: 'critic warm-up',
  train: 'policy update',
  evaluation: 'evaluation',
  report: 'report',
  done: 'done',
};

/** Stages that are one piece of work. */
const UNCOUNTED: readonly RunStatus['stage'][] = ['start', 'evaluation', 'report', 'done'];

/** Seconds as `4m 05s`. */
export function duration(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, '0')}s`;
  return `${Math.floor(s / 3600)}h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')}m`;
}

/** One line for a status. `left`: seconds this stage still needs, null when unknown. */
export function progressLine(status: RunStatus, left: number | null): string {
  const parts = [STAGES[status.stage]];
  const counted = UNCOUNTED.includes(status.stage) ? false : status.of > 0;
  if (counted) parts[0] += ` ${status.update} of ${status.of}`;
  // They are of the last training batch.
  if (counted && status.success !== null) parts.push(`sampled success ${(100 * status.success).toFixed(1)} %`);
  if (counted && status.masked !== null && status.masked > 0) parts.push(`masked ${status.masked}`);
  if (status.control?.paused === true) parts.push('paused');
  if (left !== null) parts.push(`${duration(left)} left in this stage`);
  return parts.join(' · ');
}

export function createProgress(options: { tty: boolean; write: (text: string) => void; now: () => number }): Progress {
  const { tty, write, now } = options;
  let last = '';
  let stage = '';
  let stageStart = 0;
  let unitsAtStart = 0;
  const timeLeft = (status: RunStatus): number | null => {
    if (status.stage !== stage) {
      stage = status.stage;
      stageStart = now();
      unitsAtStart = status.update;
    }
    const done = status.update - unitsAtStart;
    if (done < 2 || status.stage === 'evaluation') return null;
    return (((now() - stageStart) / done) * (status.of - status.update)) / 1000;
  };
  return {
    show: (status, waiting) => {
      const left = timeLeft(status);
      // Off a terminal a line means that something was done, not that time went by.
      const line = waiting ?? progressLine(status, tty ? left : null);
      if (line === last) return;
      last = line;
      write(tty ? `\r\x1b[2K${line}` : `${line}\n`);
    },
    end: () => {
      if (tty && last !== '') write('\n');
      last = '';
    },
  };
}
