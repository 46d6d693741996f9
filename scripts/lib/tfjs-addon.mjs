// The native tensor addon: tfjs-node's own binding, compiled here against TensorFlow's C library from the PyPI wheel.
// Its published install script downloads an old CUDA build, so it stays denied. Libraries, headers and the compiled
// binding live in the cache folder because `npm ci` deletes node_modules; a second run only compares a few files.
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { projectDir, which } from './places.mjs';
import { run, step, tail } from './steps.mjs';

export const TENSORFLOW_VERSION = '2.18.1';
const TFJS_NODE_VERSION = '4.22.0';
const LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'];
const BINDING = `tfjs_binding-${TFJS_NODE_VERSION}.node`;

/** Takes the two libraries and the three header trees out of the wheel; argv: wheel, target. */
const UNPACK = `
import os, sys, zipfile
wheel, target = sys.argv[1:3]
keep = ('tensorflow/include/tensorflow/', 'tensorflow/include/tsl/', 'tensorflow/include/xla/')
with zipfile.ZipFile(wheel) as z:
    for name in z.namelist():
        if name.endswith('/'):
            continue
        if name.startswith(keep) or (name.count('/') == 1 and '.so.2' in name):
            path = os.path.join(target, name[len('tensorflow/'):])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with z.open(name) as source, open(path, 'wb') as out:
                while chunk := source.read(1 << 20):
                    out.write(chunk)
`;

/** Where TensorFlow's library lies in Tapwright's cache folder. */
export function tensorflowDir(cacheDir) {
  return join(cacheDir, `tensorflow-cpu-${TENSORFLOW_VERSION}`);
}

/** Where tfjs-node looks for its binding. */
export function installedBinding(project = projectDir) {
  return join(project, 'node_modules', '@tensorflow', 'tfjs-node-gpu', 'lib', 'napi-v8', 'tfjs_binding.node');
}

/**
 * Makes the addon loadable from node_modules. Idempotent. Resolves to `{ ok: true, changed }` or
 * `{ ok: false, reason, whatToDo }` (then the wasm backend serves); never throws for something the machine lacks.
 */
export async function ensureTfjsAddon({ cacheDir, log = () => {} }) {
  const target = tensorflowDir(cacheDir);
  const packageDir = dirname(dirname(dirname(installedBinding())));
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return fail(
      `There is no native build for ${process.platform} on ${process.arch}.`,
      'Nothing to do: training is slower.',
    );
  }
  if (!existsSync(join(packageDir, 'binding', 'tfjs_binding.cc'))) {
    return fail('The optional package @tensorflow/tfjs-node-gpu is not installed.', 'Run `npm ci --ignore-scripts`.');
  }
  const cached = join(target, BINDING);
  if (isComplete(target) && existsSync(cached) && sameSize(cached, installedBinding())) {
    return { ok: true, changed: false };
  }
  if (!isComplete(target)) {
    const failure = await fetchLibrary(cacheDir, target);
    if (failure !== null) return failure;
  }
  if (!existsSync(cached)) {
    const failure = await compile(packageDir, target, cached);
    if (failure !== null) return failure;
  }
  mkdirSync(dirname(installedBinding()), { recursive: true });
  const scratch = `${installedBinding()}.${process.pid}`;
  copyFileSync(cached, scratch);
  renameSync(scratch, installedBinding());
  const loaded = await run(process.execPath, ['-e', 'require(process.argv[1])', installedBinding()]);
  if (loaded.code !== 0) {
    rmSync(installedBinding(), { force: true });
    rmSync(cached, { force: true });
    return fail(`The tensor addon does not load: ${tail(loaded.output, 1)}`, 'Run `npm run setup -- --only tfjs`.');
  }
  log('tensors: native backend ready');
  return { ok: true, changed: true };
}

