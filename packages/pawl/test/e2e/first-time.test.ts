import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';
import { openReady } from './window.js';
import { call, done, message } from './wire-words.js';

/** What somebody finds who has read nothing. */

const write = (id: string, content: string) =>
  message(call(id, 'write', { path: 'x.txt', content }));

const looked: readonly (readonly [string, RegExp])[] = [
  ['login', /export ANTHROPIC_API_KEY=/],
  ['models', /--model PROVIDER\/NAME .*\/model/],
  ['resume', /pawl --resume lists/],
  ['sesions', /Did you mean 'sessions'\?/],
];

test('words that are no commands are answered with what was probably looked for', async (context) => {
  const place = await makeServed(context, []);
  for (const [word, then] of looked) {
    const ended = await runInProcess(place, [word]);
    expectCode(ended, 2);
    assert.match(ended.stderr, then);
  }
  const help = await runInProcess(place, ['help']);
  expectCode(help, 0);
  assert.match(help.stdout, /Usage: pawl[\s\S]*First steps:\n.*API_KEY/);
});

test('/jobs lists what runs in the background, shows what it said and ends it', async (context) => {
  const start = message(
    call('a', 'bash', { command: 'echo begun; touch begun; sleep 300', background: true }),
  );
  const place = await makeServed(context, [start, done]);
  const window = await openReady(context, place, { words: ['--preset', 'auto'] });
  window.press('/jobs\r');
  await window.sees('Nothing runs in the background.');
  window.press('start it\r');
  await window.sees('Done.');
  window.press('/jobs\r');
  await window.sees(/job-1 {2}running {2}echo begun; touch begun; sleep 300/);
  await until('the job has begun', () => existsSync(path.join(place.workspace, 'begun')));
  window.press('/jobs read 2\r');
  await window.sees(/There is no job-2. There are:\n +job-1 {2}running/);
  window.press('/jobs read 1\r');
  await window.sees(/read 1\n {4}begun\n {2}job-1 {2}running/);
  window.press('/jobs kill 1\r');
  await window.sees(/job-1 {2}ended by /);
  window.press('/jobs read 1\r');
  await window.sees(/read 1\n {4}begun\n {2}job-1 {2}ended by /);
});

test('a new session says which one was the last here; one that goes on keeps no permissions of it', async (context) => {
  const place = await makeServed(context, [write('a', 'hello\n'), done]);
  const first = await openReady(context, place);
  first.press('write it\r');
  await first.sees(/y a (p )?s n · /);
  first.press('s\r');
  await first.sees('Done.');
  first.press('quit\r');
  assert.equal(await first.ended, 0);
  const second = await openReady(context, place);
  await second.sees(/last here: "write it", .* Alt\+R or \/resume/);
  second.press('/resume\r');
  await second.sees('Enter selects');
  second.press('\r');
  await second.sees('Done.');
  second.press('/permissions\r');
  await second.sees(/nothing is allowed beyond|no permissions|Nothing/i);
});
