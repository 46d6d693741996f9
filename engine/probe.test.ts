import { describe, expect, it } from 'vitest';
import type { ClientDatum, EngineClient } from './client.ts';
import { encodeBase64 } from './floats.ts';
import { probeEngine } from './probe.ts';
import { readCapabilities } from './tinker.ts';

interface Habits {
  /** What it does and what it says. */
  reduction?: 'sum' | 'mean';
  says?: Record<string, unknown>;
  /** The loss that runs in place of ppo. */
  ppo?: 'ppo' | 'cross_entropy' | 'importance_sampling';
  /** Added to the log-probabilities that its sampler reports. */
  off?: number;
  seeded?: boolean;
  seesImages?: boolean;
  reportsNorm?: boolean;
  lossScale?: number;
}

const EXTENDED = { deterministic_batching: true, hidden_states: true, constraint: true, losses: [] };

/** An engine of one parameter: every log-probability is -1 and moves with it, so gradients are sums of token slopes. */
function engine(habits: Habits): EngineClient & { released: string[] } {
  const { reduction = 'sum', says = EXTENDED, ppo = 'ppo', off = 0, seeded = true, lossScale = 1 } = habits;
  const released: string[] = [];
  let gradient = 7;
  let draws = 0;
  const token = (row: ClientDatum, i: number, loss: string): { loss: number; slope: number } => {
    if (loss === 'cross_entropy') return { loss: 1, slope: -1 };
    const ratio = Math.exp(-1 - row.logprobs![i]!);
    const advantage = row.advantages![i]!;
    const clipped = loss === 'ppo' && ((advantage > 0 && ratio > 1.2) || (advantage < 0 && ratio < 0.8));
    const held = Math.min(Math.max(ratio, 0.8), 1.2);
    return clipped ? { loss: -held * advantage, slope: 0 } : { loss: -ratio * advantage, slope: -ratio * advantage };
  };
  const logprobs = (rows: ClientDatum[]): number[][] => rows.map((row) => row.tokens.map(() => -1));
  const parts: Partial<EngineClient> = {
    health: async () => {},
    capabilities: async () => readCapabilities(says),
    createModel: async () => 'm',
    release: (model) => {
      released.push(model);
    },
    forward: async (_, rows) => ({ logprobs: logprobs(rows), metrics: {} }),
    forwardBackward: async (_, rows, name) => {
      const all = rows.flatMap((row) =>
        row.tokens.flatMap((_token, i) =>
          row.weights[i] === 0 ? [] : [token(row, i, name === 'ppo' ? ppo : 'cross_entropy')],
        ),
      );
      const scale = reduction === 'mean' ? 1 / all.length : 1;
      gradient += scale * all.reduce((sum, { slope }) => sum + slope, 0);
      return {
        logprobs: logprobs(rows),
        metrics: { 'loss:sum': lossScale * scale * all.reduce((sum, { loss }) => sum + loss, 0) },
      };
    },
    optimStep: async (): Promise<Record<string, number>> => {
      const norm = Math.abs(gradient);
      gradient = 0;
      return habits.reportsNorm === false ? {} : { grad_norm: norm };
    },
    sample: async (request) => {
      const bright = habits.seesImages === true ? (request.images?.[0]?.data.length ?? 0) / 1000 : 0;
      return {
        tokens: [seeded ? 4 : draws++],
        logprobs: [-1 + off - bright],
        hidden: request.returnHidden ? encodeBase64(Float32Array.of(1, 2)) : null,
      };
    },
  };
  return Object.assign(parts as EngineClient, { released });
}

const probe = (habits: Habits, over = {}) =>
  probeEngine({ client: engine(habits), baseModel: 'b', hiddenStates: true, constraint: true, ...over });

describe('probeEngine', () => {
  it('accepts an engine that computes what it says, and leaves no model behind', async () => {
    const client = engine({});
    const report = await probeEngine({ client, baseModel: 'b', hiddenStates: true, constraint: true });
    expect(report.reduction).toBe('sum');
    expect(client.released).toEqual(['m']);
    const plain = { supported_models: ['b'] };
    const other = await probe({ reduction: 'mean', says: plain }, { hiddenStates: false, constraint: false });
    expect(other.reduction).toBe('mean');
    await probe({ says: { ...EXTENDED, images: true }, seesImages: true });
  });

  it.each<[string, Habits, RegExp]>([
    ['says sum and takes the mean', { reduction: 'mean', says: { ...EXTENDED, reduction: 'sum' } }, /takes the mean/],
    ['sums without a denominator', { says: { hidden_states: true, constraint: true } }, /takes no denominator/],
    ['replaces ppo by cross-entropy', { ppo: 'cross_entropy' }, /advantage 2 scales the gradient by 1:/],
    ['never clips', { ppo: 'importance_sampling' }, /has a gradient where ppo clips/],
    ['reports another loss', { lossScale: 2 }, /ppo loss of a known row is -9.6, by the formula -4.8/],
    ['reports no gradient norm', { reportsNorm: false }, /does not report the norm/],
    ['ignores seeds', { seeded: false }, /same seed gave other tokens/],
    ['samples from other weights', { off: -0.5 }, /sampling and of training differ by 0.5/],
    ['drops images', { says: { ...EXTENDED, images: true } }, /drops images/],
    ['has no hidden states', { says: { deterministic_batching: true, constraint: true } }, /no hidden states/],
    ['has no decode-time mask', { says: { deterministic_batching: true, hidden_states: true } }, /no decode-time mask/],
    ['has no ppo', { says: { ...EXTENDED, losses: ['cross_entropy'] } }, /has no loss ppo/],
  ])('refuses an engine that %s', async (_, habits, message) => {
    const error = await probe(habits).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'engine_refused', message: expect.stringMatching(message) });
  });
});
