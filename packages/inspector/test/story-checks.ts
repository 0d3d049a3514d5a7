import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import { openParts, PANELS, type Watched, waitUntil } from '../../../test/kit/inspector/browser.js';
import { STORY_SEQ } from '../../../test/kit/inspector/stored-session.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { chooseRows } from '../../../test/tier.js';
import { InspectedSessions } from '../src/server/inspected-sessions.js';
import { pageWithSession } from '../src/server/page-html.js';
import { at, type Inspected, inState, textOf } from './inspected-page.js';

/** One session in the page: its panels, keys, charts, and what axe says. */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** What axe finds in a part of the page, as `rule: element`. */
const findings = async (
  { page }: Watched,
  part: string,
  rules: 'all' | 'contrast',
): Promise<readonly string[]> => {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(AXE);
  const only = rules === 'all' ? {} : { runOnly: { type: 'rule', values: ['color-contrast'] } };
  return page.evaluate(`axe.run('${part}', { resultTypes: ['violations'], ...${JSON.stringify(only)} }).then(({ violations }) =>
    violations
      .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html.slice(0, 160) + ' ' + (any[0]?.message ?? ''))))`);
};

/** Tabs, buttons and choices that reach out of the window, or of their bar. */
const CUT = `[...document.querySelectorAll('.tabs button, .timeline button, .timeline select, .bar button, .bar select, header *')]
  .filter((one) => one.checkVisibility()).filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < -0.5 || right > innerWidth + 0.5;
  }).map((one) => one.textContent.slice(0, 40))`;

