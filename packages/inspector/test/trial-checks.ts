import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import {
  loaded,
  openParts,
  PANELS,
  type Watched,
  waitUntil,
} from '../../../test/kit/inspector/browser.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { until } from '../../../test/until.js';
import { InspectedSessions } from '../src/server/inspected-sessions.js';
import { pageWithSession } from '../src/server/page-html.js';
import { storeDay } from './day-session.js';
import { at, type Inspected, inState, keepPictures, textOf } from './inspected-page.js';
import { storeTrial, TRIAL_SEQ } from './trial-session.js';

/** The prepared session as a file, read by somebody who knows only the page; and every panel by keys alone. */

const FOCUSABLE = 'button, a[href], input, select, summary, [tabindex="0"]';

/** What can be used in the open panel; rows of long lists are gone to by the keys of the page. */
const reachable = `[...document.querySelectorAll('.body :is(${FOCUSABLE})')]
  .filter((one) => one.checkVisibility() && !one.matches('.row, .row *'))`;
const named = `(one) => one.tagName + ' ' + (one.ariaLabel ?? one.textContent).slice(0, 40)`;

/** Goes with Tab from the tab of the open panel until the timeline, and gives the elements of the panel on the way. */
const walkPanel = async ({ page }: Watched, panel: string): Promise<unknown> => {
  await page.locator(`#tab-${panel}`).focus();
  const count = await page.evaluate<number>(`(() => {
    if (window.walked === undefined) document.addEventListener('focusin', ({ target }) => window.walked.push(target));
    window.walked = [];
    return ${reachable}.length;
  })()`);
  for (let steps = 0; steps < count + 2; steps++) await page.keyboard.press('Tab');
  return page.evaluate(`(() => {
    const [body, ...walked] = window.walked;
    const last = walked.pop();
    if (!body.matches('.body') || last.closest('.timeline') === null) return [body, last].map(${named});
    return walked.map(${named});
  })()`);
};

/** The lines of a part of the page, or of the items of a list; times of day, which have a zone, are TIME. */
const linesOf = async (watched: Watched, selector: string): Promise<readonly string[]> => {
  const items = watched.page.locator(`${selector} > li`);
  const texts = (await items.count()) > 0 ? await items.allInnerTexts() : [];
  const whole = texts.length > 0 ? texts : (await textOf(watched, selector)).split(/\n+/);
  return whole.map((text) =>
    text
      .replace(/\s+/g, ' ')
      .replace(/\d\d:\d\d:\d\d/g, 'TIME')
      .trim(),
  );
};

/** A large, a small and a telephone's window. */
const FIRST_VIEWS = [
  [1440, 900],
  [1024, 768],
  [390, 844],
] as const;

