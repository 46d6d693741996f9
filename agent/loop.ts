import { episodeId } from '../domain/episode.ts';
import type { Episode, EpisodeSpec, JudgedStep, Outcome, Step, TerminalVerdict } from '../domain/index.ts';
import type { JudgeMemory, StepVerdict } from '../judges/judge.ts';
import { formatIntent } from './parser.ts';
import { outcomeOfClaim } from './outcome.ts';
import type { EpisodePorts, HistoryEntry, Opened } from './ports.ts';

type Judged = Omit<StepVerdict, 'memory'>;

/**
 * One attempt at a task: (plan, ground, act, judge)*, then the terminal judge (design.md, 3). The same function serves
 * both grains of durability, so it has no clock, no randomness and no I/O of its own: everything comes through `ports`.
 * A port's failure ends the attempt with that failure, after the device was given back.
 */
export async function runEpisode(spec: EpisodeSpec, ports: EpisodePorts): Promise<Episode> {
  const opened = await ports.open(spec);
  // A web page draws its own instruction: from here on it is the task's goal.
  const task = opened.goal ? { ...spec.task, goal: opened.goal } : spec.task;
  let episode: Episode;
  try {
    episode = await attempt({ ...spec, task }, ports, opened);
  } catch (error) {
    // Why the attempt failed counts; a device that cannot be given back comes back when its lease expires.
    await ports.close(spec, opened.lease).catch(() => undefined);
    throw error;
  }
  await ports.close(spec, opened.lease);
  return episode;
}

async function attempt(spec: EpisodeSpec, ports: EpisodePorts, opened: Opened): Promise<Episode> {
  const { task } = spec;
  const steps: Step[] = [];
  const verdicts: Promise<Judged>[] = [];
  const history: HistoryEntry[] = [];
  let { screen, truth } = opened;
  let memory: Promise<JudgeMemory> = Promise.resolve({ best: null, failed: [] });
  let unparseable = 0;
  let ending: { kind: 'claim'; claim: 'done' | 'blocked' } | { kind: 'outcome'; outcome: Outcome } | null = null;

  for (let t = 0; ending === null; t++) {
    const step = await ports.step({ spec, lease: opened.lease, t, screen, truth, history: [...history] });
    steps.push(step);
    history.push(remember(step));

    // Judging a step needs what was judged before it, but not the next step: the two run side by side.
    const judged = memory.then((known) => ports.judgeStep(spec, { ...step, task }, known));
    memory = judged.then((result) => result.memory);
    verdicts.push(judged);
    // A failure is awaited below; until then it must not count as unhandled.
    memory.catch(() => undefined);

    screen = step.after;
    truth = step.truthAfter;
    if (step.plan === null) unparseable++;
    const intent = step.plan?.intent;
    if (intent?.kind === 'task_complete') ending = { kind: 'claim', claim: intent.claim };
    else if (unparseable >= spec.maxUnparseable) ending = { kind: 'outcome', outcome: 'unparseable' };
    else if (t + 1 >= task.stepBudget) ending = { kind: 'outcome', outcome: 'step_limit' };
  }

  const dense = await Promise.all(verdicts);
  const record: JudgedStep[] = steps.map((step, t) => {
    const { verdict, why, truly } = dense[t]!;
    return { ...step, dense: verdict, why, ...(truly === undefined ? {} : { trueDense: truly }) };
  });
  const claim = ending.kind === 'claim' ? ending.claim : null;
  let terminal: TerminalVerdict | null = null;
  let outcome: Outcome;
  if (ending.kind === 'claim') {
    const screens = [opened.screen, ...steps.map((step) => step.after)].slice(-3);
    const verdict = await ports.judgeOutcome(spec, {
      task,
      claim: ending.claim,
      screens,
      actions: steps.map((step) => (step.plan ? formatIntent(step.plan.intent) : '(unparseable)')),
      verdicts: dense.map((d) => d.verdict),
      truth,
    });
    terminal = verdict.verdict;
    outcome = outcomeOfClaim(ending.claim, terminal);
  } else {
    outcome = ending.outcome;
  }
  const { id, key, policy } = { id: episodeId(spec.key), key: spec.key, policy: spec.policy };
  return { id, key, task, policy, steps: record, claim, terminal, outcome };
}

/** What the planner will be told of this step. */
function remember(step: Step): HistoryEntry {
  if (!step.plan) return { reasoning: '', plan: step.sample.text, remaining: '', result: 'unparseable', answer: null };
  const changed = step.before.hash !== step.after.hash || step.truthBefore?.key !== step.truthAfter?.key;
  const result = step.grounding.kind === 'refused' ? 'refused' : changed || step.answer !== null ? 'ok' : 'same';
  const { reasoning, text, remaining } = step.plan;
  return { reasoning, plan: text, remaining, result, answer: step.answer };
}
