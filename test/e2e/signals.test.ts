import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerReply } from '../servers/anthropic.js';
import {
  expectCode,
  expectValid,
  makeServed,
  type Place,
  processesWith,
  runPawl,
  startPawl,
  uniqueSleep,
  until,
} from './pawl.js';
import { call, done, last, message, overloaded, text } from './wire-words.js';

/** Signals, headless: the turn is cancelled, nothing is left running, the conversation stays valid, the next prompt works. */

const slowReply: ServerReply = {
  type: 'message',
  parts: [text('A long answer, told slowly. '.repeat(40))],
  delayMs: 40,
};

/** A command with a grandchild in the background; `mark` is in the command lines of all of them. */
const family = (mark: string): string => `(sleep ${mark} & sleep ${mark}) & sleep ${mark}`;

const expectNextPrompt = async (
  place: Place & { readonly server: { readonly requests: readonly unknown[] } },
) => {
  const before = place.server.requests.length;
  const ended = await runPawl(place, ['--continue', '-p', 'and now?']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'Done.\n');
  assert.equal(place.server.requests.length, before + 1);
};

test('SIGINT during a reply cancels the turn; the next prompt works', async (context) => {
  const place = await makeServed(context, [slowReply, done]);
  const running = startPawl(place, ['-p', 'tell me', '--json']);
  await until('text', () => running.stdout().includes('"type":"text"'));
  running.child.kill('SIGINT');
  const ended = await running.ended;
  expectCode(ended, 130);
  assert.match(ended.stdout, /"reason":"cancelled","exit":130/);
  await expectNextPrompt(place);
  expectValid(place.server);
  assert.match(JSON.stringify(place.server.requests.at(-1)?.body.messages), /interrupted by the user/);
});

test('SIGINT during a command ends it with its grandchildren', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [message(call('a', 'bash', { command: family(mark) })), done]);
  const running = startPawl(place, ['-p', 'run']);
  await until('the family', () => processesWith(`sleep ${mark}`).length >= 3);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  assert.deepEqual(processesWith(`sleep ${mark}`), []);
  await expectNextPrompt(place);
  expectValid(place.server);
  assert.match(JSON.stringify(last(place.server.requests.at(-1)?.body)), /tool_result/);
});

test('SIGINT during a retry wait cancels at once', async (context) => {
  const place = await makeServed(context, [
    { ...overloaded, headers: { 'retry-after': '50' } } as ServerReply,
    done,
  ]);
  const running = startPawl(place, ['-p', 'go', '--json']);
  await until('the wait', () => running.stdout().includes('"type":"retry"'));
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await expectNextPrompt(place);
  expectValid(place.server);
});

test('SIGINT twice ends hard, and leaves no process', async (context) => {
  const mark = uniqueSleep(context);
  const command = `trap '' INT TERM; sleep ${mark}; sleep ${mark}`;
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done]);
  const running = startPawl(place, ['-p', 'run']);
  await until('the command', () => processesWith(`sleep ${mark}`).length > 0);
  running.child.kill('SIGINT');
  await delay(200);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await until('no process', () => processesWith(mark).length === 0);
  await expectNextPrompt(place);
  expectValid(place.server);
});

test('SIGTERM shuts down: 143, nothing left, and it can be continued', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [message(call('a', 'bash', { command: family(mark) })), done]);
  const running = startPawl(place, ['-p', 'run', '--json']);
  await until('the family', () => processesWith(`sleep ${mark}`).length >= 3);
  running.child.kill('SIGTERM');
  const ended = await running.ended;
  expectCode(ended, 143);
  assert.match(ended.stdout, /"reason":"terminated","exit":143/);
  assert.deepEqual(processesWith(`sleep ${mark}`), []);
  await expectNextPrompt(place);
  expectValid(place.server);
});
