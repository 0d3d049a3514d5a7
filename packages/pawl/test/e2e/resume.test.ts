import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { killLaunchers } from './command-processes.js';
import { runInProcess } from './in-process.js';
import {
  expectCode,
  expectValid,
  makeServed,
  readRecords,
  sessionOf,
  startPawl,
  uniqueSleep,
} from './pawl.js';
import { call, done, message, text } from './wire-words.js';

/** Going on: after a clean end, after kill -9, in a fork. */

test('after a clean end --continue sends what was said before', async (context) => {
  const place = await makeServed(context, [message(text('I am Pawl.')), done]);
  expectCode(await runInProcess(place, ['-p', 'who are you?']), 0);
  expectCode(await runInProcess(place, ['--continue', '-p', 'go on']), 0);
  expectValid(place.server);
  const sent = place.server.requests[1]?.body.messages ?? [];
  assert.deepEqual(
    sent.map(({ role, content }) => [role, content.map((part) => part.text)]),
    [
      ['user', ['who are you?']],
      ['assistant', ['I am Pawl.']],
      ['user', ['go on']],
    ],
  );
});

test('a session that is resumed from another folder says that it works in its own', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const other = { ...place, workspace: join(place.folder, 'other') };
  mkdirSync(other.workspace);
  const there = await runInProcess(other, ['--resume', sessionOf(place), '-p', 'go on']);
  expectCode(there, 0);
  assert.ok(
    there.stderr.includes(`works in its own folder, ${place.workspace}, and not in this one`),
    there.stderr,
  );
  const here = await runInProcess(place, ['--resume', sessionOf(place), '-p', 'go on']);
  assert.doesNotMatch(here.stderr, /its own folder/);
});

test('after kill -9 of everything in a batch, finished results are sent and the lost one is said to be lost', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [
    message(
      call('first', 'read', { path: 'note.txt' }),
      call('second', 'bash', { command: `echo ran >> ran.txt; sleep ${mark}` }),
      call('third', 'read', { path: 'note.txt' }),
    ),
    done,
    done,
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  const running = startPawl(place, ['-p', 'work']);
  // The process list shows the text of the command before the shell has run its first part.
  await until('the command', () => existsSync(join(place.workspace, 'ran.txt')));
  running.child.kill('SIGKILL');
  killLaunchers(place, 'killed');
  await running.ended;
  const ended = await runInProcess(place, ['--continue', '-p', 'what now?', '--json']);
  expectCode(ended, 0);
  expectValid(place.server);
  const results = place.server.requests[1]?.body.messages.at(-1)?.content ?? [];
  const ids = results.filter((part) => part.type === 'tool_result').map((part) => part.tool_use_id);
  assert.deepEqual(ids, ['first', 'second', 'third']);
  assert.match(JSON.stringify(results[0]), /forty-two/);
  assert.match(JSON.stringify(results[1]), /unknown/);
  assert.match(JSON.stringify(results[2]), /forty-two/);
  assert.equal(
    readFileSync(join(place.workspace, 'ran.txt'), 'utf8'),
    'ran\n',
    'it must not run twice',
  );
  const lost = readRecords(ended.stdout).some(
    (record) => record.type === 'toolResult' && record.status === 'lost',
  );
  assert.ok(lost, 'the user is told, too');
  const left = await runInProcess(place, ['replay', sessionOf(place)]);
  expectCode(left, 0);
});

test('the stream of a session that is gone on with begins with what the opening started again', async (context) => {
  const place = await makeServed(context, [{ type: 'nothing' }, message(text('One.')), done]);
  const running = startPawl(place, ['-p', 'first']);
  await until('the request', () => place.server.requests.length === 1);
  running.child.kill('SIGKILL');
  await running.ended;
  const ended = await runInProcess(place, ['--continue', '-p', 'second', '--json']);
  expectCode(ended, 0);
  const [first, opened, again] = readRecords(ended.stdout);
  assert.equal(first?.type, 'session');
  assert.ok(opened?.type === 'state' && opened.event === 'Resumed', ended.stdout);
  assert.ok(again?.type === 'request' && again.requestId === 'req-1', ended.stdout);
});

