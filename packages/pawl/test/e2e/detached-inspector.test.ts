import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { openPage, startBrowser, waitUntil } from '../../../../test/kit/inspector/browser.js';
import { testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { detach, makeAsking, untilState } from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode, startPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** The inspector lists detached sessions, and answers their questions once they were read. */

const browser = await startBrowser({ after });

/** Scrolls through all rows of a question. False if the page drew them anew meanwhile. */
const scrollThrough = async (page: Page): Promise<boolean> => {
  try {
    for (const row of await page.locator('.asked > div').all()) await row.scrollIntoViewIfNeeded();
    return true;
  } catch (error) {
    if (/not attached to the DOM/.test(String(error))) return false;
    throw error;
  }
};

const readAll = async (page: Page): Promise<void> => {
  while (!(await scrollThrough(page)));
};

test('a question of the model and its plan are answered in the inspector with its choices and in words', async (context) => {
  const ask = (id: string) =>
    message(call(id, 'ask_user', { question: 'Which parser?', choices: ['ours', 'a library'] }));
  const plan = (id: string) =>
    message(
      call(id, 'propose_plan', {
        title: 'A parser',
        steps: ['Write it', 'Test **all** of `parse`'],
      }),
    );
  const replies = [ask('q1'), ask('q2'), ask('q3'), plan('p1'), plan('p2'), done];
  const place = await makeAsking(context, replies, { PAWL_PRESET: 'plan' });
  const id = await detach(context, place, ['make it']);
  await untilState(place, id, /waits for your answer: Which parser\?/);
  const inspector = startPawl(place, ['inspect'], null);
  context.after(() => inspector.child.kill('SIGKILL'));
  const address = await until('the address', () => /http:\S+/.exec(inspector.stdout())?.[0]);
  const { page, faults } = await openPage(browser);
  await page.goto(address);
  const answers = [
    { button: 'a library', words: '', said: /The user answered: a library/ },
    { button: 'Send your words', words: 'none of them', said: /The user answered: none of them/ },
    { button: 'No answer', words: '', said: /did not answer|declined|decide/ },
    { button: 'Send it back', words: 'no tests?', said: /no tests\?/ },
    { button: 'Accept, and carry it out', words: '', said: /accept/i },
  ];
  for (const [index, { button, words, said }] of answers.entries()) {
    const chosen = page.getByRole('button', { name: button, exact: true });
    await chosen.waitFor();
    // a yes would be no answer to a question with choices
    assert.equal(await page.getByRole('button', { name: 'Yes, once' }).count(), 0);
    await readAll(page);
    if (index === 1) {
      await chosen.click();
      await waitUntil(page, `/Type your words first/.test(document.body.textContent)`);
    }
    if (index === 3) {
      const drawn = [page.locator('.asked strong'), page.locator('.asked code')];
      assert.deepEqual(await Promise.all(drawn.map((one) => one.allTextContents())), [
        ['all'],
        ['parse'],
      ]);
    }
    if (words !== '') await page.locator('.question input').fill(words);
    await chosen.click();
    await until(`request ${index + 2}`, () => place.server.requests.length === index + 2);
    const messages = JSON.stringify(place.server.requests[index + 1]?.body.messages.at(-1));
    assert.match(messages, said);
    await waitUntil(page, `document.querySelector('.question') === null || ${index} < 4`);
  }
  await untilState(place, id, /runs: has answered/);
  assert.deepEqual(faults, []);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

testDeep('a second answer in the inspector is refused, and says so', async (context) => {
  const asks = message(call('q1', 'ask_user', { question: 'Which parser?', choices: ['a', 'b'] }));
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['make it']);
  await untilState(place, id, /waits for your answer/);
  const inspector = startPawl(place, ['inspect'], null);
  context.after(() => inspector.child.kill('SIGKILL'));
  const address = await until('the address', () => /http:\S+/.exec(inspector.stdout())?.[0]);
  const pages = [(await openPage(browser)).page, (await openPage(browser)).page];
  for (const page of pages) {
    await page.goto(address);
    await page.getByRole('button', { name: 'b', exact: true }).waitFor();
    // its list stays as it is: it does not hear that the other one answered
    await page.route('**/live', (route) => route.abort());
    await readAll(page);
  }
  const said = `[...document.querySelectorAll('.live [role="status"]')].map((one) => one.textContent).join(' ')`;
  for (const [index, page] of pages.entries()) {
    await page.getByRole('button', { name: index === 0 ? 'b' : 'a', exact: true }).click();
    const words = index === 0 ? 'Answered: b' : 'was answered before';
    await waitUntil(page, `${said}.includes('${words}')`);
    assert.equal(await page.evaluate(`${said}.includes('Answered: a')`), false);
  }
  await untilState(place, id, /runs: has answered/);
  assert.equal(place.server.requests.length, 2);
  const answer = JSON.stringify(place.server.requests[1]?.body.messages.at(-1));
  assert.match(answer, /The user answered: b/);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

testDeep('a list that is out of date says so, and one that was never there', async (context) => {
  const asks = message(call('c1', 'bash', { command: 'echo one' }));
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['do it']);
  await untilState(place, id, /waits for your answer/);
  const inspector = startPawl(place, ['inspect'], null);
  context.after(() => inspector.child.kill('SIGKILL'));
  const address = await until('the address', () => /http:\S+/.exec(inspector.stdout())?.[0]);
  const { page } = await openPage(browser);
  await page.goto(address);
  await waitUntil(page, `document.querySelector('.live .asked') !== null`);
  const said = await page.locator('.live').textContent();
  assert.doesNotMatch(said ?? '', /was known|can not be listed/, 'control: nothing is said');
  inspector.child.kill('SIGKILL');
  await waitUntil(page, `/was known \\d+.* ago/.test(document.querySelector('.live').textContent)`);
  expectCode(await runInProcess(place, ['stop', id]), 0);
});

test('a question of a detached session is shown whole in the inspector, and answered there once it was read', async (context) => {
  const lines = Array.from({ length: 40 }, (_, index) => `echo ${index} >> out.txt`);
  const asks = message(call('c1', 'bash', { command: lines.join('\n') }));
  const place = await makeAsking(context, [asks, done]);
  const id = await detach(context, place, ['publish it']);
  await untilState(place, id, /waits for your answer/);
  const inspector = startPawl(place, ['inspect'], null);
  context.after(() => inspector.child.kill('SIGKILL'));
  const address = await until('the address', () => /http:\S+/.exec(inspector.stdout())?.[0]);
  const post = (body: object, headers: Record<string, string>) =>
    fetch(`${address}live/${id}`, { method: 'POST', headers, body: JSON.stringify(body) });
  // another page, which has guessed the address, and one that has not
  assert.equal((await post({}, { origin: 'http://evil.example' })).status, 403);
  assert.equal((await post({}, { 'content-type': 'application/json' })).status, 403);
  const { page, faults } = await openPage(browser);
  await page.goto(address);
  await waitUntil(page, `document.querySelector('.live .asked') !== null`);
  const shown = await page.locator('.live').textContent();
  assert.match(shown ?? '', /publish it.*waits for your answer: echo 0.*\$0\.\d\d.*1 round/s);
  for (const line of [...lines, `folder: ${place.workspace}`])
    assert.ok(shown?.includes(line), line);
  const yes = page.getByRole('button', { name: 'Yes, once' });
  assert.equal(await yes.isDisabled(), true);
  await readAll(page);
  await yes.click();
  await waitUntil(page, `/Allowed/.test(document.querySelector('.live').textContent)`);
  await untilState(place, id, /runs: has answered/);
  const ran = readFileSync(join(place.workspace, 'out.txt'), 'utf8').trim().split('\n');
  assert.equal(ran.length, lines.length);
  await waitUntil(page, `/has answered/.test(document.querySelector('.live').textContent)`);
  assert.deepEqual(faults, []);
  expectCode(await runInProcess(place, ['stop', id]), 0);
  await waitUntil(page, `document.querySelector('.live').hidden`);
});
