import { loadImage, createCanvas } from '@napi-rs/canvas';
import type { Page } from 'playwright-core';
import { TapwrightError, type ActionReceipt, type FailureClass, type OutlineElement } from '../../domain/index.ts';
import { createRandom } from '../../rl/random.ts';
import { hashHex, screenHash } from '../../rl/index.ts';
import type { DeviceHandle, OpenOptions } from '../device.ts';
import { START_SCRIPT, VIEW_SCRIPT } from './page-scripts.ts';
import { PICKED_SCRIPT, RICH_VIEW_SCRIPT, SCROLL_SCRIPT } from './rich-view.ts';
import { cleanText, richText, uniqueLabels, type PageOracle, type PageView } from './view.ts';

interface Options {
  /** A page with INIT_SCRIPT installed; the handle has it to itself until close. */
  page: Page;
  open: OpenOptions;
  oracle: PageOracle;
  url(name: string): string;
  callTimeoutMs: number;
  /** `fit`: the page may serve another attempt. */
  onClose(fit: boolean): void;
}

interface RawView {
  done: boolean;
  raw: number;
  scale: number;
  elements: OutlineElement[];
  text?: string;
}

const DEFAULT_SCALE = 390 / 160;

/** One attempt on one page. Pixels are screen pixels; the page's own coordinates are layout pixels (`scale` between). */
export function createPageHandle(options: Options): DeviceHandle {
  const { page, open, oracle, callTimeoutMs } = options;
  const snapshot = JSON.parse(open.task.snapshot) as { page: string; seed: number; rich?: true };
  let frame = 0;
  let instruction = '';
  let scale = DEFAULT_SCALE;
  let closed = false;
  let fit = true;

  const fault = createRandom(open.seed, open.task.id, open.infraTry, open.key?.attempt ?? 0, 'browser-fault');
  const armed = (['hang', 'crash'] as const).find((name) => fault.next() < (open.faults[name] ?? 0));
  const faultAt = fault.int(3);
  let performed = 0;

  /** Every browser call ends within the deadline, whatever the page does. */
  const bounded = async <T>(what: string, code: FailureClass, work: Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () =>
          reject(new TapwrightError('device_hung', `The page gave no answer to ${what} within ${callTimeoutMs} ms.`)),
        callTimeoutMs,
      );
    });
    try {
      return await Promise.race([work, late]);
    } catch (cause) {
      fit = false;
      if (cause instanceof TapwrightError) throw cause;
      const text = String(cause);
      const gone = /crash|closed|disconnected/i.test(text);
      throw new TapwrightError(gone ? 'connection_dropped' : code, `${what} failed on ${snapshot.page}: ${text}`, {
        cause,
      });
    } finally {
      clearTimeout(timer);
    }
  };

  const view = async (): Promise<PageView> => {
    const raw = await bounded(
      'reading the page',
      'frame_stale',
      page.evaluate(snapshot.rich ? RICH_VIEW_SCRIPT : VIEW_SCRIPT) as Promise<RawView>,
    );
    scale = raw.scale > 0 ? raw.scale : DEFAULT_SCALE;
    const toPixels = (e: OutlineElement): OutlineElement => ({
      ...e,
      box: {
        x: Math.round(e.box.x * scale),
        y: Math.round(e.box.y * scale),
        width: Math.round(e.box.width * scale),
        height: Math.round(e.box.height * scale),
      },
    });
    const named = raw.elements.filter((e) => e.label !== '').map(toPixels);
    return {
      template: snapshot.page,
      instruction,
      elements: uniqueLabels(named),
      done: raw.done,
      raw: raw.raw,
      ...(raw.text === undefined ? {} : { text: raw.text }),
    };
  };

  const pixels = async (): Promise<{
    png: Buffer;
    hash: string;
    degenerate: boolean;
    width: number;
    height: number;
  }> => {
    const png = await bounded('a screenshot', 'frame_stale', page.screenshot({ animations: 'disabled', scale: 'css' }));
    const image = await loadImage(png);
    const canvas = createCanvas(image.width, image.height);
    const g = canvas.getContext('2d');
    g.drawImage(image, 0, 0);
    const rgba = g.getImageData(0, 0, image.width, image.height).data;
    const crop = { top: 0, bottom: 0 };
    const { hash, degenerate } = screenHash(new Uint8Array(rgba.buffer), image.width, image.height, crop, 4);
    return { png, hash: hashHex(hash), degenerate, width: image.width, height: image.height };
  };

  const settle = (): Promise<unknown> =>
    bounded(
      'settling',
      'frame_stale',
      page.evaluate('new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))'),
    );

  const applyFault = async (): Promise<void> => {
    if (!armed || performed !== faultAt) return;
    fit = false;
    if (armed === 'crash') {
      await page.close();
      throw new TapwrightError('app_crashed', 'The page crashed (injected).');
    }
    // A real busy loop in the page: what follows runs into its deadline.
    void page.evaluate('while (true) {}').catch(() => undefined);
  };

  return {
    async rollback() {
      await bounded(
        'loading the page',
        'rollback_failed',
        page.goto(options.url(snapshot.page), { waitUntil: 'load' }),
      );
      const started = page.evaluate(`(${START_SCRIPT})(${JSON.stringify(snapshot.seed)})`) as Promise<string>;
      instruction = (snapshot.rich ? richText : cleanText)(
        await bounded('starting the episode', 'app_never_loaded', started),
      );
      await settle();
      frame = 0;
      const shot = await pixels();
      return { frame, hash: shot.hash, instruction };
    },
    async observe() {
      await settle();
      const [seen, shot] = [await view(), await pixels()];
      return {
        png: open.pixels ? await open.pixels(shot.png) : null,
        width: shot.width,
        height: shot.height,
        scale: 1,
        space: 'pixel',
        frame: frame++,
        hash: shot.hash,
        degenerate: shot.degenerate,
        app: snapshot.page,
        outline: seen.elements,
      };
    },
    async perform(action) {
      await applyFault();
      performed++;
      const delivered = <T>(work: Promise<T>): Promise<T> => bounded(action.kind, 'input_not_delivered', work);
      /** Layout px; verified when an element of the page lies under the finger. */
      const tapAt = async (x: number, y: number): Promise<ActionReceipt> => {
        const hit = await delivered(
          page.evaluate(`document.elementFromPoint(${x}, ${y}) !== null`) as Promise<boolean>,
        );
        if (!hit) return { verified: false, strategy: 'touch', note: 'off_screen' };
        await delivered(page.touchscreen.tap(x, y));
        return { verified: true, strategy: 'touch' };
      };
      switch (action.kind) {
        case 'tap':
        case 'long_press':
          // A page has no long press of its own: it is a tap.
          return await tapAt(action.at.x / scale, action.at.y / scale);
        case 'swipe': {
          const dy = (action.from.y - action.to.y) / scale;
          const middle = (a: number, b: number): number => (a + b) / 2 / scale;
          const scroll = SCROLL_SCRIPT(middle(action.from.x, action.to.x), middle(action.from.y, action.to.y), dy);
          await delivered(page.evaluate(snapshot.rich ? scroll : `window.scrollBy(0, ${dy})`));
          break;
        }
        case 'text_entry': {
          const focused = await delivered(
            page.evaluate(
              "['INPUT', 'TEXTAREA', 'SELECT'].includes(document.activeElement.tagName)",
            ) as Promise<boolean>,
          );
          if (!focused) return { verified: false, strategy: 'keys', note: 'no_focus' };
          if (snapshot.rich) {
            const kind = await delivered(page.evaluate(PICKED_SCRIPT(action.text)) as Promise<boolean | null>);
            if (kind !== null)
              return kind
                ? { verified: true, strategy: 'keys' }
                : { verified: false, strategy: 'keys', note: 'not_accepted' };
          }
          await delivered(page.keyboard.press('ControlOrMeta+A'));
          await delivered(page.keyboard.insertText(action.text));
          const value = await delivered(page.evaluate('document.activeElement.value') as Promise<string>);
          // Many of the richer pages have fields that take no text or rewrite it: a fact of the page, not a lost key.
          if (value !== action.text && snapshot.rich)
            return { verified: false, strategy: 'keys', note: 'not_accepted' };
          if (value !== action.text)
            throw new TapwrightError(
              'text_mismatch',
              `The field reads back "${value}" after "${action.text}" was typed.`,
            );
          return { verified: true, strategy: 'keys' };
        }
        case 'navigate_home':
        case 'wait':
          // One page is the whole device: there is no home to go to.
          break;
      }
      return { verified: true, strategy: 'page' };
    },
    truth: async () => oracle.truth(await view()),
    expert: async () => oracle.expert(await view()),
    noteAnswer: () => undefined,
    close() {
      if (!closed) options.onClose(fit);
      closed = true;
      return Promise.resolve();
    },
  };
}
