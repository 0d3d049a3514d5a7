import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { atEnd, type TestScope, temporaryFolder } from '../../temporary-folder.js';

/** A real Chromium without a window, with an empty profile, and what its pages complain about. */

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export type Watched = {
  readonly page: Page;
  /** Errors of the console and of scripts, and requests to addresses that the test did not name. */
  readonly faults: string[];
  readonly requests: string[];
};

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
];

/** Started once for all tests of a file. */
export const startBrowser = async (scope: TestScope): Promise<BrowserContext> => {
  const executablePath = PLACES.find((place) => existsSync(place));
  if (executablePath === undefined)
    throw new Error('there is no Chromium: apt-get install chromium');
  const folder = temporaryFolder(scope, 'browser');
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    headless: true,
    chromiumSandbox: process.getuid?.() !== 0,
    args: FLAGS,
    viewport: { width: 1400, height: 900 },
  });
  atEnd(scope, () => context.close());
  return context;
};

export const openPage = async (context: BrowserContext): Promise<Watched> => {
  const page = await context.newPage();
  const faults: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  return { page, faults, requests };
};

const WAIT_MS = 30_000;

/** Waits until an expression is true in the page. Asked from outside: the page's policy lets nothing be evaluated inside. */
export const waitUntil = async (page: Page, expression: string): Promise<void> => {
  const begun = performance.now();
  while ((await page.evaluate(expression)) !== true) {
    if (performance.now() - begun > WAIT_MS)
      throw new Error(
        `it never came true: ${expression}; the page is at ${await page.evaluate('JSON.stringify(document.body.dataset)')}`,
      );
    await pause(15);
  }
};

/**
 * Makes a function for scripts inside of the page that moves the slider and waits until the entry is drawn. Nothing waits
 * for the screen: hundreds of frames that nobody looks at would cost more than all that they show.
 */
export const GO_TO = `window.requestAnimationFrame = (draw) => setTimeout(draw, 0);
  const goTo = async (seq) => {
    const slider = document.getElementById('slider');
    slider.value = String(seq);
    slider.dispatchEvent(new Event('input'));
    for (let looks = 0; document.body.dataset.seq !== String(seq); looks++) {
      if (looks > 2_000) throw new Error('the page never went to ' + seq);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  };`;

/** Waits until all entries that there are so far have been drawn. */
export const loaded = ({ page }: Pick<Watched, 'page'>, seq: number): Promise<void> =>
  waitUntil(page, `Number(document.body.dataset.last ?? -1) >= ${seq}`);

/** The panels of the page, in the order of their tabs. */
export const PANELS = ['overview', 'conversation', 'trace', 'steps', 'machine'] as const;

/** Opens the parts of a step that are closed at first, its state and its request. */
export const openParts = async ({ page }: Pick<Watched, 'page'>): Promise<void> => {
  await page.locator('#tab-steps').click();
  await page.locator('.detail').waitFor();
  for (const summary of await page.locator('.detail > details > summary').all())
    await summary.press('Enter');
};
