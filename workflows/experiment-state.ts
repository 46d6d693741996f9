import type { ExperimentStatus, ExperimentUnit, UnitState } from './types.ts';

/** Which runs of an experiment are to be made, and how each stands. Free of Temporal; plain data in and out. */
export class ExperimentState {
  #units: readonly ExperimentUnit[];
  readonly #states: Map<string, UnitState>;

  constructor(units: readonly ExperimentUnit[], states: Record<string, UnitState> = {}) {
    this.#units = units;
    this.#states = new Map(Object.entries(states));
  }

  /** From now on these are wanted: new ones are added, those that are no longer wanted and wait are left out. */
  want(units: readonly ExperimentUnit[]): void {
    const begun = this.#units.filter(({ run }) => this.#stateOf(run) !== 'waiting');
    this.#units = [...begun, ...units.filter(({ run }) => !begun.some((unit) => unit.run === run))];
  }

  /** The next unit that may begin, marked as running; null when none may now. */
  take(): ExperimentUnit | null {
    const unit = this.#ready();
    if (unit === undefined) return null;
    this.#states.set(unit.run, { state: 'running' });
    return unit;
  }

  /** True when a unit may begin now. */
  get ready(): boolean {
    return this.#ready() !== undefined;
  }

  /** True when none may begin, now or after what is running. */
  get over(): boolean {
    return !this.#units.some((unit) => this.#stateOf(unit.run) === 'running') && !this.ready;
  }

  done(run: string): void {
    this.#states.set(run, { state: 'done' });
  }

  /** Whatever begins with its policy cannot be made either. */
  failed(run: string, why: string): void {
    this.#states.set(run, { state: 'failed', why });
    for (const unit of this.#units) {
      if (unit.from === run) this.failed(unit.run, `the run ${run} that it begins with has failed`);
    }
  }

  view(experiment: string): ExperimentStatus {
    const units = this.#units.map(({ run }) => ({ run, ...(this.#states.get(run) ?? { state: 'waiting' as const }) }));
    return { experiment, units };
  }

  /** For the next continue-as-new. */
  carried(): { units: ExperimentUnit[]; states: Record<string, UnitState> } {
    return { units: [...this.#units], states: Object.fromEntries(this.#states) };
  }

  #stateOf(run: string): UnitState['state'] {
    return this.#states.get(run)?.state ?? 'waiting';
  }

  #ready(): ExperimentUnit | undefined {
    // A warm start that is not among the wanted ones was made before.
    const made = (from: string | null): boolean =>
      from === null || !this.#units.some(({ run }) => run === from) || this.#stateOf(from) === 'done';
    return this.#units.find(({ run, from }) => this.#stateOf(run) === 'waiting' && made(from));
  }
}
