import { relative } from 'node:path';
import { loadConfig } from '../../configs/loader.ts';
import { SFT_ROW, loadExperiment } from '../../configs/experiment.ts';
import type { Experiment } from '../../configs/experiment.ts';
import type { Scale } from '../../configs/scale.ts';
import { runConfigSchema } from '../../configs/schema.ts';
import type { RunConfig } from '../../configs/schema.ts';
import { TapwrightError, asTapwrightError } from '../../domain/errors.ts';
import { canonicalJson, configHash, differences, openRun } from '../../store/index.ts';
import { checkpointAt } from '../../workflows/evaluation-plan.ts';
import type { ExperimentUnit } from '../../workflows/types.ts';
import { KNOWN_SUITES } from '../known-suites.ts';

export interface PlanOptions {
  path: string;
  scale?: Scale;
  seeds?: number[];
  id?: string;
}

/** One line of the table: a policy, with the run and the checkpoint that has it for each seed. */
export interface PlannedRow {
  arm: string;
  /** Of the whole arm's updates; 0: before the first. */
  fraction: number;
  updates: number;
  /** Row that it is compared with: `arm@fraction`; null: with none. */
  reference: string | null;
  /** `sft`: evaluated before the first update. */
  policy: 'sft' | 'rl';
  runs: { seed: number; run: string }[];
  note: string;
}

/** Everything that an experiment asks for, before anything is begun. `experiment.json` of its folder. */
export interface ExperimentPlan {
  id: string;
  title: string;
  scale: Scale | null;
  seeds: number[];
  partial: Experiment['partial'];
  concurrency: number;
  rows: PlannedRow[];
  comparisons: [string, string][];
  /** Runs of each arm for its curves: those that are made to their end. */
  curves: { arm: string; runs: { seed: number; run: string }[] }[];
}

/** A run that is to be made, and for which arm. */
export interface PlannedUnit extends ExperimentUnit {
  arm: string;
}

export const rowName = (row: { arm: string; fraction: number }): string => `${row.arm}@${row.fraction}`;

/**
 * Arms x seeds as runs, and the rows of the table. Seed by seed, so that a table with one seed is there early; before the arms
 * of a seed comes the imitation that they share. Errors: `invalid_config`, with the place or the arm.
 */
export function planExperiment(options: PlanOptions): { plan: ExperimentPlan; units: PlannedUnit[] } {
  const experiment = loadExperiment(options.path);
  const scale = options.scale ?? experiment.scale ?? null;
  const seeds = [...new Set(options.seeds ?? experiment.seeds)];
  const id = options.id ?? [experiment.id, ...(scale === null ? [] : [scale])].join('-');
  const units = new Map<string, PlannedUnit>();
  const rows = new Map<string, PlannedRow>();
  const curves = new Map<string, { seed: number; run: string }[]>();
  const row = (key: string, fresh: Omit<PlannedRow, 'runs'>, seed: number, run: string): void => {
    const known = rows.get(key) ?? { ...fresh, runs: [] };
    rows.set(key, known);
    known.runs.push({ seed, run });
  };
  /** Names of warm starts by what they are: nearly always one. */
  const starts = new Map<string, string>();

  for (const seed of seeds) {
    for (const [arm, of] of Object.entries(experiment.arms)) {
      const at = [...new Set([0, 1, ...(of.at ?? experiment.at)])].sort((a, b) => a - b);
      const config = (part: number): RunConfig =>
        armConfig(arm, of.config, seed, [
          ...(scale === null ? [] : [`scale=${scale}`]),
          ...experiment.set,
          ...of.set,
          ...(part < 1 ? [`learn.fraction=${part}`] : []),
          `evaluation.heldoutAt=${JSON.stringify(experiment.partial === 'run' ? [0, 1] : at)}`,
        ]);
      const whole = config(1);
      const start = warmStart(whole);
      const kind = configHash({ ...start, seed: 0 });
      const first = !starts.has(kind);
      if (first) starts.set(kind, starts.size === 0 ? SFT_ROW : `${SFT_ROW}-of-${arm}`);
      const startName = starts.get(kind)!;
      const startRun = `${id}.${startName}.s${seed}`;
      if (!units.has(startRun)) {
        units.set(startRun, { run: startRun, config: { ...start, name: startName }, from: null, arm: startName });
        const base = { arm: startName, fraction: 0, updates: 0, reference: null, policy: 'sft' as const };
        row(rowName(base), { ...base, note: 'the policy that all begin with' }, seed, startRun);
      }
      const begin = (run: string, made: RunConfig): void => {
        units.set(run, { run, config: made, from: startRun, arm });
      };
      const main = `${id}.${arm}.s${seed}`;
      begin(main, whole);
      const { updates } = whole.learn;
      const named = of.reference ?? experiment.reference;
      const target = named === SFT_ROW ? `${startName}@0` : named.includes('@') ? named : `${named}@${1}`;
      const compared = (own: string): string | null => (own === target ? null : target);
      if (updates === 0) {
        const only = { arm, fraction: 1, updates, policy: 'sft' as const, note: of.note };
        row(rowName(only), { ...only, reference: compared(rowName(only)) }, seed, main);
        continue;
      }
      curves.set(arm, [...(curves.get(arm) ?? []), { seed, run: main }]);
      for (const fraction of at.filter((part) => part > 0)) {
        const own = fraction < 1 && experiment.partial === 'run';
        const run = own ? `${id}.${arm}-at-${String(fraction).replace('.', '_')}.s${seed}` : main;
        if (own) begin(run, config(fraction));
        const one = { arm, fraction, updates: checkpointAt(updates, fraction), policy: 'rl' as const, note: of.note };
        row(rowName(one), { ...one, reference: compared(rowName(one)) }, seed, run);
      }
    }
  }
  const list = [...units.values()];
  oneSite(list);
  const plan: ExperimentPlan = {
    id,
    title: experiment.title,
    scale,
    seeds,
    partial: experiment.partial,
    concurrency: experiment.concurrency,
    rows: [...rows.values()],
    comparisons: experiment.comparisons.map(([a, b]) => [fullName(a), fullName(b)]),
    curves: [...curves].map(([arm, runs]) => ({ arm, runs })),
  };
  return { plan, units: list };
}

