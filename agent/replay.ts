import type {
  DenseVerdict,
  Episode,
  EpisodeSpec,
  Lease,
  ReplayDifference,
  ReplayResult,
  Step,
} from '../domain/index.ts';
import { TapwrightError } from '../domain/index.ts';
import type { Judge } from '../judges/judge.ts';
import { runEpisode } from './loop.ts';
import type { Planner } from './planner.ts';
import type { EpisodePorts } from './ports.ts';
import {
  episodeDifference,
  goalDifference,
  lengthDifference,
  startDifference,
  stepDifference,
  verdictDifference,
} from './replay-differences.ts';
import type { DecisionCheck } from './replay-differences.ts';

/** Replays of recorded attempts: the same loop as in training (loop.ts), and what it comes to held against the record. */

/** A planner that decides what was decided then, whatever it sees. */
export function recordedPlanner(recorded: Episode): Planner {
  return {
    plan: (_spec, t) => {
      const step = recorded.steps[t];
      if (step === undefined) {
        return Promise.reject(new TapwrightError('internal', `${recorded.id} has no step ${t} to decide by`));
      }
      return Promise.resolve({ sample: step.sample, plan: step.plan });
    },
  };
}

/** Ends a replay where it parts from the record: the decisions that follow were made for other screens. */
class Parted extends Error {
  readonly difference: ReplayDifference;
  constructor(difference: ReplayDifference) {
    super(difference.sentence);
    this.difference = difference;
  }
}

/**
 * The recorded decisions on a device again; `ports` plan by `recordedPlanner`. Grounder, device, user and judges do their
 * work. A failure of a port is thrown, as in training: it says nothing of the record.
 */
export async function replayRecorded(recorded: Episode, spec: EpisodeSpec, ports: EpisodePorts): Promise<ReplayResult> {
  const judged = recorded.steps.map(() => deferred<{ verdict: DenseVerdict; why: string }>());
  const part = (difference: ReplayDifference | null): void => {
    if (difference !== null) throw new Parted(difference);
  };
  const watching: EpisodePorts = {
    ...ports,
    step: async (request) => {
      const { t, screen, truth } = request;
      const old = recorded.steps[t];
      if (t === 0) part(goalDifference(recorded.task, request.spec.task));
      if (old === undefined) throw new Parted(lengthDifference(recorded.steps.length, 'more'));
      part(startDifference(old, { before: screen, truthBefore: truth }));
      const step = await ports.step(request);
      part(stepDifference(old, step, 'none'));
      return step;
    },
    judgeStep: async (own, evidence, memory) => {
      const verdict = ports.judgeStep(own, evidence, memory);
      judged[evidence.t]?.settle(verdict);
      return verdict;
    },
  };
  try {
    return compared(recorded, await runEpisode(spec, watching), 'none');
  } catch (error) {
    if (!(error instanceof Parted)) throw error;
    // Judging runs behind the steps: an earlier step may have been judged otherwise.
    for (const [t, { promise }] of judged.slice(0, error.difference.step ?? 0).entries()) {
      const { verdict, why } = await promise;
      const earlier = verdictDifference(recorded.steps[t]!, { dense: verdict, why });
      if (earlier !== null) return different(recorded, earlier, null);
    }
    return different(recorded, error.difference, null);
  }
}

/**
 * A policy's own decisions with the recorded seeds; `ports` plan by it. `bits`: it is the policy that recorded the attempt,
 * so that probabilities and hidden states are compared as well.
 */
export async function replayLive(
  recorded: Episode,
  spec: EpisodeSpec,
  ports: EpisodePorts,
  options: { bits: boolean },
): Promise<ReplayResult> {
  return compared(recorded, await runEpisode(spec, ports), options.bits ? 'bits' : 'text');
}

/** Judges the recorded steps again, without a device. */
export async function replayJudge(recorded: Episode, spec: EpisodeSpec, judge: Judge): Promise<ReplayResult> {
  const first = recorded.steps[0];
  if (first === undefined) throw new TapwrightError('corrupt_record', `the record of ${recorded.id} has no steps`);
  const lease: Lease = { device: 'none', holder: recorded.id, token: 0, ttlMs: 0 };
  const ports: EpisodePorts = {
    open: () => Promise.resolve({ lease, screen: first.before, truth: first.truthBefore }),
    step: ({ t }): Promise<Step> => {
      const step = recorded.steps[t];
      if (step === undefined) return Promise.reject(new Parted(lengthDifference(recorded.steps.length, 'more')));
      const { dense: _dense, why: _why, trueDense: _trueDense, ...unjudged } = step;
      return Promise.resolve(unjudged);
    },
    judgeStep: (own, evidence, memory) => judge.judgeStep(evidence, memory, own),
    judgeOutcome: (_spec, evidence) => judge.judgeOutcome(evidence),
    close: () => Promise.resolve(),
  };
  try {
    return compared(recorded, await runEpisode(spec, ports), 'none');
  } catch (error) {
    if (!(error instanceof Parted)) throw error;
    return different(recorded, error.difference, null);
  }
}

function compared(recorded: Episode, now: Episode, decision: DecisionCheck): ReplayResult {
  const difference = episodeDifference(recorded, now, decision);
  if (difference !== null) return different(recorded, difference, now);
  return { kind: 'identical', id: recorded.id, outcome: recorded.outcome, steps: recorded.steps.length };
}

function different({ id, outcome }: Episode, difference: ReplayDifference, now: Episode | null): ReplayResult {
  return { kind: 'different', id, outcome, ended: now?.outcome ?? null, ...difference };
}

/** A promise that is settled from outside. */
function deferred<T>(): { promise: Promise<T>; settle(by: Promise<T>): void } {
  let settle = (_by: Promise<T>): void => {};
  const promise = new Promise<T>((resolve) => (settle = resolve));
  // Whoever waits hears of a failure; not every replay has somebody who waits.
  promise.catch(() => undefined);
  return { promise, settle };
}
