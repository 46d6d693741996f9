import { runConfigSchema } from '../configs/schema.ts';
import { createRandom } from '../rl/random.ts';
import { createRun } from '../store/index.ts';
import type { MetricsRow, RunFolder } from '../store/index.ts';
import { sampleEpisode, sampleManifest, temporaryFolder } from '../store/testing.ts';

/** A run's folder with invented figures, for tests of what shows runs. */
export async function sampleRun(
  options: { updates?: number; id?: string } = {},
): Promise<{ home: string; run: RunFolder }> {
  const { updates = 40, id = 'sample' } = options;
  const home = temporaryFolder();
  const config = runConfigSchema.parse({ name: id, seed: 1, suite: 'sim-phones', learn: { updates } });
  const run = await createRun(home, id, config, { node: process.versions.node, engine: { backend: 'native' } });
  const random = createRandom(1, 'sample-run');
  for (let k = 1; k <= 15; k++) await run.metrics.append(row('warmup', k, 0.2, random.next()));
  for (let k = 1; k <= updates; k++) {
    await run.metrics.append(row('train', k, 0.2 + (0.4 * k) / updates, random.next()));
  }
  await run.checkpoints.commit(sampleManifest('sft', 8), {});
  await run.checkpoints.commit(sampleManifest('train', updates), { 'critic.safetensors': Buffer.from('c') });
  await run.episodes.put(sampleEpisode(updates, 0, 0, 4));
  await run.episodes.put(sampleEpisode(updates, 1, 0, 3));
  await run.addResults(
    (['heldout-params', 'train'] as const).flatMap((split) =>
      [0.2, 0.45].map((rate, i) => {
        const perTask = Array.from({ length: 200 }, (_, t) => ({
          task: `task-${t}`,
          success: t === 0 ? null : createRandom(i, split, t).next() < rate,
        }));
        const successes = perTask.filter(({ success }) => success === true).length;
        return {
          policy: ['sft', 'rl'][i]!,
          checkpoint: ['sft-8', `train-${updates}`][i]!,
          suite: 'sim-phones',
          split,
          n: 199,
          successes,
          masked: { device_hung: 1 },
          outcomes: { success: successes, failure: 199 - successes },
          perTask,
        };
      }),
    ),
  );
  return { home, run };
}

function row(stage: 'warmup' | 'train', update: number, success: number, noise: number): MetricsRow {
  const policy = stage === 'train' ? { 'ppo/clip_fraction': 0.02 * noise, 'ppo/entropy': 0.6 - success / 2 } : {};
  return {
    stage,
    update,
    'rollout/success': success + 0.1 * (noise - 0.5),
    'reward/dense_mean': 0.5 + success,
    'reward/terminal_mean': 2 * success - 0.5,
    'reward/return_mean': 3 * success,
    'critic/explained_variance': 0.3 * (1 - Math.exp(-update / 5)),
    'critic/loss': 1 + noise,
    'episode/steps_mean': 6 + noise,
    'outcome/success': success,
    'outcome/step_limit': 1 - success,
    ...(noise > 0.8 ? { 'mask/device_hung': 1 } : {}),
    'time/rollout': 2 + noise,
    ...policy,
  } as MetricsRow;
}
