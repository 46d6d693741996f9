import { randomUUID } from 'node:crypto';
import { TapwrightError } from '../../domain/errors.ts';
import { span } from '../../domain/spans.ts';
import type { TensorOps } from '../tensor.ts';
import { adamStep } from './adam.ts';
import type { AdamParams, AdamState } from './adam.ts';
import { Conflict } from './checkpoints.ts';
import type { CheckpointKind, Checkpoints } from './checkpoints.ts';
import type { EngineDatum } from './datum.ts';
import { createLayout, initialWeights, parseModelName } from './layout.ts';
import type { Layout } from './layout.ts';
import type { LossSpec } from './losses.ts';
import type { Model } from './model.ts';
import type { LaneHelper } from './lane-helper.ts';
import { pass } from './trainer.ts';
import type { LaneWork, PassResult } from './trainer.ts';
import { uploadWeights } from './weights.ts';
import type { DeviceWeights } from './weights.ts';

/** A model being trained. Its work is done in the order in which it was asked for. */
export interface TrainingModel {
  readonly id: string;
  readonly session: string;
  readonly layout: Layout;
  pass(data: EngineDatum[], spec: LossSpec, backward: boolean): Promise<PassResult>;
  /** One Adam step on the accumulated gradients, which are then zero again. Metrics. */
  step(params: AdamParams): Promise<Record<string, number>>;
  save(kind: CheckpointKind, name: string): Promise<string>;
  /** Only as the model's first request. */
  load(path: string, optimizer: boolean): Promise<void>;
  /** Replies by key, so that a repeated request is the same request. */
  readonly seen: Map<string, unknown>;
  updates(): number;
  dispose(): void;
}

/** Makes training models that share one processor: passes of different models take turns by whole requests. */
export function createModelFactory(options: {
  ops: TensorOps;
  model: Model;
  checkpoints: Checkpoints;
  /** Does half of each training pass in another process. */
  helper?: LaneHelper | undefined;
}) {
  const { ops, model, checkpoints, helper } = options;
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T> | T): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => {});
    return result;
  };
  const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  return (session: string, baseModel: string, seed: number): TrainingModel => {
    const layout = createLayout(parseModelName(baseModel));
    const id = `model-${randomUUID()}`;
    let state: AdamState = {
      weights: initialWeights(layout, seed),
      m: new Float32Array(layout.size),
      v: new Float32Array(layout.size),
      step: 0,
    };
    const gradients = new Float64Array(layout.size);
    let device: DeviceWeights | null = null;
    let fresh = true;
    /** Counts changes of the weights. */
    let version = 0;
    let disposed = false;
    const use = (): void => {
      if (disposed) throw new TapwrightError('not_found', `model ${id} was unloaded: its session ended`);
    };
    const renew = (): void => {
      version += 1;
      device?.dispose();
      device = null;
    };
    return {
      id,
      session,
      layout,
      seen: new Map(),
      pass: (data, spec, backward) => {
        fresh = false;
        return inTurn(async () => {
          use();
          const weights = (device ??= span('train', () => uploadWeights(ops, layout, state.weights)));
          const elsewhere =
            helper && ((work: LaneWork) => helper.run(layout.config.name, `${id} ${version}`, state.weights, work));
          const into = backward ? gradients : null;
          return pass({ model, weights, data, spec, into, pause, ...(elsewhere && { helper: elsewhere }) });
        });
      },
      step: (params) => {
        fresh = false;
        return inTurn(() => {
          use();
          const norm = span('train', () => adamStep(state, gradients, params));
          gradients.fill(0);
          if (!Number.isFinite(norm)) {
            throw new TapwrightError('engine_refused', `the gradient of ${id} is not finite: no step was taken`);
          }
          renew();
          return { grad_norm: norm, step: state.step, learning_rate: params.learningRate };
        });
      },
      save: (kind, name) => {
        fresh = false;
        return inTurn(() => {
          use();
          return span('checkpoint', () => checkpoints.save(id, kind, name, layout, state));
        });
      },
      load: (path, optimizer) => {
        if (!fresh) {
          throw new TapwrightError(
            'invalid_input',
            `load_weights must be the first request of ${id}: create a new model`,
          );
        }
        fresh = false;
        return inTurn(() => {
          use();
          const found = checkpoints.load(path);
          if (found.layout.config.name !== layout.config.name) {
            throw new TapwrightError(
              'invalid_input',
              `${path} is a checkpoint of ${found.layout.config.name}, the model is ${layout.config.name}`,
            );
          }
          state = optimizer
            ? found.state
            : { ...found.state, m: new Float32Array(layout.size), v: new Float32Array(layout.size), step: 0 };
          renew();
        });
      },
      updates: () => state.step,
      dispose: () => {
        disposed = true;
        // After what is in turn now, which may use the weights.
        void inTurn(renew);
      },
    };
  };
}

export { Conflict };
