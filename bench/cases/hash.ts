import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCanvas } from '@napi-rs/canvas';
import { drawView } from '../../devices/sim/render.ts';
import { HEIGHT, STATUS_BAR, viewOf, WIDTH } from '../../devices/sim/skin.ts';
import type { SimSnapshot } from '../../devices/sim/backend.ts';
import { hashHex, screenHash } from '../../rl/hash.ts';
import { getSuite } from '../../suites/index.ts';
import { alternate, median, ratioOf, seconds } from '../lib/alternate.ts';
import type { CaseResult } from '../lib/alternate.ts';
import { missingModule, startPython } from '../lib/python.ts';

const SCREENS = 100;

/** Screens of simulated phones, RGBA as the canvas gives them. */
function screens(): Uint8Array[] {
  const suite = getSuite('sim-phones');
  const g = createCanvas(WIDTH, HEIGHT).getContext('2d');
  return Array.from({ length: SCREENS }, (_, index) => {
    const { skin, phone } = JSON.parse(suite.instance('train', 1, index).snapshot) as SimSnapshot;
    drawView(g, viewOf({ ...phone, app: 'settings', stack: ['root'] }, skin), skin.family);
    return new Uint8Array(g.getImageData(0, 0, WIDTH, HEIGHT).data.buffer);
  });
}

/** Time of our perceptual hash over Python's imagehash, on the same screens, with the same bits. */
export async function hashCase({ rounds }: { rounds: number }): Promise<CaseResult> {
  const missing = missingModule('imagehash', "imagehash==4.3.2 'pillow<13'");
  if (missing !== null) return { ratios: [], tables: [], notes: [`screen hash against imagehash: ${missing}`] };
  const all = screens();
  const scratch = await mkdtemp(join(tmpdir(), 'tapwright-bench-'));
  try {
    const file = join(scratch, 'screens.rgba');
    await writeFile(file, Buffer.concat(all));
    const python = await startPython('hash.py', [file, String(WIDTH), String(HEIGHT), String(STATUS_BAR)]);
    try {
      const crop = { top: STATUS_BAR, bottom: 0 };
      const own = (): string[] => all.map((rgba) => hashHex(screenHash(rgba, WIDTH, HEIGHT, crop, 4).hash));
      const theirs = (await python.ask({}))['hashes'] as string[];
      own().forEach((hash, i) => {
        if (hash !== theirs[i]) throw new Error(`screen ${i} hashes to ${hash} here and to ${theirs[i]} in Python`);
      });
      const found = await alternate(
        rounds,
        () => seconds(own),
        async () => (await python.ask({}))['seconds'] as number,
        { warm: true },
      );
      const micro = (values: number[]): string => ((1e6 * median(values)) / SCREENS).toFixed(0);
      return {
        ratios: [ratioOf('hash/imagehash', 'time of a screen hash / of imagehash.phash', found.ratios)],
        tables: [
          {
            title: `${SCREENS} screens of ${WIDTH} x ${HEIGHT}, the same hashes`,
            columns: ['', 'microseconds a screen'],
            rows: [
              ['screenHash', micro(found.a)],
              [String(python.hello['version']), micro(found.b)],
            ],
          },
        ],
        notes: [],
      };
    } finally {
      python.close();
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
