export * from './hash.ts';
export * from './random.ts';
