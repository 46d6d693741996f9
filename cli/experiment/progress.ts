import type { ExperimentStatus, RunStatus } from '../../workflows/types.ts';
import { duration, progressLine } from '../progress.ts';
import type { PlannedUnit } from './plan.ts';

/** Live progress of an experiment: which run, which of how many, and how long it still takes. */
export interface ExperimentProgress {
  show(status: ExperimentStatus, running: ReadonlyMap<string, RunStatus>, waiting?: string): void;
  /** Leaves the last line standing. */
  end(): void;
}

export interface ProgressOptions {
  units: readonly PlannedUnit[];
  /** Runs that had come to their end before: they take no time now. */
  before: ReadonlySet<string>;
  tty: boolean;
  write: (text: string) => void;
  now: () => number;
}

/** Work of a run in policy updates: imitation and evaluations in what they roughly take. */
function workOf({ config, from }: PlannedUnit): number {
  const { learn, sft } = config;
  return learn.updates + learn.warmup + (from === null ? sft.steps / 10 : 0) + EVALUATION_WORK;
}
const EVALUATION_WORK = 4;

/** Seconds left, from what was done since the command began; null before that can be told. */
export function secondsLeft(done: number, total: number, seconds: number): number | null {
  return done < 2 ? null : (seconds / done) * Math.max(0, total - done);
}

export function createExperimentProgress(options: ProgressOptions): ExperimentProgress {
  const { units, before, tty, write, now } = options;
  const began = now();
  const all = new Map(units.map((unit) => [unit.run, unit]));
  const fresh = units.filter(({ run }) => !before.has(run));
  /** Work that runs had behind them when they were first seen running. */
  const found = new Map<string, number>();
  let last = '';
  let told = '';

  const stepsOf = (status: RunStatus): number =>
    status.stage === 'warmup' || status.stage === 'train' || status.stage === 'evaluation' ? status.update : 0;

  return {
    show: (status, running, waiting) => {
      let done = 0;
      let total = 0;
      for (const { run, state } of status.units) {
        const unit = all.get(run);
        if (unit === undefined || before.has(run)) continue;
        const work = workOf(unit);
        const live = running.get(run);
        const steps = live === undefined ? 0 : stepsOf(live);
        if (live !== undefined && !found.has(run)) found.set(run, steps);
        const already = found.get(run) ?? 0;
        total += work - already;
        if (state === 'done' || state === 'failed') done += work - already;
        else if (state === 'running') done += Math.min(work, steps) - already;
      }
      const over = status.units.filter(({ state }) => state === 'done' || state === 'failed').length;
      const names = status.units.filter(({ state }) => state === 'running').map(({ run }) => run);
      const seconds = (now() - began) / 1000;
      const left = secondsLeft(done, total, seconds);
      const counted = `[${over} of ${status.units.length}]`;
      const now_ = names.map((run) => {
        const { arm = run, config } = all.get(run) ?? {};
        const live = running.get(run);
        return [`${arm} seed ${config?.seed ?? '?'}`, ...(live === undefined ? [] : [progressLine(live, null)])].join(
          ' · ',
        );
      });
      const times = [
        `elapsed ${duration(seconds)}`,
        ...(left === null || fresh.length === 0 ? [] : [`about ${duration(left)} left`]),
      ];
      const line = waiting ?? [`${counted} ${now_.join(' | ')}`, ...times].join(' · ');
      // Off a terminal a line means that something was done: a run or a stage began.
      const stages = [...running.values()].map(({ stage }) => stage).join(' ');
      const key = waiting ?? `${counted} ${names.join(' ')} ${stages}`;
      if (tty ? line === last : key === told) return;
      last = line;
      told = key;
      write(tty ? `\r\x1b[2K${line}` : `${line}\n`);
    },
    end: () => {
      if (tty && last !== '') write('\n');
      last = '';
    },
  };
}
