import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import { inspectorPage } from '../../../scripts/inspector-page.js';
import {
  loaded,
  openPage,
  PANELS,
  startBrowser,
  type Watched,
  waitUntil,
} from '../../../test/kit/inspector/browser.js';
import { atEnd, type TestScope, temporaryFolder } from '../../../test/temporary-folder.js';
import { type Inspector, startInspector } from '../src/server/inspector-server.js';

/** The page of the sources, its server, and a browser that looks at it; for all tests of a file. */

const root = fileURLToPath(new URL('../../..', import.meta.url));

export type Inspected = {
  readonly folder: string;
  /** The built page. */
  readonly built: string;
  readonly inspector: Inspector;
  /** Opens an address in the one page of all tests, which is wide and dark again and has no faults so far. */
  visit(address: string): Promise<Watched>;
  /** Visits a session, and waits until so many entries are drawn. */
  open(sessionId: string, seq: number): Promise<Watched>;
};

export const inspect = async (scope: TestScope): Promise<Inspected> => {
  const folder = temporaryFolder(scope, 'inspected');
  const built = Buffer.from((await inspectorPage(root))[0]?.contents ?? []).toString();
  const inspector = await startInspector({
    folder,
    version: '1',
    redactor: createRedactor([]),
    page: built,
  });
  atEnd(scope, () => inspector.close());
  const browser = await startBrowser(scope);
  const watched = await openPage(browser);
  const visit = async (address: string): Promise<Watched> => {
    const { page, faults, requests } = watched;
    await page.setViewportSize({ width: 1000, height: 600 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto('about:blank'); // the page of before asks for what is live until then
    faults.length = 0;
    requests.length = 0;
    await page.goto(address);
    return watched;
  };
  const open = async (sessionId: string, seq: number): Promise<Watched> => {
    await visit(inspector.addressOf(sessionId));
    await loaded(watched, seq);
    return watched;
  };
  return { folder, built, inspector, visit, open };
};

export const at = ({ page }: Watched, seq: number): Promise<void> =>
  waitUntil(page, `document.body.dataset.seq === '${seq}'`);

export const inState = ({ page }: Watched, state: string): Promise<void> =>
  waitUntil(page, `document.body.dataset.state === '${state}'`);

export const textOf = ({ page }: Watched, selector: string): Promise<string> =>
  // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen, from a locator
  page.locator(selector).innerText();

/** With PAWL_PICTURES=FOLDER: pictures of each panel at an entry, wide and narrow, dark and light. */
export const keepPictures = async (watched: Watched, name: string, seq: number): Promise<void> => {
  const folder = process.env.PAWL_PICTURES;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  const { page } = watched;
  await page.evaluate(`location.hash = '#${seq}'`);
  await at(watched, seq);
  for (const colorScheme of ['dark', 'light'] as const)
    for (const width of [1400, 420]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      for (const [index, panel] of PANELS.entries()) {
        await page.keyboard.press(String(index + 1));
        await waitUntil(page, `document.querySelector('#tab-${panel}')?.ariaSelected === 'true'`);
        await page.screenshot({
          path: path.join(folder, `${name}-${colorScheme}-${width}-${panel}.png`),
        });
      }
    }
};
