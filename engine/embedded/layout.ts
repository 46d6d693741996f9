import { TapwrightError } from '../../domain/errors.ts';
import { createRandom } from '../../rl/random.ts';

/** Sizes of a planner model. `copy` adds a pointer head over the prompt's tokens. */
export interface ModelConfig {
  name: string;
  width: number;
  layers: number;
  heads: number;
  vocab: number;
  copy: boolean;
}

export interface Parameter {
  name: string;
  shape: number[];
  offset: number;
  size: number;
  /** Standard deviation of the initial values; null: ones, 0: zeros. */
  std: number | null;
}

/** Where each parameter lies in one flat array. */
export interface Layout {
  config: ModelConfig;
  parameters: Parameter[];
  size: number;
}

/** Width of the pointer head's queries and keys. */
export const COPY_WIDTH = 32;

/**
 * Reads a base model's name, `tapwright-d64-l2-h4-v512` with an optional `-copy`: width, layers, heads, vocabulary.
 * Heads default to 4 and the vocabulary to 512. Throws invalid_input with a sentence for anything else.
 */
export function parseModelName(name: string): ModelConfig {
  const match = /^tapwright-d(\d+)-l(\d+)(?:-h(\d+))?(?:-v(\d+))?(-copy)?$/.exec(name);
  if (match === null) {
    throw new TapwrightError(
      'invalid_input',
      `unknown base model "${name}": expected tapwright-d<width>-l<layers>[-h<heads>][-v<vocabulary>][-copy], e.g. tapwright-d64-l2-h4-v512`,
    );
  }
  const [width, layers] = [Number(match[1]), Number(match[2])];
  const [heads, vocab] = [Number(match[3] ?? 4), Number(match[4] ?? 512)];
  const ranges: [string, number, number, number][] = [
    ['width', width, 8, 1024],
    ['layers', layers, 1, 24],
    ['heads', heads, 1, 64],
    ['vocabulary', vocab, 2, 65536],
  ];
  for (const [what, value, low, high] of ranges) {
    if (value < low || value > high) {
      throw new TapwrightError('invalid_input', `base model "${name}": ${what} ${value} is not in ${low}..${high}`);
    }
  }
  if (width % (4 * heads) !== 0) {
    throw new TapwrightError(
      'invalid_input',
      `base model "${name}": the width must be a multiple of four times the heads`,
    );
  }
  return { name, width, layers, heads, vocab, copy: match[5] !== undefined };
}

/** The parameters of a model in their order. Gains before linear maps would be redundant: only the last norm has one. */
export function createLayout(config: ModelConfig): Layout {
  const { width: d, layers, vocab, copy } = config;
  const parameters: Parameter[] = [];
  let size = 0;
  const add = (name: string, shape: number[], std: number | null): void => {
    const count = shape.reduce((a, b) => a * b, 1);
    parameters.push({ name, shape, offset: size, size: count, std });
    size += count;
  };
  const unit = 1 / Math.sqrt(d);
  add('embed', [vocab, d], 0.35 * unit);
  add('shift', [d, d], 0.7 * unit);
  for (let i = 0; i < layers; i++) {
    for (const name of ['wq', 'wk', 'wv']) add(`layers.${i}.${name}`, [d, d], unit);
    add(`layers.${i}.wo`, [d, d], (0.3 * unit) / Math.sqrt(layers));
    add(`layers.${i}.w1`, [d, 4 * d], unit);
    add(`layers.${i}.w2`, [4 * d, d], (0.15 * unit) / Math.sqrt(layers));
  }
  add('gain', [d], null);
  if (copy) {
    add('copy.query', [d, COPY_WIDTH], unit);
    add('copy.key', [d, COPY_WIDTH], unit);
    add('copy.gate', [d, 1], 0);
  }
  return { config, parameters, size };
}

/** Freshly initialised weights, a pure function of layout and seed. */
export function initialWeights(layout: Layout, seed: number): Float32Array {
  const values = new Float32Array(layout.size);
  for (const p of layout.parameters) {
    const random = createRandom(seed, 'init', p.name);
    for (let i = 0; i < p.size; i++) {
      values[p.offset + i] = p.std === null ? 1 : p.std === 0 ? 0 : p.std * random.normal();
    }
  }
  return values;
}

/** One parameter's slice of a flat array (a view). */
export function view<T extends Float32Array | Float64Array>(layout: Layout, values: T, name: string): T {
  const p = layout.parameters.find((each) => each.name === name);
  if (p === undefined) throw new TapwrightError('internal', `no parameter ${name} in ${layout.config.name}`);
  return values.subarray(p.offset, p.offset + p.size) as T;
}
