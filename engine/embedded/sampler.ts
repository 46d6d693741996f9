import { createRandom } from '../../rl/random.ts';
import type { Random } from '../../rl/random.ts';
import { span } from '../../domain/spans.ts';
import { createTracker } from './constraint.ts';
import type { Constraint, ConstraintTracker } from './constraint.ts';
import { createDistribution } from './distribution.ts';
import type { Distribution } from './distribution.ts';
import type { Decoder, RowState } from './decode.ts';
import type { Model, Outputs } from './model.ts';
import { pick } from './pick.ts';
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
  /** The prompt's hidden states (see Prefilled), 2d numbers; null unless asked for. */
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
  settled: boolean;
}

/** A job whose prompt has been read. */
interface Live {
  job: Job;
  row: RowState;
}

/**
 * Rows that are started together at least, when so many wait: two groups out of step keep the engine busy with one while the
 * devices act on the other.
 */
const GROUP_ROWS = 64;
/** So few rows of a group still being decoded do not keep the next one waiting. */
const STRAGGLERS = 12;
/** Milliseconds at most that a batch waits for the rows of the last one. */
const MAX_LINGERS = 6;

/**
 * Continuous batching: whatever waits when the loop comes round is prefilled together and decoded together with nothing
 * but its own length in the result. Randomness is a counter-based stream per request.
 */
