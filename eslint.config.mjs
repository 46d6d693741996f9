import js from '@eslint/js';
import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';
import { roomsRule } from './scripts/lib/eslint-rooms.mjs';

const root = import.meta.dirname;
const tests = ['**/*.test.ts'];

const noClock = [
  { object: 'Date', property: 'now', message: 'No clock here: the result must depend on the inputs alone.' },
  { object: 'performance', property: 'now', message: 'No clock here: the result must depend on the inputs alone.' },
  {
    object: 'Math',
    property: 'random',
    message: 'All randomness comes from createRandom(seed, ...path) of rl/random.ts.',
  },
  { object: 'crypto', property: 'randomUUID', message: 'Derive ids from the run, update, task and attempt.' },
];
const noNewDate = {
  selector: "NewExpression[callee.name='Date'][arguments.length=0], CallExpression[callee.name='Date']",
  message: 'No clock here: the result must depend on the inputs alone.',
};
const noTimers = ['setInterval', 'setImmediate'].map((name) => ({ name, message: 'No timers here.' }));
const noRandomCrypto = {
  group: ['node:crypto', 'crypto'],
  importNames: ['randomBytes', 'randomInt', 'randomUUID', 'getRandomValues', 'webcrypto'],
  message: 'All randomness comes from createRandom(seed, ...path) of rl/random.ts.',
};

/** The rules that need no types: exported for the test that feeds them bad files. */
export const boundaries = [
  {
    name: 'tapwright/rooms',
    files: ['**/*.ts'],
    ignores: tests,
    plugins: { tapwright: { rules: { rooms: roomsRule } } },
    rules: { 'tapwright/rooms': ['error', { root }] },
  },
  {
    name: 'tapwright/pure',
    files: ['rl/**/*.ts', 'agent/loop.ts'],
    ignores: tests,
    rules: {
      'no-restricted-properties': ['error', ...noClock],
      'no-restricted-syntax': ['error', noNewDate],
      'no-restricted-globals': ['error', ...noTimers, { name: 'setTimeout', message: 'No timers here.' }],
      'no-restricted-imports': ['error', { patterns: [noRandomCrypto] }],
    },
  },
  {
    name: 'tapwright/workflows',
    files: ['workflows/**/*.ts'],
    ignores: tests,
    rules: {
      'no-restricted-properties': ['error', ...noClock],
      'no-restricted-syntax': ['error', noNewDate],
      'no-restricted-globals': ['error', ...noTimers],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            ...builtinModules.map((name) => ({ name, message: 'Workflows run in a sandbox without Node built-ins.' })),
            { name: '@temporalio/workflow', importNames: ['uuid4'], message: 'Derive child ids from the run.' },
            { name: 'zod', message: 'No large library in the workflow bundle: every cached workflow pays for it.' },
          ],
          patterns: [{ group: ['node:*'], message: 'Workflows run in a sandbox without Node built-ins.' }],
        },
      ],
    },
  },
];

export default tseslint.config(
  { ignores: ['node_modules/**', '.tapwright/**', 'dist/**', 'coverage/**'] },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, tseslint.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: root } },
    rules: {
      // The only rule that needs types: a promise nobody waits for loses its error.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      'no-undef': 'off',
    },
  },
  {
    files: ['**/*.mjs'],
    extends: [js.configs.recommended],
    // TypeScript-free files: Node's globals are known, so an undefined name is better found by running them.
    rules: { 'no-undef': 'off', 'no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'none' }] },
  },
  ...boundaries,
);
