import { popcount32 } from './hash.ts';

/** The nearest state of a sibling attempt, which informs the critic (algorithms.md, 10). */

export interface Neighbour {
  trajectory: number;
  step: number;
  /** Differing hash bits, 0..64. */
  distance: number;
}

/**
 * For every unmasked state (i, t) the unmasked state (j, u), j != i, of the same task draw with the smallest Hamming
 * distance; ties go to the lowest j, then the lowest u. Several states may share a neighbour. Null: there is none, or the
 * state itself is masked.
 *
 * @param group trajectories of one task draw, each a list of states (screen hash, return of the state)
 * @param mask one entry a trajectory; what a masked one holds never matters
 * @returns the shape of `group`
 */
export function nearestSiblings(
  group: { hash: bigint; ret: number }[][],
  mask: Uint8Array,
): ({ trajectory: number; step: number; distance: number } | null)[][] {
  const halves = group.map((trajectory, i) => {
    const words = new Int32Array(2 * trajectory.length);
    if (mask[i] !== 0) {
      trajectory.forEach(({ hash }, t) => {
        words[2 * t] = Number((hash >> 32n) & 0xffffffffn);
        words[2 * t + 1] = Number(hash & 0xffffffffn);
      });
    }
    return words;
  });
  return group.map((trajectory, i) => trajectory.map((_, t) => (mask[i] === 0 ? null : nearest(halves, mask, i, t))));
}

function nearest(halves: Int32Array[], mask: Uint8Array, i: number, t: number): Neighbour | null {
  const high = halves[i]![2 * t]!;
  const low = halves[i]![2 * t + 1]!;
  let distance = 65;
  let trajectory = -1;
  let step = -1;
  for (let j = 0; j < halves.length; j++) {
    if (j === i || mask[j] === 0) continue;
    const words = halves[j]!;
    for (let u = 0; 2 * u < words.length; u++) {
      const d = popcount32(high ^ words[2 * u]!) + popcount32(low ^ words[2 * u + 1]!);
      if (d < distance) {
        distance = d;
        trajectory = j;
        step = u;
      }
    }
  }
  return trajectory < 0 ? null : { trajectory, step, distance };
}

/**
 * The numbers the critic sees of a neighbour besides its hidden state: [R(j, u) / 4, distance / 64, has_neighbour];
 * zeros without one. Nothing of the own trajectory enters.
 */
export function neighbourScalars(
  group: { ret: number }[][],
  neighbour: Neighbour | null,
): [ret: number, distance: number, has: number] {
  if (!neighbour) return [0, 0, 0];
  return [group[neighbour.trajectory]![neighbour.step]!.ret / 4, neighbour.distance / 64, 1];
}
