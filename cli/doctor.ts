import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { guestFolder, QEMU, usableAcceleration } from '../devices/vnc/machine.ts';
import {
  findChromium,
  findMiniwob,
  findTemporal,
  MINIWOB_VERSION,
  miniwobHtmlDir,
  postgresFolders,
  projectDir,
  TEMPORAL_CLI_VERSION,
  TEMPORAL_HELP,
  which,
} from '../scripts/lib/places.mjs';

const call = promisify(execFile);

/** One part that Tapwright uses, as `tapwright doctor` lists it. */
export interface Part {
  name: string;
  /** `ok`; `missing` and nothing runs without it; `optional`: missing, and something smaller serves instead. */
  state: 'ok' | 'missing' | 'optional';
  /** Where it was found: a path, an address, or null. */
  where: string | null;
  version: string | null;
  /** What it is for. */
  use: string;
  /** What to do about it, null when nothing is to be done. */
  whatToDo: string | null;
}

/** Looks at every part; never throws and changes nothing. */
export async function doctor(env: NodeJS.ProcessEnv = process.env): Promise<Part[]> {
  return Promise.all([
    node(),
    packages(),
    tensors(),
    temporal(env),
    postgres(env),
    chromium(env),
    miniwob(env),
    qemu(env),
    guest(),
    tool('python3', ['--version'], 'fetches the native tensor library and the MiniWoB++ pages', env),
    tool('go', ['version'], 'builds the Temporal server when there is none', env),
    tool('g++', ['--version'], 'builds the binding of the native tensor library', env),
  ]);
}

function node(): Part {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = major === 22 || (major === 20 && minor >= 19);
  return {
    name: 'node',
    state: fits ? 'ok' : 'missing',
    where: process.execPath,
    version: process.versions.node,
    use: 'runs everything',
    whatToDo: fits ? null : 'Install Node 20.19 or newer, or Node 22.',
  };
}

function packages(): Part {
  const lock = join(projectDir, 'node_modules', '.package-lock.json');
  const installed = existsSync(lock);
  const count = installed ? Object.keys((JSON.parse(readFileSync(lock, 'utf8')) as { packages: object }).packages) : [];
  return {
    name: 'npm packages',
    state: installed ? 'ok' : 'missing',
    where: installed ? join(projectDir, 'node_modules') : null,
    version: installed ? `${count.length} packages` : null,
    use: 'the libraries that Tapwright is made of',
    whatToDo: installed ? null : 'Run `npm run setup -- --only packages`.',
  };
}

/** Loads the native backend in a process of its own: it takes a second, and a library that fails may end its process. */
async function tensors(): Promise<Part> {
  const use = 'tensors of planner and critic';
  const program = `
    const tf = require('@tensorflow/tfjs-node-gpu');
    const binding = tf.backend().binding;
    console.log('found ' + JSON.stringify({ tf: binding.TF_Version, gpu: tf.backend().isUsingGpuDevice }));`;
  try {
    const { stdout } = await call(process.execPath, ['-e', program], {
      cwd: projectDir,
      env: { ...process.env, TF_CPP_MIN_LOG_LEVEL: '3' },
      timeout: 60_000,
    });
    const line = stdout.split('\n').find((text) => text.startsWith('found ')) ?? 'found {}';
    const found = JSON.parse(line.slice(6)) as { tf?: string; gpu?: boolean };
    return {
      name: 'tensor backend',
      state: 'ok',
      where: join(projectDir, 'node_modules', '@tensorflow', 'tfjs-node-gpu'),
      version: `native, TensorFlow ${found.tf ?? 'of unknown version'}, ${found.gpu === true ? 'GPU' : 'CPU'}`,
      use,
      whatToDo: null,
    };
  } catch {
    const wasm = join(projectDir, 'node_modules', '@tensorflow', 'tfjs-backend-wasm');
    return {
      name: 'tensor backend',
      state: existsSync(wasm) ? 'optional' : 'missing',
      where: existsSync(wasm) ? wasm : null,
      version: existsSync(wasm) ? 'wasm (several times slower than native)' : null,
      use,
      whatToDo: 'For the native one: Python 3 with pip and a C++ compiler, then `npm run setup -- --only tfjs`.',
    };
  }
}

async function temporal(env: NodeJS.ProcessEnv): Promise<Part> {
  const found = findTemporal(env);
  const part = { name: 'Temporal server', use: 'keeps the state of every run' };
  if (found === null) return { ...part, state: 'missing', where: null, version: null, whatToDo: TEMPORAL_HELP };
  if (found.kind === 'address') {
    return { ...part, state: 'ok', where: found.address, version: found.source, whatToDo: null };
  }
  const version = await firstLine(found.path, ['--version'], env);
  return {
    ...part,
    state: version === null ? 'missing' : 'ok',
    where: found.path,
    version: version === null ? null : `${cliVersion(version)}, ${found.source}`,
    whatToDo: version === null ? `${found.path} does not run: remove it. ${TEMPORAL_HELP}` : null,
  };
}

