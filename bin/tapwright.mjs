#!/usr/bin/env node
// Runs cli/main.ts, TypeScript as it is, in this process.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const tsx = new URL('../node_modules/tsx/package.json', import.meta.url);
if (!existsSync(fileURLToPath(tsx))) {
  process.stderr.write('Tapwright is not set up yet: run `npm run setup` in its folder (or `npm start`).\n');
  process.exit(1);
}
const { register } = await import('tsx/esm/api');
register();
await import('../cli/main.ts');
