import { TapwrightError } from '../../domain/errors.ts';
import { loadTensor } from '../tensor.ts';
import { createLayout, parseModelName } from './layout.ts';
import { createModel } from './model.ts';
import { runLane } from './trainer.ts';
import type { LaneResult, LaneWork } from './trainer.ts';
import { uploadWeights } from './weights.ts';
import type { DeviceWeights } from './weights.ts';

/** What the engine asks of its training helper. */
export interface LaneRequest {
  id: number;
  baseModel: string;
  /** Which weights; they come along when the helper has not seen them. */
  version: string;
  weights: Float32Array | null;
  work: LaneWork;
}
export type LaneReply = { id: number; result: LaneResult } | { id: number; error: string };

/**
 * A process of its own that does one lane of each training pass: `lane-worker.ts BACKEND THREADS`, forked by the engine,
 * one request at a time over the channel between them. It ends when the engine does.
 */
async function main(): Promise<void> {
  const [backend, threads] = process.argv.slice(2);
  const ops = await loadTensor({ backend: backend as 'auto' | 'native' | 'wasm', threads: Number(threads) });
  const model = createModel(ops);
  let held: { version: string; weights: DeviceWeights } | null = null;
  const answer = async ({ id, baseModel, version, weights, work }: LaneRequest): Promise<LaneReply> => {
    if (held?.version !== version) {
      if (weights === null)
        throw new TapwrightError('internal', `the training helper does not hold weights ${version}`);
      held?.weights.dispose();
      held = { version, weights: uploadWeights(ops, createLayout(parseModelName(baseModel)), weights) };
    }
    return { id, result: await runLane({ model, weights: held.weights, pause: () => Promise.resolve(), ...work }) };
  };
  process.on('message', (request: LaneRequest) => {
    void answer(request)
      .catch((error: unknown): LaneReply => ({ id: request.id, error: String(error) }))
      .then((reply) => process.send!(reply));
  });
  process.on('disconnect', () => process.exit(0));
  process.send!({ ready: true });
}

main().catch((error: unknown) => {
  process.stderr.write(`training helper: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
