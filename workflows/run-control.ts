import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { Budget, ControlState, ControlView, Cursor } from './types.ts';

/** More updates than this have no task instances of their own left (workflows/ids.ts). */
const MAX_UPDATES = 10_000;
const MINUTE = 60_000;

/**
 * How a run is steered while it runs: pause, budget, evaluation interval, early end. Free of Temporal; the handlers of
 * workflows/training-run.ts call one method each. A `check` refuses nonsense with a sentence and changes nothing.
 */
export class RunControl {
  readonly #config: RunConfig;
  readonly #cursor: Cursor;
  readonly #now: () => number;
  /** When the present stretch of work began; null while paused. */
  #since: number | null;

  constructor(config: RunConfig, cursor: Cursor, now: () => number) {
    this.#config = config;
    this.#cursor = cursor;
    this.#now = now;
    this.#since = this.#state.paused ? null : now();
  }

  get #state(): ControlState {
    return this.#cursor.control;
  }

  get paused(): boolean {
    return this.#state.paused;
  }

  checkPause(): void {
    this.#checkRuns();
    if (this.paused) refuse('the run is paused already: resume it, or stop it');
  }
  pause(): ControlView {
    this.#state.activeMs = this.#activeMs();
    this.#state.paused = true;
    this.#since = null;
    return this.view();
  }

  checkResume(): void {
    this.#checkRuns();
    if (!this.paused) refuse('the run is not paused');
  }
  resume(): ControlView {
    this.#state.paused = false;
    this.#since ??= this.#now();
    return this.view();
  }

  checkBudget(change: Partial<Budget>): void {
    this.#checkRuns();
    const { updates = null, minutes = null, judgeCalls = null } = change;
    const named = Object.keys(change);
    if (named.length === 0 || named.some((key) => !['updates', 'minutes', 'judgeCalls'].includes(key))) {
      refuse('a budget has updates, minutes and judgeCalls: give at least one of them');
    }
    for (const [key, value] of Object.entries(change)) {
      const whole = key === 'minutes' || Number.isInteger(value);
      if (value !== null && !(Number.isFinite(value) && value > 0 && whole)) {
        refuse(`a budget of ${key} is a positive ${key === 'minutes' ? '' : 'whole '}number, or none, not ${value}`);
      }
    }
    const done = this.#cursor.updates;
    const used = this.view().used;
    const instead = 'give more, or end the run with stop';
    if (updates !== null && updates > MAX_UPDATES) refuse(`a run has at most ${MAX_UPDATES} updates, not ${updates}`);
    if (updates !== null && updates < done) refuse(`${done} updates are done already: ${instead}`);
    if (minutes !== null && minutes <= used.minutes) {
      refuse(`${used.minutes.toFixed(1)} minutes are used already: ${instead}`);
    }
    if (judgeCalls !== null && judgeCalls <= used.judgeCalls) {
      refuse(`${used.judgeCalls} judge calls are made already: ${instead}`);
    }
  }
  setBudget(change: Partial<Budget>): ControlView {
    Object.assign(this.#state.budget, change);
    return this.view();
  }

  checkEvaluationEvery(every: number): void {
    this.#checkRuns();
    if (!Number.isInteger(every) || every < 0) {
      refuse(`evaluations come every so many updates, 0 for only at the end: ${every} is no such number`);
    }
  }
  setEvaluationEvery(every: number): ControlView {
    this.#state.evaluationEvery = every;
    return this.view();
  }

  /** `update` null: after the unit of work in hand. */
  checkStop(update: number | null): void {
    this.#checkRuns();
    if (update === null) return;
    if (!Number.isInteger(update) || update < 0) refuse(`an update is a whole number, not ${update}`);
    if (update < this.#cursor.updates)
      refuse(`${this.#cursor.updates} updates are done already: stop without a number`);
    if (update > this.#updates()) refuse(`the run ends after update ${this.#updates()} anyway: give a smaller one`);
  }
  stopAfter(update: number | null): ControlView {
    if (update !== null) {
      this.#state.stopAfter = update;
      return this.view();
    }
    this.#state.stopping = true;
    // What is in hand has to be finished, and the last policy evaluated.
    return this.paused ? this.resume() : this.view();
  }

  /** Judge calls of attempts that came back. */
  count(judgeCalls: number): void {
    this.#state.judgeCalls += judgeCalls;
  }

  /** Why the run ends before its config says; null while it does not. */
  ends(): string | null {
    const { budget, stopping, stopAfter, judgeCalls } = this.#state;
    if (stopping) return 'stopped as asked';
    if (budget.minutes !== null && this.#activeMs() >= budget.minutes * MINUTE) {
      return `the budget of ${budget.minutes} minutes is spent`;
    }
    if (budget.judgeCalls !== null && judgeCalls >= budget.judgeCalls) {
      return `the budget of ${budget.judgeCalls} judge calls is spent`;
    }
    const { updates } = this.#cursor;
    if (stopAfter !== null && updates >= stopAfter) return `stopped after update ${stopAfter} as asked`;
    if (budget.updates !== null && updates >= budget.updates) return `the budget of ${budget.updates} updates is spent`;
    return null;
  }

  /** The config as it is steered. For the order of stages only: rollouts and learning keep to the run's own. */
  config(): RunConfig {
    const { sft, learn, evaluation } = this.#config;
    const { updates, warmups } = this.#cursor;
    const every = this.#state.evaluationEvery ?? evaluation.every;
    const steered = { ...this.#config, evaluation: { ...evaluation, every } };
    if (this.ends() === null) return { ...steered, learn: { ...learn, updates: this.#updates() } };
    const steps = Math.min(sft.steps, this.#cursor.sftChunks * sft.chunk);
    return {
      ...steered,
      sft: { ...sft, steps },
      learn: { ...learn, warmup: Math.min(learn.warmup, warmups), updates },
    };
  }

  view(): ControlView {
    const { paused, budget, judgeCalls, evaluationEvery } = this.#state;
    return {
      paused,
      budget: { ...budget },
      used: { updates: this.#cursor.updates, minutes: this.#activeMs() / MINUTE, judgeCalls },
      evaluationEvery: evaluationEvery ?? this.#config.evaluation.every,
      updates: this.#updates(),
      ends: this.ends(),
    };
  }

  /** The state for the next continue-as-new. */
  carried(): ControlState {
    return { ...this.#state, activeMs: this.#activeMs() };
  }

  /** Updates the run will have done at its end, as things stand. */
  #updates(): number {
    const { budget, stopAfter } = this.#state;
    const planned = Math.min(budget.updates ?? this.#config.learn.updates, stopAfter ?? Infinity);
    return Math.max(planned, this.#cursor.updates);
  }

  #activeMs(): number {
    return this.#state.activeMs + (this.#since === null ? 0 : this.#now() - this.#since);
  }

  #checkRuns(): void {
    const { stage } = this.#cursor;
    if (stage === 'report' || stage === 'done') refuse('the run has ended: start another one, or branch from it');
  }
}

function refuse(sentence: string): never {
  throw new TapwrightError('invalid_input', sentence);
}
