import type { Intent, StepPlan } from '../domain/index.ts';
import { wordsOf } from './tokenizer.ts';

export type Parsed = { ok: true; plan: StepPlan } | { ok: false; reason: 'empty_output' | 'unparseable_output' };

const DIRECTIONS = ['up', 'down', 'left', 'right'] as const;

/** The intent of `tap wifi`, `type buy milk`, `swipe up`, ...; null when the words are none. */
export function parseIntent(words: readonly string[]): Intent | null {
  const [verb, ...rest] = words;
  const argument = rest.join(' ');
  const alone = rest.length === 0;
  switch (verb) {
    case 'tap':
      return argument ? { kind: 'tap', target: argument } : null;
    case 'press':
      return argument ? { kind: 'long_press', target: argument } : null;
    case 'swipe': {
      const direction = DIRECTIONS.find((d) => d === rest[0]);
      if (!direction) return null;
      return rest.length === 1
        ? { kind: 'swipe', direction }
        : { kind: 'swipe', direction, target: rest.slice(1).join(' ') };
    }
    case 'type':
      return argument ? { kind: 'text_entry', text: argument } : null;
    case 'ask':
      return argument ? { kind: 'ask_user', question: argument } : null;
    case 'home':
      return alone ? { kind: 'navigate_home' } : null;
    case 'wait':
      return alone ? { kind: 'wait' } : null;
    case 'done':
      return alone ? { kind: 'task_complete', claim: 'done' } : null;
    case 'blocked':
      return alone ? { kind: 'task_complete', claim: 'blocked' } : null;
    default:
      return null;
  }
}

/** The step plan in words: the inverse of parseIntent. */
export function formatIntent(intent: Intent): string {
  switch (intent.kind) {
    case 'tap':
      return `tap ${intent.target}`;
    case 'long_press':
      return `press ${intent.target}`;
    case 'swipe':
      return intent.target ? `swipe ${intent.direction} ${intent.target}` : `swipe ${intent.direction}`;
    case 'text_entry':
      return `type ${intent.text}`;
    case 'ask_user':
      return `ask ${intent.question}`;
    case 'navigate_home':
      return 'home';
    case 'wait':
      return 'wait';
    case 'task_complete':
      return intent.claim;
  }
}

/** A response: `<reasoning> <do> <step plan> <rest> <remaining plan> <end>`. */
export function formatPlan(plan: { reasoning: string; intent: Intent; remaining: string }): string {
  return [plan.reasoning, '<do>', formatIntent(plan.intent), '<rest>', plan.remaining, '<end>']
    .filter(Boolean)
    .join(' ');
}

/** Reads a response. The plan and its two marks are required, in order and once; `<end>` may have been cut off. */
export function parsePlan(text: string): Parsed {
  const words = wordsOf(text);
  if (words.at(-1) === '<end>') words.pop();
  if (words.length === 0) return { ok: false, reason: 'empty_output' };
  const bad: Parsed = { ok: false, reason: 'unparseable_output' };
  const [doAt, restAt] = [words.indexOf('<do>'), words.indexOf('<rest>')];
  if (doAt < 0 || restAt < doAt) return bad;
  const marks = words.filter((word) => /^<.*>$/.test(word));
  if (marks.length !== 2) return bad;
  const plan = words.slice(doAt + 1, restAt);
  const intent = parseIntent(plan);
  if (!intent) return bad;
  return {
    ok: true,
    plan: {
      reasoning: words.slice(0, doAt).join(' '),
      text: plan.join(' '),
      intent,
      remaining: words.slice(restAt + 1).join(' '),
    },
  };
}
