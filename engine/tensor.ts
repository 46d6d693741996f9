import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type * as TF from '@tensorflow/tfjs';
import { TapwrightError } from '../domain/errors.ts';

/**
 * The only file that knows tfjs. Twenty operations, each tested against a float64 reference on every backend present:
 * what is not here is not used, because several tfjs kernels are wrong or slow on one backend or the other
 * (fused matmul with bias and clipByValue on wasm, step and the transposed matmul).
 */
export type Tensor = TF.Tensor;
export type Backend = 'native' | 'wasm';

export interface TensorOps {
  readonly backend: Backend;
  /** Float32 tensor of that shape; the data is copied. */
  tensor(data: Float32Array, shape: number[]): Tensor;
  /** The values, a copy. Call it outside `scope`: a tidy that returns a typed array walks it element by element. */
  read(t: Tensor): Float32Array;
  /** Matrix product over the last two dimensions; `ta`, `tb` transpose those of a or b. Ranks must be equal. */
  matmul(a: Tensor, b: Tensor, ta?: boolean, tb?: boolean): Tensor;
  add(a: Tensor, b: Tensor): Tensor;
  sub(a: Tensor, b: Tensor): Tensor;
  mul(a: Tensor, b: Tensor): Tensor;
  /** Times a number. */
  scale(a: Tensor, by: number): Tensor;
  relu(a: Tensor): Tensor;
  square(a: Tensor): Tensor;
  rsqrt(a: Tensor): Tensor;
  exp(a: Tensor): Tensor;
  tanh(a: Tensor): Tensor;
  /** Elementwise larger and smaller: together a clip that keeps NaN. */
  maximum(a: Tensor, b: Tensor): Tensor;
  minimum(a: Tensor, b: Tensor): Tensor;
  /** Softmax over the last dimension. */
  softmax(a: Tensor): Tensor;
  /** Sum over one dimension, which stays with size 1. */
  sum(a: Tensor, axis: number): Tensor;
  transpose(a: Tensor, perm: number[]): Tensor;
  reshape(a: Tensor, shape: number[]): Tensor;
  slice(a: Tensor, begin: number[], size: number[]): Tensor;
  concat(parts: Tensor[], axis: number): Tensor;
  /** Rows of a by index along dimension 0. No gradient on wasm. */
  gather(a: Tensor, indices: Int32Array): Tensor;
  /** Frees everything made inside except what is returned or kept. */
  scope<T>(work: () => T): T;
  keep<T extends Tensor>(t: T): T;
  dispose(...tensors: (Tensor | null | undefined)[]): void;
  /** Live tensors: constant from step to step. */
  count(): number;
  /** Value and gradients of a scalar function by tape: for tests and small models. */
  gradients(work: (inputs: Tensor[]) => Tensor, inputs: Tensor[]): { value: Tensor; grads: Tensor[] };
}

export interface TensorOptions {
  backend?: 'auto' | Backend;
  /** Threads inside one operation; small operations want 1. */
  threads?: number;
  /** Told once, when `auto` falls back to wasm. */
  log?: (line: string) => void;
}

const require = createRequire(import.meta.url);
let loaded: Promise<TensorOps> | null = null;
let loadedAs = '';

/**
 * Loads tfjs once per process and returns the operations. `auto` takes the native addon when it loads, else wasm with one
 * line that says so. A second call with another wish fails: there is one tensor context per process.
 */
export function loadTensor(options: TensorOptions = {}): Promise<TensorOps> {
  const { backend = 'auto', threads = 1, log = () => {} } = options;
  const wish = `${backend}, ${threads} threads`;
  if (loaded !== null && loadedAs !== wish) {
    throw new TapwrightError('internal', `tensors are loaded as ${loadedAs}; one context per process, not ${wish} too`);
  }
  loadedAs = wish;
  loaded ??= load(backend, threads, log);
  return loaded;
}

async function load(wish: 'auto' | Backend, threads: number, log: (line: string) => void): Promise<TensorOps> {
  // Read by the library when it loads. The oneDNN flag decides bits, so it is fixed.
  process.env['TF_ENABLE_ONEDNN_OPTS'] = '1';
  process.env['TF_NUM_INTRAOP_THREADS'] = String(threads);
  process.env['TF_NUM_INTEROP_THREADS'] = '1';
  process.env['OMP_NUM_THREADS'] = String(threads);
  process.env['TF_CPP_MIN_LOG_LEVEL'] ??= '3';
  if (wish !== 'wasm') {
    const { tf, reason } = loadNative();
    if (tf !== null) {
      await tf.setBackend('tensorflow');
      return createOps(tf, 'native');
    }
    if (wish === 'native') {
      throw new TapwrightError(
        'engine_refused',
        `${reason}: run \`npm run setup -- --only tfjs\`, or use backend auto`,
      );
    }
    log(`tensors: the slower wasm backend serves: ${reason}; \`npm run setup -- --only tfjs\` builds the native one`);
  }
  return createOps(await loadWasm(threads), 'wasm');
}

