import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords, sessionOf } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Approvals without a terminal, and what may be spent. */

const write = message(call('a', 'write', { path: 'x.txt', content: 'x' }));
const look = (id: number) => message(call(`look-${id}`, 'read', { path: 'note.txt' }));

test('a call that needs approval is denied, the turn ends: exit 77', async (context) => {
  const place = await makeServed(context, [write, done]);
  const ended = await runInProcess(place, ['-p', 'write', '--preset', 'careful']);
  expectCode(ended, 77);
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  assert.equal(place.server.requests.length, 1);
  assert.match(ended.stderr, /^✗ write x\.txt · denied by policy: the preset careful asks/m);
  assert.match(ended.stderr, /^pawl: There was no user to approve write x\.txt\.$/m);
  for (const way of ['--preset auto', '--on-ask deny', `pawl --resume ${sessionOf(place)}`]) {
    assert.ok(ended.stderr.includes(way), way);
  }
});

test('a call that policy denies is seen, by people and by programs', async (context) => {
  const outside = message(call('a', 'write', { path: '../outside.txt', content: 'x' }));
  const place = await makeServed(context, [outside, done, outside, done]);
  const told = await runInProcess(place, ['-p', 'write']);
  assert.match(
    told.stderr,
    /^✗ write \/\S+\/outside\.txt · denied by policy: the path lies outside the workspace, and nobody is there to be asked\..*\npawl: There was no user to approve write \S+\.\nThe model went on without, .*\nWhat you can do: --on-ask deny accepts that with exit code 0,\nor answer in a terminal: pawl --resume \S+\n$/,
  );
  const { stdout } = await runInProcess(place, ['-p', 'write', '--json']);
  const results = readRecords(stdout).flatMap((record) =>
    record.type === 'toolResult' ? [[record.callId, record.tool, record.status]] : [],
  );
  assert.deepEqual(results, [['a', 'write', 'denied']]);
});

test('with --verbose calls that could not run are told with their reason', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'fly', { to: 'the moon' }), call('b', 'read', { lines: 'x' })),
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'go', '--verbose']);
  expectCode(ended, 0);
  assert.match(ended.stderr, /^✗ fly .*· no such tool: fly; available: read/m);
  assert.match(ended.stderr, /^✗ read .*· the arguments were not valid: /m);
});

/** What the first request could cost is above the limit in dollars, so it is not sent. */
const rows: readonly (readonly [string, readonly string[], number, string, number])[] = [
  ['dollars', ['--max-usd', '0.000001'], 125, 'usdLimit', 0],
  ['tokens', ['--max-tokens', '10'], 125, 'tokensLimit', 1],
  ['rounds', ['--max-rounds', '1'], 126, 'roundsLimit', 1],
];

for (const [title, flags, code, reason, requests] of rows) {
  test(`a limit of ${title} ends the turn: exit ${code}`, async (context) => {
    const place = await makeServed(context, [look(1), look(2), done]);
    writeFileSync(join(place.workspace, 'note.txt'), 'x\n');
    const ended = await runInProcess(place, ['-p', 'look', '--json', ...flags]);
    expectCode(ended, code);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result' && result.reason === reason && !result.ok);
    assert.match(result.message, new RegExp(flags[0] ?? ''), 'it says which flag raises it');
    assert.equal(place.server.requests.length, requests);
    expectValid(place.server);
  });
}

test('a limit of time ends the turn in the middle of a command: exit 124', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'sleep 313.09' })),
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'wait', '--max-minutes', '0.02']);
  expectCode(ended, 124);
  assert.match(ended.stderr, /stopped/);
});

test('an answer that --profile tools asks for at the round limit is printed, and the limit gives reason and code', async (context) => {
  const place = await makeServed(context, [look(1), done]);
  const words = ['-p', 'look', '--profile', 'tools', '--max-rounds', '1', '--json'];
  const ended = await runInProcess(place, words);
  expectCode(ended, 126);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.text !== '', ended.stdout);
  assert.deepEqual([result.ok, result.reason], [false, 'roundsLimit']);
});

test('an answer that comes before the round limit is one', async (context) => {
  const place = await makeServed(context, [look(1), done]);
  expectCode(
    await runInProcess(place, ['-p', 'look', '--profile', 'tools', '--max-rounds', '5', '--json']),
    0,
  );
});
