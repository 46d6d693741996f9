import { readFile, stat } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import type { RunConfig } from '../configs/schema.ts';
import type { Checkpoint } from '../domain/checkpoint.ts';
import { TapwrightError } from '../domain/errors.ts';
import { canonicalJson } from './canonical-json.ts';
import { createFiles, sha256Hex } from './files.ts';
import { configHash, createRun, differences, runDir } from './run-folder.ts';
import type { RunFolder, RunHeader } from './run-folder.ts';

/** One branching, as header.json's `lineage` lists them, the oldest first. */
export interface Ancestor {
  run: string;
  update: number | 'sft';
  /** sha256 of the ancestor's config. */
  config: string;
  /** Keys that the branch sets otherwise. */
  changed: string[];
}

export interface BranchOptions {
  /** Id of the new run. */
  id: string;
  /** Policy updates of the old run that the new one begins with; 0: after SFT and warm-up; `sft`: after SFT alone. */
  update: number | 'sft';
  config: RunConfig;
  header: RunHeader;
}

/** What the weights at hand were made with: another value would not fit them, or would not be what the run says it is. */
const SETTLED = ['suite', 'engine.url', 'engine.baseModel', 'sft'];
/** After SFT alone there is no critic yet. */
const SETTLED_BY_CRITIC = ['critic.hidden', 'learn.warmup'];

/**
 * Prepares `runs/<id>/` to go on from a checkpoint of another run: copies of its weights with their moments, its critic,
 * the metrics and results up to it. The old run is read and never written.
 * Errors: `not_found` when there is no such whole checkpoint, with those there are; `invalid_config` for what cannot
 * change; `invalid_input` when the new run exists.
 */
export async function branchRun(home: string, from: RunFolder, options: BranchOptions): Promise<RunFolder> {
  const { id, update, config } = options;
  const dir = runDir(home, id);
  if (await exists(join(dir, 'config.yaml'))) {
    throw new TapwrightError(
      'invalid_input',
      `run ${id} exists already: choose another --id, or go on with it by tapwright run ${join(dir, 'config.yaml')} --id ${id}`,
    );
  }
  const changed = differences(from.config, config);
  const checkpoint = await checkpointOf(from, update);
  checkChanges(changed, update, config);
  const { lineage } = await from.header();
  const ancestor: Ancestor = { run: from.id, update, config: configHash(from.config), changed };
  const ancestors = Array.isArray(lineage) ? (lineage as Ancestor[]) : [];
  const header = { ...options.header, lineage: [...ancestors, ancestor] };
  return createRun(home, id, config, header, {
    before: async (folder) => {
      await copyCheckpoint(from, folder, checkpoint, config);
      for (const row of await from.metrics.read()) {
        if (before(update, row.stage, row.update)) await folder.metrics.append(row);
      }
      // Evaluated otherwise from now on, the old cells would pass for cells of the new kind.
      if (canonicalJson(evaluationOf(from.config)) !== canonicalJson(evaluationOf(config))) return;
      const { cells } = await from.results();
      const earlier = cells.filter((cell) => {
        const [stage, k] = cell.checkpoint.split('-');
        return cell.schedule === undefined && before(update, stage!, Number(k));
      });
      if (earlier.length > 0) await folder.addResults(earlier);
    },
  });
}

/** True for what a run did up to where the branch begins. */
function before(update: BranchOptions['update'], stage: string, k: number): boolean {
  return update === 'sft' ? stage === 'sft' : stage !== 'train' || k <= update;
}

/** What the outcome of a greedy evaluation depends on, besides the policy and the suite. */
function evaluationOf({ agent, rollout, evaluation, tasks }: RunConfig): unknown {
  const { temperature, ...rest } = agent;
  const { greedy, instances } = evaluation;
  return { ...rest, tasks, greedy, instances, maxSteps: rollout.maxSteps, temperature: greedy ? null : temperature };
}

