import type { ReplayMode } from '../domain/index.ts';
import type { ReplayTally } from '../workflows/types.ts';

const HOW: Record<ReplayMode, string> = {
  recorded: 'on fresh devices, with the recorded decisions',
  live: 'on fresh devices',
  judge: 'judged again',
};

/** One line while it goes on. */
export function progressText({ done, of, identical, different, failed }: ReplayTally): string {
  return `replayed ${done} of ${of}: ${identical} identical, ${different} different, ${failed} failed`;
}

/** What replays came to, for a terminal: those that are not identical, one by one, and the counts. */
export function replayText(result: ReplayTally & { run: string; mode: ReplayMode; policy: string | null }): string {
  const { run, mode, policy, of, identical, different, failed, why, outcomes, told } = result;
  const by = mode === 'live' ? `, decided by ${policy ?? 'the policy that recorded each'}` : '';
  const lines = [`${of} recorded attempt${of === 1 ? '' : 's'} of run ${run}, ${HOW[mode]}${by}`];
  for (const one of told) {
    if (one.kind === 'failed') {
      lines.push('', `${one.id}  failed: ${one.failure}`, `  ${one.message}`);
      continue;
    }
    const ended = one.ended === null || one.ended === one.outcome ? '' : `  (${one.outcome} then, ${one.ended} now)`;
    lines.push('', `${one.id}  differs in ${one.field}${ended}`, `  ${one.sentence}`);
  }
  const untold = different + failed - told.length;
  if (untold > 0) lines.push('', `and ${untold} more`);
  if (different + failed > 0) lines.push(...table('what differs first, or fails', why));
  if (mode === 'live') lines.push(...table('outcome recorded > now', outcomes));
  lines.push('', `${identical} identical, ${different} different, ${failed} failed`);
  return lines.join('\n');
}

/** Names with their counts, the most frequent first. */
function table(title: string, counts: Record<string, number>): string[] {
  const rows = Object.entries(counts).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return [
    '',
    `${title.padEnd(40)}attempts`,
    ...rows.map(([name, n]) => `  ${name.padEnd(38)}${String(n).padStart(8)}`),
  ];
}
