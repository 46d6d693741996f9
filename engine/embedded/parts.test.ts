import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { ppoTokenLoss } from '../../rl/ppo.ts';
import { checkConstraint, createTracker } from './constraint.ts';
import { parseDatum } from './datum.ts';
import { parseModelName } from './layout.ts';
import { parseLoss, tokenLoss } from './losses.ts';
import { decodeSafetensors, encodeSafetensors, readSafetensors } from './safetensors.ts';

const dir = mkdtempSync(join(tmpdir(), 'tapwright-engine-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('losses', () => {
  it('agrees with the formula of algorithms.md, 6, and its slope with differences', () => {
    const config = { clip_low_threshold: 0.8, clip_high_threshold: 1.28, dual_clip: 3 };
    const spec = parseLoss('ppo', config);
    fc.assert(
      fc.property(
        fc.double({ min: -6, max: 0, noNaN: true }),
        fc.double({ min: -6, max: 0, noNaN: true }),
        fc.double({ min: -3, max: 3, noNaN: true }),
        (logpNew, logpOld, advantage) => {
          const { loss, slope } = tokenLoss(spec, logpNew, logpOld, advantage);
          const formula = (x: number): number =>
            ppoTokenLoss({ logpNew: x, logpOld, advantage, clipLow: 0.2, clipHigh: 0.28, dualClip: 3 });
          expect(loss).toBeCloseTo(formula(logpNew), 10);
          const h = 1e-6;
          const [left, right] = [
            (formula(logpNew) - formula(logpNew - h)) / h,
            (formula(logpNew + h) - formula(logpNew)) / h,
          ];
          // At a corner either side is right.
          const scale = 1e-3 * (1 + Math.abs(loss));
          expect(Math.min(Math.abs(slope - left), Math.abs(slope - right))).toBeLessThan(scale);
        },
      ),
    );
  });
  it.each([
    [0.5, 0.65, 1, -1.2, true],
    [0.2, 0.1, 1, -0.5, false],
    [0.4, 0.44, -1, 1.1, false],
    [0.1, 0.35, -0.5, 1.75, false],
    [0.3, 0.3, 2, -2, false],
  ])('p_old %f, p_new %f, A %f: %f', (before, after, advantage, wanted, clipped) => {
    const token = tokenLoss(parseLoss('ppo', {}), Math.log(after), Math.log(before), advantage);
    expect(token.loss).toBeCloseTo(wanted, 10);
    expect(token.clipped).toBe(clipped);
  });
  it('refuses what it does not know', () => {
    expect(() => parseLoss('dppo', {})).toThrow(/unknown loss_fn "dppo"/);
    expect(() => parseLoss('ppo', { clip: 1 })).toThrow(/unknown key loss_fn_config.clip/);
    expect(() => parseLoss('ppo', { clip_low_threshold: 0.2, clip_high_threshold: 0.2 })).toThrow(/bound the ratio/);
    expect(() => parseLoss('ppo', { denominator: 0 })).toThrow(/denominator/);
  });
});