export const checkTrial = (inspected: () => Inspected): void => {
  it('tells a stranger from the first view what happened, why, and what a crash did', async (context) => {
    await storeTrial(inspected().folder);
    const place = { folder: inspected().folder, version: '1', redactor: createRedactor([]) };
    const exported = await new InspectedSessions(place).exported('invoices');
    const file = path.join(temporaryFolder(context, 'trial'), 'invoices.html');
    writeFileSync(file, pageWithSession(inspected().built, exported));
    const watched = await inspected().visit(pathToFileURL(file).href);
    const { page } = watched;
    await loaded(watched, TRIAL_SEQ);
    await page.locator('.highlights').waitFor();
    assert.equal(
      await textOf(watched, 'h1'),
      'Customers in New Zealand see invoices dated one day early. Find the cause, repair it, and add a test.',
    );
    assert.deepEqual(await linesOf(watched, '.highlights'), [
      'What happened',
      "Invoices and statements are dated in the customer's time zone now. 216 tests pass, one of them for Auckland. #42",
      'How it ended',
      'The model answered. Then the session was closed. 1 turn, 6 rounds. #43',
      'Where the time went',
      'Of 11m36s in turns: waiting for your approvals 9m46s (5 times), the model 51s (8 times), bash npm test 32s (3 times).',
      'The longest wait for an approval: 9m20s of 9m46s for all: bash npm test. #19',
      'The longest call: 31s of 33s for all: bash npm test. #20',
      'Where the money went',
      'The most expensive request: $0.241 for 61,800 tokens in (0% from the cache), 420 out; it was sent 9m52s after the one before it (an approval was waited for: bash npm test), and a provider keeps a prompt for about five minutes. It had 37,300 tokens more than the request before it. #24',
      'What failed',
      '2 requests to the model: rateLimited: 429: your limit of 40,000 input tokens a minute is reached; unreachable: read ECONNRESET. Before the retries it waited 23s. #8',
      '1 of 7 calls failed: bash npm test. #22',
      'What a crash did',
      "Pawl's process died after TIME. bash npm test went on without the process; its real result was found: ok at TIME. No call ran twice. #38",
    ]);
    assert.deepEqual(await linesOf(watched, '.story'), [
      'TIME Died The process ended in ExecutingTools: bash npm test was running. #37',
      'TIME Opened again By a new process, at most 1h00m later. #38',
      'TIME Went on bash npm test went on without the process; its real result was found: ok at TIME. #39',
      'Twice? No call ran twice. None that had started was started again.',
    ]);
    for (const seq of ['24', '8', '19']) {
      await page.keyboard.press('1');
      const answer = page.locator('.highlights button', { hasText: `#${seq}` }).first();
      await answer.waitFor(); // until its panel is shown, a key goes elsewhere
      await answer.press('Enter');
      await at(watched, Number(seq));
    }
    assert.match(await textOf(watched, '.where'), /^19 of 43 · LlmCompleted .* · approval$/);
    await page.keyboard.press('1');
    await page.locator('.story button', { hasText: '#37' }).waitFor();
    await page.locator('.story button', { hasText: '#37' }).press('Enter');
    await inState(watched, 'ExecutingTools');
    await keepPictures(watched, 'trial', 23);
    assert.deepEqual(watched.requests, [pathToFileURL(file).href]);
    assert.deepEqual(watched.faults, []);
  });

  it('answers six questions about a day of 300 rounds in one view', async () => {
    const count = await storeDay(inspected().folder);
    const watched = await inspected().open('day', count);
    const { page } = watched;
    const lines = await linesOf(watched, '.highlights');
    const answers = [
      /^All eight modules .* all 412 tests pass/,
      /^The model answered\. Then the session was closed\. 8 turns, 300 rounds, 8 files changed/,
      /^Of 1h34m in turns: bash npm test 1h01m \(76 times\), the model 29m/,
      /^The most expensive request: \$0\.205 .* it was sent 25m00s after the one before it \(it waited for you\)/,
      /^55 of 292 calls failed: 50 × bash npm test/,
      /^Pawl's process died after TIME\. bash npm test went on without the process; its real result was found: ok at TIME\. No call ran twice/,
    ];
    for (const answer of answers)
      assert.ok(
        lines.some((line) => answer.test(line)),
        String(answer),
      );
    for (const [width, height] of FIRST_VIEWS) {
      await page.setViewportSize({ width, height });
      const below = await page.evaluate(`(() => {
        const { top, bottom } = document.querySelector('.body').getBoundingClientRect();
        return [...document.querySelectorAll('.highlights dd')].flatMap((one) => {
          const rect = one.getBoundingClientRect();
          return rect.bottom <= bottom && rect.top >= top ? [] : [one.textContent];
        });
      })()`);
      assert.deepEqual(below, [], `all answers are in the first view of ${width} x ${height}`);
    }
    await page.setViewportSize({ width: 1400, height: 900 });
    assert.equal(await page.locator('.turns tbody tr').count(), 8);
    assert.equal(await page.locator('.curve').count(), 2);
    await keepPictures(watched, 'day', 583);
    await page.keyboard.press('2');
    await page.evaluate(`location.hash = '#60'`);
    await at(watched, 60);
    await page.locator('.message').first().waitFor();
    assert.ok((await page.locator('.message .diff-row.added').count()) > 0, 'a coloured diff');
    assert.ok((await page.locator('.message .shell').count()) > 0, 'a command');
    assert.ok((await page.locator('.message .markdown strong').count()) > 0, 'Markdown is drawn');
    assert.deepEqual(watched.faults, []);
  });

  it('zooms into the trace by drag, wheel and key, and compares with another session', async () => {
    const watched = await inspected().visit(
      `${inspected().inspector.addressOf('day')}?compare=invoices`,
    );
    const { page } = watched;
    await loaded(watched, 1);
    await page.locator('.comparison').waitFor();
    assert.match(
      await textOf(watched, '.comparison'),
      /day\s+invoices[\s\S]*Move everything[\s\S]*Customers in New Zealand[\s\S]*Cost\s+\$7\.25\s+at least \$0\.398/,
    );
    await page.keyboard.press('3');
    const rows = `(document.querySelector('.trace [role="status"]')?.textContent ?? '')`;
    await waitUntil(page, `${rows}.startsWith('300 rounds;')`);
    const ruler = await page.locator('.ruler').boundingBox();
    assert.ok(ruler !== null);
    const y = ruler.y + ruler.height / 2;
    await page.mouse.move(ruler.x + ruler.width * 0.4, y);
    await page.mouse.down();
    await page.mouse.move(ruler.x + ruler.width * 0.5, y, { steps: 4 });
    await page.mouse.up();
    await waitUntil(page, `${rows}.endsWith('in the part that is shown')`);
    const dragged = await page.evaluate<number>(`parseInt(${rows})`);
    assert.ok(dragged > 5 && dragged < 100, String(dragged));
    const moved = await page.locator('.ruler').boundingBox();
    await page.mouse.move(ruler.x + ruler.width / 2, (moved?.y ?? 0) + 5);
    await page.mouse.wheel(0, -400);
    await waitUntil(page, `parseInt(${rows}) < ${dragged}`);
    const wheeled = await page.evaluate<number>(`parseInt(${rows})`);
    await page.keyboard.press('+');
    await waitUntil(page, `parseInt(${rows}) < ${wheeled}`);
    await page.locator('.trace button', { hasText: 'Whole session' }).click();
    await waitUntil(page, `${rows}.startsWith('300 rounds;')`);
    await page.locator('.trace select').selectOption('by time');
    assert.match(await textOf(watched, '.trace .row >> nth=0'), /190[\s\S]*1m38s/);
    await page.goto(`${inspected().inspector.addressOf('day')}?compare=nothing`);
    await loaded(watched, 1);
    await waitUntil(
      page,
      `/nothing can't be compared/.test(document.querySelector('.trouble')?.textContent)`,
    );
  });

  it('is walked through by Tab, panel by panel, in a narrow window', async () => {
    const watched = await inspected().open('story', 36);
    const { page } = watched;
    await page.setViewportSize({ width: 420, height: 600 });
    await page.locator('section.overview').waitFor();
    await page.evaluate(`document.querySelector('.body').scrollTop = 300`);
    await page.keyboard.press('4');
    await page.locator('section.steps').waitFor();
    assert.equal(
      await page.evaluate(`document.querySelector('.body').scrollTop`),
      0,
      'it begins at its top',
    );
    await page.keyboard.press('1');
    await page.locator('section.overview').waitFor();
    assert.equal(
      await page.evaluate(`document.querySelector('.body').scrollTop`),
      300,
      'where it was left',
    );
    // What scrolls inside of a panel, too.
    for (const key of ['4', '1', '4']) await page.keyboard.press(key);
    await page.locator('.steps .row.selected').waitFor();
    await openParts(watched);
    for (const [index, panel] of PANELS.entries()) {
      await page.locator('body').press(String(index + 1));
      await waitUntil(page, `document.querySelector('#tab-${panel}')?.ariaSelected === 'true'`);
      const walked = await walkPanel(watched, panel);
      assert.deepEqual(walked, await page.evaluate(`${reachable}.map(${named})`), panel);
    }
    await page.locator('body').press('1');
    await waitUntil(page, `document.querySelector('#tab-overview')?.ariaSelected === 'true'`);
    // a panel that is drawn again at this moment takes the focus away
    await until('entry 27', async () => {
      await page.locator('.story button').first().press('Enter');
      return page.evaluate<boolean>(`document.body.dataset.seq === '27'`);
    });
    await page.keyboard.press('3');
    await page.locator('.trace .rows').waitFor();
    await page.locator('.trace .rows').focus();
    await page.keyboard.press('Enter');
    await waitUntil(page, `document.querySelectorAll('.trace .row.part').length > 1`);
    await page.keyboard.press('4');
    await page.locator('.sent').waitFor();
    await page.locator('.sent summary').first().focus();
    await page.keyboard.press('Enter');
    await waitUntil(page, `document.querySelector('.sent details')?.open === true`);
    assert.deepEqual(watched.faults, []);
  });

  it('has a chart that keys make larger and smaller, with the current state in view', async () => {
    const watched = await inspected().open('story', 36);
    const { page } = watched;
    await page.keyboard.press('5');
    await page.locator('.chart-place .chart').waitFor();
    const widths: number[] = [];
    for (const key of ['-', '+', '+', '+', '+', '-', '-', '-']) {
      await page.keyboard.press(key);
      const [width, inView] = await page.evaluate<[number, boolean]>(`(() => {
        const place = document.querySelector('.chart-place').getBoundingClientRect();
        const state = document.querySelector('.chart-place .state.current').getBoundingClientRect();
        const inView = state.top >= place.top - 1 && state.bottom <= place.bottom + 1
          && state.left >= place.left - 1 && state.right <= place.right + 1;
        return [Math.round(document.querySelector('.chart-place .chart').getBoundingClientRect().width), inView];
      })()`);
      widths.push(width);
      assert.ok(inView, `the state is out of view after ${widths.length} keys`);
    }
    const [fit = 0, whole = 0, half = 0, double = 0] = widths;
    assert.ok(fit <= whole && whole < half && half < double, widths.join());
    assert.deepEqual(widths, [fit, whole, half, double, double, half, whole, fit]);
    assert.deepEqual(watched.faults, []);
  });
};
