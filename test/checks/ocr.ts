import { createCanvas, loadImage } from '@napi-rs/canvas';
import { groundExactly } from '../../agent/grounder.ts';
import { createSimBackend } from '../../devices/sim/backend.ts';
import { STATUS_BAR as SIM_STATUS_BAR } from '../../devices/sim/skin.ts';
import { describeMachine, findGuest } from '../../devices/vnc/machine.ts';
import { loadOcrModels } from '../../devices/vnc/ocr/models.ts';
import { cleanLabel, outlineOfText } from '../../devices/vnc/ocr/outline.ts';
import { createTextReader } from '../../devices/vnc/ocr/reader.ts';
import type { Picture, TextReader } from '../../devices/vnc/ocr/reader.ts';
import { startQemu } from '../../devices/vnc/qemu.ts';
import { ensureState, stateFolder } from '../../devices/vnc/saved-state.ts';
import { STATUS_BAR } from '../../devices/vnc/snapshots.ts';
import type { BlobRef, Box, OutlineElement, Screen } from '../../domain/index.ts';
import { asTapwrightError } from '../../domain/errors.ts';
import { createSimSuite } from '../../suites/sim/suite.ts';

/**
 * `npm run check:ocr`: how well an outline read from pixels stands for the one that is known: labels found, overlap of boxes,
 * and taps of the rule grounder that land on their target. On simulated phones of each skin, and on every page of the guest
 * in each theme where QEMU and the guest are there.
 */
const SIM_SCREENS = 60;

