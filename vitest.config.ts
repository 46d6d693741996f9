import { defineConfig } from 'vitest/config';

const everywhere = ['**/node_modules/**', '.tapwright/**'];

/**
 * Two projects: `unit`, the tests beside the code, two files at a time; `pipeline`, the tests that cross rooms, which
 * start servers and processes and so run one after another when the others are through.
 * Forks, not threads: a process has one TensorFlow context.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.{ts,mjs}'],
          exclude: [...everywhere, 'test/**'],
          maxWorkers: 2,
          testTimeout: 20_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'pipeline',
          include: ['test/**/*.test.{ts,mjs}'],
          exclude: everywhere,
          maxWorkers: 1,
          fileParallelism: false,
          testTimeout: 240_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
