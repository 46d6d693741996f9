import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TapwrightError } from '../../domain/errors.ts';
import type { AdamState } from './adam.ts';
import { createLayout, parseModelName } from './layout.ts';
import type { Layout } from './layout.ts';
import { encodeSafetensors, readSafetensors, writeAtomically } from './safetensors.ts';
import type { StoredTensor } from './safetensors.ts';

export type CheckpointKind = 'weights' | 'sampler_weights';

export interface LoadedCheckpoint {
  layout: Layout;
  /** Moments are zeros in a sampler checkpoint. */
  state: AdamState;
}

export interface Checkpoints {
  /** Writes a checkpoint and returns its `tinker://` path; throws `exists` as a conflict when the name is taken. */
  save(model: string, kind: CheckpointKind, name: string, layout: Layout, state: AdamState): string;
  /** Reads `tinker://model/kind/name`, of this server process or an earlier one. */
  load(path: string): LoadedCheckpoint;
}

/** A request that contradicts what is there: HTTP 409. */
export class Conflict extends Error {}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const PATH =
  /^tinker:\/\/([A-Za-z0-9_][A-Za-z0-9._-]{0,127})\/(weights|sampler_weights)\/([A-Za-z0-9_][A-Za-z0-9._-]{0,127})$/;

/** Checkpoints as safetensors files under one folder: `<model>/<kind>/<name>.safetensors`. */
export function createCheckpoints(options: { dir: string }): Checkpoints {
  const file = (model: string, kind: string, name: string): string =>
    join(options.dir, model, kind, `${name}.safetensors`);
  return {
    save: (model, kind, name, layout, state) => {
      if (!NAME.test(name)) {
        throw new TapwrightError(
          'invalid_input',
          `checkpoint name ${JSON.stringify(name)} must be 1-128 letters, digits, dots, dashes or underscores`,
        );
      }
      const path = file(model, kind, name);
      if (existsSync(path)) throw new Conflict(`checkpoint ${name} of ${model} exists already: choose another name`);
      const tensors = new Map<string, StoredTensor>();
      const put = (prefix: string, values: Float32Array): void => {
        for (const p of layout.parameters) {
          tensors.set(prefix + p.name, { shape: p.shape, data: values.subarray(p.offset, p.offset + p.size) });
        }
      };
      put('', state.weights);
      if (kind === 'weights') {
        put('adam.m/', state.m);
        put('adam.v/', state.v);
      }
      const metadata = { base_model: layout.config.name, kind, step: String(state.step) };
      writeAtomically(path, encodeSafetensors({ tensors, metadata }));
      return `tinker://${model}/${kind}/${name}`;
    },
    load: (path) => {
      const match = PATH.exec(path);
      if (match === null) {
        throw new TapwrightError(
          'invalid_input',
          `${JSON.stringify(path)} is no checkpoint path: expected tinker://<model>/weights|sampler_weights/<name>`,
        );
      }
      const where = file(match[1]!, match[2]!, match[3]!);
      const { tensors, metadata } = readSafetensors(where);
      const layout = createLayout(parseModelName(metadata['base_model'] ?? ''));
      const take = (prefix: string): Float32Array => {
        const values = new Float32Array(layout.size);
        for (const p of layout.parameters) {
          const stored = tensors.get(prefix + p.name);
          if (stored === undefined || stored.shape.join() !== p.shape.join()) {
            throw new TapwrightError(
              'corrupt_checkpoint',
              `${where}: tensor ${prefix}${p.name} of shape ${p.shape.join(' x ')} is missing`,
            );
          }
          values.set(stored.data, p.offset);
        }
        return values;
      };
      const full = match[2] === 'weights';
      const none = (): Float32Array => new Float32Array(layout.size);
      const state = {
        weights: take(''),
        m: full ? take('adam.m/') : none(),
        v: full ? take('adam.v/') : none(),
        step: full ? Number(metadata['step'] ?? 0) : 0,
      };
      return { layout, state };
    },
  };
}
