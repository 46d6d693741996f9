import { TapwrightError } from '../domain/errors.ts';
import type { SiblingReturns } from '../rl/neighbours.ts';

/** The nearest sibling state of a row (algorithms.md, 10). */
export interface NeighbourOfRow {
  /** Its row. */
  row: number;
  /** Its return R(j, u). */
  ret: number;
  /** Differing hash bits, 0..64. */
  distance: number;
}

export interface CriticFeatures {
  /** (rows, width), row-major. */
  data: Float32Array;
  rows: number;
  width: number;
  /** Widths of the hidden states at the start of a row: what `createCritic` normalises. */
  normalise: number[];
}

/**
 * Input of the critic. Plain PPO (`neighbours` null): the own hidden state before the response. GiGPPO: own hidden state,
 * the nearest sibling's, its return / 4, distance / 64, has_neighbour; zeros where there is none. The own return is not
 * an argument: it can never enter (algorithms.md, 7 and 10).
 *
 * @param hidden by row, all of one length
 */
export function criticFeatures(
  hidden: readonly Float32Array[],
  neighbours: readonly (NeighbourOfRow | null)[] | null,
): CriticFeatures {
  const size = hidden[0]?.length ?? 0;
  const odd = hidden.findIndex((state) => state.length !== size);
  if (odd >= 0) {
    throw new TapwrightError('invalid_input', `hidden state ${odd} has ${hidden[odd]!.length} numbers, others ${size}`);
  }
  const width = neighbours === null ? size : 2 * size + 3;
  const data = new Float32Array(hidden.length * width);
  hidden.forEach((state, row) => {
    data.set(state, row * width);
    const neighbour = neighbours?.[row] ?? null;
    if (neighbour === null) return;
    data.set(hidden[neighbour.row]!, row * width + size);
    data.set([neighbour.ret / 4, neighbour.distance / 64, 1], row * width + 2 * size);
  });
  return { data, rows: hidden.length, width, normalise: neighbours === null ? [size] : [size, size] };
}

/** Counts above this say no more. */
const MANY = 8;

/**
 * Input of a critic that is told what all equally near sibling states got (NFP, rl/neighbours.ts): the own hidden state, their
 * mean return, that of the siblings' first states, how many they are / 8, distance / 64, has_siblings; zeros where there are
 * none. Their hidden states are left out: at distance 0 they say what the own one says.
 *
 * @param hidden by row, all of one length
 */
export function siblingFeatures(
  hidden: readonly Float32Array[],
  siblings: readonly (SiblingReturns | null)[],
): CriticFeatures {
  const own = criticFeatures(hidden, null);
  const size = own.width;
  const width = size + 5;
  const data = new Float32Array(hidden.length * width);
  for (let row = 0; row < hidden.length; row++) {
    data.set(own.data.subarray(row * size, (row + 1) * size), row * width);
    const found = siblings[row];
    if (!found) continue;
    const { mean, start, count, distance } = found;
    data.set([mean, start, Math.min(count, MANY) / MANY, distance / 64, 1], row * width + size);
  }
  return { ...own, data, width };
}
