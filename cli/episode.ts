import type { Command } from 'commander';
import type { RunConfig } from '../configs/schema.ts';
import type { DeviceAction, Episode, Grounding, JudgedStep, Screen } from '../domain/index.ts';
import { rewardOfOutcome, rewardOfVerdict } from '../rl/rewards.ts';
import { twoChannelReturns } from '../rl/returns.ts';
import { openHomeRun } from './home.ts';
import { TapwrightError } from '../domain/errors.ts';

/** An attempt step by step: what was seen, meant, done, how it was judged, and what it earned (algorithms.md, 1 to 3). */
export function episodeText(episode: Episode, rewards: RunConfig['rewards']): string {
  const dense = episode.steps.map((step) => (rewards.useDense ? rewardOfVerdict(step.dense, rewards) : 0));
  const terminal = rewardOfOutcome(episode.outcome, rewards);
  const returns = twoChannelReturns(dense, terminal, rewards.gammaDense);
  const { task } = episode;
  const claim = episode.claim ?? 'none';
  const lines = [
    `episode    ${episode.id}  ${episode.key.phase}, policy ${episode.policy}`,
    `task       ${task.goal}`,
    `           ${task.id} (${task.split}), ${task.optimalSteps ?? '?'} steps at best, at most ${task.stepBudget}`,
    `outcome    ${episode.outcome}: claimed ${claim}, terminal judge ${episode.terminal ?? 'not asked'}`,
    `reward     terminal ${signed(terminal)}, dense ${signed(dense.reduce((a, b) => a + b, 0))}`,
  ];
  episode.steps.forEach((step, i) => {
    lines.push('', `step ${step.t}`, ...stepLines(step));
    lines.push(`  reward     ${signed(dense[i]!)}   D ${signed(returns.dense[i]!)}   R ${signed(returns.total[i]!)}`);
  });
  return lines.join('\n');
}

function stepLines(step: JudgedStep): string[] {
  const lines = [`  screen     ${screenText(step.before)}`];
  if (step.plan === null) {
    lines.push(`  plan       unparseable: ${JSON.stringify(step.sample.text)}`);
  } else {
    lines.push(`  reasoning  ${step.plan.reasoning}`, `  plan       ${step.plan.text}`);
    if (step.plan.remaining !== '') lines.push(`  remaining  ${step.plan.remaining}`);
  }
  lines.push(`  grounding  ${groundingText(step.grounding)}`);
  if (step.receipt !== null) {
    const { verified, strategy, note } = step.receipt;
    lines.push(
      `  receipt    ${verified ? 'verified' : 'not verified'} (${strategy})${note === undefined ? '' : `, ${note}`}`,
    );
  }
  if (step.answer !== null) lines.push(`  answer     ${step.answer}`);
  const far = (distance: number | null | undefined): string => String(distance ?? '?');
  const truth =
    step.truthBefore === null
      ? ''
      : `, ${far(step.truthBefore.distance)} -> ${far(step.truthAfter?.distance)} steps to go`;
  const rules =
    step.trueDense === undefined || step.trueDense === step.dense ? '' : ` (by the rules ${step.trueDense})`;
  lines.push(`  verdict    ${step.dense}${rules}: ${step.why}${truth}`);
  return lines;
}

/** Labels beyond so many are counted, not listed. */
const MAX_LABELS = 8;

function screenText(screen: Screen): string {
  const labels = (screen.outline ?? []).map(({ role, label, value }) =>
    role === 'label' ? `"${label}"` : `${label}${value === undefined || value === '' ? '' : ` = ${value}`}`,
  );
  const more = labels.length > MAX_LABELS ? ` and ${labels.length - MAX_LABELS} more` : '';
  const seen = labels.length === 0 ? 'no outline' : `${labels.slice(0, MAX_LABELS).join(', ')}${more}`;
  return `${screen.app ?? 'unknown app'}, frame ${screen.frame}, hash ${screen.hash}: ${seen}`;
}

function groundingText(grounding: Grounding): string {
  if (grounding.kind === 'none') return 'nothing to do on the device';
  if (grounding.kind === 'refused') return `refused by ${grounding.grounder}: ${grounding.reason}`;
  return `${actionText(grounding.action)} by ${grounding.grounder}`;
}

function actionText(action: DeviceAction): string {
  const at = ({ x, y }: { x: number; y: number }): string =>
    `(${Math.round(x * 100) / 100}, ${Math.round(y * 100) / 100})`;
  switch (action.kind) {
    case 'tap':
    case 'long_press':
      return `${action.kind} at ${at(action.at)}`;
    case 'swipe':
      return `swipe from ${at(action.from)} to ${at(action.to)}`;
    case 'text_entry':
      return `text_entry ${JSON.stringify(action.text)}`;
    default:
      return action.kind;
  }
}

function signed(x: number): string {
  return `${x < 0 ? '-' : '+'}${Math.abs(x).toFixed(3)}`;
}

/** `tapwright episode <id> [episode]`. */
export function registerEpisode(program: Command): void {
  program
    .command('episode')
    .description('print an attempt step by step: screen, plan, action, verdict, returns; without one, list them')
    .argument('<id>', 'the run')
    .argument('[episode]', 'e.g. u0012/t03/a1: update 12, task 3, attempt 1; or the beginning of one, to list')
    .option('--json', 'print the record as JSON')
    .action(async (id: string, episode: string | undefined, options: { json?: boolean }) => {
      const run = await openHomeRun(id);
      const whole = episode !== undefined && /\/a\d+$/.test(episode);
      if (!whole) {
        const ids = await run.episodes.list(episode);
        if (ids.length === 0) {
          throw new TapwrightError(
            'not_found',
            `run ${id} has no episodes${episode === undefined ? '' : ` ${episode}...`}`,
          );
        }
        process.stdout.write(`${ids.join('\n')}\n`);
        return;
      }
      const record = await run.episodes.get(episode);
      const text = options.json === true ? JSON.stringify(record, null, 2) : episodeText(record, run.config.rewards);
      process.stdout.write(`${text}\n`);
    });
}