interface Known {
  from: string;
  picture: Picture;
  outline: readonly OutlineElement[];
  statusBar: number;
}
interface Tally {
  screens: number;
  labels: number;
  found: number;
  values: number;
  valuesRight: number;
  iou: number;
  targets: number;
  hits: number;
  ms: number;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** The simulated phones that an expert passes on its way, every skin in turn. */
async function* simScreens(): AsyncGenerator<Known> {
  const suite = createSimSuite();
  const backend = createSimBackend();
  const ref: BlobRef = 'sha256:';
  const seen = new Set<string>();
  for (let index = 0; seen.size < SIM_SCREENS; index++) {
    const split = index % 3 === 2 ? ('heldout-skin' as const) : ('train' as const);
    let png: Uint8Array | null = null;
    const pixels = (bytes: Uint8Array): Promise<BlobRef> => ((png = bytes), Promise.resolve(ref));
    const task = suite.instance(split, 7, index);
    const handle = await backend.open({ task, key: null, seed: 7, faults: {}, infraTry: 0, pixels });
    await handle.rollback();
    for (let t = 0; t < 3 && seen.size < SIM_SCREENS; t++) {
      const screen = await handle.observe();
      if (!seen.has(JSON.stringify(screen.outline))) {
        seen.add(JSON.stringify(screen.outline));
        const from = `simulated, ${(JSON.parse(task.snapshot) as { skin: { family: string } }).skin.family}`;
        yield { from, picture: await decodePng(png!), outline: screen.outline!, statusBar: SIM_STATUS_BAR };
      }
      const move = await handle.expert();
      const grounded = move === null ? null : groundExactly(move.intent, screen);
      if (grounded?.kind !== 'action') break;
      await handle.perform(grounded.action);
    }
    await handle.close();
  }
}

async function decodePng(bytes: Uint8Array): Promise<Picture> {
  const image = await loadImage(Buffer.from(bytes));
  const g = createCanvas(image.width, image.height).getContext('2d');
  g.drawImage(image, 0, 0);
  const { data } = g.getImageData(0, 0, image.width, image.height);
  return { width: image.width, height: image.height, pixels: new Uint8Array(data.buffer) };
}

/** Every list, a page behind each, and what a swipe shows, in the guest's four themes. */
async function* guestScreens(): AsyncGenerator<Known> {
  const guest = findGuest();
  const machine = await describeMachine(guest);
  const state = await ensureState(stateFolder(), machine, guest);
  const vm = await startQemu({ machine, guest, from: state });
  try {
    const settle = async (): Promise<void> => {
      await vm.guest.events();
      await new Promise((resolve) => setTimeout(resolve, 60));
    };
    const tap = async (label: string): Promise<void> => {
      const { x, y, width, height } = (await vm.guest.outline()).find((e) => e.label === label)!.box;
      await vm.rfb.tap({ x: x + width / 2, y: y + height / 2 });
      await settle();
    };
    const now = async (theme: number): Promise<Known> => ({
      from: `guest, theme ${theme}`,
      picture: await vm.rfb.refresh(4_000),
      outline: await vm.guest.outline(),
      statusBar: STATUS_BAR,
    });
    for (let theme = 0; theme < 4; theme++) {
      await vm.guest.reset(4 * theme + theme);
      yield await now(theme);
      for (const app of (await vm.guest.outline()).map(({ label }) => label)) {
        await tap(app);
        yield await now(theme);
        if (app === 'contacts') {
          await vm.rfb.swipe({ x: 190, y: 600 }, { x: 190, y: 300 }, 200);
          await settle();
          yield await now(theme);
        }
        const row = (await vm.guest.outline()).find(({ role, label }) => role === 'row' && label !== 'cart');
        if (row !== undefined) {
          await tap(row.label);
          yield await now(theme);
        }
        await vm.rfb.press('home');
        await settle();
      }
    }
  } finally {
    await vm.stop();
  }
}

function iou(a: Box, b: Box): number {
  const w = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const h = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  const both = Math.max(0, w) * Math.max(0, h);
  return both / (a.width * a.height + b.width * b.height - both);
}

async function measure(reader: TextReader, known: Known, tally: Tally, missed: string[]): Promise<void> {
  const { picture, outline, statusBar } = known;
  const began = performance.now();
  const read = outlineOfText(picture, await reader.read(picture), statusBar);
  tally.ms += performance.now() - began;
  tally.screens += 1;
  const screen = { width: picture.width, height: picture.height, outline: read.elements } as Screen;
  for (const element of outline) {
    const label = cleanLabel(element.label);
    const found = read.elements.find((e) => e.label === label);
    tally.labels += 1;
    if (found === undefined) missed.push(`${known.from}: ${element.role} ${label}`);
    else {
      tally.found += 1;
      tally.iou += iou(found.box, element.box);
      if (element.value !== undefined) {
        tally.values += 1;
        if (found.value === cleanLabel(element.value)) tally.valuesRight += 1;
      }
    }
    if (element.role === 'label') continue;
    tally.targets += 1;
    const grounded = groundExactly({ kind: 'tap', target: label }, screen);
    if (grounded.kind !== 'action' || grounded.action.kind !== 'tap') continue;
    const { at } = grounded.action;
    const { x, y, width, height } = element.box;
    if (at.x >= x && at.y >= y && at.x < x + width && at.y < y + height) tally.hits += 1;
  }
}

async function main(): Promise<boolean> {
  const models = await loadOcrModels();
  const reader = createTextReader(models);
  const tallies = new Map<string, Tally>();
  const missed: string[] = [];
  const empty = { screens: 0, labels: 0, found: 0, values: 0, valuesRight: 0, iou: 0, targets: 0, hits: 0, ms: 0 };
  const sources = [simScreens(), guestScreens()];
  for (const source of sources) {
    try {
      for await (const known of source) {
        if (!tallies.has(known.from)) tallies.set(known.from, { ...empty });
        await measure(reader, known, tallies.get(known.from)!, missed);
      }
    } catch (error) {
      if (asTapwrightError(error).code !== 'not_found') throw error;
      say(`without the guest: ${asTapwrightError(error).message}`);
    }
  }
  await models.close();
  say('screens of                 screens  label recall  value right  box IoU  grounder hits  ms a screen');
  const problems: string[] = [];
  const part = (of: number, all: number): string => `${((100 * of) / Math.max(1, all)).toFixed(1)} %`;
  for (const [from, t] of [...tallies].sort(([a], [b]) => a.localeCompare(b))) {
    const cells = [
      String(t.screens).padStart(7),
      part(t.found, t.labels).padStart(13),
      part(t.valuesRight, t.values).padStart(12),
      (t.iou / Math.max(1, t.found)).toFixed(3).padStart(8),
      part(t.hits, t.targets).padStart(14),
      (t.ms / t.screens).toFixed(0).padStart(12),
    ];
    say(`${from.padEnd(26)} ${cells.join(' ')}`);
    // Below this the planner is asked for what it cannot see.
    if (from.startsWith('guest') && t.hits < 0.95 * t.targets) problems.push(`${from}: too few taps land`);
  }
  for (const one of missed.slice(0, 20)) say(`missed  ${one}`);
  if (missed.length > 20) say(`missed  and ${missed.length - 20} more`);
  for (const problem of problems) say(`FAILED ${problem}`);
  return problems.length === 0;
}

main().then(
  (good) => {
    process.stdout.write(good ? 'ocr: ok\n' : 'ocr: FAILED\n');
    process.exit(good ? 0 : 1);
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
