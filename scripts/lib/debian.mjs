// Packages of the distribution, where we may install them: as root on Debian and its kin.
import { existsSync } from 'node:fs';
import { which } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

export function canInstallFromDebian() {
  return existsSync('/etc/debian_version') && which('apt-get') !== null && process.getuid?.() === 0;
}

/** apt-get install; the lists of packages are fetched only when it fails without. Throws SetupError with `help`. */
export async function installFromDebian(name, title, help) {
  await step(title, async () => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const attempt = () => run('apt-get', ['install', '-y', '--no-install-recommends', name], { env });
    let result = await attempt();
    if (result.code !== 0) {
      await run('apt-get', ['update'], { env });
      result = await attempt();
    }
    if (result.code !== 0) throw new SetupError(`apt-get install ${name} failed:\n${tail(result.output)}`, help);
  });
}
