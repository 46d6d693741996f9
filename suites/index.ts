import { TapwrightError } from '../domain/index.ts';
import { createMiniwobSuite } from './miniwob/suite.ts';
import { createSimSuite, type SimSuiteOptions } from './sim/suite.ts';
import type { Suite } from './suite.ts';
import { createVncSuite } from './vnc/suite.ts';

/** Ids of the suites that come with the project. */
export const SUITE_IDS = ['sim-phones', 'miniwob', 'vnc-phones'] as const;

/** A suite by id; the error for an unknown one names those there are. */
export function getSuite(id: string, options: SimSuiteOptions = {}): Suite {
  if (id === 'sim-phones') return createSimSuite(options);
  if (id === 'miniwob') return createMiniwobSuite(options);
  if (id === 'vnc-phones') {
    if ((options.only?.length ?? 0) + (options.without?.length ?? 0) > 0)
      throw new TapwrightError('invalid_config', `tasks: suite ${id} has no slices; leave only and without empty.`);
    return createVncSuite();
  }
  throw new TapwrightError('invalid_config', `There is no suite "${id}"; the suites are ${SUITE_IDS.join(', ')}.`);
}
