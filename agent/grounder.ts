import type {
  Box,
  DeviceAction,
  EpisodeSpec,
  Grounding,
  Intent,
  OutlineElement,
  Point,
  Screen,
} from '../domain/index.ts';
import { createRandom, type Random } from '../rl/random.ts';

export type GrounderQuality = 'small' | 'large';

export interface Grounder {
  readonly name: string;
  /** Turns a step plan's intent into a device action on this screen. Never throws for what the planner wrote. */
  ground(intent: Intent, screen: Screen, spec: EpisodeSpec, t: number): Promise<Grounding>;
}

/** Share of taps that a small grounder puts somewhere else (facts.md: over 90 % right on held-out data). */
export const SMALL_ERROR_RATE = 0.1;

const centre = (box: Box): Point => ({ x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2) });

/** Off the target but on the screen: below it, or above it where the screen ends. */
function missed(box: Box, screen: Screen): Point {
  const gap = Math.max(2, Math.round(box.height / 3));
  const below = box.y + box.height + gap;
  const y = below < screen.height ? below : Math.max(0, box.y - gap);
  return { x: Math.round(box.x + box.width / 2), y };
}

function wrongPoint(random: Random, target: OutlineElement, screen: Screen): Point {
  const others = (screen.outline ?? []).filter((e) => e !== target);
  if (others.length === 0 || random.next() < 0.5) return missed(target.box, screen);
  return centre(random.pick(others).box);
}

/** A finger's path through the middle of the screen; content moves with the finger, so `up` shows what is below. */
function swipePath(intent: Extract<Intent, { kind: 'swipe' }>, area: Box): DeviceAction {
  const { x, y } = centre(area);
  const [dx, dy] = [Math.round(area.width * 0.3), Math.round(area.height * 0.3)];
  const by: Record<typeof intent.direction, Point> = {
    up: { x: 0, y: -dy },
    down: { x: 0, y: dy },
    left: { x: -dx, y: 0 },
    right: { x: dx, y: 0 },
  };
  const d = by[intent.direction];
  return { kind: 'swipe', from: { x: x - d.x, y: y - d.y }, to: { x: x + d.x, y: y + d.y } };
}

const NAME = { small: 'rule-small', large: 'rule-large' } as const;

/** Where the intent is on this screen, without error. Pure; what demonstrations are executed with. */
export function groundExactly(intent: Intent, screen: Screen, quality: GrounderQuality = 'large'): Grounding {
  const grounder = NAME[quality];
  const find = (label: string): OutlineElement | undefined => screen.outline?.find((e) => e.label === label);
  const refused = (reason: 'not_on_screen' | 'unsupported'): Grounding => ({ kind: 'refused', reason, grounder });
  switch (intent.kind) {
    case 'ask_user':
    case 'task_complete':
      return { kind: 'none' };
    case 'navigate_home':
    case 'wait':
      return { kind: 'action', action: { kind: intent.kind }, grounder };
    case 'text_entry':
      return { kind: 'action', action: { kind: 'text_entry', text: intent.text }, grounder };
    case 'swipe': {
      const whole = { x: 0, y: 0, width: screen.width, height: screen.height };
      if (intent.target === undefined) return { kind: 'action', action: swipePath(intent, whole), grounder };
      if (quality === 'small') return refused('unsupported');
      const target = find(intent.target);
      return target ? { kind: 'action', action: swipePath(intent, target.box), grounder } : refused('not_on_screen');
    }
    case 'tap':
    case 'long_press': {
      const target = find(intent.target);
      if (!target) return refused('not_on_screen');
      return { kind: 'action', action: { kind: intent.kind, at: centre(target.box) }, grounder };
    }
  }
}

/**
 * Rule grounder over the outline, in two qualities. `large` finds every label; `small` errs at a seeded rate and knows
 * directional swipes only. A label that is not on the screen is refused: the planner may name only what it sees.
 */
export function createRuleGrounder(quality: GrounderQuality): Grounder {
  return {
    name: NAME[quality],
    ground(intent, screen, spec, t) {
      const exact = groundExactly(intent, screen, quality);
      if (quality === 'large' || exact.kind !== 'action' || !('at' in exact.action)) return Promise.resolve(exact);
      const { phase, update, draw, attempt } = spec.key;
      const random = createRandom(spec.seed, phase, update, draw, attempt, t, 'ground');
      if (random.next() >= SMALL_ERROR_RATE) return Promise.resolve(exact);
      const target = screen.outline!.find((e) => 'target' in intent && e.label === intent.target)!;
      return Promise.resolve({ ...exact, action: { ...exact.action, at: wrongPoint(random, target, screen) } });
    },
  };
}

/** The grounder of a run: one quality, or `hybrid`, which sends swipes to the large one (facts.md, "The agent"). */
export function createGrounderRouter(): Grounder {
  const small = createRuleGrounder('small');
  const large = createRuleGrounder('large');
  return {
    name: 'rule-router',
    ground(intent, screen, spec, t) {
      const useLarge = spec.grounder === 'large' || (spec.grounder === 'hybrid' && intent.kind === 'swipe');
      return (useLarge ? large : small).ground(intent, screen, spec, t);
    },
  };
}