export function createSampler(options: { model: Model; decoder: Decoder; maxBatch: number }): Sampler {
  const { model, decoder, maxBatch } = options;
  const waiting: Job[] = [];
  let live: Live[] = [];
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
   * Small prefills cost nearly as much as a whole tile, and episodes come back for their next step soon after their last:
   * a group is decoded to its last few rows before the next one starts, and after a large group its
   * rows are waited for a few milliseconds. Batching never shows in a result, so this is about speed alone.
   */
  function held(): boolean {
    if (live.length > 0) return live.length > STRAGGLERS;
    const few = waiting.length * 2 < Math.min(GROUP_ROWS, lastRows);
    if (waiting.length === 0 || !few || lingers >= MAX_LINGERS) return false;
    lingers++;
    return true;
  }

  function turn(): void {
    if (!held()) {
      if (waiting.length > 0) [lastRows, lingers] = [waiting.length, 0];
      span('sample', admit);
    } else if (live.length === 0) {
      setTimeout(turn, 1);
      return;
    }
    span('sample', advance);
    live = live.filter(({ job, row }) => {
      if (job.settled) decoder.end(row);
      return !job.settled;
    });
    if (waiting.length > 0 || live.length > 0) setImmediate(turn);
    else running = false;
  }

  /** One token more for every row that is being decoded. */
  function advance(): void {
    for (const [weights, rows] of byWeights(live)) {
      for (const some of tiles(rows)) {
        const jobs = some.map((each) => each.job);
        const states = some.map((each) => each.row);
        guarded(jobs, () => choose(some, decoder.step(weights, states)));
      }
    }
  }

  /** A failure fails its own rows only. */
  function guarded(jobs: Job[], work: () => void): void {
    try {
      work();
    } catch (error) {
      for (const job of jobs) {
        job.settled = true;
        job.reject(error);
      }
    }
  }

  /** Prefills a group of waiting rows, those of one model and length together. */
  function admit(): void {
    const half = Math.ceil((waiting.length + live.length) / 2);
    let room = Math.min(maxBatch - live.length, Math.max(GROUP_ROWS, Math.min(half, MAX_SAMPLING_ROWS)));
    while (room > 0 && waiting.length > 0) {
      const { weights, prompt } = waiting[0]!;
      const length = bucketLength(prompt.length);
      const most = Math.min(room, MAX_SAMPLING_ROWS);
      const jobs: Job[] = [];
      for (let i = 0; i < waiting.length && jobs.length < most;) {
        const job = waiting[i]!;
        if (job.weights === weights && bucketLength(job.prompt.length) === length) jobs.push(...waiting.splice(i, 1));
        else i++;
      }
      room -= jobs.length;
      let roomy = false;
      guarded(jobs, () => (roomy = prefill(weights, jobs, length)));
      if (!roomy) return;
    }
  }

  /** False when rows were put back because there is no memory for them now. */
  function prefill(weights: DeviceWeights, jobs: Job[], length: number): boolean {
    const postponed: Job[] = [];
    const rows = samplingRows(jobs.length);
    // Rows beyond the jobs are padding only.
    const tokens = leftPad(
      Array.from({ length: rows }, (_, i) => jobs[i]?.prompt ?? []),
      length,
    );
    const wantHidden = jobs.some((job) => job.params.wantHidden);
    const tile = { tokens, rows, length, outputs: 1 };
    const prefilled = model.prefill(weights, tile, wantHidden);
    const { width, vocab } = weights.layout.config;
    const size = 2 * width;
    const distribution = distributionOf(vocab);
    jobs.forEach((job, b) => {
      const row = begin(job, () => decoder.start(weights, tile, prefilled, b, job.params.maxTokens));
      if (row === null) return void (job.settled || postponed.push(job));
      if (job.params.wantHidden) job.out.hidden = prefilled.hidden!.slice(b * size, (b + 1) * size);
      distribution.fill(prefilled.outputs, b, tokens, b * length, length, job.tracker.support());
      take(job, distribution);
      if (job.settled) return decoder.end(row);
      learn(job, row, job.prompt.length);
      live.push({ job, row });
    });
    waiting.unshift(...postponed);
    return postponed.length === 0;
  }

  /** A row with its place in memory. Null without room: it waits for those that are being decoded, or fails when there are none. */
  function begin(job: Job, start: () => RowState): RowState | null {
    try {
      return start();
    } catch (error) {
      if (live.length === 0) {
        job.settled = true;
        job.reject(error);
      }
      return null;
    }
  }

  /** Each row's next token from its output distribution. */
  function choose(rows: Live[], outputs: Outputs): void {
    rows.forEach(({ job, row }, i) => {
      const distribution = distributionOf(job.weights.layout.config.vocab);
      distribution.fill(outputs, i, row.context, 0, row.length, job.tracker.support());
      take(job, distribution);
      if (!job.settled) learn(job, row, job.prompt.length);
    });
  }

  /** Tells a row the tokens of its response that it does not know yet. */
  function learn(job: Job, row: RowState, prompt: number): void {
    while (row.length < prompt + job.out.tokens.length) {
      row.context[row.length] = job.out.tokens[row.length - prompt]!;
      row.length += 1;
    }
  }

  /** Draws a token, and adds those after it that the mask leaves no choice about: they need no look at the model. */
  function take(job: Job, distribution: Distribution): void {
    const token = pick(distribution, job.params, job.random);
    add(job, token, distribution.logprob(token));
    for (let only = job.tracker.support(); !job.settled && only?.length === 1; only = job.tracker.support()) {
      add(job, only[0]!, 0);
    }
  }

  /** Adds a token to a response, and settles the job when that was its last. */
  function add(job: Job, token: number, logprob: number): void {
    const { out, params } = job;
    out.tokens.push(token);
    out.logprobs.push(logprob);
    job.tracker.push(token);
    const stopped = params.stop.includes(token);
    if (!stopped && out.tokens.length < params.maxTokens) return;
    out.stopReason = stopped ? 'stop' : 'length';
    job.settled = true;
    job.resolve(out);
  }

  function distributionOf(vocab: number): Distribution {
    let found = distributions.get(vocab);
    if (found === undefined) distributions.set(vocab, (found = createDistribution(vocab)));
    return found;
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
          settled: false,
        });
        wake();
      }),
    load: () => waiting.length + live.length,
  };
}

/** Cuts rows into pieces with MAX_SAMPLING_ROWS unread tokens at most; a row's own tokens stay together. */
function tiles(rows: Live[]): Live[][] {
  const out: Live[][] = [];
  let room = 0;
  for (const each of rows) {
    const unread = each.row.length - each.row.fed;
    if (unread > room) {
      out.push([]);
      room = MAX_SAMPLING_ROWS;
    }
    out.at(-1)!.push(each);
    room -= unread;
  }
  return out;
}

function byWeights(live: Live[]): Map<DeviceWeights, Live[]> {
  const groups = new Map<DeviceWeights, Live[]>();
  for (const each of live) {
    const group = groups.get(each.job.weights);
    if (group === undefined) groups.set(each.job.weights, [each]);
    else group.push(each);
  }
  return groups;
}
