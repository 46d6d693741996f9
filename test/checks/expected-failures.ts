import { drawFaults } from '../../devices/sim/faults.ts';
import { SIM_FAULTS } from '../../domain/faults.ts';
import type { SimFault } from '../../domain/faults.ts';
import type { SimSnapshot } from '../../devices/sim/backend.ts';
import type { Episode, EpisodeSpec, FailureClass } from '../../domain/index.ts';
import { judgeFault } from '../../judges/rule.ts';

export type FaultName = SimFault | 'judge_down' | 'judge_garbage';

/** The class each injected fault must be counted in. */
export const FAULT_CLASSES: Record<FaultName, FailureClass> = {
  crash: 'app_crashed',
  hang: 'device_hung',
  slow_answer: 'deadline',
  frozen_frame: 'frame_stale',
  stale_snapshot: 'rollback_unverified',
  dropped_text: 'text_mismatch',
  judge_down: 'judge_unavailable',
  judge_garbage: 'judge_unparseable',
};

/** The faults drawn for one try of an attempt. */
export function drawnFaults(spec: EpisodeSpec): FaultName[] {
  const device = [...drawFaults(spec).keys()];
  const one = (name: 'judge_down' | 'judge_garbage'): boolean =>
    judgeFault({ ...spec, faults: { [name]: spec.faults[name] ?? 0 } }, 0) !== null;
  return [...device, ...(['judge_down', 'judge_garbage'] as const).filter(one)];
}

/**
 * How a try of an attempt must fail, told from what the attempt does when nothing fails; null: it must come through. The
 * order is that of the calls: rollback, then for each action the device, the text read back, the frame after it. The
 * judge's failure is met when the attempt is over.
 */
export function expectedFailure(spec: EpisodeSpec, faultFree: Episode): FailureClass | null {
  const drawn = drawFaults(spec);
  const judge = judgeFault(spec, 0)?.code ?? null;
  if (drawn.has('stale_snapshot') && !startsWhereStaleOnesDo(spec)) return 'rollback_unverified';
  let action = 0;
  for (const { receipt, grounding, before, after } of faultFree.steps) {
    if (receipt === null || grounding.kind !== 'action') continue;
    for (const name of ['crash', 'hang', 'slow_answer'] as const) {
      if (drawn.get(name) === action) return FAULT_CLASSES[name];
    }
    const typed = grounding.action.kind === 'text_entry' && receipt.note === undefined;
    if (typed && drawn.has('dropped_text')) return 'text_mismatch';
    const frozen = (drawn.get('frozen_frame') ?? SIM_FAULTS.length + action) <= action;
    const changed = before.hash !== after.hash || JSON.stringify(before.outline) !== JSON.stringify(after.outline);
    if (frozen && changed) return 'frame_stale';
    action += 1;
  }
  return judge;
}

/** A snapshot that is the very screen a stale one shows cannot be told from it, and need not be. */
function startsWhereStaleOnesDo({ task }: EpisodeSpec): boolean {
  const { phone } = JSON.parse(task.snapshot) as SimSnapshot;
  return phone.app === 'settings' && JSON.stringify(phone.stack) === '["root"]';
}
