import type { EpisodeSpec, PlannerSample, Screen, StepPlan, TaskInstance } from '../domain/index.ts';
import { hashSeed } from '../rl/random.ts';
import { decodeConstraint, type DecodeConstraint } from './constraint.ts';
import { parsePlan } from './parser.ts';
import type { HistoryEntry } from './ports.ts';
import { buildPrompt, type PromptOptions } from './prompt.ts';
import type { Tokenizer } from './tokenizer.ts';

/** What the planner needs of an engine; the engine's client has this form. */
export interface SamplerPort {
  sample(request: {
    policy: string;
    prompt: number[];
    seed: number;
    temperature: number;
    maxTokens: number;
    stop: number[];
    constraint: DecodeConstraint | null;
    returnHidden: boolean;
  }): Promise<{ tokens: number[]; logprobs: number[]; hidden: string | null }>;
}

export interface Planner {
  /** One decision. `plan` is null when the response could not be parsed; an unavailable engine throws. */
  plan(
    spec: EpisodeSpec,
    t: number,
    task: TaskInstance,
    screen: Screen,
    history: readonly HistoryEntry[],
  ): Promise<{ sample: PlannerSample; plan: StepPlan | null }>;
}

/** The seed of a step's sample: a function of where it stands, never of when (design.md, 4). Fits an int32. */
export function sampleSeed(spec: EpisodeSpec, t: number): number {
  const { phase, update, draw, attempt } = spec.key;
  return hashSeed(spec.seed, phase, update, draw, attempt, t, 'sample') >>> 1;
}

/** The text planner over any sampler. */
export function createPlanner(
  options: {
    engine: SamplerPort;
    tokenizer: Tokenizer;
    /** False: nobody reads hidden states, so none are asked for. */
    hidden?: boolean;
  } & PromptOptions,
): Planner {
  const { engine, tokenizer, hidden: wanted = true } = options;
  return {
    async plan(spec, t, task, screen, history) {
      const prompt = buildPrompt(tokenizer, task, screen, history, options);
      const allowed = spec.decodeMask === 'none' ? null : prompt.allowed;
      const { tokens, logprobs, hidden } = await engine.sample({
        policy: spec.policy,
        prompt: prompt.ids,
        seed: sampleSeed(spec, t),
        temperature: spec.temperature,
        maxTokens: spec.maxTokens,
        stop: [tokenizer.end],
        constraint: decodeConstraint(tokenizer, spec.decodeMask, allowed),
        returnHidden: wanted,
      });
      const text = tokenizer.decode(tokens, prompt.table).join(' ');
      const parsed = parsePlan(text);
      const sample: PlannerSample = {
        promptTokens: prompt.ids,
        responseTokens: tokens,
        logprobs,
        hidden,
        allowed,
        text,
      };
      return { sample, plan: parsed.ok ? parsed.plan : null };
    },
  };
}
