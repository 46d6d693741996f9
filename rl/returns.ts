/**
 * Two-channel return (algorithms.md, 3): dense rewards are discounted inside their own stream, the terminal reward is
 * added whole to every step. D[t] = d[t] + gamma D[t+1], D[T] = 0; R[t] = D[t] + Z.
 *
 * @param dense reward of each step, (T)
 * @param terminal Z, the reward of the attempt
 * @returns `dense` D and `total` R, both (T). With the default rewards R lies in (-5, 4).
 */
export function twoChannelReturns(
  dense: number[],
  terminal: number,
  gammaDense = 0.5,
): { dense: number[]; total: number[] } {
  const out = new Array<number>(dense.length).fill(0);
  let next = 0;
  for (let t = dense.length - 1; t >= 0; t--) {
    next = dense[t]! + gammaDense * next;
    out[t] = next;
  }
  return { dense: out, total: out.map((d) => d + terminal) };
}
