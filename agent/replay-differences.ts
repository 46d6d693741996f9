import { isDeepStrictEqual } from 'node:util';
import type {
  Episode,
  Grounding,
  JudgedStep,
  OutlineElement,
  ReplayDifference,
  ReplayField,
  Screen,
  Step,
  TaskInstance,
  Truth,
} from '../domain/index.ts';

/** How much of a planner's decision is compared: nothing (it was given), what it wrote, or every bit of the sample. */
export type DecisionCheck = 'none' | 'text' | 'bits';

/** What differs, in short, and a remark. */
type Found = { recorded: string; now: string; detail?: string } | null;

interface Check<T> {
  field: ReplayField;
  /** After "step 3 (tap wifi): ". */
  what: string;
  find(old: T, now: T): Found;
}

/** Longest piece of a value in a sentence. */
const MAX = 120;

const short = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  return text.length > MAX ? `${text.slice(0, MAX)}...` : text;
};

/** Equal, or both in short. */
function values<T>(show: (value: T) => unknown = (value) => value): (old: T, now: T) => Found {
  return (old, now) =>
    isDeepStrictEqual(old, now) ? null : { recorded: short(show(old) ?? null), now: short(show(now) ?? null) };
}

const of = <T, V>(take: (from: T) => V, find: (old: V, now: V) => Found): ((old: T, now: T) => Found) => {
  return (old, now) => find(take(old), take(now));
};

const BEFORE: readonly Check<Pick<Step, 'before' | 'truthBefore'>>[] = [
  { field: 'screen_before', what: 'the screen before it is another one', find: of((s) => s.before, screens) },
  { field: 'truth_before', what: 'the state before it is another one', find: of((s) => s.truthBefore, truths) },
];

const DECISION: readonly Check<Step>[] = [
  {
    field: 'prompt',
    what: 'the planner was shown something else',
    find: of((s) => s.sample.promptTokens, tokens),
  },
  { field: 'decision', what: 'the planner decided otherwise', find: decisions },
];

const BITS: readonly Check<Step>[] = [
  {
    field: 'logprobs',
    what: 'the same decision came with other probabilities',
    find: of((s) => s.sample.logprobs, values()),
  },
  { field: 'hidden', what: 'the hidden state is another one', find: of((s) => s.sample.hidden, values()) },
];

const AFTER: readonly Check<Step>[] = [
  { field: 'grounding', what: 'it was grounded otherwise', find: of((s) => s.grounding, values(groundingText)) },
  { field: 'receipt', what: "the device's receipt is another one", find: of((s) => s.receipt, values()) },
  { field: 'answer', what: 'the user answered otherwise', find: of((s) => s.answer, values()) },
  { field: 'screen_after', what: 'the screen after it is another one', find: of((s) => s.after, screens) },
  { field: 'truth_after', what: 'the state after it is another one', find: of((s) => s.truthAfter, truths) },
];

const VERDICT: Check<Pick<JudgedStep, 'dense' | 'why'>> = {
  field: 'dense',
  what: 'it was judged otherwise',
  // The reason may be worded otherwise: a reward comes from the verdict.
  find: (old, now) => (old.dense === now.dense ? null : { recorded: verdictText(old), now: verdictText(now) }),
};

const verdictText = ({ dense, why }: Pick<JudgedStep, 'dense' | 'why'>): string => `${dense} (${why})`;

const CHECKS: Record<DecisionCheck, readonly Check<Step>[]> = {
  none: [...BEFORE, ...AFTER],
  text: [...BEFORE, ...DECISION, ...AFTER],
  bits: [...BEFORE, ...DECISION, ...BITS, ...AFTER],
};

/** Says whether the goal that a device drew is the recorded one. */
export function goalDifference(old: TaskInstance, now: TaskInstance): ReplayDifference | null {
  const check: Check<string> = { field: 'goal', what: 'the device set another goal', find: values() };
  return first(0, 'before the first step', [check], old.goal, now.goal);
}

/** What a step begins with, against what the recorded one began with. */
export function startDifference(
  old: JudgedStep,
  now: { before: Screen; truthBefore: Truth | null },
): ReplayDifference | null {
  return first(old.t, actText(old), BEFORE, old, plain(now));
}

/** A step against the recorded one, verdicts left out. */
export function stepDifference(old: JudgedStep, now: Step, decision: DecisionCheck): ReplayDifference | null {
  return first(old.t, actText(old), CHECKS[decision], old, plain(now));
}

/** The verdict on a step against the recorded one. */
export function verdictDifference(old: JudgedStep, now: Pick<JudgedStep, 'dense' | 'why'>): ReplayDifference | null {
  return first(old.t, actText(old), [VERDICT], old, now);
}

/** The replay goes on where the recorded attempt has ended, or the other way round. */
export function lengthDifference(old: number, now: number | 'more'): ReplayDifference {
  const ended = now === 'more' || now > old ? 'ended there' : 'went on';
  const goes = now === 'more' || now > old ? 'goes on' : 'ends';
  const step = now === 'more' ? old : Math.min(old, now);
  const steps = now === 'more' ? `more than ${old}` : String(now);
  const sentence = `step ${step}: the replay ${goes} where the recorded attempt ${ended}: ${old} steps were recorded, ${steps} were made now`;
  return { step, field: 'steps', recorded: String(old), now: steps, sentence };
}

