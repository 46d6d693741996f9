import { TapwrightError } from '../domain/errors.ts';

/** Weights and Adam's moments of the critic. */
export interface CriticState {
  weights: Float32Array;
  m: Float32Array;
  v: Float32Array;
  step: number;
}

const BETA1 = 0.9;
const BETA2 = 0.999;
const EPSILON = 1e-8;

/** One Adam step with bias correction, in place; returns the gradient's norm. A gradient that is not finite is refused. */
export function criticStep(state: CriticState, gradient: Float32Array, learningRate: number): number {
  let squares = 0;
  for (const g of gradient) squares += g * g;
  if (!Number.isFinite(squares)) {
    throw new TapwrightError(
      'internal',
      'the gradient of the critic is not finite: a feature or a return is not either',
    );
  }
  const { weights, m, v } = state;
  state.step += 1;
  const first = 1 - BETA1 ** state.step;
  const second = 1 - BETA2 ** state.step;
  for (let k = 0; k < weights.length; k++) {
    const g = gradient[k]!;
    m[k] = BETA1 * m[k]! + (1 - BETA1) * g;
    v[k] = BETA2 * v[k]! + (1 - BETA2) * g * g;
    weights[k]! -= (learningRate * (m[k]! / first)) / (Math.sqrt(v[k]! / second) + EPSILON);
  }
  return Math.sqrt(squares);
}

const PARTS = ['weights', 'm', 'v'] as const;

/** Safetensors: an 8-byte length, a JSON header with the layer sizes and Adam's step, then float32s. */
export function writeState(state: CriticState, sizes: readonly number[]): Uint8Array {
  const n = state.weights.length;
  const header: Record<string, unknown> = { __metadata__: { sizes: sizes.join(','), step: String(state.step) } };
  PARTS.forEach((part, i) => {
    header[part] = { dtype: 'F32', shape: [n], data_offsets: [4 * n * i, 4 * n * (i + 1)] };
  });
  const text = JSON.stringify(header);
  const head = Buffer.from(text.padEnd(8 * Math.ceil(text.length / 8)), 'utf8');
  const bytes = Buffer.alloc(8 + head.length + 12 * n);
  bytes.writeBigUInt64LE(BigInt(head.length), 0);
  head.copy(bytes, 8);
  PARTS.forEach((part, i) => {
    state[part].forEach((x, k) => bytes.writeFloatLE(x, 8 + head.length + 4 * (n * i + k)));
  });
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** The state behind such bytes. Errors: `corrupt_checkpoint` for other bytes, or a network of other sizes. */
export function readState(bytes: Uint8Array, sizes: readonly number[]): CriticState {
  const corrupt = (what: string): TapwrightError => new TapwrightError('corrupt_checkpoint', `critic state: ${what}`);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = buffer.length < 8 ? Infinity : Number(buffer.readBigUInt64LE(0));
  if (8 + length > buffer.length) throw corrupt(`${buffer.length} bytes are too few, the file was cut short`);
  let metadata: { sizes?: string; step?: string } | undefined;
  try {
    const header = JSON.parse(buffer.toString('utf8', 8, 8 + length)) as { __metadata__?: typeof metadata };
    metadata = header.__metadata__;
  } catch (error) {
    throw new TapwrightError('corrupt_checkpoint', 'critic state: its header is not JSON', { cause: error });
  }
  if (metadata?.sizes !== sizes.join(',')) {
    throw corrupt(`it is of layers ${String(metadata?.sizes)}, the config asks for ${sizes.join(',')}`);
  }
  let n = 0;
  for (let l = 1; l < sizes.length; l++) n += sizes[l]! * (sizes[l - 1]! + 1);
  if (buffer.length !== 8 + length + 12 * n) throw corrupt(`${buffer.length} bytes are not those of its header`);
  const [weights, m, v] = PARTS.map((_, i) => {
    const part = new Float32Array(n);
    for (let k = 0; k < n; k++) part[k] = buffer.readFloatLE(8 + length + 4 * (n * i + k));
    return part;
  });
  return { weights: weights!, m: m!, v: v!, step: Number(metadata.step) };
}
