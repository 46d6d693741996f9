import { SIM_FAULTS } from '../../domain/faults.ts';
import type { SimFault } from '../../domain/faults.ts';
import { TapwrightError } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import type { OpenOptions } from '../device.ts';

export interface Faults {
  /** Called before every action; throws at the step that was drawn. */
  beforeAction(): void;
  frozen(): boolean;
  stale(): boolean;
  checkText(text: string): void;
}

/** What an attempt's faults are drawn from. */
export type FaultDraw = Pick<OpenOptions, 'faults' | 'seed' | 'key' | 'infraTry' | 'task'>;

/**
 * The faults of one attempt and from which of its actions on (0 to 2) each shows, drawn from where the attempt stands and
 * which try it is: every fault has a stream of its own. An attempt may end before its fault comes.
 */
export function drawFaults({ faults, seed, key, infraTry, task }: FaultDraw): Map<SimFault, number> {
  const where = key ? [key.phase, key.update, key.draw, key.attempt] : [task.id];
  const drawn = new Map<SimFault, number>();
  for (const name of SIM_FAULTS) {
    const random = createRandom(seed, ...where, infraTry, 'fault', name);
    if (random.next() < (faults[name] ?? 0)) drawn.set(name, random.int(3));
  }
  return drawn;
}

/** The faults of an attempt as its device shows them. */
export function createFaults(options: FaultDraw): Faults {
  const drawn = drawFaults(options);
  let actions = 0;
  const due = (name: SimFault): boolean => drawn.get(name) === actions - 1;
  return {
    beforeAction() {
      actions++;
      if (due('crash')) throw new TapwrightError('app_crashed', 'The app in front crashed (injected).');
      if (due('hang')) throw new TapwrightError('device_hung', 'The device stopped answering (injected).');
      if (due('slow_answer'))
        throw new TapwrightError('deadline', 'The device answered after its deadline (injected).');
    },
    frozen: () => actions > 0 && (drawn.get('frozen_frame') ?? Infinity) <= actions - 1,
    stale: () => drawn.has('stale_snapshot'),
    checkText(text) {
      if (drawn.has('dropped_text'))
        throw new TapwrightError(
          'text_mismatch',
          `The field reads back "${text.slice(0, -1)}" after "${text}" was typed (injected).`,
        );
    },
  };
}
