import { join } from 'node:path';
import { ESLint } from 'eslint';
import type { Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';
import config, { boundaries } from '../eslint.config.mjs';

const root = join(import.meta.dirname, '..');
const eslint = new ESLint({
  cwd: root,
  overrideConfigFile: true,
  overrideConfig: [
    { files: ['**/*.ts'], languageOptions: { parser: tseslint.parser as Linter.Parser } },
    ...(boundaries as Linter.Config[]),
  ],
});

/** Names of the rules that a file at `path` with this text breaks, in order. */
async function broken(path: string, text: string): Promise<string[]> {
  const [result] = await eslint.lintText(text, { filePath: join(root, path) });
  return (result?.messages ?? []).map((message) => message.ruleId ?? message.message);
}

describe('lint: imports point only upward in the table of rooms', () => {
  const rooms = 'tapwright/rooms';
  it.each([
    ['domain/x.ts', `import { createRandom } from '../rl/random.ts';`],
    ['rl/x.ts', `import type { RunConfig } from '../configs/schema.ts';`],
    ['devices/sim/x.ts', `export { suite } from '../../suites/sim-phones/suite.ts';`],
    ['agent/loop.ts', `const ports = await import('../activities/episode.ts');`],
    ['engine/embedded/x.ts', `export * from '../../store/blobs.ts';`],
    ['workflows/x.ts', `import { createActivities } from '../activities/index.ts';`],
    ['workflows/x.ts', `import { judge } from '../judges/rules.ts';`],
    ['activities/x.ts', `import { main } from '../cli/main.ts';`],
  ])('%s may not contain %s', async (path, text) => {
    expect(await broken(path, text)).toEqual([rooms]);
  });
  it.each([
    ['rl/x.ts', `import { masks } from '../domain/errors.ts';`],
    ['workflows/x.ts', `import type { Activities } from '../activities/api.ts';`],
    ['workflows/x.ts', `import { type Activities } from '../activities/api.ts';`],
    ['workflows/x.ts', `import { runEpisode } from '../agent/loop.ts';`],
    ['agent/x.ts', `import type { StepEvidence } from '../judges/judge.ts';`],
    ['workers/x.ts', `import { createActivities } from '../activities/index.ts';`],
    ['rl/x.test.ts', `import { runConfigSchema } from '../configs/schema.ts';`],
  ])('%s may contain %s', async (path, text) => {
    expect(await broken(path, text)).toEqual([]);
  });
});

describe('lint: no clock, no randomness, no Node in what must be replayed', () => {
  it.each([
    ['workflows/x.ts', `export const t = Date.now();`, 'no-restricted-properties'],
    ['workflows/x.ts', `export const t = new Date();`, 'no-restricted-syntax'],
    ['workflows/x.ts', `export const r = Math.random();`, 'no-restricted-properties'],
    ['workflows/x.ts', `setInterval(() => {}, 10);`, 'no-restricted-globals'],
    ['workflows/x.ts', `import { readFile } from 'node:fs/promises';`, 'no-restricted-imports'],
    ['workflows/x.ts', `import { join } from 'path';`, 'no-restricted-imports'],
    ['workflows/x.ts', `import { uuid4 } from '@temporalio/workflow';`, 'no-restricted-imports'],
    ['workflows/x.ts', `import { z } from 'zod';`, 'no-restricted-imports'],
    ['rl/x.ts', `export const t = performance.now();`, 'no-restricted-properties'],
    ['rl/x.ts', `import { randomInt } from 'node:crypto';`, 'no-restricted-imports'],
    ['agent/loop.ts', `setTimeout(() => {}, 10);`, 'no-restricted-globals'],
  ])('%s: %s', async (path, text, rule) => {
    expect(await broken(path, text)).toEqual([rule]);
  });
  it('leaves the clock to the rooms that do the work', async () => {
    expect(await broken('activities/x.ts', `export const t = Date.now();`)).toEqual([]);
  });
});

it('lint: a promise that nobody waits for is an error in every TypeScript file', () => {
  const rules = (config as Linter.Config[]).map((entry) => entry.rules?.['@typescript-eslint/no-floating-promises']);
  expect(rules).toContain('error');
});
