import { createRandom } from '../../rl/random.ts';
import type { Random } from '../../rl/random.ts';
import { createTracker } from './constraint.ts';
import type { Constraint, ConstraintTracker } from './constraint.ts';
import { createDistribution } from './distribution.ts';
import type { Distribution } from './distribution.ts';
import type { Cache, Model, Outputs } from './model.ts';
import { bucketLength, leftPad, MAX_SAMPLING_ROWS, samplingRows } from './tiles.ts';
import type { DeviceWeights } from './weights.ts';

export interface SamplingParams {
  maxTokens: number;
  /** 0: greedy. */
  temperature: number;
  /** 0 or less: all. */
  topK: number;
  topP: number;
  seed: number;
  /** Token ids that end a response; the stop token is its last. */
  stop: number[];
  constraint: Constraint | null;
  wantHidden: boolean;
}

export interface Sampled {
  tokens: number[];
  /** Untempered and unfiltered; of the masked, renormalised distribution where there is a constraint. */
  logprobs: number[];
  stopReason: 'stop' | 'length';
  /** Last prompt token's hidden state after the final norm; null unless asked for. */
  hidden: Float32Array | null;
}

export interface Sampler {
  /** The same weights, prompt and params give the same tokens and bits whatever shares the batch. */
  sample(weights: DeviceWeights, prompt: number[], params: SamplingParams): Promise<Sampled>;
  /** Requests that wait or run. */
  load(): number;
}

interface Job {
  weights: DeviceWeights;
  prompt: number[];
  params: SamplingParams;
  random: Random;
  tracker: ConstraintTracker;
  out: Sampled;
  resolve: (value: Sampled) => void;
  reject: (error: unknown) => void;
}

/** Rows of one padded prompt length that are decoded in step. */
interface Cohort {
  weights: DeviceWeights;
  jobs: (Job | null)[];
  cache: Cache;
  /** rows x width ids seen so far, padding -1. */
  context: Int32Array[];
}

/** A batch worth starting beside rows that are being decoded. */
const HOLD_ROWS = 96;
/** Milliseconds at most that a batch waits for the rows of the last one. */
const MAX_LINGERS = 6;

/**
 * Continuous batching: whatever waits when the loop comes round is prefilled together and decoded together with nothing
 * but its own length in the result. Randomness is a counter-based stream per request.
 */
