import type { RunControl } from './run-control.ts';
import { progress } from './stages.ts';
import type { Cursor, RunStatus } from './types.ts';

/** What a run says of itself. Handlers read and drive it in one line each. */
export class RunState {
  readonly #control: RunControl;
  readonly #cursor: Cursor;
  #shown: Omit<RunStatus, 'stage' | 'update' | 'of'>;
  #doing: RunStatus['stage'] | null = null;

  constructor(run: string, control: RunControl, cursor: Cursor, last: RunStatus | null) {
    this.#control = control;
    this.#cursor = cursor;
    this.#shown = {
      run,
      success: last?.success ?? null,
      masked: last?.masked ?? null,
      lastMetrics: last?.lastMetrics ?? null,
      evaluations: cursor.evaluations,
      report: last?.report ?? null,
      digest: last?.digest ?? null,
    };
  }

  tell(change: Partial<RunStatus>): void {
    this.#shown = { ...this.#shown, ...change };
  }

  /** Shows `stage` while the work lasts. */
  async during<T>(stage: RunStatus['stage'], work: () => Promise<T>): Promise<T> {
    this.#doing = stage;
    try {
      return await work();
    } finally {
      this.#doing = null;
    }
  }

  status(): RunStatus {
    const now = progress(this.#cursor, this.#control.config());
    return { ...this.#shown, ...now, stage: this.#doing ?? now.stage, control: this.#control.view() };
  }
}
