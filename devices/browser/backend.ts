import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { TapwrightError } from '../../domain/index.ts';
import type { DeviceBackend } from '../device.ts';
import { createSlots } from '../slots.ts';
import { CHROMIUM_FLAGS, requireChromium } from './chromium.ts';
import { createPageHandle } from './page-handle.ts';
import { INIT_SCRIPT } from './page-scripts.ts';
import type { PageOracle } from './view.ts';

export interface BrowserBackendOptions {
  /** Folder with `miniwob/` and `core/` of the PyPI wheel. */
  pages: string;
  oracle: PageOracle;
  /** Pages open at once; further attempts wait for one. */
  maxPages?: number;
  /** Deadline of one browser call, ms. */
  callTimeoutMs?: number;
  executablePath?: string;
}

/**
 * Real web pages in a headless Chromium with a phone's viewport (390 x 844, touch). Snapshots are of the application
 * only: a rollback loads the page afresh. An attempt has a page to itself; a page that failed in any way is thrown away
 * with its context, the others serve again (a fresh context costs ten times a load). A browser that dies is relaunched.
 */
export function createBrowserBackend(options: BrowserBackendOptions): DeviceBackend {
  const { pages, oracle, maxPages = 8, callTimeoutMs = 10_000 } = options;
  if (!existsSync(join(pages, 'miniwob')))
    throw new TapwrightError('not_found', `No MiniWoB++ pages in ${pages}; run \`npm run setup -- --browser\`.`, {
      retryable: false,
    });
  const executablePath = options.executablePath ?? requireChromium();
  const slots = createSlots(maxPages);
  let browser: Promise<Browser> | null = null;
  let idle: Page[] = [];

  const launch = (): Promise<Browser> => {
    browser ??= chromium
      .launch({ executablePath, args: CHROMIUM_FLAGS, headless: true, timeout: 30_000 })
      .then((started) => {
        started.on('disconnected', () => {
          browser = null;
          idle = [];
        });
        return started;
      })
      .catch((cause: unknown) => {
        browser = null;
        throw new TapwrightError('boot_timeout', `Chromium (${executablePath}) did not start: ${String(cause)}`, {
          cause,
        });
      });
    return browser;
  };

  const freshPage = async (): Promise<Page> => {
    const context = await (
      await launch()
    ).newContext({
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
      offline: true,
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    page.setDefaultTimeout(callTimeoutMs);
    await page.addInitScript({ content: INIT_SCRIPT });
    return page;
  };

  /** A hung page must not hold its slot: its context goes away in the background if it does not close at once. */
  const discard = (page: Page): void => {
    void page
      .context()
      .close()
      .catch(() => undefined);
  };

  return {
    name: 'browser',
    capabilities: { touch: true, unicodeText: true, snapshot: 'application', outline: true, groundTruth: true },
    async open(open) {
      const release = await slots();
      try {
        const page = idle.pop() ?? (await freshPage());
        const url = (name: string): string => pathToFileURL(join(pages, 'miniwob', `${name}.html`)).href;
        const onClose = (fit: boolean): void => {
          if (fit && !page.isClosed()) idle.push(page);
          else discard(page);
          release();
        };
        return createPageHandle({ page, open, oracle, url, callTimeoutMs, onClose });
      } catch (cause) {
        release();
        throw cause instanceof TapwrightError
          ? cause
          : new TapwrightError('connection_dropped', `The browser did not open a page: ${String(cause)}`, { cause });
      }
    },
    async health() {
      try {
        const version = (await launch()).version();
        return { ok: true, detail: `Chromium ${version}` };
      } catch (error) {
        return { ok: false, detail: String(error) };
      }
    },
    async close() {
      const running = await browser?.catch(() => null);
      browser = null;
      idle = [];
      await running?.close();
    },
  };
}
