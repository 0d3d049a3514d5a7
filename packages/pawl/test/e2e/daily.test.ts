import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { bin, expectCode, makePlace, makeServed, readRecords, sessionOf } from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message } from './wire-words.js';

/** What measuring a day of use found, without a terminal. */

const lastRecord = (stdout: string) => {
  const record = readRecords(stdout).at(-1);
  assert.ok(record?.type === 'result', stdout);
  return record;
};

const forks = (place: Parameters<typeof sessionOf>[0]): number =>
  readdirSync(join(place.state, 'pawl', 'sessions')).filter((name) => name.endsWith('.jsonl'))
    .length;

const unstartable: readonly (readonly [string, NodeJS.ProcessEnv, readonly string[], number])[] = [
  ['without a key', { ANTHROPIC_API_KEY: '' }, ['go on'], 78],
  ['with a bad flag', {}, ['go on', '--max-usd', 'much'], 2],
  ['with an empty prompt', {}, [''], 2],
];

for (const [title, environment, words, code] of unstartable) {
  test(`pawl fork with a prompt ${title} leaves no fork behind`, async (context) => {
    const place = await makeServed(context, [done, done]);
    expectCode(await runInProcess(place, ['-p', 'one']), 0);
    const id = sessionOf(place);
    const poorer = { ...place, environment: { ...place.environment, ...environment } };
    expectCode(await runInProcess(poorer, ['fork', id, '--at', '2', ...words]), code);
    assert.equal(forks(place), 1);
    // control: what can go on does
    expectCode(await runInProcess(place, ['fork', id, '--at', '2', 'go on']), 0);
    assert.equal(forks(place), 2);
  });
}

test('without a terminal a turn has no limit in rounds', async (context) => {
  const looks = Array.from({ length: 104 }, (_, index) =>
    message(call(`a${index}`, 'read', { path: `${index}.txt` })),
  );
  const place = await makeServed(context, [...looks, done]);
  for (let index = 0; index < looks.length; index++)
    writeFileSync(join(place.workspace, `${index}.txt`), `${index}\n`);
  const ended = await runInProcess(place, ['-p', 'look at all', '--json']);
  expectCode(ended, 0);
  assert.equal(place.server.requests.length, 105);
});

test('a turn that goes in circles is stopped all the same', async (context) => {
  const same = Array.from({ length: 40 }, (_, index) =>
    message(call(`a${index}`, 'list', { path: '.' })),
  );
  const place = await makeServed(context, same);
  const ended = await runInProcess(place, ['-p', 'look', '--json']);
  expectCode(ended, 1);
  assert.match(lastRecord(ended.stdout).reason, /^(repeats|sameResults)Limit$/);
  assert.equal(place.server.requests.length, 20);
});

test('a terminal that reports no size gets the usual one', async (context) => {
  const place = makePlace(context, { ANTHROPIC_API_KEY: 'key' });
  const program = ['bash', '-c', `stty cols 0 rows 0; '${process.execPath}' '${bin}'`];
  const window = openWindow(context, place, { program });
  await window.sees(/ready · [\s\S]*claude/);
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});
