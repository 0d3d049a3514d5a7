import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage, startBrowser, waitUntil } from '../../../../test/kit/inspector/browser.js';
import { detach, makeAsking, untilState } from './detached-stage.js';
import { expectCode, runPawl, startPawl, until } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** The inspector lists detached sessions, and answers their questions once they were read. */

test('a question of a detached session is shown whole in the inspector, and answered there once it was read', async (context) => {
  const lines = Array.from({ length: 120 }, (_, index) => `echo ${index} >> out.txt`);
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
  const { page, faults } = await openPage(await startBrowser(context));
  await page.goto(address);
  await waitUntil(page, `document.querySelector('.live .asked') !== null`);
  const shown = await page.locator('.live').textContent();
  assert.match(shown ?? '', /publish it.*waits for your answer: echo 0.*\$0\.\d\d.*1 round/s);
  for (const line of [...lines, `folder: ${place.workspace}`])
    assert.ok(shown?.includes(line), line);
  const yes = page.getByRole('button', { name: 'Yes, once' });
  assert.equal(await yes.isDisabled(), true);
  for (const row of await page.locator('.asked > div').all()) await row.scrollIntoViewIfNeeded();
  await yes.click();
  await waitUntil(page, `/Allowed/.test(document.querySelector('.live').textContent)`);
  await untilState(place, id, /runs: has answered/);
  const ran = readFileSync(join(place.workspace, 'out.txt'), 'utf8').trim().split('\n');
  assert.equal(ran.length, lines.length);
  await waitUntil(page, `/has answered/.test(document.querySelector('.live').textContent)`);
  assert.deepEqual(faults, []);
  expectCode(await runPawl(place, ['stop', id]), 0);
  await waitUntil(page, `document.querySelector('.live').hidden`);
});
