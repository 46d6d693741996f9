// Makes a fresh clone ready to run: `npm run setup [-- --browser] [-- --only packages|tfjs|temporal|miniwob|chromium|qemu|guest]`.
// Plain JavaScript on Node built-ins, because it runs before any package is installed. Every part looks first whether
// it is there already, so a second run takes a moment.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureChromium, ensureMiniwob } from './lib/browser.mjs';
import { ensureGuest, ensureQemu } from './lib/guest.mjs';
import { ensurePackages } from './lib/packages.mjs';
import { cacheDir, projectDir } from './lib/places.mjs';
import { SetupError } from './lib/steps.mjs';
import { ensureTemporal } from './lib/temporal.mjs';

export const PARTS = ['packages', 'tfjs', 'temporal', 'miniwob', 'chromium', 'qemu', 'guest'];

/**
 * Runs the set-up. `browser`: 'no', 'find' (fetch the pages, use a Chromium that is there; failures are only told),
 * 'try' (also install one), 'need' (failures end the set-up). `only`: one part. Throws SetupError.
 */
export async function setup({ browser = 'no', only = null, log = (line) => process.stderr.write(`${line}\n`) } = {}) {
  checkNode();
  const wants = (part) => only === null || only === part;
  if (wants('packages')) await ensurePackages();
  if (wants('tfjs')) await ensureTfjs(log);
  if (wants('temporal')) await ensureTemporal();
  if (only === 'miniwob' || (only === null && browser !== 'no')) {
    await optional(ensureMiniwob, browser, log);
  }
  if (only === 'chromium' || (only === null && browser !== 'no')) {
    await optional(() => ensureChromium({ install: browser !== 'find' }), browser, log);
  }
  // Only when it is asked for: it takes a kernel of 70 MB, and only live devices need it.
  if (only === 'qemu') await ensureQemu();
  if (only === 'guest') await ensureGuest();
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || major < 20 || major === 21 || (major === 20 && minor < 19)) {
    throw new SetupError(
      `Node ${process.versions.node} does not run Tapwright.`,
      'Install Node 20.19 or newer, or Node 22 (the TensorFlow binding breaks on Node 23 and later).',
    );
  }
}

/** The native tensor backend is worth having and never needed: without it the wasm backend serves. */
async function ensureTfjs(log) {
  if (!existsSync(join(projectDir, 'node_modules', '@tensorflow', 'tfjs'))) return;
  let outcome;
  try {
    const { ensureTfjsAddon } = await import('./lib/tfjs-addon.mjs');
    outcome = await ensureTfjsAddon({ cacheDir: cacheDir(), log });
  } catch (error) {
    outcome = { ok: false, reason: error.message, whatToDo: 'Run `npm run setup -- --only tfjs` again.' };
  }
  if (!outcome.ok)
    log(`tensors: the slower wasm backend will serve: ${outcome.reason} ${outcome.whatToDo ?? ''}`.trim());
}

async function optional(work, browser, log) {
  try {
    await work();
  } catch (error) {
    if (browser === 'need' || !(error instanceof SetupError)) throw error;
    log(`browser suites are off: ${error.message} ${error.whatToDo}`);
  }
}

/** Prints a set-up failure and what to do about it; any other error is shown whole. */
export function printFailure(error, what = 'The set-up stopped') {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`\n${what}: ${error.message}\nWhat to do: ${error.whatToDo}\n`);
}

function parse(args) {
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : null;
  const rest = args.filter((arg, i) => arg !== '--browser' && arg !== '--only' && args[i - 1] !== '--only');
  if (rest.length > 0 || (only !== null && !PARTS.includes(only))) {
    throw new SetupError(
      `unknown argument ${rest[0] ?? only ?? '--only'}.`,
      `usage: npm run setup [-- --browser] [-- --only ${PARTS.join('|')}]`,
    );
  }
  return { only, browser: args.includes('--browser') || only !== null ? 'need' : 'no' };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await setup(parse(process.argv.slice(2)));
    process.stderr.write('Set-up: ready\n');
  } catch (error) {
    printFailure(error);
    process.exitCode = 1;
  }
}
