import type { KnownSuite } from '../configs/checks.ts';

/** Suites by name, without loading them: a config is checked before anything heavy starts. A test compares them. */
export const KNOWN_SUITES: readonly KnownSuite[] = [
  { id: 'sim-phones', splits: ['train', 'validation', 'heldout-params', 'heldout-skin'] },
  { id: 'miniwob', splits: ['train', 'validation', 'heldout-params', 'heldout-tasks'] },
  { id: 'vnc-phones', splits: ['train', 'validation', 'heldout-params', 'heldout-skin'] },
];
