/** Algorithms (algorithms.md): pure functions of plain numbers, safe in workflows. */
export * from './batch.ts';
export * from './critic.ts';
export * from './gae.ts';
export * from './gigpo.ts';
export * from './group-baselines.ts';
export * from './hash.ts';
export * from './masking.ts';
export * from './neighbours.ts';
export * from './ppo.ts';
export * from './random.ts';
export * from './resize.ts';
export * from './returns.ts';
export * from './rewards.ts';
export * from './schedule.ts';
export * from './sha256.ts';
export * from './statistics.ts';
export * from './whiten.ts';
