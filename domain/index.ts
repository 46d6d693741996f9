export * from './action.ts';
export * from './checkpoint.ts';
export * from './episode.ts';
export * from './errors.ts';
export * from './lease.ts';
export * from './replay.ts';
export * from './screen.ts';
export * from './task.ts';
