/** Everything a run keeps, in files that can be read without us (design.md, 9). */
export * from './blobs.ts';
export * from './branch.ts';
export * from './canonical-json.ts';
export * from './checkpoints.ts';
export * from './episodes.ts';
export * from './experiment-folder.ts';
export * from './metrics.ts';
export * from './results.ts';
export * from './run-folder.ts';
export * from './select-episodes.ts';
