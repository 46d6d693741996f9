// npm packages: are those of package-lock.json installed, and if not, install them.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

/**
 * The first reason why node_modules is not what the lock file says, or null. npm writes its own copy of the lock file
 * into node_modules as the last act of an install, so no stamp of ours is needed and an interrupted install shows.
 */
export function packagesMismatch(dir = projectDir) {
  const installedFile = join(dir, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return 'no packages are installed';
  const wanted = JSON.parse(readFileSync(join(dir, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedFile, 'utf8')).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    // Optional packages may be left out for this machine.
    if (path === '' || entry.optional || entry.devOptional) continue;
    if (installed[path]?.version !== entry.version) return `${path} ${entry.version} is not installed`;
  }
  return null;
}

/** Installs the packages when they differ from the lock file, without running any install script. */
export async function ensurePackages() {
  if (packagesMismatch() === null) return { ok: true, changed: false };
  const npm = process.env.npm_execpath;
  const [command, first] = npm && existsSync(npm) ? [process.execPath, [npm]] : ['npm', []];
  const args = [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  await step('npm packages (the libraries that Tapwright is made of)', async () => {
    const { code, output } = await run(command, args, { cwd: projectDir });
    if (code !== 0) {
      // npm's first error lines say what is wrong; after them comes its usage text.
      const said = output.split('\n').filter((line) => /^npm error \S/.test(line));
      throw new SetupError(
        `npm ci failed:\n${said.slice(0, 4).join('\n') || tail(output)}`,
        'Check that the npm registry can be reached, and that package-lock.json is the one of this version.',
      );
    }
  });
  return { ok: true, changed: true };
}
