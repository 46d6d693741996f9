import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hamming } from './hash.ts';
import { nearestSiblings, neighbourScalars, siblingReturns } from './neighbours.ts';
import { createRandom } from './random.ts';

type State = { hash: bigint; ret: number };
const states = (hashes: string[], rets: number[]): State[] =>
  hashes.map((hex, t) => ({ hash: BigInt(`0x${hex}`), ret: rets[t]! }));

const example = [
  states(['F0F0F0F00F0F0F0F', 'FFFF0000FFFF0000', '123456789ABCDEF0'], [3.25, 2.5, 3]),
  states(['F0F0F0F00F0F0F0E', 'FFFF0000FFFF00FF', '0000000000000000'], [0.5, 0, -1]),
  states(['F0F0F0F00F0F0F0F', 'FFFF0000FFFE0001', 'EDCBA9876543210F'], [-0.75, -0.75, -0.75]),
];

function bruteForce(group: State[][], mask: Uint8Array): ReturnType<typeof nearestSiblings> {
  return group.map((own, i) =>
    own.map((state) => {
      let best: { trajectory: number; step: number; distance: number } | null = null;
      if (mask[i] === 0) return null;
      group.forEach((other, j) => {
        if (j === i || mask[j] === 0) return;
        other.forEach(({ hash }, u) => {
          const distance = hamming(hash, state.hash);
          if (!best || distance < best.distance) best = { trajectory: j, step: u, distance };
        });
      });
      return best;
    }),
  );
}

// Few distinct hashes, so that ties and zero distances are common.
const hash = fc.oneof(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), fc.bigInt({ min: 0n, max: 7n }));
const state = fc.record({ hash, ret: fc.double({ min: -5, max: 4, noNaN: true }) });
const member = fc.record({ states: fc.array(state, { maxLength: 5 }), on: fc.boolean() });
const group = fc.array(member, { maxLength: 6 });

describe('nearest sibling (algorithms.md, 10)', () => {
  it('example', () => {
    const found = nearestSiblings(example, Uint8Array.of(1, 1, 1));
    const name = (n: (typeof found)[number][number]): string => `${'ABC'[n!.trajectory]}${n!.step} ${n!.distance}`;
    expect(found.map((row) => row.map(name))).toEqual([
      ['C0 0', 'C1 2', 'B2 32'],
      ['A0 1', 'A1 8', 'A0 32'],
      ['A0 0', 'A1 2', 'A1 28'],
    ]);
  });

  it('the numbers the critic sees', () => {
    expect(neighbourScalars(example, { trajectory: 0, step: 0, distance: 32 })).toEqual([3.25 / 4, 0.5, 1]);
    expect(neighbourScalars(example, null)).toEqual([0, 0, 0]);
  });

  it('nobody to pair with: null', () => {
    expect(nearestSiblings([example[0]!], Uint8Array.of(1))).toEqual([[null, null, null]]);
    const found = nearestSiblings(example, Uint8Array.of(1, 0, 0));
    expect(found.flat().every((n) => n === null)).toBe(true);
    expect(nearestSiblings([], new Uint8Array())).toEqual([]);
  });

  it('equals brute force', () => {
    fc.assert(
      fc.property(group, (members) => {
        const mask = Uint8Array.from(members, (m) => (m.on ? 1 : 0));
        const list = members.map((m) => m.states);
        expect(nearestSiblings(list, mask)).toEqual(bruteForce(list, mask));
      }),
    );
  });

  it('masked members neither find nor are found, whatever they hold', () => {
    fc.assert(
      fc.property(group, hash, (members, junk) => {
        const mask = Uint8Array.from(members, (m) => (m.on ? 1 : 0));
        const clean = nearestSiblings(
          members.map((m) => m.states),
          mask,
        );
        const dirty = nearestSiblings(
          members.map((m) => (m.on ? m.states : m.states.map(() => ({ hash: junk, ret: NaN })))),
          mask,
        );
        expect(dirty).toEqual(clean);
        clean.forEach((row, i) =>
          row.forEach((n) => {
            if (mask[i] === 0) expect(n).toBeNull();
            else if (n) expect([n.trajectory !== i, mask[n.trajectory]]).toEqual([true, 1]);
          }),
        );
      }),
    );
  });

  it('mutual: a neighbour has a neighbour of its own, at least as near', () => {
    fc.assert(
      fc.property(group, (members) => {
        const all = new Uint8Array(members.length).fill(1);
        const found = nearestSiblings(
          members.map((m) => m.states),
          all,
        );
        found.forEach((row) =>
          row.forEach((n) => {
            if (!n) return;
            const back = found[n.trajectory]![n.step];
            expect(back).not.toBeNull();
            expect(back!.distance).toBeLessThanOrEqual(n.distance);
          }),
        );
      }),
    );
  });

  it('returns never enter the search', () => {
    const other = example.map((row) => row.map((s) => ({ ...s, ret: NaN })));
    const mask = Uint8Array.of(1, 1, 1);
    expect(nearestSiblings(other, mask)).toEqual(nearestSiblings(example, mask));
  });

  it('handles a whole batch: 16 groups of 8 attempts with 15 steps', () => {
    const random = createRandom('neighbours');
    const word = (): bigint => BigInt(random.int(4294967296));
    for (let g = 0; g < 16; g++) {
      const list = Array.from({ length: 8 }, () =>
        Array.from({ length: 15 }, () => ({ hash: (word() << 32n) | word(), ret: 0 })),
      );
      const found = nearestSiblings(list, new Uint8Array(8).fill(1));
      expect(found.flat().every((n) => n !== null && n.distance < 32)).toBe(true);
    }
  });
});

describe('what all equally near siblings got', () => {
  it('example: the returns at the smallest distance, their number, and the first states of the siblings', () => {
    const found = siblingReturns(example, Uint8Array.of(1, 1, 1));
    expect(found[0]![0]).toEqual({ mean: -0.75, count: 1, distance: 0, start: (0.5 - 0.75) / 2 });
    // A0 and C0 are one state, one bit from B0.
    expect(found[1]![0]).toEqual({ mean: (3.25 - 0.75) / 2, count: 2, distance: 1, start: (3.25 - 0.75) / 2 });
    expect(siblingReturns(example, Uint8Array.of(1, 0, 0)).flat()).toEqual(new Array(9).fill(null));
  });

  it('is as near as the nearest sibling, and looks at no own and no masked return', () => {
    fc.assert(
      fc.property(group, (members) => {
        const states = members.map((member) => member.states);
        const mask = Uint8Array.from(members, ({ on }) => (on ? 1 : 0));
        const found = siblingReturns(states, mask);
        const nearest = nearestSiblings(states, mask);
        found.forEach((row, i) => {
          row.forEach((one, t) => {
            expect(one?.distance).toBe(nearest[i]![t]?.distance);
            if (one === null) return;
            const equal = states.flatMap((other, j) =>
              j === i || mask[j] === 0
                ? []
                : other.filter(({ hash: h }) => hamming(h, states[i]![t]!.hash) === one.distance).map(({ ret }) => ret),
            );
            expect(one.count).toBe(equal.length);
            expect(one.mean).toBeCloseTo(equal.reduce((a, b) => a + b, 0) / equal.length, 9);
          });
          const changed = states.map((other, j) =>
            j === i || mask[j] === 0 ? other.map((each) => ({ ...each, ret: Number.NaN })) : other,
          );
          expect(siblingReturns(changed, mask)[i]).toEqual(row);
        });
      }),
    );
  });
});