export const checkStory = (inspected: () => Inspected): void => {
  it('is used by keys alone', async () => {
    const watched = await inspected().open('story', STORY_SEQ);
    const { page } = watched;
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('Home');
    await at(watched, 0);
    await press('ArrowRight', 'ArrowRight', 'ArrowRight');
    await at(watched, 3);
    await inState(watched, 'Error');
    await press('4');
    assert.match(
      await textOf(watched, '.step'),
      /\[\w+\][\s\S]*DisplayWarning[\s\S]*pawl fork story --at 3/,
    );
    await press('Shift+ArrowRight', 'p');
    await at(watched, 11);
    await press('d', 'End');
    await at(watched, STORY_SEQ);
    assert.match(
      await textOf(watched, '.step'),
      /State, from\s+#11\s+to\s+#36[\s\S]*session\.usage\.costUsd/,
    );
    await press('/');
    await page.keyboard.type('19.99');
    await press('Enter'); // at once: it goes to a hit of all that was typed
    await waitUntil(page, `/\\b1 hit;/.test(document.querySelector('.steps')?.innerText)`);
    await at(watched, 16);
    await press('Tab', 'Escape');
    await page.locator('.steps .rows').focus();
    await press('5', '2', '?');
    assert.equal(await page.locator('dialog[open]').count(), 1);
    await press('Escape');
    await page.locator('#tab-conversation').focus();
    await press('ArrowRight', 'ArrowRight');
    await waitUntil(page, `document.querySelector('#tab-steps')?.ariaSelected === 'true'`);
    assert.deepEqual(watched.faults, []);
  });

  it('goes to the last entry for an address behind it, and says all that is wrong with a file', async (context) => {
    const sessions = new InspectedSessions({
      folder: inspected().folder,
      version: '1',
      redactor: createRedactor([]),
    });
    const exported = await sessions.exported('story');
    const file = path.join(temporaryFolder(context, 'exported'), 'story.html');
    const foreign = { ...exported, foreignMachine: true, damage: 'The last line is cut off.' };
    writeFileSync(file, pageWithSession(inspected().built, foreign));
    const watched = await inspected().visit(`${pathToFileURL(file).href}#99999`);
    const { page } = watched;
    await at(watched, STORY_SEQ);
    await waitUntil(page, `location.hash === ''`);
    assert.match(
      await textOf(watched, '.trouble'),
      /^Another version.*\nThe last line is cut off\.$/,
    );
    await page.keyboard.press('ArrowLeft');
    await waitUntil(page, `location.hash === '#${STORY_SEQ - 1}'`);
    await page.evaluate(`location.hash = '#7'`);
    await at(watched, 7);
  });

  it('shows the chart with the arrows that were taken, for each projection', async () => {
    const watched = await inspected().open('story', STORY_SEQ);
    const { page } = watched;
    await page.evaluate(`location.hash = '#5'`);
    await at(watched, 5);
    await page.keyboard.press('5');
    await page.locator('.chart-place .chart').waitFor();
    const last = await page
      .locator('.chart-place .arrow.last')
      .evaluateAll((all) => all.map((one) => one.getAttribute('data-arrow')));
    assert.deepEqual(last.toSorted(), [
      'CallingLlm ProcessingLlmResponse',
      'CheckingForCancellation ExecutingTools',
      'ProcessingLlmResponse ToolUseRequested',
      'ToolUseRequested CheckingForCancellation',
    ]);
    assert.equal(
      await page.locator('.chart-place [data-arrow="Error CallingLlm"] .count').textContent(),
      '1',
    );
    assert.match(
      await textOf(watched, '.explained'),
      /ExecutingTools[\s\S]*a batch of tool calls runs/,
    );
    await page.locator('.chart-place [data-arrow="CallingLlm Error"] .hit').hover({ force: true });
    assert.match(
      await textOf(watched, '.explained'),
      /CallingLlm → Error[\s\S]*Taken 1 time[\s\S]*LlmFailed \[\w+\]/,
    );
    for (const chart of ['resting', 'minimal', 'minimal-head', 'loom', 'sketch', 'tools']) {
      await page.locator('#chart-choice').selectOption(chart);
      await waitUntil(
        page,
        `document.querySelectorAll('.chart-place .state.current').length === 1`,
      );
      assert.ok((await page.locator('.chart-place .arrow.taken').count()) > 0, chart);
    }
    assert.deepEqual(watched.faults, []);
  });

  it('has no finding of axe and nothing that is cut, wide and narrow, dark and light', async () => {
    const watched = await inspected().open('story', STORY_SEQ);
    const { page } = watched;
    await openParts(watched);
    // A check of the whole page takes a second: in light only colours differ, in a narrow window only the layout.
    const others = [
      ...PANELS.slice(0, 4).map((panel) => `${panel} light 1400`),
      ...['dark', 'light'].map((colorScheme) => `overview ${colorScheme} 390`),
    ];
    const checked = [
      ...PANELS.map((panel) => `${panel} dark 1400`),
      ...chooseRows(others, (one) => one.split(' ').at(-1) ?? ''),
    ];
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1400, 390]) {
        await page.setViewportSize({ width, height: 900 });
        for (const [index, panel] of PANELS.entries()) {
          const key = String(index + 1);
          await page.keyboard.press('p');
          await page.keyboard.press(key);
          const name = panel;
          await waitUntil(page, `document.querySelector('#tab-${name}')?.ariaSelected === 'true'`);
          const wide = await page.evaluate('document.documentElement.scrollWidth');
          assert.ok(Number(wide) <= width, `${name} is ${wide} wide in a window of ${width}`);
          assert.deepEqual(await page.evaluate(CUT), [], `cut: ${name} at ${width}`);
          if (!checked.includes(`${panel} ${colorScheme} ${width}`)) continue;
          const part = key === '1' ? 'html' : '.panels';
          const found = await findings(watched, part, colorScheme === 'dark' ? 'all' : 'contrast');
          assert.deepEqual(found, [], `${name}, ${colorScheme}, ${width}`);
        }
      }
    }
    await page.setViewportSize({ width: 1000, height: 700 });
    await page.goto(inspected().inspector.address);
    await waitUntil(page, `document.body.dataset.loaded === 'yes'`);
    assert.match(
      await textOf(watched, '.sessions'),
      /The totals on the invoice[\s\S]*ShuttingDown\s+36/,
    );
    assert.deepEqual(await findings(watched, 'html', 'all'), []);
    assert.deepEqual(watched.faults, []);
  });
};
