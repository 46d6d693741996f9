import { z } from 'zod';
import { SCALES } from './scale.ts';

/**
 * The schema of a run. Every key has a default unless it says what is trained on what; keys marked NFP are not from the
 * paper and the run header prints them as such (facts.md, "Unknown").
 */
const positive = z.number().positive();
const count = z.number().int().min(1);
const whole = z.number().int().min(0);
const rate = z.number().min(0).max(1);
const section = <T extends z.ZodRawShape>(shape: T) => z.strictObject(shape).prefault({} as never);

export const runConfigSchema = z.strictObject({
  name: z.string().min(1).max(60),
  seed: whole.max(0xffffffff),
  suite: z.string().describe('train and evaluation suite: sim-phones, miniwob or vnc-phones'),
  scale: z.enum(SCALES).optional().describe('how much of everything (scale.ts); a key that is given itself wins'),
  tasks: section({
    only: z.array(z.string()).default([]).describe('tags, categories or templates to draw; empty: all'),
    without: z.array(z.string()).default([]).describe('tags, categories or templates not to draw'),
  }),
  engine: section({
    /** `embedded` starts our own server; a URL talks to any Tinker-compatible one. */
    url: z.string().default('embedded'),
    baseModel: z.string().default('tapwright-d64-l2'),
    threads: count.max(64).default(1),
    processes: count.max(2).default(2).describe('2: a second process does half of each training pass'),
    backend: z.enum(['auto', 'native', 'wasm']).default('auto'),
    maxBatch: count.max(4096).default(128),
    requestTimeoutMs: count.default(120_000),
  }),
  devices: section({
    count: count.max(4096).default(128),
    keepScreens: z.enum(['all', 'eval', 'none']).default('eval'),
    leaseTtlMs: count.default(60_000),
    faults: z.record(z.string(), rate).default({}),
  }),
  agent: section({
    grounder: z.enum(['small', 'large', 'hybrid']).default('hybrid'),
    decodeMask: z
      .enum(['none', 'labels', 'grammar'])
      .default('grammar')
      .describe('what sampling and training hold a response to'),
    historySteps: whole.max(30).default(3),
    maxUnparseable: count.default(1),
    maxTokens: count.max(4096).default(24),
    temperature: positive.default(1),
  }),
  judge: section({
    dense: z
      .enum(['rule', 'gullible'])
      .default('rule')
      .describe('gullible: a reasoning that says all is done is believed'),
    terminal: z.enum(['rule']).default('rule'),
    hallucination: z
      .boolean()
      .optional()
      .describe('false: a reasoning may claim what the screen does not show; absent: it is fail'),
    noise: z
      .strictObject({ success: rate.default(0), fail: rate.default(0), overcomplete: rate.default(0) })
      .optional()
      .describe('how often a dense verdict of each class comes out wrong, in training'),
  }),
  rewards: section({
    dense: section({
      success: z.number().default(1),
      fail: z.number().default(0),
      overcomplete: z.number().default(-2),
    }),
    terminal: section({
      success: z.number().default(2),
      blocked_complete: z.number().default(0.5),
      failure: z.number().default(0),
      step_limit: z.number().default(-0.75),
      false_completion: z.number().default(-1),
      unparseable: z.number().default(-1),
    }),
    gammaDense: rate.default(0.5),
    useDense: z.boolean().default(true).describe('false: terminal-only'),
  }),
  sft: section({
    demonstrations: whole.default(6000),
    noise: rate.default(0.1),
    planNoise: rate.default(0.5).describe('share of prompts that show another remaining plan than the expert had'),
    steps: whole.default(400),
    batch: count.default(64),
    chunk: count.default(50).describe('optimiser steps per durable chunk'),
    learningRate: positive.default(2e-3),
  }),
  learn: section({
    estimator: z
      .enum(['ppo', 'gigppo', 'gigpo', 'grpo', 'dr-grpo', 'rloo', 'dapo'])
      .default('ppo')
      .describe('ppo and gigppo have a critic; the others compare attempts of a group'),
    gigpo: section({
      returns: z
        .enum(['discounted', 'two-channel'])
        .default('discounted')
        .describe('what steps from one state are compared by: discounted rewards as published, or R as in ppo'),
      gamma: rate.default(0.95),
      episodeWeight: z.number().min(0).default(1),
      stepWeight: z.number().min(0).default(1),
      baseline: z.enum(['dr-grpo', 'grpo', 'rloo']).default('dr-grpo'),
    }),
    dapo: z
      .strictObject({
        maxRedraws: whole.max(8).default(2).describe('how often groups with equal scores are replaced by fresh draws'),
        overlong: section({
          max: count.default(512).describe('response tokens from which on the penalty is whole'),
          buffer: count.default(128).describe('tokens before that over which it grows'),
          factor: z.number().min(0).default(1),
        }),
      })
      .optional()
      .describe('of the estimator dapo; absent: its defaults'),
    fraction: positive
      .max(1)
      .optional()
      .describe("part of the scale's updates that is made; the rate schedule ends there"),
    warmup: whole.default(15),
    updates: whole.default(336),
    tasks: count.default(16),
    attempts: count.default(8),
    epochs: count.default(1),
    minibatch: whole.default(0).describe('rows a mini-batch; 0 = whole batch'),
    learningRate: positive.default(4e-4),
    learningRateWarmup: whole.default(5),
    learningRateEnd: rate.default(0.1),
    beta1: rate.default(0.9),
    beta2: rate.default(0.95),
    gradClip: positive.default(1),
    adamEps: positive.default(1e-8),
    clipLow: positive.default(0.2),
    clipHigh: positive.default(0.2),
    dualClip: z.number().min(1).nullable().default(null),
    entropy: z.number().min(0).default(0.003),
    remainingPlan: z.boolean().default(true).describe('false: the policy loss ends with the step plan'),
    aggregation: z.enum(['token-mean', 'seq-mean-token-sum', 'seq-mean-token-mean']).default('token-mean'),
    lambda: rate.default(1),
    minValidFraction: rate.default(0.5),
    maxTopUps: whole.default(1),
    maxRatioDrift: positive.default(1e-3),
    curriculum: section({ wideSkinFraction: rate.default(0.5) }),
  }),
  critic: section({
    siblings: z
      .enum(['nearest', 'all'])
      .default('nearest')
      .describe(
        'gigppo: what the critic is told of; nearest: one sibling state, as published; all: the mean of all equally near',
      ),
    hidden: z.array(count).max(4).default([128]),
    learningRate: positive.default(3e-3),
    epochs: count.default(4),
    minibatch: count.default(256),
    valueClip: positive.nullable().default(null),
  }),
  rollout: section({
    grain: z.enum(['episode', 'step']).default('episode'),
    maxSteps: count.max(100).default(30),
    parcel: count
      .max(256)
      .default(1)
      .describe('attempts sent to a device host in one call: several for fast devices, 1 for slow ones'),
    infraRetries: whole.default(2),
    deadlineMs: count.default(120_000),
    judgeTimeoutMs: count.default(60_000),
    stragglerMs: count
      .max(3_600_000)
      .default(300_000)
      .describe('with half of a batch in, the rest is masked when no attempt ends for this long'),
  }),
  evaluation: section({
    every: whole.default(0).describe('also evaluate every so many updates; 0 = only at the end'),
    instances: z
      .strictObject({
        validation: whole.optional(),
        'heldout-params': whole.optional(),
        'heldout-skin': whole.optional(),
        'heldout-tasks': whole.optional(),
        train: whole.optional(),
      })
      .default({ 'heldout-params': 400, 'heldout-skin': 200, train: 200 }),
    heldoutAt: z
      .array(rate)
      .optional()
      .describe(
        'fractions of the updates at which held-out splits are evaluated too; other evaluations then see train and validation only. Absent: every one sees all',
      ),
    greedy: z.boolean().default(true),
  }),
  workflow: section({
    continueAsNewEvery: count.max(200).default(25),
    maxConcurrentEpisodes: count.max(2000).default(128),
  }),
  checkpoints: section({ keepLast: count.default(3), keepEvery: whole.default(25) }),
});

/** Whether a run has a critic: without one there is nothing to warm up, and no hidden states are needed. */
export const hasCritic = (config: RunConfig): boolean =>
  config.learn.estimator === 'ppo' || config.learn.estimator === 'gigppo';

/** A run's config with all defaults filled in. Plain JSON: it travels through Temporal. */
export type RunConfig = z.output<typeof runConfigSchema>;
