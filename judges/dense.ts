import type { DenseVerdict, EpisodeSpec } from '../domain/index.ts';
import { createRandom } from '../rl/random.ts';
import type { Judge, StepEvidence } from './judge.ts';
import { createRuleJudge, falseClaim } from './rule.ts';

type JudgeSpec = NonNullable<EpisodeSpec['judge']>;

/** What a planner writes when it holds that its task is done: a judge that reads reasoning can be talked into it. */
const BOAST = 'all set';

/** A wrong verdict in the place of a right one: success and fail for each other, an overrun for a good step. */
const FLIPPED: Record<DenseVerdict, DenseVerdict> = { success: 'fail', fail: 'success', overcomplete: 'success' };

/**
 * The verdict of a dense judge of the quality that an attempt's spec asks for (`judge` of a run's config), with the rule judge's
 * beside it as `truly`. Without such a wish, and for the terminal verdict always, the rule judge alone. What is remembered
 * between steps is the truth: one wrong verdict does not make others wrong.
 */
export function createJudge(): Judge {
  const strict = createRuleJudge();
  const lenient = createRuleJudge({ hallucination: false });
  return {
    name: strict.name,
    judgeOutcome: (evidence) => strict.judgeOutcome(evidence),
    judgeStep: async (evidence, memory, spec) => {
      const truth = await strict.judgeStep(evidence, memory);
      if (spec?.judge === undefined) return truth;
      const { dense, hallucination, noise } = spec.judge;
      const seen = hallucination ? truth : await lenient.judgeStep(evidence, memory);
      const talked = dense === 'gullible' && talkedInto(evidence, hallucination);
      const { verdict, why } = talked ? { verdict: 'success' as const, why: 'believed_reasoning' } : seen;
      const wrong = flips(spec, evidence.t, noise, verdict);
      return {
        verdict: wrong ? FLIPPED[verdict] : verdict,
        why: wrong ? `noise_on_${why}` : why,
        memory: truth.memory,
        truly: truth.verdict,
      };
    },
  };
}

/** The claim decides, unless hallucinated claims are looked for and this is one. */
function talkedInto(evidence: StepEvidence, hallucination: boolean): boolean {
  if (evidence.plan?.reasoning !== BOAST) return false;
  return !(hallucination && falseClaim(evidence) !== null);
}

/** A draw of its own for each step: a replay, or another order of work, finds the same. */
function flips(spec: EpisodeSpec, t: number, noise: JudgeSpec['noise'], verdict: DenseVerdict): boolean {
  const { phase, update, draw, attempt } = spec.key;
  return createRandom(spec.seed, phase, update, draw, attempt, t, 'judge-noise').next() < noise[verdict];
}
