import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, sessionOf } from './pawl.js';
import { openWindow } from './window.js';
import { done, last, message, text } from './wire-words.js';

/** `pawl "prompt"`: a session in the terminal that begins with a prompt; and the short flags. */

test('the first prompt of the command line is shown and sent, and the session goes on', async (context) => {
  const place = await makeServed(context, [done, message(text('Again.'))]);
  const window = openWindow(context, place, { words: ['why does', 'it fail?'] });
  await window.sees(/> why does it fail\?[\s\S]*Done\./);
  window.press('and now?\r');
  await window.sees('Again.');
  assert.match(JSON.stringify(last(place.server.requests[0]?.body)), /"text":"why does it fail\?"/);
  assert.equal(place.server.requests.length, 2);
  expectValid(place.server);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

test('a first prompt in plain lines', async (context) => {
  const place = await makeServed(context, [done]);
  const window = openWindow(context, place, { words: ['look at it', '--plain'] });
  await window.sees('Done.');
  window.press('/quit\n');
  assert.equal(await window.ended, 0);
});

for (const typed of ['!touch made', '/preset auto', '/quit'])
  test(`"${typed}" on the command line is not run: it waits for Enter`, async (context) => {
    const place = await makeServed(context, [done]);
    const window = openWindow(context, place, { words: [typed] });
    await window.sees('A command is not run from the command line. Press Enter to run it.');
    await window.seesLine(new RegExp(`^> ${typed}`));
    assert.equal(existsSync(path.join(place.workspace, 'made')), false);
    window.press('\r');
    if (typed === '/quit') assert.equal(await window.ended, 0);
    else await window.sees(typed === '!touch made' ? /> !touch made/ : 'The preset is now auto');
    assert.equal(place.server.requests.length, 0);
  });

test('-c, -r and -m are --continue, --resume and --model, with a first prompt and with -p', async (context) => {
  const place = await makeServed(context, [done, done, done, done, done]);
  expectCode(await runInProcess(place, ['-p', 'one', '-m', 'anthropic/claude-haiku-4-5']), 0);
  const id = sessionOf(place);
  expectCode(await runInProcess(place, ['-c', '-p', 'two']), 0);
  expectCode(await runInProcess(place, ['-r', id, '-p', 'three']), 0);
  expectCode(await runInProcess(place, ['-cp', 'four']), 0);
  const window = openWindow(context, place, { words: ['-c', 'go on with it'] });
  await window.sees(/> go on with it[\s\S]*Done\./);
  assert.deepEqual(
    place.server.requests.map(({ body }) => [body.model, body.messages.length]),
    [1, 3, 5, 7, 9].map((messages) => ['claude-haiku-4-5', messages]),
  );
});

const wrong: readonly (readonly [words: readonly string[], said: RegExp])[] = [
  [['sesions'], /unknown command 'sesions'\. Did you mean 'sessions'\?/],
  [['sesions', 'delete', 'x'], /Did you mean 'sessions'\?/],
  [['mpc'], /Did you mean 'mcp'\?/],
  [['login'], /export ANTHROPIC_API_KEY/],
  [['help', 'sessions'], /pawl sessions --help/],
  [[''], /The prompt is empty/],
  [['  '], /The prompt is empty/],
  [['fix the tests', '--json'], /--json needs -p/],
  [['--resume', 'one'], /There is no terminal/],
  [['how do the tests run?'], /There is no terminal .*: pawl -p "prompt"/],
  [['sesions are lost, why?'], /There is no terminal/],
  [['repair'], /There is no terminal/],
];
for (const [words, said] of wrong)
  test(`pawl ${words.map((word) => `"${word}"`).join(' ')} without a terminal is wrong usage`, async (context) => {
    const place = await makeServed(context, []);
    writeFileSync(path.join(place.workspace, 'a.txt'), '');
    const ended = await runInProcess(place, words);
    expectCode(ended, 2);
    assert.match(ended.stderr, said);
    assert.equal(place.server.requests.length, 0);
  });

test('an effort that the model lacks becomes the next lower one, and that is said', async (context) => {
  const place = await makeServed(context, [done, done]);
  const words = ['-p', 'go', '--effort', 'xhigh'];
  const nearest = await runInProcess(place, [...words, '-m', 'anthropic/claude-sonnet-4-6']);
  expectCode(nearest, 0);
  assert.match(
    nearest.stderr,
    /has no effort xhigh, so it gets high\. It has low, medium, high, max\./,
  );
  const equal = await runInProcess(place, [...words, '-m', 'anthropic/claude-opus-5-5']);
  expectCode(equal, 0);
  assert.equal(equal.stderr, '');
  assert.deepEqual(
    place.server.requests.map(({ body }) => body.output_config?.effort),
    ['high', 'xhigh'],
  );
  const unknown = await runInProcess(place, ['-p', 'go', '--effort', 'ultra']);
  expectCode(unknown, 2);
  assert.match(unknown.stderr, /auto, low, medium, high, xhigh, max, not 'ultra'/);
});