const fullName = (text: string): string => (text.includes('@') ? text : `${text}@${text === SFT_ROW ? 0 : 1}`);

function armConfig(arm: string, path: string, seed: number, sets: string[]): RunConfig {
  try {
    return loadConfig({ path, sets: [...sets, `seed=${seed}`, `name=${arm}`], suites: KNOWN_SUITES });
  } catch (error) {
    const { code, message } = asTapwrightError(error);
    throw new TapwrightError(code, `arm ${arm}: ${message}`, { cause: error });
  }
}

/**
 * The run that only imitates, for all arms that imitate alike: what arms are compared in is left out of it, so that an arm that
 * comes later shares it too. It evaluates the imitated policy once for all of them.
 */
function warmStart(config: RunConfig): RunConfig {
  const { seed, suite, tasks, engine, devices, agent, sft, rollout, workflow, checkpoints, evaluation } = config;
  const { beta1, beta2, gradClip, curriculum } = config.learn;
  const { temperature: _temperature, grounder: _grounder, maxUnparseable: _maxUnparseable, ...spoken } = agent;
  const { heldoutAt: _heldoutAt, ...instances } = evaluation;
  return runConfigSchema.parse({
    ...{ name: SFT_ROW, seed, suite, tasks, engine, devices, agent: spoken, sft, rollout, workflow, checkpoints },
    learn: { ...{ beta1, beta2, gradClip, curriculum }, estimator: 'dr-grpo', warmup: 0, updates: 0 },
    evaluation: { ...instances, every: 0 },
  });
}

/** One home keeps one engine and one set of devices up for all runs: what belongs to them must be the same everywhere. */
function oneSite(units: readonly PlannedUnit[]): void {
  const site = ({ engine, devices, rollout, workflow, suite }: RunConfig): unknown => {
    const { baseModel: _baseModel, ...rest } = engine;
    const { count, leaseTtlMs } = devices;
    const { grain, parcel } = rollout;
    const { maxConcurrentEpisodes } = workflow;
    return {
      engine: rest,
      devices: { count, leaseTtlMs },
      rollout: { grain, parcel },
      workflow: { maxConcurrentEpisodes },
      suite,
    };
  };
  const [first] = units;
  for (const unit of units) {
    const keys = differences(site(first!.config), site(unit.config));
    if (keys.length === 0) continue;
    throw new TapwrightError(
      'invalid_config',
      `arms ${first!.arm} and ${unit.arm} differ in ${keys.join(', ')}: all runs of an experiment use one engine, one set of devices and one suite`,
    );
  }
}

/**
 * Refuses arms that were begun with another config than they have now. Error: `invalid_config`, with the keys.
 */
export async function refuseEdits(home: string, id: string, units: readonly PlannedUnit[]): Promise<void> {
  for (const { run, config, arm } of units) {
    const known = await openRun(home, run).catch(() => null);
    if (known === null || canonicalJson(known.config) === canonicalJson(config)) continue;
    const keys = differences(known.config, config).join(', ');
    throw new TapwrightError(
      'invalid_config',
      `arm ${arm} of experiment ${id} was begun with another config (${keys}) in ${relative(process.cwd(), known.dir)}: put it back, give the changed arm another name, or give the experiment another --id`,
    );
  }
}

/** The units of some arms, with the imitation that they begin with. Error: `invalid_input` for an arm that is not there. */
export function onlyArms(units: readonly PlannedUnit[], only: readonly string[]): PlannedUnit[] {
  const arms = [...new Set(units.filter(({ from }) => from !== null).map(({ arm }) => arm))];
  for (const name of only) {
    if (!arms.includes(name)) {
      throw new TapwrightError('invalid_input', `--only names no arm "${name}"; there are ${arms.join(', ')}`);
    }
  }
  const chosen = units.filter(({ from, arm }) => from !== null && only.includes(arm));
  const starts = new Set(chosen.map(({ from }) => from));
  return units.filter((unit) => chosen.includes(unit) || starts.has(unit.run));
}
