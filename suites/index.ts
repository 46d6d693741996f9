import { TapwrightError } from '../domain/index.ts';
import { createMiniwobSuite } from './miniwob/suite.ts';
import { createSimSuite, type SimSuiteOptions } from './sim/suite.ts';
import type { Suite } from './suite.ts';

/** Ids of the suites that come with the project. */
export const SUITE_IDS = ['sim-phones', 'miniwob'] as const;

/** A suite by id; the error for an unknown one names those there are. */
export function getSuite(id: string, options: SimSuiteOptions = {}): Suite {
  if (id === 'sim-phones') return createSimSuite(options);
  if (id === 'miniwob') return createMiniwobSuite(options);
  throw new TapwrightError('invalid_config', `There is no suite "${id}"; the suites are ${SUITE_IDS.join(', ')}.`);
}
