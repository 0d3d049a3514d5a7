import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, startPawl } from './pawl.js';
import { call, done, message, text } from './wire-words.js';

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
