import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { InspectedSessions } from '../src/server/inspected-sessions.js';
import { pageWith } from '../src/server/page-html.js';
import { loaded, type Watched, waitUntil } from './browser.js';
import { at, type Inspected, inState, keepPictures, PANELS, textOf } from './inspected-page.js';
import { storeTrial, TRIAL_SEQ } from './trial-session.js';

/** The prepared session as a file, read by somebody who knows only the page; and every panel by keys alone. */

const FOCUSABLE = 'button, a[href], input, select, summary, [tabindex="0"]';

/** What can be used in the open panel; rows of events are gone to by the keys of the page. */
const reachable = `[...document.querySelectorAll('.body :is(${FOCUSABLE})')]
  .filter((one) => one.checkVisibility() && !one.matches('.event-row'))`;
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

export const checkTrial = (inspected: () => Inspected): void => {
  it('tells a stranger why it retried, what was dear, which approval delayed it and where it crashed', async (context) => {
    await storeTrial(inspected().folder);
    const place = { folder: inspected().folder, version: '1', redactor: createRedactor([]) };
    const exported = await new InspectedSessions(place).exported('invoices');
    const file = path.join(temporaryFolder(context, 'trial'), 'invoices.html');
    writeFileSync(file, pageWith(inspected().built, exported));
    const watched = await inspected().visit(pathToFileURL(file).href);
    const { page } = watched;
    await loaded(watched, TRIAL_SEQ);
    await page.keyboard.press('7');
    await page.locator('.highlights').waitFor();
    const told = (await textOf(watched, '.highlights')).split('\n');
    assert.deepEqual(told, [
      'Crashed #37 in ExecutingTools, doing bash npm test; opened again 1 h 0 min later, at #38.',
      'Failed and tried again #8 2 requests: rateLimited: 429: your limit of 40,000 input tokens a minute is reached; unreachable: read ECONNRESET. Before the retries it waited 23 s.',
      'The most expensive request #24 $0.241: 61,800 tokens in, 0 % from the cache, 420 out; it was sent 9 min 52 s after the request before it, and providers keep a prompt in the cache for about five minutes; meanwhile an approval was waited for (bash npm test). It had 37,300 tokens more than the request before it.',
      'The longest wait for an approval #19 9 min 20 s of 9 min 46 s for all of them: bash npm test.',
      'The longest tool call #20 31 s of 33 s for all of them: bash npm test.',
    ]);
    for (const seq of ['37', '8', '24', '19']) {
      await page.locator('.highlights button', { hasText: `#${seq}` }).press('Enter');
      await at(watched, Number(seq));
    }
    assert.match(await textOf(watched, '.where'), /^19 of 43 · LlmCompleted .* · approval$/);
    await page.locator('.highlights button', { hasText: '#37' }).press('Enter');
    await inState(watched, 'ExecutingTools');
    await keepPictures(watched, 'trial', 23);
    assert.deepEqual(watched.requests, [pathToFileURL(file).href]);
    assert.deepEqual(watched.faults, []);
  });

  it('is walked through by Tab, panel by panel, in a narrow window', async () => {
    const watched = await inspected().open('story', 36);
    const { page } = watched;
    await page.setViewportSize({ width: 420, height: 600 });
    await page.keyboard.press('7');
    await page.locator('section.time').waitFor();
    await page.evaluate(`document.querySelector('.body').scrollTop = 300`);
    await page.keyboard.press('6');
    await page.locator('section.request').waitFor();
    assert.equal(
      await page.evaluate(`document.querySelector('.body').scrollTop`),
      0,
      'it begins at its top',
    );
    await page.keyboard.press('7');
    await page.locator('section.time').waitFor();
    assert.equal(
      await page.evaluate(`document.querySelector('.body').scrollTop`),
      300,
      'where it was left',
    );
    for (const [index, panel] of PANELS.entries()) {
      await page.locator('body').press(String(index + 1));
      await waitUntil(page, `document.querySelector('#tab-${panel}')?.ariaSelected === 'true'`);
      const walked = await walkPanel(watched, panel);
      assert.deepEqual(walked, await page.evaluate(`${reachable}.map(${named})`), panel);
    }
    await page.locator('.event-list').focus();
    await page.keyboard.press('7');
    const [link, box] = [page.locator('.highlights button').first(), page.locator('.time input')];
    await link.focus();
    await page.keyboard.press('Enter');
    await at(watched, 27);
    await box.focus();
    await page.keyboard.press('Space');
    await waitUntil(page, `document.querySelector('.time input')?.checked === false`);
    await page.keyboard.press('6');
    await page.locator('.request summary').first().focus();
    await page.keyboard.press('Enter');
    await waitUntil(page, `document.querySelector('.request details')?.open === true`);
    assert.deepEqual(watched.faults, []);
  });

  it('has a chart that keys make larger and smaller, with the current state in view', async () => {
    const watched = await inspected().open('story', 36);
    const { page } = watched;
    const widths: number[] = [];
    for (const key of ['-', '+', '+', '+', '+', '-', '-', '-']) {
      await page.keyboard.press(key);
      const [width, inView] = await page.evaluate<[number, boolean]>(`(() => {
        const place = document.querySelector('.chart-place').getBoundingClientRect();
        const state = document.querySelector('.state.current').getBoundingClientRect();
        const inView = state.top >= place.top - 1 && state.bottom <= place.bottom + 1
          && state.left >= place.left - 1 && state.right <= place.right + 1;
        return [Math.round(document.querySelector('.chart').getBoundingClientRect().width), inView];
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
