import type { RunConfig } from './schema.ts';

/** A choice that is ours: the paper does not say (facts.md, "Unknown"), or says something for another scale. */
export interface NfpChoice {
  /** Path in the config. */
  key: string;
  value: unknown;
  why: string;
}

const REASONS: readonly (readonly [string, string])[] = [
  ['engine.baseModel', 'the paper trains Qwen3-VL-8B; this is our own small planner'],
  ['agent.decodeMask', 'responses keep their form, and taps name only labels that are on the screen'],
  ['agent.historySteps', 'how many earlier plans the planner sees is not said'],
  ['agent.maxUnparseable', 'unparseable outputs that end an attempt'],
  ['agent.maxTokens', 'the paper allows 512 response tokens of its own vocabulary'],
  ['agent.temperature', 'not said'],
  ['rewards.terminal.unparseable', 'said to be at the terminal scale, without its value'],
  ['sft.demonstrations', 'their two recorded sets are not public'],
  ['sft.noise', 'expert actions replaced by random ones, not imitated'],
  ['sft.planNoise', 'prompts of demonstrations that show a wrong remaining plan'],
  ['sft.steps', 'weak on purpose: RL is what is measured'],
  ['sft.batch', 'not said'],
  ['sft.learningRate', 'not said'],
  ['learn.updates', 'the paper makes 336'],
  ['learn.epochs', 'not said'],
  ['learn.minibatch', 'not said; 0 is the whole batch'],
  ['learn.learningRate', 'not said; own value for a small planner'],
  ['learn.learningRateWarmup', 'not said; the first update on a cold Adam is the dangerous one'],
  ['learn.learningRateEnd', 'not said'],
  ['learn.beta1', 'not said'],
  ['learn.beta2', 'not said'],
  ['learn.gradClip', 'not said'],
  ['learn.clipLow', 'not said'],
  ['learn.clipHigh', 'not said'],
  ['learn.dualClip', 'not said'],
  ['learn.entropy', 'not said'],
  ['learn.aggregation', 'not said'],
  ['learn.minValidFraction', 'batches with fewer valid attempts are skipped'],
  ['learn.curriculum.wideSkinFraction', 'simulated phones only'],
  ['critic.siblings', 'the paper tells of one neighbour; all is our own'],
  ['critic.hidden', 'not said'],
  ['critic.learningRate', 'said to be 100 times the policy rate; own value for a small planner'],
  ['critic.epochs', 'not said; with 1 the small critic explains little'],
  ['critic.minibatch', 'not said'],
  ['critic.valueClip', 'not said'],
];

/** The choices of a config that are not from the paper, for the run's header and report. */
export function nfpChoices(config: RunConfig): NfpChoice[] {
  return REASONS.map(([key, why]) => ({ key, value: valueAt(config, key), why }));
}

function valueAt(config: RunConfig, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], config);
}