async function fetchLibrary(cacheDir, target) {
  const python = which('python3') ?? which('python');
  const byHand = `Install Python 3 with pip; the set-up takes TensorFlow's C library from the wheel tensorflow-cpu ${TENSORFLOW_VERSION}.`;
  if (python === null) return fail("TensorFlow's C library comes from PyPI and there is no Python.", byHand);
  const scratch = `${target}.unpacking-${process.pid}`;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(join(scratch, 'wheel'), { recursive: true });
  try {
    return await step("TensorFlow's C library (the tensor arithmetic of training; 230 MB, once)", async (note) => {
      note('downloading');
      // Any CPython's wheel will do: only the C library in it is used.
      const wheel = ['--only-binary=:all:', '--python-version', '3.11', '--implementation', 'cp', '--abi', 'cp311'];
      const platform = ['--platform', 'manylinux2014_x86_64', '--platform', 'manylinux_2_17_x86_64'];
      const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--dest', join(scratch, 'wheel')];
      const fetched = await run(python, [
        ...['-m', 'pip', 'download', ...options, ...wheel, ...platform],
        `tensorflow-cpu==${TENSORFLOW_VERSION}`,
      ]);
      const file = readdirSync(join(scratch, 'wheel')).find((name) => name.endsWith('.whl'));
      if (fetched.code !== 0 || file === undefined) {
        return fail(`pip could not download tensorflow-cpu ${TENSORFLOW_VERSION}: ${tail(fetched.output, 2)}`, byHand);
      }
      note('unpacking');
      const unpacked = await run(python, ['-c', UNPACK, join(scratch, 'wheel', file), join(scratch, 'out')]);
      if (unpacked.code !== 0) {
        return fail(`The wheel does not unpack: ${tail(unpacked.output, 1)}`, `Check the free space in ${cacheDir}.`);
      }
      rmSync(target, { recursive: true, force: true });
      renameSync(join(scratch, 'out'), target);
      return null;
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function compile(packageDir, target, cached) {
  const compiler = process.env.CXX ? which(process.env.CXX) : (which('g++') ?? which('c++') ?? which('clang++'));
  if (compiler === null) {
    return fail('There is no C++ compiler to build the tensor addon.', 'Install g++ (Debian: apt-get install g++).');
  }
  const headers = nodeHeaders();
  if (headers === null) {
    return fail('The headers of Node are not on this machine.', 'Install libnode-dev or run `npx node-gyp install`.');
  }
  const binding = join(packageDir, 'binding');
  const sources = readdirSync(binding).filter((name) => name.endsWith('.cc'));
  const scratch = `${cached}.${process.pid}`;
  const result = await step('Tensor addon, compiled (joins Node and TensorFlow; once, 10 s)', () =>
    run(compiler, [
      ...['-O2', '-std=c++17', '-shared', '-fPIC', '-DNAPI_VERSION=8'],
      ...[`-I${join(target, 'include')}`, `-I${headers}`, `-I${packageDir}`],
      ...sources.map((name) => join(binding, name)),
      ...[`-L${target}`, ...LIBRARIES.map((name) => `-l:${name}`), `-Wl,-rpath,${target}`, '-o', scratch],
    ]),
  );
  if (result.code !== 0) {
    rmSync(scratch, { force: true });
    return fail(`The tensor addon does not compile: ${tail(result.output, 3)}`, 'Use g++ 9 or newer.');
  }
  renameSync(scratch, cached);
  return null;
}

/** The folder of node_api.h: beside the node binary, else node-gyp's. */
function nodeHeaders() {
  const version = process.versions.node;
  const gyp = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const places = [
    join(dirname(dirname(process.execPath)), 'include', 'node'),
    join(gyp, 'node-gyp', version, 'include', 'node'),
    '/usr/include/node',
  ];
  return places.find((place) => existsSync(join(place, 'node_api.h'))) ?? null;
}

function isComplete(target) {
  return (
    LIBRARIES.every((name) => existsSync(join(target, name))) &&
    existsSync(join(target, 'include', 'tensorflow', 'c', 'c_api.h'))
  );
}

function sameSize(a, b) {
  return existsSync(b) && statSync(a).size === statSync(b).size;
}

function fail(reason, whatToDo) {
  return { ok: false, reason, whatToDo };
}
