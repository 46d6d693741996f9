// Programs built from Go modules, into the user's cache folder.
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { which } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

/**
 * `go install` of `sources` (all of one module and version), its binaries named as `files` says: `{ built: kept }`.
 * `packages`: how many it compiles on an empty Go cache, only for the progress line. Go is there: the caller has looked.
 */
export async function goInstall({ title, sources, files, folder, packages, help }) {
  // Built beside its place and renamed, so that an interrupted build leaves nothing that looks finished.
  const scratch = `${folder}.building-${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  try {
    await step(title, async (note) => {
      let compiled = 0;
      const { code, output } = await run(which('go'), ['install', '-v', ...sources], {
        env: { ...process.env, GOBIN: scratch, GOOS: '', GOARCH: '' },
        onLine: (line) => {
          if (line.startsWith('go: downloading')) note('downloading modules');
          else note(`${Math.min(99, Math.round((100 * ++compiled) / packages))} % of the packages`);
        },
      });
      if (code !== 0) {
        throw new SetupError(
          `go install ${sources.join(' ')} failed:\n${tail(output, 8)}`,
          `Go 1.24 or newer and a Go module proxy are needed. ${help}`,
        );
      }
    });
    mkdirSync(folder, { recursive: true });
    for (const [built, kept] of Object.entries(files)) renameSync(join(scratch, built), join(folder, kept));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
