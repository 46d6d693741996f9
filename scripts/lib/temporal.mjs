// A Temporal server for this machine: found, downloaded by the SDK, or built with Go.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { goInstall } from './go.mjs';
import {
  builtTemporal,
  cacheDir,
  downloadedTemporal,
  findTemporal,
  projectDir,
  TEMPORAL_CLI_VERSION,
  TEMPORAL_HELP,
  which,
} from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

const DOWNLOAD_TIMEOUT_MS = 90_000;
/** How many packages the Go build compiles on an empty Go cache: only for the progress line. */
const GO_PACKAGES = 1320;

/** Finds or makes a server; the order is that of findTemporal, then the SDK's download, then the Go build. */
export async function ensureTemporal() {
  const found = findTemporal();
  if (found !== null) return { ok: true, changed: false, ...found };
  if (await download()) return { ok: true, changed: true, ...findTemporal() };
  await build();
  return { ok: true, changed: true, ...findTemporal() };
}

/** Lets the Temporal SDK download its development server. A failure is remembered, so it costs time only once. */
async function download() {
  const failed = join(cacheDir(), 'temporal-download-failed');
  const sdk = existsSync(join(projectDir, 'node_modules', '@temporalio', 'testing'));
  if (!sdk || existsSync(failed) || process.env.TAPWRIGHT_NO_DOWNLOAD) return false;
  const folder = join(dirname(downloadedTemporal()), 'download');
  mkdirSync(folder, { recursive: true });
  const program = `
    const { TestWorkflowEnvironment } = require('@temporalio/testing');
    TestWorkflowEnvironment.createLocal({
      server: { executable: { type: 'cached-download', downloadDir: process.argv[1] } },
    }).then((env) => env.teardown()).then(() => process.exit(0), (error) => {
      console.error(error.message);
      process.exit(1);
    });`;
  let reason = null;
  const attempt = step('Temporal server, try to download it (it keeps the state of every run)', async () => {
    const { output } = await run(process.execPath, ['-e', program, folder], {
      cwd: projectDir,
      timeoutMs: DOWNLOAD_TIMEOUT_MS,
    });
    const file = readdirSync(folder, { recursive: true, withFileTypes: true }).find(
      (entry) => entry.isFile() && entry.name.startsWith('temporal'),
    );
    const path = file && join(file.parentPath, file.name);
    if (path === undefined || (await run(path, ['--version'])).code !== 0) {
      throw new Error(tail(output, 1) || 'no file came');
    }
    renameSync(path, downloadedTemporal());
  });
  await attempt.catch((error) => void (reason = error.message));
  rmSync(folder, { recursive: true, force: true });
  if (reason === null) return true;
  writeFileSync(failed, `${reason}\nDelete this file to try the download again.\n`);
  process.stderr.write('  the download site cannot be reached (remembered); the server is built from source instead\n');
  return false;
}

async function build() {
  if (which('go') === null)
    throw new SetupError('There is no Temporal server on this machine and no Go to build one.', TEMPORAL_HELP);
  await goInstall({
    title: 'Temporal server, built with Go (keeps the state of every run; once, 4-8 minutes on two cores)',
    sources: [`github.com/temporalio/cli/cmd/temporal@v${TEMPORAL_CLI_VERSION}`],
    files: { temporal: 'temporal' },
    folder: dirname(builtTemporal()),
    packages: GO_PACKAGES,
    help: TEMPORAL_HELP,
  });
}