function checkChanges(changed: string[], update: BranchOptions['update'], config: RunConfig): void {
  const names = update === 'sft' ? SETTLED : [...SETTLED, ...SETTLED_BY_CRITIC];
  const settled = changed.filter((key) => names.some((name) => key === name || key.startsWith(`${name}.`)));
  if (settled.length > 0) {
    throw new TapwrightError(
      'invalid_config',
      `${settled.join(', ')} cannot change in a branch: the checkpoint was made with the old value. Start a new run`,
    );
  }
  if (update !== 'sft' && config.learn.updates <= update) {
    throw new TapwrightError(
      'invalid_config',
      `nothing is left to train: the branch begins after update ${update} and learn.updates is ${config.learn.updates}: add --set learn.updates=${update + 50}`,
    );
  }
}

/** The whole checkpoint after so many policy updates. */
async function checkpointOf(from: RunFolder, update: BranchOptions['update']): Promise<Checkpoint> {
  const listed = await from.checkpoints.list();
  if (update === 'sft') {
    const { steps, chunk } = from.config.sft;
    const imitated = await from.checkpoints.get('sft', Math.ceil(steps / chunk));
    if (imitated !== null) return imitated;
    throw new TapwrightError(
      'not_found',
      `run ${from.id} has not come to the end of its imitation yet: go on with it first`,
    );
  }
  const last = listed.filter(({ stage }) => stage !== 'train').at(-1);
  const settled = last !== undefined && reachedTraining(from.config, last);
  if (update === 0 && settled) {
    const checkpoint = await from.checkpoints.get(last.stage, last.k);
    if (checkpoint !== null) return checkpoint;
  }
  if (update > 0) {
    const checkpoint = await from.checkpoints.get('train', update);
    if (checkpoint !== null) return checkpoint;
  }
  const there: number[] = settled ? [0] : [];
  for (const { stage, k } of listed) {
    if (stage === 'train' && k !== update && (await from.checkpoints.get(stage, k)) !== null) there.push(k);
  }
  const hint =
    there.length === 0
      ? 'it has none yet'
      : `there are ${there.join(', ')} (checkpoints.keepLast and checkpoints.keepEvery say which are kept)`;
  throw new TapwrightError('not_found', `run ${from.id} has no whole checkpoint of update ${update}: ${hint}`);
}

/** True for the last checkpoint before the first policy update. */
function reachedTraining({ sft, learn }: RunConfig, last: { stage: Checkpoint['stage']; k: number }): boolean {
  if (learn.warmup > 0) return last.stage === 'warmup' && last.k >= learn.warmup;
  return last.k >= Math.ceil(sft.steps / sft.chunk);
}

/** Each run owns the files of its checkpoints and deletes them in time, so the engine's files are copied as well. */
async function copyCheckpoint(
  from: RunFolder,
  to: RunFolder,
  checkpoint: Checkpoint,
  config: RunConfig,
): Promise<void> {
  const files = createFiles();
  const owned: Record<string, Uint8Array> = {};
  const engine: string[] = [];
  const renamed = new Map<string, string>();
  for (const [name, hash] of Object.entries(checkpoint.files)) {
    const path = resolve(from.dir, name);
    const bytes = await readFile(path).catch(() => null);
    if (bytes === null || sha256Hex(bytes) !== hash) {
      throw new TapwrightError(
        'corrupt_checkpoint',
        `${path} was changed or deleted while it was copied: branch again, from a checkpoint that stays`,
      );
    }
    if (!relative(from.dir, path).startsWith('..')) {
      owned[basename(name)] = bytes;
      continue;
    }
    // engine/<model>/<kind>/<name>.safetensors is tinker://<model>/<kind>/<name>.
    const [model, kind, file] = path.split(/[\\/]/).slice(-3) as [string, string, string];
    const copy = resolve(path, '..', '..', '..', `branch-${to.id}`, kind, file);
    await files.write(copy, bytes, { sync: true });
    engine.push(copy);
    const uri = (of: string): string => `tinker://${of}/${kind}/${file.replace(/\.safetensors$/, '')}`;
    renamed.set(uri(model), uri(`branch-${to.id}`));
  }
  const { files: _files, ...manifest } = checkpoint;
  const { weights, sampler } = manifest;
  await to.checkpoints.commit(
    {
      ...manifest,
      run: to.id,
      config: configHash(config),
      // An engine on another machine keeps its files to itself: both runs name the same ones.
      weights: renamed.get(weights) ?? weights,
      sampler: renamed.get(sampler) ?? sampler,
    },
    owned,
    engine,
  );
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}
