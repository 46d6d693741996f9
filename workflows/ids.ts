import type { EpisodeKey, Split } from '../domain/index.ts';

/** Ids of workflows and indices of task draws. All derived, none random: a retry or a replay meets its own work. */
const pad = (n: number, width = 4): string => String(n).padStart(width, '0');

/** `run/u0012`, warm-ups `run/w0003`; `/again1` when the first batch taught nothing. */
export function updateId(run: string, phase: 'warmup' | 'train', update: number, round: number): string {
  return `${run}/${phase === 'warmup' ? 'w' : 'u'}${pad(update)}${round === 0 ? '' : `/again${round}`}`;
}

/** `run/eval/u0012`; `label` tells evaluations of one checkpoint on different suites apart. */
export function evaluationId(run: string, update: number, label: string): string {
  return `${run}/eval/u${pad(update)}${label === '' ? '' : `/${label}`}`;
}

/** `experiment/paper-table-short`: no run's id has a slash. */
export function experimentWorkflowId(experiment: string): string {
  return `experiment/${experiment}`;
}

/** `run/replay/1f2e3d4c`: `label` tells what is replayed, and how. */
export function replayId(run: string, label: string): string {
  return `${run}/replay/${label}`;
}

/** `run/u0012/t07/a3`, with `/r1` for the first infrastructure retry; `under` stands in the place of the run. */
export function episodeWorkflowId(key: EpisodeKey, infraTry: number, under: string = key.run): string {
  const stage = { warmup: 'w', train: 'u', eval: 'e', demo: 'd' }[key.phase];
  const retry = infraTry === 0 ? '' : `/r${infraTry}`;
  return `${under}/${stage}${pad(key.update)}/t${pad(key.draw, 2)}/a${key.attempt}${retry}`;
}

/** First index of training draws: far above any evaluation window, which counts from 0 (suites/suite.ts). */
const TRAIN_BASE = 100_000;
const WARMUP_BASE = 50_000_000;
const DEMO_BASE = 80_000_000;
/** Draws an update can make before indices of two updates meet: top-ups of skipped batches included. */
const DRAWS_PER_UPDATE = 4096;

/** Which instance of the training split a draw takes: growing, never the same for two updates. */
export function taskIndex(phase: 'warmup' | 'train' | 'demo', update: number, draw: number): number {
  if (phase === 'demo') return DEMO_BASE + draw;
  return (phase === 'warmup' ? WARMUP_BASE : TRAIN_BASE) + update * DRAWS_PER_UPDATE + draw;
}

/** Every run evaluates on the same instances, whatever its seed: two policies are always compared pairwise. */
export const EVALUATION_SEED = 20_261;

const SPLITS: readonly Split[] = ['validation', 'heldout-params', 'heldout-skin', 'train', 'heldout-tasks'];

/** Draw number of instance `index` of a split: unique within one evaluation. */
export function evaluationDraw(split: Split, index: number): number {
  return SPLITS.indexOf(split) * 100_000 + index;
}
