// The guest of the live devices: Debian's kernel as it is, a few of its modules, and one static program of ours that is
// the phone. Built once into the user's cache folder, again when its sources change.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { canInstallFromDebian, installFromDebian } from './debian.mjs';
import { cacheDir, projectDir, which } from './places.mjs';
import { run, SetupError, step, tail } from './steps.mjs';

/** Modules that the phone needs; what they depend on is read from them. */
const MODULES = ['virtio_pci', 'virtio_input', 'evdev'];
const TOOLS = ['gcc', 'dpkg-deb', 'apt-get', 'apt-cache', 'tar', 'xz'];
const sources = join(projectDir, 'devices', 'vnc', 'guest');
const HELP =
  'On Debian: apt-get install gcc libc6-dev xz-utils, and lists of packages that hold linux-image-amd64 (apt-get update).';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Where the guest is kept: `vmlinux`, `initramfs` and `guest.json`, which names them by hash. */
export const guestDir = (env = process.env) => join(cacheDir(env), 'guest');

function sourcesHash() {
  const hash = createHash('sha256').update(readFileSync(new URL(import.meta.url)));
  for (const name of readdirSync(sources).sort()) hash.update(name).update(readFileSync(join(sources, name)));
  return hash.digest('hex');
}

/** Builds the guest unless it is there. Throws SetupError. */
export async function ensureGuest() {
  const wanted = sourcesHash();
  const target = guestDir();
  const known = existsSync(join(target, 'guest.json'))
    ? JSON.parse(readFileSync(join(target, 'guest.json'), 'utf8')).sources
    : null;
  if (known === wanted) return { ok: true, changed: false };
  const missing = TOOLS.filter((tool) => which(tool) === null);
  if (missing.length > 0) throw new SetupError(`The guest cannot be built without ${missing.join(', ')}.`, HELP);
  mkdirSync(cacheDir(), { recursive: true });
  const scratch = mkdtempSync(`${target}.building-`);
  try {
    await step('The guest of the live devices (Debian kernel, our phone)', async (note) => {
      note('kernel package');
      const kernel = await fetchKernel(scratch);
      note('kernel');
      const vmlinux = await extractVmlinux(scratch);
      note('phone');
      const files = collectModules(scratch);
      files.push({ name: 'init', mode: 0o100755, body: await compileInit(scratch) });
      const out = join(scratch, 'out');
      mkdirSync(out);
      const initramfs = cpio(files);
      writeFileSync(join(out, 'vmlinux'), vmlinux);
      writeFileSync(join(out, 'initramfs'), initramfs);
      const about = { sources: wanted, kernel, vmlinux: sha256(vmlinux), initramfs: sha256(initramfs) };
      writeFileSync(join(out, 'guest.json'), `${JSON.stringify(about, null, 2)}\n`);
      rmSync(target, { recursive: true, force: true });
      renameSync(out, target);
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return { ok: true, changed: true };
}

/** Finds QEMU; as root on Debian installs the distribution's. Throws SetupError. */
export async function ensureQemu() {
  const packages = { 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', setpriv: 'util-linux' };
  let changed = false;
  for (const [program, name] of Object.entries(packages)) {
    if (which(program) !== null) continue;
    const help = `On Debian: apt-get install --no-install-recommends ${Object.values(packages).join(' ')}.`;
    if (!canInstallFromDebian()) throw new SetupError(`There is no ${program} on PATH.`, help);
    await installFromDebian(name, `${name} from Debian (the machines of the live devices)`, help);
    changed = true;
  }
  return { ok: true, changed };
}

async function need(command, args, options = {}) {
  const result = await run(command, args, options);
  if (result.code !== 0) throw new SetupError(`${command} failed:\n${tail(result.output)}`, HELP);
  return result.output;
}

/** Downloads the package that linux-image-amd64 stands for and unpacks it; apt checks it against Debian's signed lists. */
async function fetchKernel(scratch) {
  const find = async () => {
    const { output } = await run('apt-cache', ['show', '--no-all-versions', 'linux-image-amd64']);
    return /^Depends: (linux-image-[\w.-]+-amd64)\b/m.exec(output)?.[1] ?? null;
  };
  let name = await find();
  if (name === null) {
    await run('apt-get', ['update']);
    name = await find();
  }
  if (name === null) throw new SetupError('The lists of packages have no linux-image-amd64.', HELP);
  await need('apt-get', ['download', name], { cwd: scratch });
  const deb = readdirSync(scratch).find((file) => file.endsWith('.deb'));
  // Two of the package's thousands of files are wanted, and the folders of a few modules.
  const wanted = [
    './boot/vmlinuz*',
    './lib/modules/*/kernel/drivers/virtio/*',
    './lib/modules/*/kernel/drivers/input/*',
  ];
  const unpack = 'dpkg-deb --fsys-tarfile "$0" | tar -x --wildcards "$@"';
  await need('sh', ['-c', unpack, deb, ...wanted], { cwd: scratch });
  rmSync(join(scratch, deb));
  return basename(deb, '.deb');
}

/** The kernel proper out of its self-extracting image: unpacking it at each boot would take most of the boot's time. */
async function extractVmlinux(scratch) {
  const boot = join(scratch, 'boot');
  const image = readFileSync(join(boot, readdirSync(boot)[0]));
  const at = image.indexOf(Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]));
  if (at < 0) throw new SetupError('The kernel image is not packed by xz.', 'Please report the version of the kernel.');
  const packed = join(scratch, 'vmlinux.xz');
  writeFileSync(packed, image.subarray(at));
  // What follows the stream in the image is not xz's, which it says, having written everything.
  await run('sh', ['-c', 'xz -dc -q "$0" > "$1"', packed, join(scratch, 'vmlinux')]);
  const vmlinux = readFileSync(join(scratch, 'vmlinux'));
  if (vmlinux.readUInt32BE(0) !== 0x7f454c46) throw new SetupError('The kernel does not unpack.', HELP);
  return vmlinux;
}

/** Modules and what they depend on, in the order in which they load, and the file that says so. */
function collectModules(scratch) {
  const found = new Map();
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) walk(join(folder, entry.name));
      else found.set(entry.name.replace(/\.ko$/, '').replaceAll('-', '_'), join(folder, entry.name));
    }
  };
  walk(join(scratch, 'lib', 'modules'));
  const files = [];
  const order = [];
  const add = (name) => {
    const file = `${name}.ko`;
    if (order.includes(file)) return;
    const path = found.get(name);
    if (path === undefined) throw new SetupError(`The kernel package has no module ${name}.`, HELP);
    const body = readFileSync(path);
    const depends = /\0depends=([^\0]*)\0/.exec(body.toString('latin1'))?.[1] ?? '';
    for (const each of depends.split(',').filter(Boolean)) add(each.replaceAll('-', '_'));
    order.push(file);
    files.push({ name: `modules/${file}`, mode: 0o100644, body });
  };
  for (const name of MODULES) add(name);
  files.push({ name: 'modules/order', mode: 0o100644, body: Buffer.from(`${order.join('\n')}\n`) });
  return files;
}

