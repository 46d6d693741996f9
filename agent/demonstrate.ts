import type { DeviceHandle, ExpertMove } from '../devices/device.ts';
import type { AllowedNames, Intent, Screen, TaskInstance } from '../domain/index.ts';
import { createRandom, type Random } from '../rl/random.ts';
import type { DecodeMask } from './constraint.ts';
import { groundExactly } from './grounder.ts';
import { formatIntent, formatPlan } from './parser.ts';
import type { HistoryEntry } from './ports.ts';
import { buildPrompt, type PromptOptions } from './prompt.ts';
import { wordsOf, type Tokenizer } from './tokenizer.ts';
import type { SimulatedUser } from './user.ts';

/** One imitation example: the response is trained on, the prompt is not. */
export interface DemonstrationRow {
  prompt: number[];
  response: number[];
  /** What the decode-time mask lets the response name, as in PlannerSample. */
  allowed: AllowedNames | null;
}

export interface DemonstrateOptions extends PromptOptions {
  handle: DeviceHandle;
  task: TaskInstance;
  tokenizer: Tokenizer;
  user: SimulatedUser;
  /** Probability that a random action is executed (and not imitated) before the expert goes on. */
  noise: number;
  /**
   * Probability that a row's prompt shows some other remaining plan than the expert's. An expert's plans always come true,
   * and a policy that only saw those says it is done when its plan says so, whatever is on the screen.
   */
  planNoise: number;
  decodeMask: DecodeMask;
  /** Seed path of this demonstration. */
  seed: number;
  maxSteps: number;
}

/** An action a curious thumb might take: a visible element, a swipe, home. */
function randomIntent(random: Random, screen: Screen): Intent {
  const labels = (screen.outline ?? []).filter((e) => e.role !== 'label').map((e) => e.label);
  const u = random.next();
  if (u < 0.75 && labels.length > 0) return { kind: 'tap', target: random.pick(labels) };
  if (u < 0.9) return { kind: 'swipe', direction: random.pick(['up', 'down']) };
  return { kind: 'navigate_home' };
}

/** A remaining plan that may be wrong. */
function randomPlan(random: Random): string {
  const words = Array.from({ length: random.int(3) }, () => random.pick(['pick', 'pick', 'write', 'more', 'need']));
  const u = random.next();
  return [...words, ...(u < 0.6 ? ['done'] : u < 0.7 ? ['blocked'] : [])].join(' ');
}

/**
 * Rows of one expert episode. What the history shows is what an agent would have seen of the same moves, the noise
 * included, so the policy also learns to recover. An expert without a move ends the demonstration.
 */
export async function demonstrate(options: DemonstrateOptions): Promise<DemonstrationRow[]> {
  const { handle, task: given, tokenizer, user, noise, planNoise, decodeMask, maxSteps } = options;
  const random = createRandom(options.seed, 'demonstrate');
  const doubts = createRandom(options.seed, 'remaining-plans');
  const proof = await handle.rollback();
  const task = proof.instruction ? { ...given, goal: proof.instruction } : given;
  const rows: DemonstrationRow[] = [];
  const history: HistoryEntry[] = [];
  let screen = await handle.observe();

  const execute = async (intent: Intent): Promise<{ result: HistoryEntry['result']; answer: string | null }> => {
    if (intent.kind === 'ask_user') {
      const answer = await user.answer(task, intent.question);
      handle.noteAnswer(answer.fact);
      return { result: 'ok', answer: answer.text };
    }
    const grounded = groundExactly(intent, screen);
    if (grounded.kind !== 'action') return { result: 'refused', answer: null };
    const before = { hash: screen.hash, key: (await handle.truth())?.key };
    await handle.perform(grounded.action);
    screen = await handle.observe();
    const changed = before.hash !== screen.hash || before.key !== (await handle.truth())?.key;
    return { result: changed ? 'ok' : 'same', answer: null };
  };
  const note = (move: ExpertMove, done: { result: HistoryEntry['result']; answer: string | null }): void => {
    history.push({ reasoning: move.reasoning, plan: formatIntent(move.intent), remaining: move.remaining, ...done });
  };

  for (let t = 0; t < maxSteps; t++) {
    const move = await handle.expert();
    if (!move) break;
    const finished = move.intent.kind === 'task_complete';
    if (!finished && random.next() < noise) {
      const intent = randomIntent(random, screen);
      note({ intent, reasoning: move.reasoning, remaining: move.remaining }, await execute(intent));
      continue;
    }
    const last = history.at(-1);
    const doubted = last !== undefined && doubts.next() < planNoise;
    const seen = doubted ? [...history.slice(0, -1), { ...last, remaining: randomPlan(doubts) }] : history;
    const prompt = buildPrompt(tokenizer, task, screen, seen, options);
    const allowed = decodeMask === 'none' ? null : prompt.allowed;
    const response = tokenizer.encode(wordsOf(formatPlan(move)), prompt.table).ids;
    rows.push({ prompt: prompt.ids, response, allowed });
    if (finished) break;
    note(move, await execute(move.intent));
  }
  return rows;
}
