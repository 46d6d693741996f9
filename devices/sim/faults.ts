import { TapwrightError } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import type { OpenOptions } from '../device.ts';

/** Faults a simulated phone knows; each is a rate per attempt. */
export const SIM_FAULTS = ['crash', 'hang', 'frozen_frame', 'stale_snapshot', 'dropped_text', 'slow_answer'] as const;
type Fault = (typeof SIM_FAULTS)[number];

export interface Faults {
  /** Called before every action; throws at the step that was drawn. */
  beforeAction(): void;
  frozen(): boolean;
  stale(): boolean;
  checkText(text: string): void;
}

/** Faults of one attempt, drawn from where it stands and which try it is: every fault has a stream of its own. */
export function createFaults({ faults, seed, key, infraTry, task }: OpenOptions): Faults {
  const where = key ? [key.phase, key.update, key.draw, key.attempt] : [task.id];
  let actions = 0;
  const drawn = new Map<Fault, number>();
  for (const name of SIM_FAULTS) {
    const random = createRandom(seed, ...where, infraTry, 'fault', name);
    if (random.next() < (faults[name] ?? 0)) drawn.set(name, random.int(3));
  }
  const due = (name: Fault): boolean => drawn.get(name) === actions - 1;
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