/** The first difference of two whole attempts; null when there is none. Pixels and frame counts are not looked at. */
export function episodeDifference(old: Episode, now: Episode, decision: DecisionCheck): ReplayDifference | null {
  const goal = goalDifference(old.task, now.task);
  if (goal !== null) return goal;
  for (let t = 0; t < Math.min(old.steps.length, now.steps.length); t++) {
    const [a, b] = [old.steps[t]!, now.steps[t]!];
    const found = stepDifference(a, b, decision) ?? verdictDifference(a, b);
    if (found !== null) return found;
  }
  if (old.steps.length !== now.steps.length) return lengthDifference(old.steps.length, now.steps.length);
  const whole: readonly Check<Episode>[] = [
    { field: 'claim', what: 'the agent claimed something else', find: of((e) => e.claim, values()) },
    { field: 'terminal', what: 'the terminal judge judged otherwise', find: of((e) => e.terminal, values()) },
    { field: 'outcome', what: 'it came out otherwise', find: of((e) => e.outcome, values()) },
  ];
  return first(null, 'at the end', whole, old, now);
}

function first<T>(
  step: number | null,
  where: string,
  checks: readonly Check<T>[],
  old: T,
  now: T,
): ReplayDifference | null {
  for (const { field, what, find } of checks) {
    const found = find(old, now);
    if (found === null) continue;
    const { recorded, now: is, detail } = found;
    const at = step === null || where === 'before the first step' ? where : `step ${step} (${where})`;
    const sentence = `${at}: ${what}: ${recorded} was recorded, now it is ${is}${detail === undefined ? '' : `; ${detail}`}`;
    return { step, field, recorded, now: is, sentence };
  }
  return null;
}

/** As it would be read back from a record. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const actText = (step: Step): string => short(step.plan?.text ?? 'unparseable response');

function tokens(old: number[], now: number[]): Found {
  if (isDeepStrictEqual(old, now)) return null;
  const at = old.findIndex((token, i) => token !== now[i]);
  const place = at < 0 ? old.length : at;
  return {
    recorded: `${old.length} tokens`,
    now: `${now.length} tokens`,
    detail: `token ${place} was ${old[place] ?? 'none'} and is ${now[place] ?? 'none'}`,
  };
}

function decisions(old: Step, now: Step): Found {
  const [a, b] = [old.sample, now.sample];
  if (isDeepStrictEqual(a.responseTokens, b.responseTokens) && isDeepStrictEqual(old.plan, now.plan)) return null;
  return { recorded: short(JSON.stringify(a.text)), now: short(JSON.stringify(b.text)) };
}

/** A screen by what is seen: its hash, the app in front, the outline, its measures. */
function screens(old: Screen, now: Screen): Found {
  const detail = outlines(old.outline, now.outline) ?? undefined;
  if (old.hash !== now.hash) {
    const app =
      old.app === now.app ? undefined : `${old.app ?? 'an unknown app'} was in front, now ${now.app ?? 'one'}`;
    const said = [app, detail].filter((part) => part !== undefined).join(', ');
    return { recorded: `hash ${old.hash}`, now: `hash ${now.hash}`, ...(said === '' ? {} : { detail: said }) };
  }
  if (old.app !== now.app) return { recorded: `app ${old.app ?? 'unknown'}`, now: `app ${now.app ?? 'unknown'}` };
  if (detail !== undefined) return { recorded: 'one outline', now: 'another one of the same hash', detail };
  const measures = ({ width, height, scale, space, degenerate }: Screen): unknown => ({
    ...{ width, height, scale, space, degenerate },
  });
  return values()(measures(old), measures(now));
}

/** Where two outlines part, in words; null when they do not. */
function outlines(old: OutlineElement[] | null, now: OutlineElement[] | null): string | null {
  if (isDeepStrictEqual(old, now)) return null;
  if (old === null || now === null) return old === null ? 'there is an outline now' : 'there is no outline any more';
  for (let i = 0; i < Math.max(old.length, now.length); i++) {
    const [a, b] = [old[i], now[i]];
    if (isDeepStrictEqual(a, b)) continue;
    const name = (e: OutlineElement): string => `${e.role} "${e.label}"`;
    if (a === undefined) return `${name(b!)} is new`;
    if (b === undefined) return `${name(a)} is missing`;
    if (a.label !== b.label || a.role !== b.role) return `${name(b)} stands in the place of ${name(a)}`;
    if (a.value !== b.value) return `${name(a)} was ${short(a.value ?? 'empty')} and is ${short(b.value ?? 'empty')}`;
    if (!isDeepStrictEqual(a.box, b.box)) return `${name(a)} is in another place`;
    return `${name(a)} ${b.focused === true ? 'has' : 'has lost'} the keyboard`;
  }
  return 'they differ';
}

function truths(old: Truth | null, now: Truth | null): Found {
  if (isDeepStrictEqual(old, now)) return null;
  const text = (truth: Truth | null): string =>
    truth === null
      ? 'no ground truth'
      : `${truth.goalHolds ? 'goal holds' : 'goal does not hold'}, ${truth.distance === null ? 'no known way there' : `${truth.distance} steps to go`}`;
  const [recorded, is] = [text(old), text(now)];
  if (recorded !== is) return { recorded, now: is };
  if (old?.needsFact !== now?.needsFact) return { recorded: `needs ${old?.needsFact}`, now: `needs ${now?.needsFact}` };
  return { ...parted(old?.key ?? '', now?.key ?? '') };
}

/** Two long keys around the place where they part. */
function parted(old: string, now: string): { recorded: string; now: string } {
  let at = 0;
  while (at < old.length && old[at] === now[at]) at++;
  const around = (text: string): string => `state ...${text.slice(Math.max(0, at - 20), at + 20)}...`;
  return { recorded: around(old), now: around(now) };
}

function groundingText(grounding: Grounding): string {
  if (grounding.kind === 'action') return `${JSON.stringify(grounding.action)} by ${grounding.grounder}`;
  return grounding.kind === 'none' ? 'nothing to do' : `refused (${grounding.reason})`;
}
