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

/** Outside every element but on the screen: what a grounder that points at nothing gives. */
function missed(box: Box, screen: Screen): Point {
  const below = box.y + box.height + Math.max(2, Math.round(box.height / 3));
  return { x: Math.round(box.x + box.width / 2), y: Math.min(below, screen.height - 1) };
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

/**
 * Rule grounder over the outline, in two qualities. `large` finds every label; `small` errs at a seeded rate and knows
 * directional swipes only. A label that is not on the screen is refused: the planner may name only what it sees.
 */
export function createRuleGrounder(quality: GrounderQuality): Grounder {
  const name = `rule-${quality}`;
  return {
    name,
    ground: (intent, screen, spec, t) => Promise.resolve(ground(intent, screen, spec, t)),
  };

  function ground(intent: Intent, screen: Screen, spec: EpisodeSpec, t: number): Grounding {
    const find = (label: string): OutlineElement | undefined => screen.outline?.find((e) => e.label === label);
    switch (intent.kind) {
      case 'ask_user':
      case 'task_complete':
        return { kind: 'none' };
      case 'navigate_home':
      case 'wait':
        return { kind: 'action', action: { kind: intent.kind }, grounder: name };
      case 'text_entry':
        return { kind: 'action', action: { kind: 'text_entry', text: intent.text }, grounder: name };
      case 'swipe': {
        const whole = { x: 0, y: 0, width: screen.width, height: screen.height };
        if (intent.target === undefined) return { kind: 'action', action: swipePath(intent, whole), grounder: name };
        if (quality === 'small') return { kind: 'refused', reason: 'unsupported', grounder: name };
        const target = find(intent.target);
        if (!target) return { kind: 'refused', reason: 'not_on_screen', grounder: name };
        return { kind: 'action', action: swipePath(intent, target.box), grounder: name };
      }
      case 'tap':
      case 'long_press': {
        const target = find(intent.target);
        if (!target) return { kind: 'refused', reason: 'not_on_screen', grounder: name };
        const { phase, update, draw, attempt } = spec.key;
        const random = createRandom(spec.seed, phase, update, draw, attempt, t, 'ground');
        const errs = quality === 'small' && random.next() < SMALL_ERROR_RATE;
        const at = errs ? wrongPoint(random, target, screen) : centre(target.box);
        return { kind: 'action', action: { kind: intent.kind, at }, grounder: name };
      }
    }
  }
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