async function postgres(env: NodeJS.ProcessEnv): Promise<Part> {
  const bin = postgresFolders(env)[0] ?? null;
  const version = bin === null ? null : await firstLine(join(bin, 'postgres'), ['--version'], env);
  return {
    name: 'PostgreSQL',
    state: version === null ? 'optional' : 'ok',
    where: bin,
    version,
    use: 'keeps the state of Temporal in place of SQLite (`npm run temporal:postgres`)',
    whatToDo:
      version === null
        ? `Only for \`npm run temporal:postgres\`, which installs it as root on Debian: \`-- --install\`.`
        : null,
  };
}

/** A server built with `go install` does not know its own version; the set-up built the one it names. */
function cliVersion(line: string): string {
  return line.replace(/^temporal version /, '').replace(/^0\.0\.0-DEV/, TEMPORAL_CLI_VERSION);
}

async function chromium(env: NodeJS.ProcessEnv): Promise<Part> {
  const path = findChromium(env);
  const version = path === null ? null : await firstLine(path, ['--version'], env);
  return {
    name: 'Chromium',
    state: version === null ? 'optional' : 'ok',
    where: path,
    version,
    use: 'the device of browser suites',
    whatToDo:
      version === null
        ? 'Only for browser suites: install Chromium or Chrome on PATH, or set TAPWRIGHT_CHROMIUM; as root on Debian `npm run setup -- --browser` installs it.'
        : null,
  };
}

function miniwob(env: NodeJS.ProcessEnv): Part {
  const found = findMiniwob(env);
  return {
    name: 'MiniWoB++ pages',
    state: found === null ? 'optional' : 'ok',
    where: found,
    version: found === null ? null : MINIWOB_VERSION,
    use: 'the tasks of the miniwob suite',
    whatToDo:
      found === null
        ? `Only for the miniwob suite: run \`npm run setup -- --browser\`; they go to ${miniwobHtmlDir(env)}.`
        : null,
  };
}

async function qemu(env: NodeJS.ProcessEnv): Promise<Part> {
  const path = which(QEMU, env);
  const version = path === null ? null : await firstLine(path, ['--version'], env);
  return {
    name: 'QEMU',
    state: version === null ? 'optional' : 'ok',
    where: path,
    version: version === null ? null : `${version}, ${usableAcceleration()}`,
    use: 'the machines of the vnc-phones suite',
    whatToDo:
      version === null ? 'Only for vnc-phones: as root on Debian `npm run setup -- --only qemu` installs it.' : null,
  };
}

function guest(): Part {
  const found = existsSync(join(guestFolder(), 'guest.json'));
  return {
    name: 'guest of QEMU',
    state: found ? 'ok' : 'optional',
    where: found ? guestFolder() : null,
    version: null,
    use: 'what runs in the machines of the vnc-phones suite',
    whatToDo: found ? null : 'Only for vnc-phones: run `npm run setup -- --only guest`.',
  };
}

async function tool(name: string, args: string[], use: string, env: NodeJS.ProcessEnv): Promise<Part> {
  const path = which(name, env);
  const version = path === null ? null : await firstLine(path, args, env);
  return {
    name,
    state: version === null ? 'optional' : 'ok',
    where: path,
    version,
    use,
    whatToDo: version === null ? `Only needed by the set-up: it ${use}. Install it on PATH if that is wanted.` : null,
  };
}

async function firstLine(path: string, args: string[], env: NodeJS.ProcessEnv): Promise<string | null> {
  try {
    const { stdout, stderr } = await call(path, args, { env, timeout: 20_000 });
    return (stdout.trim() || stderr.trim()).split('\n')[0] ?? '';
  } catch {
    return null;
  }
}

/** The parts as text for a terminal, one or two lines each, and a last line that sums up. */
export function printDoctor(parts: Part[]): string {
  const mark = { ok: 'ok      ', missing: 'MISSING ', optional: 'optional' };
  const width = Math.max(...parts.map((part) => part.name.length));
  const lines = parts.flatMap((part) => {
    const found = [part.version, part.where].filter((text) => text !== null).join('  ');
    const first = `${mark[part.state]}  ${part.name.padEnd(width)}  ${found === '' ? `not found (${part.use})` : found}`;
    return part.whatToDo === null ? [first] : [first, `${' '.repeat(width + 12)}-> ${part.whatToDo}`];
  });
  const missing = parts.filter((part) => part.state === 'missing').map((part) => part.name);
  const last = missing.length === 0 ? 'Ready to run.' : `Not ready: ${missing.join(', ')}.`;
  return `${[...lines, '', last].join('\n')}\n`;
}

/** Adds `tapwright doctor [--json]`; its exit code is 1 when a part without which nothing runs is missing. */
export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('list every part Tapwright uses: where it was found, its version, what to do about what is missing')
    .option('--json', 'print the list as JSON')
    .action(async (options: { json?: boolean }) => {
      const parts = await doctor();
      process.stdout.write(options.json === true ? `${JSON.stringify(parts, null, 2)}\n` : printDoctor(parts));
      if (parts.some((part) => part.state === 'missing')) process.exitCode = 1;
    });
}
