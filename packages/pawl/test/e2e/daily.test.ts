import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  expectCode,
  makePlace,
  makeServed,
  readRecords,
  sessionOf,
  startPawl,
} from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message, text } from './wire-words.js';

/** What measuring a day of use found, without a terminal. */

const lastRecord = (stdout: string) => {
  const record = readRecords(stdout).at(-1);
  assert.ok(record?.type === 'result', stdout);
  return record;
};

test('an empty prompt with --json ends with a result record', async (context) => {
  const place = makePlace(context, { ANTHROPIC_API_KEY: 'key' });
  const ended = await runInProcess(place, ['-p', '', '--json']);
  expectCode(ended, 2);
  const { ok, reason, exit, message: said } = lastRecord(ended.stdout);
  assert.deepEqual([ok, reason, exit, said], [false, 'usage', 2, 'The prompt is empty.']);
});

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

test('the result of a turn that a signal ended says so', async (context) => {
  const slow = { type: 'message', parts: [text('Slowly. '.repeat(400))], delayMs: 40 } as const;
  const place = await makeServed(context, [slow]);
  const running = startPawl(place, ['-p', 'go', '--json']);
  await until('the reply', () => running.stdout().includes('"type":"text"'));
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  expectCode(ended, 143);
  assert.equal(lastRecord(ended.stdout).message, 'The session was ended by SIGTERM.');
});

test('the result of a turn at a limit says which flag raises it', async (context) => {
  const look = message(call('a', 'read', { path: 'x' }));
  const place = await makeServed(context, [look, look]);
  const ended = await runInProcess(place, ['-p', 'go', '--json', '--max-rounds', '1']);
  expectCode(ended, 126);
  assert.match(lastRecord(ended.stdout).message, /limit in rounds .* --max-rounds/);
});

test('flags of other agents are answered with ours', async (context) => {
  const place = makePlace(context);
  const says = async (flag: string): Promise<string> => {
    const ended = await runInProcess(place, ['-p', 'x', flag, '3']);
    expectCode(ended, 2);
    return ended.stderr;
  };
  assert.match(
    await says('--max-turns'),
    /unknown option '--max-turns'\n\(Did you mean --max-rounds\?\)/,
  );
  assert.match(await says('--output-format'), /Did you mean --json\?/);
  assert.match(await says('--max-token'), /Did you mean --max-tokens\?/);
});

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

test('the manual page is a list in package.json: newer npm installs no other', () => {
  const { man, scripts = {} } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  assert.deepEqual(man, ['man/pawl.1']);
  assert.deepEqual(scripts, {}, 'npm warns of some where the package is installed');
});
