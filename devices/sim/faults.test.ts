import { describe, expect, it } from 'vitest';
import type { EpisodeKey, TaskInstance } from '../../domain/index.ts';
import type { OpenOptions } from '../device.ts';
import { SIM_FAULTS } from '../../domain/faults.ts';
import { createFaults } from './faults.ts';

const KEY: EpisodeKey = { run: 'r', phase: 'train', update: 1, draw: 2, attempt: 3 };
type Draw = Partial<Pick<OpenOptions, 'key' | 'seed' | 'faults' | 'infraTry'>>;

/** The action at which an attempt breaks, by the class of its error; `none` when it does not. */
function fate(draw: Draw, task = 'a'): string {
  const rest = { task: { id: task } as TaskInstance, pixels: null };
  const faults = createFaults({ key: KEY, seed: 1, faults: { crash: 0.5 }, infraTry: 0, ...draw, ...rest });
  for (let action = 0; action < 4; action++)
    try {
      faults.beforeAction();
    } catch (error) {
      return `${(error as { code: string }).code} at ${action}`;
    }
  return 'none';
}
const fates = (draws: Draw[]): string => draws.map((draw) => fate(draw)).join();
const series = (of: (i: number) => Draw): Draw[] => Array.from({ length: 40 }, (_, i) => of(i));

describe('fault draws', () => {
  it('come from seed, key and try: again the same, each of them another stream', () => {
    const streams = [
      series((seed) => ({ seed })),
      series((infraTry) => ({ infraTry })),
      series((attempt) => ({ key: { ...KEY, attempt } })),
      series((draw) => ({ key: { ...KEY, draw } })),
      series((update) => ({ key: { ...KEY, update } })),
    ];
    for (const stream of streams) {
      expect(fates(stream)).toBe(fates(stream));
      expect(new Set(stream.map((draw) => fate(draw))).size).toBe(4);
    }
    expect(new Set(streams.map(fates)).size).toBe(streams.length);
  });

  it('do not depend on the run or the task of a keyed attempt, nor on what other faults are on', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      expect(fate({ seed }, 'b')).toBe(fate({ seed }, 'a'));
      expect(fate({ seed, key: { ...KEY, run: 'other' } })).toBe(fate({ seed }));
      const also = { crash: 0.5, dropped_text: 1, stale_snapshot: 1, frozen_frame: 1 };
      expect(fate({ seed, faults: also })).toBe(fate({ seed }));
    }
  });

  it('at a higher rate break every attempt that a lower rate breaks, at the same action', () => {
    for (const name of ['crash', 'hang', 'slow_answer'])
      for (let seed = 0; seed < 60; seed++) {
        const [low, high] = [0.2, 0.6].map((rate) => fate({ seed, faults: { [name]: rate } }));
        if (low !== 'none') expect(high).toBe(low);
      }
  });

  it('never happen at rate 0 or when a fault is not named', () => {
    const none = Object.fromEntries(SIM_FAULTS.map((name) => [name, 0]));
    for (let seed = 0; seed < 30; seed++) for (const faults of [none, {}]) expect(fate({ seed, faults })).toBe('none');
  });
});
