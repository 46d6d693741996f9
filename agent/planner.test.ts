import { describe, expect, it } from 'vitest';
import { TapwrightError } from '../domain/index.ts';
import { createToyBackend, TOY_WORDS, toySpec, toyTask } from '../test/toy-phone.ts';
import { decodeConstraint } from './constraint.ts';
import { createPlanner, sampleSeed, type SamplerPort } from './planner.ts';
import { createTokenizer, wordsOf } from './tokenizer.ts';

const tokenizer = createTokenizer({ words: TOY_WORDS });
const task = toyTask('wifi');
const handle = await createToyBackend().open({ task, key: null, seed: 1, faults: {}, infraTry: 0, pixels: null });
const screen = await handle.observe();

type Request = Parameters<SamplerPort['sample']>[0];
function plannerSaying(text: string): { planner: ReturnType<typeof createPlanner>; asked: Request[] } {
  const asked: Request[] = [];
  const engine: SamplerPort = {
    sample(request) {
      asked.push(request);
      const tokens = tokenizer.encode(text.split(' ').filter(Boolean)).ids;
      return Promise.resolve({ tokens, logprobs: tokens.map(() => -0.5), hidden: 'AAAA' });
    },
  };
  return { planner: createPlanner({ engine, tokenizer, historySteps: 3 }), asked };
}

describe('planner', () => {
  it('asks the engine for one bounded, seeded, constrained sample', async () => {
    const { planner, asked } = plannerSaying('see settings <do> tap settings <rest> pick done <end>');
    const spec = toySpec(task);
    const { sample, plan } = await planner.plan(spec, 4, task, screen, []);
    expect(plan).toEqual({
      reasoning: 'see settings',
      text: 'tap settings',
      intent: { kind: 'tap', target: 'settings' },
      remaining: 'pick done',
    });
    const label = tokenizer.id('settings')!;
    const goal = [...new Set(tokenizer.encode(wordsOf(task.goal)).ids)].sort((a, b) => a - b);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      policy: spec.policy,
      temperature: 1,
      maxTokens: 24,
      stop: [tokenizer.end],
      seed: sampleSeed(spec, 4),
      constraint: decodeConstraint(tokenizer, 'grammar', { labels: [[label]], words: goal }),
      returnHidden: true,
    });
    // What was sampled is what is trained, with the mask it was sampled under.
    expect(sample.promptTokens).toEqual(asked[0]!.prompt);
    const allowed = { labels: [[label]], words: goal };
    expect(sample).toMatchObject({ allowed, hidden: 'AAAA', text: expect.stringContaining('tap settings') });
    expect(sample.logprobs).toHaveLength(sample.responseTokens.length);
  });

  it('has no mask when the setting is off, nor one of labels when nothing has a label', async () => {
    const { planner, asked } = plannerSaying('<do> home <rest> <end>');
    const off = await planner.plan(toySpec(task, { decodeMask: 'none' }), 0, task, screen, []);
    const bare = { ...screen, outline: [] };
    await planner.plan(toySpec(task, { decodeMask: 'labels' }), 0, task, bare, []);
    expect(off.sample.allowed).toBeNull();
    expect(asked.map((request) => request.constraint)).toEqual([null, null]);
  });

  it('gives no plan for what cannot be read, and keeps the sample', async () => {
    for (const text of ['', 'tap tap tap']) {
      const { sample, plan } = await plannerSaying(text).planner.plan(toySpec(task), 0, task, screen, []);
      expect(plan).toBeNull();
      expect(sample.text).toBe(text);
    }
  });

  it('passes an engine failure on', async () => {
    const engine: SamplerPort = { sample: () => Promise.reject(new TapwrightError('engine_unavailable', 'gone')) };
    const planner = createPlanner({ engine, tokenizer, historySteps: 3 });
    await expect(planner.plan(toySpec(task), 0, task, screen, [])).rejects.toMatchObject({
      code: 'engine_unavailable',
    });
  });

  it('draws seeds from the place of a step alone: int32, all different, not from the infrastructure try', () => {
    const seeds = new Set<number>();
    for (let draw = 0; draw < 16; draw++)
      for (let attempt = 0; attempt < 8; attempt++)
        for (let t = 0; t < 10; t++)
          seeds.add(sampleSeed(toySpec(task, { key: { run: 'r', phase: 'train', update: 1, draw, attempt } }), t));
    expect(seeds.size).toBe(16 * 8 * 10);
    expect([...seeds].every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)).toBe(true);
    expect(sampleSeed(toySpec(task, { infraTry: 2 }), 0)).toBe(sampleSeed(toySpec(task), 0));
    const other = { ...toySpec(task).key, run: 'another name' };
    expect(sampleSeed(toySpec(task, { key: other }), 0)).toBe(sampleSeed(toySpec(task), 0));
  });
});