async function compileInit(scratch) {
  writeFileSync(join(scratch, 'font.h'), await fontHeader());
  const units = readdirSync(sources).filter((name) => name.endsWith('.c'));
  const out = join(scratch, 'init');
  const flags = ['-static', '-Os', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-s', '-I', scratch, '-I', sources];
  await need('gcc', [...flags, '-o', out, ...units.map((name) => join(sources, name))]);
  return readFileSync(out);
}

/** DejaVu Sans as a table of grey values, one cell a character. */
async function fontHeader() {
  const { createCanvas, GlobalFonts } = await import('@napi-rs/canvas');
  const require = createRequire(import.meta.url);
  GlobalFonts.registerFromPath(require.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'), 'GuestSans');
  const [width, height, first, last] = [26, 28, 32, 126];
  const g = createCanvas(width, height).getContext('2d');
  g.font = '20px GuestSans';
  g.textBaseline = 'middle';
  const glyphs = [];
  const advances = [];
  for (let code = first; code <= last; code++) {
    const char = String.fromCharCode(code);
    g.fillStyle = '#000000';
    g.fillRect(0, 0, width, height);
    g.fillStyle = '#ffffff';
    g.fillText(char, 1, height / 2);
    const { data } = g.getImageData(0, 0, width, height);
    glyphs.push(`{${Array.from({ length: width * height }, (_, i) => data[i * 4]).join(',')}}`);
    advances.push(Math.round(g.measureText(char).width));
  }
  return [
    `#define FONT_FIRST ${first}`,
    `#define FONT_LAST ${last}`,
    `#define FONT_WIDTH ${width}`,
    `#define FONT_HEIGHT ${height}`,
    `static const unsigned char FONT_ADVANCE[] = {${advances.join(',')}};`,
    `static const unsigned char FONT[][${width * height}] = {\n${glyphs.join(',\n')}};`,
    '',
  ].join('\n');
}

/** An archive in cpio's `newc` format, which the kernel unpacks as its first file system. No times: same files, same bytes. */
export function cpio(files) {
  const parts = [];
  let ino = 1;
  const pad = (n) => Buffer.alloc((4 - (n % 4)) % 4);
  const add = (name, mode, body) => {
    const path = Buffer.from(`${name}\0`);
    const fields = [ino++, mode, 0, 0, 1, 0, body.length, 0, 0, 0, 0, path.length, 0];
    const head = `070701${fields.map((value) => value.toString(16).padStart(8, '0')).join('')}`;
    parts.push(Buffer.from(head), path, pad(head.length + path.length), body, pad(body.length));
  };
  const folders = new Set(['dev', 'sys', ...files.map(({ name }) => dirname(name)).filter((name) => name !== '.')]);
  for (const folder of folders) add(folder, 0o40755, Buffer.alloc(0));
  for (const { name, mode, body } of files) add(name, mode, body);
  add('TRAILER!!!', 0, Buffer.alloc(0));
  return Buffer.concat(parts);
}
