import { FAULT_NAMES } from '../domain/faults.ts';
import { hasCritic } from './schema.ts';
import type { RunConfig } from './schema.ts';

/** A suite as far as a config needs to know it. */
export interface KnownSuite {
  id: string;
  splits: readonly string[];
}

/** Draws of one batch: five batches that teach nothing share the indices of an update (workflows/ids.ts). */
const MAX_DRAWS = 800;

/** What no single key can tell: a problem names the key that is easiest to change. */
export function crossFieldProblems(
  config: RunConfig,
  suites?: readonly KnownSuite[],
): { key: string; message: string }[] {
  const { engine, sft, learn, rollout, devices, workflow, evaluation } = config;
  const problems: { key: string; message: string }[] = [];
  const check = (ok: boolean, key: string, message: string): void => {
    if (!ok) problems.push({ key, message });
  };
  if (suites !== undefined) {
    const suite = suites.find(({ id }) => id === config.suite);
    const known = suites.map(({ id }) => id).join(', ');
    check(suite !== undefined, 'suite', `there is no suite "${config.suite}"; known suites: ${known}`);
    for (const [split, n] of Object.entries(suite === undefined ? {} : evaluation.instances)) {
      const has = n === 0 || suite!.splits.includes(split);
      check(has, `evaluation.instances.${split}`, `${suite!.id} has no such split; it has ${suite!.splits.join(', ')}`);
    }
  }
  for (const name of Object.keys(devices.faults)) {
    const known = (FAULT_NAMES as readonly string[]).includes(name);
    check(known, `devices.faults.${name}`, `there is no such fault; there are ${FAULT_NAMES.join(', ')}`);
  }
  check(
    !/^\w+:\/\/[^/]*@/.test(engine.url),
    'engine.url',
    'expected no user or password in it: it is kept in the run folder, and a secret comes from the environment',
  );
  check(sft.steps + learn.warmup + learn.updates > 0, 'learn.updates', 'there is nothing to do: no SFT, no updates');
  check(sft.steps === 0 || sft.demonstrations > 0, 'sft.demonstrations', 'SFT needs at least one demonstration');
  check(
    learn.estimator === 'ppo' || learn.attempts >= 2,
    'learn.attempts',
    `${learn.estimator} compares sibling attempts: at least 2 are needed`,
  );
  check(
    hasCritic(config) || learn.warmup === 0,
    'learn.warmup',
    `${learn.estimator} has no critic to warm up: expected 0`,
  );
  check(
    learn.fraction === undefined || config.scale !== undefined,
    'learn.fraction',
    'it is a fraction of the updates of a scale: give scale as well, or learn.updates instead',
  );
  check(
    learn.estimator !== 'dapo' || learn.tasks * (1 + (learn.dapo?.maxRedraws ?? 2)) <= MAX_DRAWS,
    'learn.dapo.maxRedraws',
    `expected learn.tasks x (1 + redraws) of at most ${MAX_DRAWS}: an update has no more draws of its own`,
  );
  check(learn.clipLow < 1, 'learn.clipLow', 'expected less than 1: the ratio is clipped to 1 - clipLow');
  check(
    rollout.judgeTimeoutMs <= rollout.deadlineMs,
    'rollout.judgeTimeoutMs',
    `expected at most rollout.deadlineMs (${rollout.deadlineMs}): a judge cannot have longer than its episode`,
  );
  check(
    rollout.parcel <= Math.min(devices.count, workflow.maxConcurrentEpisodes),
    'rollout.parcel',
    `expected at most devices.count (${devices.count}) and workflow.maxConcurrentEpisodes (${workflow.maxConcurrentEpisodes}): a parcel's attempts run side by side`,
  );
  check(
    rollout.stragglerMs > rollout.deadlineMs,
    'rollout.stragglerMs',
    `expected more than rollout.deadlineMs (${rollout.deadlineMs}): an attempt may take so long by itself`,
  );
  return problems;
}
