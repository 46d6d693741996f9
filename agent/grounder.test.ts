import { describe, expect, it } from 'vitest';
import type { Box, EpisodeSpec, Intent, OutlineElement, Point, Screen } from '../domain/index.ts';
import { toySpec, toyTask } from '../test/toy-phone.ts';
import { createGrounderRouter, createRuleGrounder, groundExactly, SMALL_ERROR_RATE } from './grounder.ts';

const row = (label: string, y: number): OutlineElement => ({
  role: 'row',
  label,
  box: { x: 10, y, width: 80, height: 20 },
});
const screen: Screen = {
  png: null, width: 100, height: 200, scale: 1, space: 'pixel', frame: 0, hash: '0', degenerate: false, app: null,
  outline: [row('wifi', 20), row('sound', 60), row('about', 180)],
}; // prettier-ignore
const inside = (p: Point, box: Box): boolean =>
  p.x >= box.x && p.x < box.x + box.width && p.y >= box.y && p.y < box.y + box.height;
const at = (draw: number, more: Partial<EpisodeSpec> = {}): EpisodeSpec =>
  toySpec(toyTask('wifi'), { ...more, key: { ...toySpec(toyTask('wifi')).key, draw } });
const swipe = (direction: 'up' | 'down' | 'left' | 'right', target?: string): Intent =>
  target === undefined ? { kind: 'swipe', direction } : { kind: 'swipe', direction, target };

describe('exact grounding', () => {
  it('points at the middle of what is named', () => {
    expect(groundExactly({ kind: 'tap', target: 'wifi' }, screen)).toEqual({
      kind: 'action',
      action: { kind: 'tap', at: { x: 50, y: 30 } },
      grounder: 'rule-large',
    });
    expect(groundExactly({ kind: 'long_press', target: 'about' }, screen)).toMatchObject({
      action: { kind: 'long_press', at: { x: 50, y: 190 } },
    });
  });

  it('refuses a label that is not on the screen', () => {
    for (const intent of [
      { kind: 'tap', target: 'radar' },
      { kind: 'long_press', target: 'wif' },
      swipe('up', 'radar'),
    ] as Intent[])
      expect(groundExactly(intent, screen)).toEqual({
        kind: 'refused',
        reason: 'not_on_screen',
        grounder: 'rule-large',
      });
    expect(groundExactly({ kind: 'tap', target: 'wifi' }, { ...screen, outline: null })).toMatchObject({
      kind: 'refused',
    });
  });

  it('moves a finger by the direction, on the screen', () => {
    const by = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] } as const;
    for (const direction of ['up', 'down', 'left', 'right'] as const) {
      const grounding = groundExactly(swipe(direction), screen);
      if (grounding.kind !== 'action' || grounding.action.kind !== 'swipe') throw new Error('no swipe');
      const { from, to } = grounding.action;
      expect([Math.sign(to.x - from.x), Math.sign(to.y - from.y)]).toEqual([...by[direction]]);
      for (const p of [from, to]) expect(inside(p, { x: 0, y: 0, width: 100, height: 200 })).toBe(true);
    }
    const on = groundExactly(swipe('left', 'sound'), screen);
    if (on.kind !== 'action' || on.action.kind !== 'swipe') throw new Error('no swipe');
    expect(inside(on.action.from, screen.outline![1]!.box) && inside(on.action.to, screen.outline![1]!.box)).toBe(true);
  });

  it('has nothing to do on the device for a question or a claim', () => {
    expect(groundExactly({ kind: 'ask_user', question: 'name' }, screen)).toEqual({ kind: 'none' });
    expect(groundExactly({ kind: 'task_complete', claim: 'done' }, screen)).toEqual({ kind: 'none' });
    expect(groundExactly({ kind: 'text_entry', text: 'a b' }, screen)).toMatchObject({ action: { text: 'a b' } });
    expect(groundExactly({ kind: 'navigate_home' }, screen)).toMatchObject({ action: { kind: 'navigate_home' } });
    expect(groundExactly({ kind: 'wait' }, screen)).toMatchObject({ action: { kind: 'wait' } });
  });
});

describe('small grounder', () => {
  const small = createRuleGrounder('small');
  const pointOf = async (target: string, draw: number): Promise<Point> => {
    const grounding = await small.ground({ kind: 'tap', target }, screen, at(draw), 0);
    if (grounding.kind !== 'action' || grounding.action.kind !== 'tap') throw new Error('no tap');
    return grounding.action.at;
  };

  it.each(['wifi', 'about'])(
    'misses %s at its rate: beside it or on something else, always on the screen',
    async (target) => {
      const box = screen.outline!.find((e) => e.label === target)!.box;
      const n = 3000;
      let [off, other] = [0, 0];
      for (let draw = 0; draw < n; draw++) {
        const p = await pointOf(target, draw);
        expect(inside(p, { x: 0, y: 0, width: screen.width, height: screen.height })).toBe(true);
        if (inside(p, box)) continue;
        off++;
        if (screen.outline!.some((e) => inside(p, e.box))) other++;
      }
      expect(off / n).toBeGreaterThan(SMALL_ERROR_RATE - 0.02);
      expect(off / n).toBeLessThan(SMALL_ERROR_RATE + 0.02);
      expect(other).toBeGreaterThan(n * 0.03);
      expect(off - other).toBeGreaterThan(n * 0.03);
    },
  );

  it('errs in the same place again, and elsewhere at another step', async () => {
    const points = await Promise.all(Array.from({ length: 50 }, (_, draw) => pointOf('wifi', draw)));
    expect(await Promise.all(points.map((_, draw) => pointOf('wifi', draw)))).toEqual(points);
    const retried = await small.ground({ kind: 'tap', target: 'wifi' }, screen, at(0, { infraTry: 1 }), 0);
    expect(retried).toMatchObject({ action: { at: points[0] } });
  });

  it('knows directional swipes only', async () => {
    expect(await small.ground(swipe('up'), screen, at(0), 0)).toMatchObject({ kind: 'action', grounder: 'rule-small' });
    expect(await small.ground(swipe('up', 'wifi'), screen, at(0), 0)).toMatchObject({ reason: 'unsupported' });
  });
});

describe('router', () => {
  const router = createGrounderRouter();
  const used = async (grounder: EpisodeSpec['grounder'], intent: Intent): Promise<string> => {
    const grounding = await router.ground(intent, screen, at(0, { grounder }), 0);
    return grounding.kind === 'none' ? 'none' : grounding.grounder;
  };

  it('sends swipes of a hybrid run to the large grounder and the rest to the small one', async () => {
    const tap: Intent = { kind: 'tap', target: 'wifi' };
    expect(await used('hybrid', tap)).toBe('rule-small');
    expect(await used('hybrid', swipe('up', 'wifi'))).toBe('rule-large');
    expect(await used('large', tap)).toBe('rule-large');
    expect(await used('small', swipe('up'))).toBe('rule-small');
  });
});
