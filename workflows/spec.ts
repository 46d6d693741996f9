import type { RunConfig } from '../configs/schema.ts';
import type { EpisodeKey, EpisodeSpec, TaskInstance } from '../domain/index.ts';

/** The specification of one attempt: pure, from the config and the key alone. */
export function episodeSpec(
  config: RunConfig,
  key: EpisodeKey,
  task: TaskInstance,
  policy: string,
  seed: number = config.seed,
): EpisodeSpec {
  const evaluating = key.phase === 'eval';
  return {
    key,
    seed,
    task: { ...task, stepBudget: Math.min(task.stepBudget, config.rollout.maxSteps) },
    policy,
    temperature: evaluating && config.evaluation.greedy ? 0 : config.agent.temperature,
    maxTokens: config.agent.maxTokens,
    decodeMask: config.agent.decodeMask,
    grounder: config.agent.grounder,
    maxUnparseable: config.agent.maxUnparseable,
    // Faults are for training batches: an evaluation measures the policy.
    faults: evaluating ? {} : config.devices.faults,
    ...(evaluating ? {} : judgeOf(config)),
    keepScreens: config.devices.keepScreens === 'all' || (evaluating && config.devices.keepScreens === 'eval'),
    deadlineMs: config.rollout.deadlineMs,
    infraTry: 0,
  };
}

/** The dense judge that a config asks for, when it is not the rules: an evaluation measures the policy, by the rules. */
function judgeOf({ judge }: RunConfig): Pick<EpisodeSpec, 'judge'> {
  const { dense, hallucination = true, noise = { success: 0, fail: 0, overcomplete: 0 } } = judge;
  const plain = dense === 'rule' && hallucination && Object.values(noise).every((rate) => rate === 0);
  return plain ? {} : { judge: { dense, hallucination, noise } };
}
