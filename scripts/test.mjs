// `npm test [-- --install-browser] [vitest arguments]`: the set-up, types and lint, then every test.
// The last line is `N passed, N failed`, from vitest's JSON report (kept at TAPWRIGHT_TEST_REPORT when that is set).
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectDir } from './lib/places.mjs';
import { run } from './lib/steps.mjs';
import { printFailure, setup } from './setup.mjs';

const args = process.argv.slice(2);
const installBrowser = args.includes('--install-browser');
const vitestArgs = args.filter((arg) => arg !== '--install-browser');
const scratch = mkdtempSync(join(tmpdir(), 'tapwright-test-'));
const report = process.env.TAPWRIGHT_TEST_REPORT ?? join(scratch, 'report.json');
const bin = (...path) => join(projectDir, 'node_modules', ...path);

try {
  rmSync(report, { force: true });
  // Browser tests look for the pages and a Chromium themselves, and skip with a reason when there are none.
  await setup({ browser: installBrowser ? 'try' : 'find' });
  // With a filter the caller wants those tests, not the whole gate.
  const checks = vitestArgs.length > 0 ? true : await typesAndLint();
  const code = await vitest();
  process.exitCode = summary(code) && checks ? 0 : 1;
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function typesAndLint() {
  const results = await Promise.all([
    check('types', [bin('typescript', 'bin', 'tsc'), '--noEmit']),
    check('lint', [bin('eslint', 'bin', 'eslint.js'), '.']),
    check('format', [bin('prettier', 'bin', 'prettier.cjs'), '--check', '--log-level', 'warn', '.']),
  ]);
  return results.every(Boolean);
}

async function check(name, command) {
  const { code, output } = await run(process.execPath, command, { cwd: projectDir });
  process.stdout.write(code === 0 ? `${name}: ok\n` : `${name}: FAILED\n${output}\n`);
  return code === 0;
}

function vitest() {
  const command = [bin('vitest', 'vitest.mjs'), 'run', '--reporter=default', '--reporter=json'];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...command, `--outputFile.json=${report}`, ...vitestArgs], {
      cwd: projectDir,
      stdio: 'inherit',
    });
    child.on('error', () => resolve(1));
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/** Prints the last line; true when tests ran and none failed. */
function summary(code) {
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null;
  const passed = counts?.numPassedTests ?? 0;
  // A file that does not load has no tests to count: it is one failure.
  const broken = (counts?.testResults ?? []).filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  const failed = (counts?.numFailedTests ?? 0) + broken.length;
  if (counts?.numPendingTests > 0) process.stdout.write(`${counts.numPendingTests} skipped\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return code === 0 && failed === 0 && passed > 0;
}
