import { TapwrightError } from '../domain/errors.ts';

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