/** Three things can be wrong: the package is not installed, its addon is not built, the library does not load. */
function loadNative(): { tf: typeof TF | null; reason: string } {
  let folder: string;
  try {
    folder = dirname(require.resolve('@tensorflow/tfjs-node-gpu/package.json'));
  } catch {
    return { tf: null, reason: 'the package @tensorflow/tfjs-node-gpu is not installed' };
  }
  if (!existsSync(join(folder, 'lib', 'napi-v8', 'tfjs_binding.node'))) {
    return { tf: null, reason: 'the native tensor addon is not built' };
  }
  try {
    return { tf: quietly(() => require('@tensorflow/tfjs-node-gpu') as typeof TF), reason: '' };
  } catch (error) {
    const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return { tf: null, reason: `the native tensor library does not load (${message})` };
  }
}

async function loadWasm(threads: number): Promise<typeof TF> {
  const tf = quietly(() => require('@tensorflow/tfjs') as typeof TF);
  const wasm = require('@tensorflow/tfjs-backend-wasm') as {
    setWasmPaths(prefix: string): void;
    setThreadsCount(n: number): void;
  };
  wasm.setWasmPaths(join(dirname(require.resolve('@tensorflow/tfjs-backend-wasm')), '/'));
  wasm.setThreadsCount(threads);
  await tf.setBackend('wasm');
  await tf.ready();
  return tf;
}

/** tfjs greets on the console when it is loaded in Node; stdout carries our protocol. */
function quietly<T>(work: () => T): T {
  const { log, warn } = console;
  console.log = console.warn = () => {};
  try {
    return work();
  } finally {
    Object.assign(console, { log, warn });
  }
}

function createOps(tf: typeof TF, backend: Backend): TensorOps {
  tf.env().set('PROD', true);
  const flip = (a: Tensor): Tensor => {
    const perm = a.shape.map((_, i) => i);
    [perm[perm.length - 1], perm[perm.length - 2]] = [perm.length - 2, perm.length - 1];
    return tf.transpose(a, perm);
  };
  // On wasm a matmul with a transposed operand is 7-10 times slower than transposing first.
  const wasmMatmul = (a: Tensor, b: Tensor, ta = false, tb = false): Tensor =>
    tf.tidy(() => tf.matMul(ta ? flip(a) : a, tb ? flip(b) : b));
  return {
    backend,
    tensor: (data, shape) => tf.tensor(data, shape, 'float32'),
    read: (t) => {
      const values = t.dataSync() as Float32Array;
      // wasm hands out a view of its memory, which the next operation may move.
      return backend === 'wasm' ? values.slice() : values;
    },
    matmul: backend === 'wasm' ? wasmMatmul : (a, b, ta = false, tb = false) => tf.matMul(a, b, ta, tb),
    add: (a, b) => tf.add(a, b),
    sub: (a, b) => tf.sub(a, b),
    mul: (a, b) => tf.mul(a, b),
    scale: (a, by) => tf.mul(a, by),
    relu: (a) => tf.relu(a),
    square: (a) => tf.square(a),
    rsqrt: (a) => tf.rsqrt(a),
    exp: (a) => tf.exp(a),
    tanh: (a) => tf.tanh(a),
    maximum: (a, b) => tf.maximum(a, b),
    minimum: (a, b) => tf.minimum(a, b),
    softmax: (a) => tf.softmax(a),
    sum: (a, axis) => tf.sum(a, axis, true),
    transpose: (a, perm) => tf.transpose(a, perm),
    reshape: (a, shape) => tf.reshape(a, shape),
    slice: (a, begin, size) => tf.slice(a, begin, size),
    concat: (parts, axis) => (parts.length === 1 ? tf.clone(parts[0]!) : tf.concat(parts, axis)),
    gather: (a, indices) => tf.tidy(() => tf.gather(a, tf.tensor1d(indices, 'int32'))),
    scope: (work) => tf.tidy(work as () => TF.TensorContainer) as ReturnType<typeof work>,
    keep: (t) => tf.keep(t),
    dispose: (...tensors) => {
      for (const t of tensors) t?.dispose();
    },
    count: () => tf.memory().numTensors,
    gradients: (work, inputs) => {
      const { value, grads } = tf.valueAndGrads((...xs: Tensor[]) => work(xs) as TF.Scalar)(inputs);
      return { value, grads };
    },
  };
}