test('a journal with a torn tail is cut and gone on with', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  expectCode(await runInProcess(place, ['-p', 'one']), 0);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  writeFileSync(journal, `${readFileSync(journal, 'utf8')}{"seq":99,"at"`);
  const ended = await runInProcess(place, ['--continue', '-p', 'two']);
  expectCode(ended, 0);
  assert.match(ended.stderr, /torn-1/);
  expectValid(place.server);
  writeFileSync(journal, `${readFileSync(journal, 'utf8')}{"seq":99,"at"`);
  const { ANTHROPIC_API_KEY: _, ...environment } = place.environment;
  const failed = await runInProcess({ ...place, environment }, ['--continue', '-p', 'three']);
  expectCode(failed, 78);
  assert.match(
    failed.stderr,
    /14 bytes .* incomplete after a crash.*torn-2/,
    'the only run that can say so',
  );
  expectCode(await runInProcess(place, ['--continue', '-p', 'three']), 0);
});

test('a fork goes on from its line with a conversation of its own', async (context) => {
  const place = await makeServed(context, [
    message(text('One.')),
    message(text('Two.')),
    message(text('Other.')),
  ]);
  expectCode(await runInProcess(place, ['-p', 'first']), 0);
  const sessionId = sessionOf(place);
  expectCode(await runInProcess(place, ['--continue', '-p', 'second']), 0);
  const ended = await runInProcess(place, ['fork', sessionId, '--at', '2', 'instead']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'Other.\n');
  expectValid(place.server);
  const said = (place.server.requests[2]?.body.messages ?? []).flatMap(({ content }) =>
    content.map(({ text: words }) => words),
  );
  assert.deepEqual(said, ['first', 'One.', 'instead']);
  assert.ok(existsSync(join(place.state, 'pawl', 'sessions', `${sessionId}.jsonl`)));
});

test('there is nothing to continue in a folder without sessions', async (context) => {
  const place = await makeServed(context, []);
  const ended = await runInProcess(place, ['--continue', '-p', 'go on']);
  expectCode(ended, 65);
  assert.match(ended.stderr, /no session/);
});

/** Tasks: sessions that a session starts, as users meet them. */

test('with --tasks the model gives a task away; lists fold it, and --continue never means it', async (context) => {
  const place = await makeServed(context, [
    message(
      call('task-1', 'task', { purpose: 'read the note', prompt: 'What does note.txt say?' }),
    ),
    message(call('read-1', 'read', { path: 'note.txt' })),
    message(text('It says forty-two.')),
    done,
    message(text('Going on.')),
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  expectCode(await runInProcess(place, ['--tasks', '-p', 'find out']), 0);
  expectValid(place.server);
  const results = JSON.stringify(place.server.requests[3]?.body.messages.at(-1));
  assert.match(results, /It says forty-two\.\\n\[task /);

  const listed = await runInProcess(place, ['sessions']);
  assert.match(listed.stdout, /^\S+ .*find out {2}\(1 task\)\n$/);
  const records = (await runInProcess(place, ['sessions', '--json'])).stdout.trim().split('\n');
  assert.equal(records.length, 2);

  expectCode(await runInProcess(place, ['--continue', '-p', 'go on']), 0);
  assert.match(JSON.stringify(place.server.requests[4]?.body.messages[0]), /find out/);
});

test('without --tasks the model is not offered the tool', async (context) => {
  const place = await makeServed(context, [done]);
  expectCode(await runInProcess(place, ['-p', 'hello']), 0);
  const tools = place.server.requests[0]?.body.tools?.map(({ name }) => name) ?? [];
  assert.ok(tools.includes('read') && !tools.includes('task'), tools.join(' '));
});

test('killed while a task waits for its model, --continue goes on with the task and pays for nothing twice', async (context) => {
  const place = await makeServed(context, [
    message(
      call('task-1', 'task', { purpose: 'read the note', prompt: 'What does note.txt say?' }),
    ),
    message(call('read-1', 'read', { path: 'note.txt' })),
    { type: 'nothing' },
    message(text('It says forty-two.')),
    done,
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  const running = startPawl(place, ['--tasks', '-p', 'find out']);
  await until('the second request of the task', () => place.server.requests.length === 3);
  running.child.kill('SIGKILL');
  await running.ended;

  expectCode(await runInProcess(place, ['--continue', '-p', 'go on']), 0);
  expectValid(place.server);
  const [, , before, after, last] = place.server.requests.map(({ body }) => body.messages);
  assert.deepEqual(after, before);
  assert.match(JSON.stringify(last), /It says forty-two\.\\n\[task /);
  const stored = (await runInProcess(place, ['sessions', '--json'])).stdout.trim().split('\n');
  assert.equal(stored.length, 2);
  for (const line of stored)
    expectCode(await runInProcess(place, ['replay', String(JSON.parse(line).sessionId)]), 0);
});
