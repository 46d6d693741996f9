import type { RunConfig } from '../configs/schema.ts';
import { progress } from './stages.ts';
import type { Cursor, RunStatus } from './types.ts';

/** What a run says of itself. Handlers read and drive it in one line each. */
export class RunState {
  readonly #config: RunConfig;
  readonly #cursor: Cursor;
  #shown: Omit<RunStatus, 'stage' | 'update' | 'of'>;
  #doing: RunStatus['stage'] | null = null;

  constructor(run: string, config: RunConfig, cursor: Cursor, last: RunStatus | null) {
    this.#config = config;
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
    const now = progress(this.#cursor, this.#config);
    return { ...this.#shown, ...now, stage: this.#doing ?? now.stage };
  }
}
