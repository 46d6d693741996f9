import { describe, expect, it } from 'vitest';
import { createToyBackend, TOY_WORDS, toyTask, type ToyGoal } from '../test/toy-phone.ts';
import type { DecodeMask } from './constraint.ts';
import { demonstrate, type DemonstrationRow } from './demonstrate.ts';
import { parsePlan } from './parser.ts';
import { createTokenizer } from './tokenizer.ts';
import { createRuleUser } from './user.ts';

const tokenizer = createTokenizer({ words: TOY_WORDS });
const read = (ids: number[]): string => tokenizer.decode(ids, new Map()).join(' ');

async function show(
  goal: ToyGoal,
  noise: number,
  seed = 1,
  more: { decodeMask?: DecodeMask; instruction?: string } = {},
) {
  const backend = createToyBackend(more.instruction ? { instruction: more.instruction } : {});
  const task = toyTask(goal);
  const handle = await backend.open({ task, key: null, seed, faults: {}, infraTry: 0, pixels: null });
  const rows = await demonstrate({
    handle,
    task,
    tokenizer,
    user: createRuleUser(),
    noise,
    planNoise: 0,
    decodeMask: more.decodeMask ?? 'grammar',
    seed,
    maxSteps: 12,
    historySteps: 3,
  });
  return { rows, truth: await handle.truth(), log: backend.log };
}
const plans = (rows: DemonstrationRow[]): string[] =>
  rows.map((row) => {
    const parsed = parsePlan(read(row.response));
    return parsed.ok ? parsed.plan.text : 'unreadable';
  });

describe('demonstrations', () => {
  it('are the expert’s moves, each readable, the last one the claim', async () => {
    const { rows, truth } = await show('message', 0);
    expect(plans(rows)).toEqual(['ask name', 'tap settings', 'type alice', 'done']);
    expect(truth!.goalHolds).toBe(true);
    expect(rows.every((row) => row.response.at(-1) === tokenizer.end)).toBe(true);
    expect(read(rows[3]!.prompt)).toContain(
      '<said> alice <hist> ask name <ok> tap settings <ok> type alice <ok> <rem>',
    );
    expect(plans((await show('radar', 0)).rows)).toEqual(['tap settings', 'blocked']);
  });

  it('carry the mask that sampling would have had, and obey it', async () => {
    const { rows } = await show('wifi', 0);
    expect(rows.map((row) => row.allowed!.labels.map((label) => read(label)).sort())).toEqual([
      ['settings'],
      ['name', 'wifi'],
      ['name', 'wifi'],
    ]);
    expect((await show('wifi', 0, 1, { decodeMask: 'none' })).rows.every((row) => row.allowed === null)).toBe(true);
  });

  it('execute noise without imitating it, and go on from there', async () => {
    let noisy = 0;
    for (let seed = 0; seed < 40; seed++) {
      const { rows, log } = await show('wifi', 0.3, seed);
      const executed = log.length;
      const imitated = plans(rows).filter((plan) => plan !== 'done').length;
      noisy += executed - imitated;
      // Only moves of an expert: never the field, never a swipe.
      expect(new Set(plans(rows))).not.toContain('tap name');
      for (const plan of plans(rows)) expect(['tap settings', 'tap wifi', 'done']).toContain(plan);
    }
    expect(noisy).toBeGreaterThan(10);
  });

  it('show noise in the history as an agent would have seen it', async () => {
    const prompts: string[] = [];
    for (let seed = 0; seed < 40; seed++)
      prompts.push(...(await show('wifi', 0.3, seed)).rows.map((row) => read(row.prompt)));
    expect(prompts.some((prompt) => /swipe (up|down) <same>/.test(prompt))).toBe(true);
    expect(prompts.some((prompt) => prompt.includes('home <ok>'))).toBe(true);
  });

  it('are the same for the same seed', async () => {
    expect((await show('wifi', 0.3, 5)).rows).toEqual((await show('wifi', 0.3, 5)).rows);
  });

  it('use the instruction that only the device knew', async () => {
    const { rows } = await show('wifi', 0, 1, { instruction: 'turn wifi on' });
    expect(read(rows[0]!.prompt)).toContain('<task> turn wifi on <hist>');
  });
});
