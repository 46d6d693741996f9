// The same cases on the fallback backend: vitest runs each file in a process of its own.
process.env['TAPWRIGHT_TEST_BACKEND'] = 'wasm';
await import('./tensor.test.ts');

export {};
