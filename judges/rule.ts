import type { EpisodeSpec, Intent, Screen } from '../domain/index.ts';
import { TapwrightError } from '../domain/index.ts';
import { createRandom } from '../rl/random.ts';
import type { Judge, JudgeMemory, OutcomeEvidence, StepEvidence } from './judge.ts';

const VERSION = 'rule-1';

/** Words a claim may be checked against: everything written on the screen. */
function written(screen: Screen): Set<string> {
  const texts = (screen.outline ?? []).flatMap((e) => [e.label, e.value ?? '']);
  return new Set([...texts, screen.app ?? '']);
}

/**
 * A claim in the reasoning that the screen or the ground truth contradicts; null when there is none. Only the claims of
 * the planner's few-token style are claims: `see X`, `all set`, `not here`. A screen without an outline
 * contradicts nothing.
 */
export function falseClaim(evidence: StepEvidence): string | null {
  const reasoning = evidence.plan?.reasoning ?? '';
  const [first, ...rest] = reasoning.split(' ');
  const { before, truthBefore: truth, task } = evidence;
  if (first === 'see' && rest.length > 0 && before.outline && !written(before).has(rest.join(' '))) return reasoning;
  if (reasoning === 'all set' && truth && !truth.goalHolds) return reasoning;
  if (reasoning === 'not here' && truth && task.possible) return reasoning;
  return null;
}

/** Identity of what was tried, and where: the same again after a fail is a fail whatever else (devices.md). */
function attemptKey(evidence: StepEvidence, intent: Intent): string {
  return `${evidence.truthBefore?.key ?? evidence.before.hash}|${JSON.stringify(intent)}`;
}

/** Was the information really missing? Not when it is in the goal, on the screen, or not the user's to know. */
export function askWasNeeded(evidence: StepEvidence, question: string): boolean {
  const fact = evidence.truthBefore?.needsFact;
  if (fact === undefined || fact === null) return false;
  const asked = new Set(question.split(' '));
  if (!fact.split(' ').every((word) => asked.has(word))) return false;
  const value = evidence.task.userFacts[fact];
  return (
    value !== undefined && !` ${evidence.task.goal} `.includes(` ${value} `) && !written(evidence.before).has(value)
  );
}

function judge(
  evidence: StepEvidence,
  memory: JudgeMemory,
  hallucination: boolean,
): { verdict: 'success' | 'fail' | 'overcomplete'; why: string } {
  const { plan, grounding, truthBefore, truthAfter } = evidence;
  if (!plan) return { verdict: 'fail', why: 'unparseable' };
  const { intent } = plan;
  if (truthBefore?.goalHolds && intent.kind !== 'task_complete')
    return { verdict: 'overcomplete', why: 'goal_already_held' };
  if (memory.failed.includes(attemptKey(evidence, intent))) return { verdict: 'fail', why: 'repeated_failure' };
  // Even when the step made progress (facts.md, "The judges").
  if (hallucination && falseClaim(evidence) !== null) return { verdict: 'fail', why: 'hallucinated_reasoning' };
  if (grounding.kind === 'refused') return { verdict: 'fail', why: 'not_on_screen' };
  if (intent.kind === 'task_complete') {
    const right = truthBefore?.goalHolds === true && (intent.claim === 'done') === evidence.task.possible;
    return right ? { verdict: 'success', why: 'finished' } : { verdict: 'fail', why: 'false_completion' };
  }
  if (intent.kind === 'ask_user')
    return askWasNeeded(evidence, intent.question)
      ? { verdict: 'success', why: 'needed_question' }
      : { verdict: 'fail', why: 'needless_question' };
  if (!truthBefore || !truthAfter) return { verdict: 'fail', why: 'no_ground_truth' };
  const best = memory.best ?? truthBefore.distance;
  // Only beyond the high-water mark: leaving and coming back earns nothing, the goal included (engine.md, 2).
  if (truthAfter.goalHolds && best !== 0) return { verdict: 'success', why: 'goal_reached' };
  if (truthAfter.distance === null || best === null) return { verdict: 'fail', why: 'no_progress' };
  return truthAfter.distance < best ? { verdict: 'success', why: 'progress' } : { verdict: 'fail', why: 'no_progress' };
}

/** What is remembered after a step. A pop-up raises the distance but never the mark. */
function remember(evidence: StepEvidence, memory: JudgeMemory, failed: boolean): JudgeMemory {
  const distances = [memory.best, evidence.truthBefore?.distance, evidence.truthAfter?.distance];
  const known = distances.filter((d): d is number => typeof d === 'number');
  const intent = evidence.plan?.intent;
  return {
    best: known.length > 0 ? Math.min(...known) : null,
    failed: failed && intent ? [...new Set([...memory.failed, attemptKey(evidence, intent)])] : memory.failed,
  };
}

function terminalVerdict(evidence: OutcomeEvidence): { verdict: 'success' | 'fail' | 'blocked_complete'; why: string } {
  const holds = evidence.truth?.goalHolds === true;
  if (evidence.claim === 'done' && evidence.task.possible && holds) return { verdict: 'success', why: 'goal_holds' };
  if (evidence.claim === 'blocked' && !evidence.task.possible && holds)
    return { verdict: 'blocked_complete', why: 'evidence_seen' };
  return { verdict: 'fail', why: holds ? 'wrong_claim' : 'goal_does_not_hold' };
}

/**
 * Judges from ground truth: dense, ask-user and terminal (devices.md, "Judges"). Deterministic and free. `hallucination` false:
 * a reasoning may claim what the screen does not show.
 */
export function createRuleJudge({ hallucination = true }: { hallucination?: boolean } = {}): Judge {
  return {
    name: VERSION,
    judgeStep(evidence, memory) {
      const { verdict, why } = judge(evidence, memory, hallucination);
      const failed = verdict !== 'success' && why !== 'unparseable';
      return Promise.resolve({ verdict, why, memory: remember(evidence, memory, failed) });
    },
    judgeOutcome: (evidence) => Promise.resolve(terminalVerdict(evidence)),
  };
}

/**
 * Seeded judge failures for experiments: `judge_down` and `judge_garbage` are rates per attempt in `spec.faults`. They
 * come at the first judged step, which every attempt has: later ones would miss short attempts and fall below the rate.
 */
export function judgeFault(spec: EpisodeSpec, t: number): TapwrightError | null {
  if (t !== 0) return null;
  const { phase, update, draw, attempt } = spec.key;
  const random = createRandom(spec.seed, phase, update, draw, attempt, spec.infraTry, 'judge-fault');
  const [down, garbage] = [random.next(), random.next()];
  if (down < (spec.faults.judge_down ?? 0))
    return new TapwrightError('judge_unavailable', 'The judge did not answer (injected fault judge_down).');
  if (garbage < (spec.faults.judge_garbage ?? 0))
    return new TapwrightError('judge_unparseable', 'The judge gave no valid verdict (injected fault judge_garbage).');
  return null;
}
