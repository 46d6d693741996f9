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
  const halves = halvesOf(group, mask);
  return group.map((trajectory, i) => trajectory.map((_, t) => (mask[i] === 0 ? null : nearest(halves, mask, i, t))));
}

/** What the siblings of an attempt got from states like one of its own. */
export interface SiblingReturns {
  /** Mean return of all sibling states at the smallest distance. */
  mean: number;
  /** How many they are. */
  count: number;
  /** Differing hash bits, 0..64. */
  distance: number;
  /** Mean return of the siblings' first states: what the task is worth to them. */
  start: number;
}

/**
 * As `nearestSiblings`, without a choice among those that are equally near: early states are shared by all siblings, and one
 * of their returns alone is mostly noise (NFP). Nothing of the own trajectory enters.
 */
export function siblingReturns(
  group: { hash: bigint; ret: number }[][],
  mask: Uint8Array,
): (SiblingReturns | null)[][] {
  const halves = halvesOf(group, mask);
  return group.map((trajectory, i) => {
    if (mask[i] === 0) return trajectory.map(() => null);
    let [sum, n] = [0, 0];
    group.forEach((other, j) => {
      if (j === i || mask[j] === 0 || other.length === 0) return;
      sum += other[0]!.ret;
      n += 1;
    });
    return trajectory.map((_, t) => {
      let found: { sum: number; count: number; distance: number } | null = null;
      eachSibling(halves, mask, i, t, (j, u, distance) => {
        const { ret } = group[j]![u]!;
        if (found === null || distance < found.distance) found = { sum: ret, count: 1, distance };
        else if (distance === found.distance) {
          found.sum += ret;
          found.count += 1;
        }
      });
      if (found === null) return null;
      const { sum: total, count, distance } = found as { sum: number; count: number; distance: number };
      return { mean: total / count, count, distance, start: sum / n };
    });
  });
}

/** The hashes as two 32-bit words a state; of a masked trajectory nothing is read. */
function halvesOf(group: { hash: bigint }[][], mask: Uint8Array): Int32Array[] {
  return group.map((trajectory, i) => {
    const words = new Int32Array(2 * trajectory.length);
    if (mask[i] !== 0) {
      trajectory.forEach(({ hash }, t) => {
        words[2 * t] = Number((hash >> 32n) & 0xffffffffn);
        words[2 * t + 1] = Number(hash & 0xffffffffn);
      });
    }
    return words;
  });
}

/** All unmasked states of siblings of (i, t), with their distance to it; in order of trajectory and step. */
function eachSibling(
  halves: Int32Array[],
  mask: Uint8Array,
  i: number,
  t: number,
  visit: (j: number, u: number, distance: number) => void,
): void {
  const high = halves[i]![2 * t]!;
  const low = halves[i]![2 * t + 1]!;
  for (let j = 0; j < halves.length; j++) {
    if (j === i || mask[j] === 0) continue;
    const words = halves[j]!;
    for (let u = 0; 2 * u < words.length; u++) {
      visit(j, u, popcount32(high ^ words[2 * u]!) + popcount32(low ^ words[2 * u + 1]!));
    }
  }
}

function nearest(halves: Int32Array[], mask: Uint8Array, i: number, t: number): Neighbour | null {
  let distance = 65;
  let trajectory = -1;
  let step = -1;
  eachSibling(halves, mask, i, t, (j, u, d) => {
    if (d < distance) [distance, trajectory, step] = [d, j, u];
  });
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
