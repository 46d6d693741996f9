// What the browser suites need: the pages of MiniWoB++ and a Chromium.
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { canInstallFromDebian, installFromDebian } from './debian.mjs';
import { findChromium, findMiniwob, MINIWOB_VERSION, miniwobHtmlDir, which } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

/** Fetches the `miniwob` wheel from PyPI and unpacks it into the cache. Nothing in it is executed. */
export async function ensureMiniwob() {
  if (findMiniwob() !== null) return { ok: true, changed: false };
  const python = which('python3') ?? which('python');
  const byHand =
    `Install Python 3 with pip, or unpack the wheel \`miniwob\` ${MINIWOB_VERSION} from PyPI so that ` +
    `${join(miniwobHtmlDir(), 'core', 'core.js')} exists.`;
  if (python === null) throw new SetupError('The pages of MiniWoB++ come from PyPI and there is no Python.', byHand);
  const target = dirname(dirname(miniwobHtmlDir()));
  const scratch = `${target}.unpacking-${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  try {
    await step('MiniWoB++ pages (the tasks of the browser suite)', async () => {
      const wheel = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', scratch, `miniwob==${MINIWOB_VERSION}`];
      const fetched = await run(python, wheel);
      const file = readdirSync(scratch).find((name) => name.endsWith('.whl'));
      if (fetched.code !== 0 || file === undefined) {
        throw new SetupError(`pip could not download the wheel:\n${tail(fetched.output)}`, byHand);
      }
      const unpacked = await run(python, ['-m', 'zipfile', '-e', join(scratch, file), join(scratch, 'out')]);
      if (unpacked.code !== 0) throw new SetupError(`the wheel does not unpack:\n${tail(unpacked.output)}`, byHand);
      rmSync(target, { recursive: true, force: true });
      renameSync(join(scratch, 'out'), target);
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return { ok: true, changed: true };
}

/** Finds a Chromium; with `install`, as root on Debian, installs the distribution's. */
export async function ensureChromium({ install }) {
  if (findChromium() !== null) return { ok: true, changed: false };
  const help = 'Install Chromium or Chrome on PATH, or set TAPWRIGHT_CHROMIUM to its executable.';
  if (process.env.TAPWRIGHT_CHROMIUM) {
    throw new SetupError(`TAPWRIGHT_CHROMIUM=${process.env.TAPWRIGHT_CHROMIUM} is no executable file.`, help);
  }
  if (!install || !canInstallFromDebian()) throw new SetupError('There is no Chromium on this machine.', help);
  await installFromDebian('chromium', 'Chromium from Debian (the device of the browser suite)', help);
  return { ok: true, changed: true };
}
