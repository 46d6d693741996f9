import type { Split, TaskInstance } from '../domain/index.ts';

/** A task suite: generators of instances and an expert. Pure and seeded: the same arguments give the same instances. */
export interface Suite {
  readonly id: string;
  readonly version: string;
  readonly licence: string;
  /** Name of the device backend that runs it: `sim`, `browser` or `vnc`. */
  readonly backend: 'sim' | 'browser' | 'vnc';
  readonly templates: readonly string[];
  readonly splits: readonly Split[];
  /**
   * Instance `index` of a split for a seed. Training draws call it with growing indices; evaluation uses 0..n-1.
   * Instance seeds follow algorithms.md, 14: stable under sub-setting.
   */
  instance(split: Split, seed: number, index: number): TaskInstance;
  /** Every word that goals, labels and typed texts of the *training* split can hold: the planner's vocabulary. */
  vocabulary(): readonly string[];
}
