/** The inspector over a long session in a real browser. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createRedactor } from '../packages/agent/src/secrets/redactor.js';
import { startInspector } from '../packages/inspector/src/server/inspector-server.js';
import { inspectorPage } from '../scripts/inspector-page.js';
import {
  loaded,
  openPage,
  openParts,
  PANELS,
  startBrowser,
  type Watched,
} from '../test/kit/inspector/browser.js';
import { StoredSession } from '../test/kit/inspector/stored-session.js';
import { median } from './figures.js';
import { longEvents, SETTINGS } from './long-session.js';

const EVENTS = 10_000;
const JUMPS = 60;
const LOADS = 5;
const SESSION = 'long';

const storeLong = async (folder: string): Promise<void> => {
  const stored = await StoredSession.create(folder, SESSION, SETTINGS);
  await stored.add(longEvents(EVENTS));
  await stored.journal.close();
};

/** Milliseconds from the move of the slider to the drawn frame, at random events. */
const jumpTimes = ({ page }: Watched): Promise<readonly number[]> =>
  page.evaluate(`(async () => {
    const slider = document.getElementById('slider');
    const times = [];
    for (let jump = 0; jump < ${JUMPS}; jump++) {
      const seq = 1 + ((jump * 7919) % ${EVENTS});
      const begun = performance.now();
      slider.value = String(seq);
      slider.dispatchEvent(new Event('input'));
      while (document.body.dataset.seq !== String(seq)) await new Promise(requestAnimationFrame);
      // The frame is painted before the next one begins.
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - begun);
      // Chromium ignores more than 200 changes of the address in ten seconds.
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    return times;
  })()`);

const pageRows = async (folder: string): Promise<readonly string[]> => {
  const ends: (() => unknown)[] = [];
  const [built] = await inspectorPage(process.cwd());
  const text = Buffer.from(built?.contents ?? []).toString();
  const inspector = await startInspector({
    folder,
    version: '1',
    redactor: createRedactor([]),
    page: text,
  });
  try {
    const browser = await startBrowser({ after: (end) => void ends.push(end) });
    const watched = await openPage(browser);
    const loads: number[] = [];
    for (let load = 0; load < LOADS; load++) {
      const begun = performance.now();
      await watched.page.goto('about:blank');
      await watched.page.goto(inspector.addressOf(SESSION));
      await loaded(watched, EVENTS);
      loads.push(performance.now() - begun);
    }
    const rows = [`| load | ${median(loads).toFixed(0)} | ≤ 2000 |`];
    for (const panel of PANELS) {
      await watched.page.locator(`[data-tab=${panel}]`).click();
      if (panel === 'steps') await openParts(watched);
      rows.push(`| jump, ${panel} | ${median(await jumpTimes(watched)).toFixed(0)} | ≤ 100 |`);
    }
    if (watched.faults.length > 0) throw new Error(watched.faults.join('\n'));
    return [...rows, '', `The page has ${Math.round(text.length / 1_000)} kB.`];
  } finally {
    for (const end of ends) await end();
    await inspector.close();
  }
};

export const benchInspector = async (): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  try {
    await storeLong(folder);
    return [
      `| ${EVENTS.toLocaleString('en-US')} events | ms, median | goal |`,
      '|---|--:|--:|',
      ...(await pageRows(folder)),
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
