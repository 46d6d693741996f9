import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MARKS } from '../agent/vocabulary.ts';
import { runConfigSchema } from '../configs/schema.ts';
import type { EpisodeResult, Outcome } from '../domain/index.ts';
import { evaluationCell, rolloutMetrics } from './batch-metrics.ts';
import { byLength, chunked, plainDatum, policyDatum, trainedTokens } from './datums.ts';

const config = runConfigSchema.parse({ name: 'test', seed: 1, suite: 'sim-phones' });

describe('a datum', () => {
  const sample = {
    promptTokens: [1, 2, 3],
    responseTokens: [7, 8],
    logprobs: [-0.5, -0.25],
    hidden: null,
    allowed: { labels: [[4]], words: [] },
    text: '',
  };
  it('shifts tokens, and trains response tokens only, with their sampled ids and log-probabilities', () => {
    expect(policyDatum(sample, 1.5)).toEqual({
      tokens: [1, 2, 3, 7],
      targets: [2, 3, 7, 8],
      weights: [0, 0, 1, 1],
      logprobs: [0, 0, -0.5, -0.25],
      advantages: [0, 0, 1.5, 1.5],
      allowed: { labels: [[4]], words: [] },
    });
  });
  it('ends with the step plan when the remaining plan is not trained on', () => {
    const rest = MARKS.indexOf('<rest>');
    const long = { ...sample, responseTokens: [7, rest, 8, 9], logprobs: [-0.5, 0, -1, -2] };
    expect([trainedTokens(long, true), trainedTokens(long, false), trainedTokens(sample, false)]).toEqual([4, 2, 2]);
    expect(policyDatum(long, 1, 2)).toMatchObject({
      tokens: [1, 2, 3, 7],
      targets: [2, 3, 7, rest],
      weights: [0, 0, 1, 1],
    });
  });
  it('of any lengths has aligned parts and one weight a response token', () => {
    const ids = fc.array(fc.nat(300), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(ids, ids, (prompt, response) => {
        const datum = plainDatum(prompt, response, null);
        expect(datum.targets).toHaveLength(datum.tokens.length);
        expect(datum.weights).toHaveLength(datum.tokens.length);
        expect(datum.weights.reduce((a, b) => a + b, 0)).toBe(response.length);
        expect(datum.targets.filter((_, i) => datum.weights[i] === 1)).toEqual(response);
      }),
    );
  });
});

describe('the order of rows', () => {
  it('is by length, ties by place, and every row once', () => {
    expect(byLength([5, 3, 5, 1])).toEqual([3, 1, 0, 2]);
    fc.assert(
      fc.property(fc.array(fc.nat(9)), fc.integer({ min: 1, max: 4 }), (lengths, size) => {
        const order = byLength(lengths);
        expect([...order].sort((a, b) => a - b)).toEqual(lengths.map((_, i) => i));
        expect(chunked(order, size).flat()).toEqual(order);
        expect(chunked(order, size).every((part) => part.length <= size)).toBe(true);
      }),
    );
  });
});

describe('metrics of a batch', () => {
  const finished = (outcome: Outcome, success: number, overcomplete = 0): EpisodeResult => ({
    kind: 'finished',
    id: '',
    ref: '',
    outcome,
    steps: success + overcomplete,
    dense: { success, fail: 0, overcomplete },
  });
  const hung: EpisodeResult = { kind: 'masked', id: '', failure: 'device_hung', message: '', step: 1 };

  it('leave masked attempts out of every mean and count them by class', () => {
    const metrics = rolloutMetrics([finished('success', 3), finished('step_limit', 2, 1), hung, hung], config.rewards);
    expect(metrics).toMatchObject({
      'rollout/attempts': 4,
      'rollout/valid': 2,
      'rollout/masked': 2,
      'rollout/success': 0.5,
      'episode/dense_mean': 1.5,
      'mask/device_hung': 2,
    });
  });
  it('are null, not NaN, when everything is masked', () => {
    expect(rolloutMetrics([hung], config.rewards)['rollout/success']).toBeNull();
  });
  it('of an evaluation keep the place of every instance', () => {
    const cell = evaluationCell('s', 'train', [finished('success', 1), hung, finished('failure', 0)]);
    expect(cell).toMatchObject({ n: 2, success: 1, masked: { device_hung: 1 }, wins: [1, null, 0] });
  });
});