export function createSampler(options: { model: Model; maxBatch: number }): Sampler {
  const { model, maxBatch } = options;
  const waiting: Job[] = [];
  let cohorts: Cohort[] = [];
  const distributions = new Map<number, Distribution>();
  let running = false;

  let lastRows = 0;
  let lingers = 0;

  function wake(): void {
    if (running) return;
    running = true;
    setImmediate(turn);
  }

  /**
   * Small batches cost nearly as much as large ones, and episodes come back for their next step soon after their last:
   * nothing new starts while rows are being decoded, unless it would fill a batch, and after a large batch its rows are
   * waited for a few milliseconds. Batching never shows in a result, so this is about speed alone.
   */
  function held(): boolean {
    if (cohorts.length > 0) return waiting.length < HOLD_ROWS;
    if (waiting.length === 0 || waiting.length * 2 >= lastRows || lingers >= MAX_LINGERS) return false;
    lingers++;
    return true;
  }

  function turn(): void {
    if (!held()) {
      if (waiting.length > 0) [lastRows, lingers] = [waiting.length, 0];
      admit();
    } else if (cohorts.length === 0) {
      setTimeout(turn, 1);
      return;
    }
    for (const cohort of cohorts) guarded(cohort.jobs, () => advance(cohort));
    cohorts = cohorts.filter(
      (cohort) => cohort.jobs.some((job) => job !== null) || (model.dropCache(cohort.cache), false),
    );
    if (waiting.length > 0 || cohorts.length > 0) setImmediate(turn);
    else running = false;
  }

  /** A failure fails its own rows only. */
  function guarded(jobs: (Job | null)[], work: () => void): void {
    try {
      work();
    } catch (error) {
      jobs.forEach((job, i) => {
        job?.reject(error);
        jobs[i] = null;
      });
    }
  }

  /** Prefills waiting rows while there is room, those of one model and length together. */
  function admit(): void {
    let room = maxBatch - cohorts.reduce((sum, cohort) => sum + cohort.jobs.filter((job) => job !== null).length, 0);
    while (room > 0 && waiting.length > 0) {
      const { weights, prompt } = waiting[0]!;
      const length = bucketLength(prompt.length);
      const jobs: Job[] = [];
      for (let i = 0; i < waiting.length && jobs.length < room;) {
        const job = waiting[i]!;
        if (job.weights === weights && bucketLength(job.prompt.length) === length) jobs.push(...waiting.splice(i, 1));
        else i++;
      }
      room -= jobs.length;
      guarded(jobs, () => prefill(weights, jobs, length));
    }
  }

  function prefill(weights: DeviceWeights, jobs: Job[], length: number): void {
    const rows = samplingRows(jobs.length);
    // Rows beyond the jobs are padding only.
    const tokens = leftPad(
      Array.from({ length: rows }, (_, i) => jobs[i]?.prompt ?? []),
      length,
    );
    const wantHidden = jobs.some((job) => job.params.wantHidden);
    const tile = { tokens, rows, length, outputs: 1 };
    const { outputs, cache } = model.prefill(weights, tile, wantHidden);
    const d = weights.layout.config.width;
    jobs.forEach((job, i) => {
      if (job.params.wantHidden) job.out.hidden = outputs.hidden!.slice(i * d, (i + 1) * d);
    });
    const context = Array.from({ length: rows }, (_, i) => {
      const row = new Int32Array(length + (jobs[i]?.params.maxTokens ?? 0));
      row.set(tokens.subarray(i * length, (i + 1) * length));
      return row;
    });
    const cohort: Cohort = { weights, jobs: Array.from({ length: rows }, (_, i) => jobs[i] ?? null), cache, context };
    choose(cohort, outputs);
    cohorts.push(cohort);
  }

  /** Takes each live row's next token from its output distribution. */
  function choose(cohort: Cohort, outputs: Outputs): void {
    const { vocab } = cohort.weights.layout.config;
    let distribution = distributions.get(vocab);
    if (distribution === undefined) distributions.set(vocab, (distribution = createDistribution(vocab)));
    const length = cohort.cache.length;
    for (let i = 0; i < cohort.jobs.length; i++) {
      const job = cohort.jobs[i];
      if (job === null || job === undefined) continue;
      distribution.fill(outputs, i, cohort.context[i]!, 0, length, job.tracker.support());
      const token = pick(distribution.p, job.params, job.random);
      const { out, params } = job;
      out.tokens.push(token);
      out.logprobs.push(distribution.logprob(token));
      job.tracker.push(token);
      const stopped = params.stop.includes(token);
      if (stopped || out.tokens.length >= params.maxTokens) {
        out.stopReason = stopped ? 'stop' : 'length';
        job.resolve(out);
        cohort.jobs[i] = null;
      } else cohort.context[i]![length] = token;
    }
  }

  function advance(cohort: Cohort): void {
    compact(cohort);
    const { jobs, context, cache } = cohort;
    if (jobs.every((job) => job === null)) return;
    const at = cache.length;
    const rows = jobs.length;
    const tokens = new Int32Array(rows);
    const before = new Int32Array(rows);
    const padding = new Uint8Array(rows * at);
    for (let i = 0; i < rows; i++) {
      // A finished row goes along as padding until the cohort is compacted; its values are never looked at.
      tokens[i] = Math.max(0, context[i]![at] ?? 0);
      before[i] = Math.max(0, context[i]![at - 1] ?? 0);
      for (let t = 0; t < at; t++) if (context[i]![t]! < 0) padding[i * at + t] = 1;
    }
    choose(cohort, model.decode(cohort.weights, cache, tokens, before, padding));
  }

  /** Moves to a smaller tile when the live rows fit one. */
  function compact(cohort: Cohort): void {
    const live = cohort.jobs.flatMap((job, i) => (job === null ? [] : [i]));
    const rows = samplingRows(live.length);
    if (live.length === 0 || rows >= cohort.jobs.length) return;
    const spare = cohort.jobs.flatMap((job, i) => (job === null ? [i] : []));
    const kept = [...live, ...spare.slice(0, rows - live.length)];
    model.selectRows(cohort.cache, Int32Array.from(kept));
    cohort.jobs = kept.map((i) => cohort.jobs[i]!);
    cohort.context = kept.map((i) => cohort.context[i]!);
  }

  return {
    sample: (weights, prompt, params) =>
      new Promise((resolve, reject) => {
        const random = createRandom(params.seed, 'sample');
        const out: Sampled = { tokens: [], logprobs: [], stopReason: 'length', hidden: null };
        waiting.push({
          weights,
          prompt,
          params,
          random,
          tracker: createTracker(params.constraint),
          out,
          resolve,
          reject,
        });
        wake();
      }),
    load: () =>
      waiting.length + cohorts.reduce((sum, cohort) => sum + cohort.jobs.filter((job) => job !== null).length, 0),
  };
}

/** Greedy (the lowest id wins a tie), or inverse distribution function with one draw of the request's stream. */
function pick(p: Float64Array, params: SamplingParams, random: Random): number {
  if (params.temperature === 0) {
    let best = 0;
    for (let v = 1; v < p.length; v++) if (p[v]! > p[best]!) best = v;
    return best;
  }
  const weights = params.temperature === 1 ? p : p.map((x) => (x > 0 ? Math.pow(x, 1 / params.temperature) : 0));
  const kept = filter(weights, params);
  let total = 0;
  for (let v = 0; v < kept.length; v++) total += kept[v]!;
  let left = random.next() * total;
  let last = 0;
  for (let v = 0; v < kept.length; v++) {
    if (kept[v] === 0) continue;
    last = v;
    left -= kept[v]!;
    if (left < 0) return v;
  }
  return last;
}

/** top-k, then top-p; ties by id. */
function filter(weights: Float64Array, { topK, topP }: SamplingParams): Float64Array {
  const all = topK <= 0 || topK >= weights.length;
  if (all && topP >= 1) return weights;
  const order = Array.from(weights.keys()).sort((a, b) => weights[b]! - weights[a]! || a - b);
  const kept = new Float64Array(weights.length);
  const ranked = all ? order : order.slice(0, topK);
  const total = ranked.reduce((sum, v) => sum + weights[v]!, 0);
  let sum = 0;
  for (const v of ranked) {
    if (sum >= topP * total && sum > 0) break;
    kept[v] = weights[v]!;
    sum += weights[v]!;
  }
  return kept;
}