describe('constraint', () => {
  /** After token 1 one or more of 4 and 5, until 9. */
  const labels = (allowed: number[]) => ({
    states: [
      { arcs: [{ tokens: [1], next: 1 }], other: 0 },
      { arcs: [{ tokens: allowed, next: 2 }], other: null },
      {
        arcs: [
          { tokens: allowed, next: 2 },
          { tokens: [9], next: 0 },
        ],
        other: null,
      },
    ],
  });
  it('permits the tokens of a state’s arcs, and goes where they lead', () => {
    const tracker = createTracker(labels([5, 4]));
    const seen: (number[] | null)[] = [];
    for (const token of [2, 1, 4, 5, 9, 3]) {
      seen.push(tracker.support() && Array.from(tracker.support()!));
      tracker.push(token);
    }
    expect(seen).toEqual([null, null, [4, 5], [4, 5, 9], [4, 5, 9], null]);
  });
  it('is refused by place when it leaves no way on or makes no sense', () => {
    const wrong = (value: unknown) => expect(() => checkConstraint(value, 10, 'x'));
    expect(checkConstraint(labels([5, 4]), 10, 'x')).toEqual(labels([5, 4]));
    wrong(labels([])).toThrow(/x: constraint.states\[1\] permits no token/);
    wrong(labels([10])).toThrow(/x: constraint.states\[1\].arcs\[0\]: 10 is not a token id in 0..9/);
    wrong(labels([9])).toThrow(/states\[2\]: token 9 is in two arcs/);
    wrong({ states: [{ arcs: [], other: 1 }] }).toThrow(/states\[0\].other must be null or one of the states/);
    wrong({ states: [{ arcs: [{ tokens: [1], next: 1 }], other: null }] }).toThrow(/arcs\[0\] must be/);
    wrong({ triggers: [1] }).toThrow(/must be \{states/);
  });
});

describe('names and data', () => {
  it('reads model names', () => {
    expect(parseModelName('tapwright-d64-l2')).toMatchObject({
      width: 64,
      layers: 2,
      heads: 4,
      vocab: 512,
      copy: false,
    });
    expect(parseModelName('tapwright-d32-l1-h2-v99-copy')).toMatchObject({ heads: 2, vocab: 99, copy: true });
    for (const name of ['gpt', 'tapwright-d60-l2-h7', 'tapwright-d4096-l2'])
      expect(() => parseModelName(name)).toThrow();
  });
  it('checks a datum by place', () => {
    const input = { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] };
    const good = { target_tokens: { data: [2, 3] } };
    expect(parseDatum({ model_input: input, loss_fn_inputs: good }, 'cross_entropy', 4, 'd').weights).toEqual([1, 1]);
    const wrong = (inputs: object, loss: 'cross_entropy' | 'ppo' = 'cross_entropy', extra: object = {}) =>
      expect(() => parseDatum({ model_input: input, loss_fn_inputs: inputs, ...extra }, loss, 4, 'd'));
    wrong({}).toThrow(/target_tokens is missing/);
    wrong({ target_tokens: { data: [2] } }).toThrow(/has 1 entries, the input has 2/);
    wrong({ target_tokens: { data: [2, 4] } }).toThrow(/target_tokens\[1\] = 4 is not a token id in 0..3/);
    wrong(good, 'ppo').toThrow(/logprobs is missing/);
    wrong({ ...good, weights: { data: [1, NaN] } }).toThrow(/not a finite number/);
    const constraint = {
      states: [
        { arcs: [{ tokens: [2], next: 1 }], other: 0 },
        { arcs: [{ tokens: [1], next: 0 }], other: null },
      ],
    };
    wrong(good, 'cross_entropy', { constraint }).toThrow(/target_tokens\[1\] = 3 is not among the 1 tokens/);
  });
});

describe('safetensors', () => {
  const whole = () =>
    encodeSafetensors({
      tensors: new Map([
        ['a', { shape: [2, 2], data: Float32Array.of(1, -0, NaN, 3e-40) }],
        ['b', { shape: [], data: Float32Array.of(7) }],
      ]),
      metadata: { step: '3' },
    });
  it('comes back to the bit, from a file too', () => {
    writeFileSync(join(dir, 'x.safetensors'), whole());
    for (const read of [decodeSafetensors(whole(), 'x'), readSafetensors(join(dir, 'x.safetensors'))]) {
      expect(read.metadata).toEqual({ step: '3' });
      expect(read.tensors.get('a')!.shape).toEqual([2, 2]);
      expect(Object.is(read.tensors.get('a')!.data[1], -0)).toBe(true);
      expect(Array.from(read.tensors.get('b')!.data)).toEqual([7]);
    }
  });
  it('names what is wrong with a damaged file', () => {
    const bytes = whole();
    expect(() => decodeSafetensors(bytes.subarray(0, 5), 'f')).toThrow(/f is not a whole safetensors file: 5 bytes/);
    expect(() => decodeSafetensors(bytes.subarray(0, bytes.length - 1), 'f')).toThrow(/tensor b lies at/);
    expect(() => decodeSafetensors(Buffer.concat([bytes, Buffer.alloc(4)]), 'f')).toThrow(/4 bytes are left over/);
    const broken = bytes.slice();
    broken[8] = 0x5b;
    expect(() => decodeSafetensors(broken, 'f')).toThrow(/not a whole safetensors file/);
    expect(() => readSafetensors(join(dir, 'none'))).toThrow(/there is no checkpoint/);
  });
});
