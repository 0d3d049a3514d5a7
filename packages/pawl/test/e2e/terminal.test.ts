import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import type { ServerReply } from '../../../../test/servers/anthropic.js';
import { until } from '../../../../test/until.js';
import { expectCode, expectValid, makeServed, runPawl, uniqueSleep } from './pawl.js';
import { openTerminal } from './pty.js';
import { call, done, last, message, overloaded, text } from './wire-words.js';

/** The program in a real pseudo-terminal. */

const ESCAPE = '\u001b';
const CONTROL_C = '\u0003';
const CONTROL_D = '\u0004';

const slowReply: ServerReply = {
  type: 'message',
  parts: [text('A long answer, told slowly. '.repeat(60))],
  delayMs: 40,
};
const write = (id: string, content: string): ServerReply =>
  message(text('I write.'), call(id, 'write', { path: 'x.txt', content }));

test('a prompt is answered, streamed; Ctrl-D ends and says how to go on', async (context) => {
  const place = await makeServed(context, [message(text('Hello, world.'))]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('say hello\r');
  await terminal.sees('Hello, world.');
  await terminal.sees(/ready · .* tokens · \?/);
  terminal.press(CONTROL_D);
  assert.equal(await terminal.ended, 0);
  assert.match(terminal.shown(), /pawl --resume \d+/);
  assert.equal(last(place.server.requests[0]?.body)[0]?.text, 'say hello');
});

for (const [name, key] of [
  ['Escape', ESCAPE],
  ['Ctrl-C', CONTROL_C],
] as const) {
  test(`${name} during a reply cancels; what waited comes back; the next prompt works`, async (context) => {
    const place = await makeServed(context, [slowReply, done]);
    const terminal = openTerminal(context, place);
    await terminal.sees('ready');
    terminal.press('tell me\r');
    await terminal.sees('A long answer');
    terminal.press('wait for it\r');
    await terminal.sees('1 queued');
    terminal.mark();
    terminal.press(key);
    await terminal.shows(/stopped · [^\n]*\n─+\n> wait for it/);
    terminal.press('\r');
    await terminal.sees('Done.');
    expectValid(place.server);
    assert.match(JSON.stringify(place.server.requests[1]?.body.messages.at(-1)), /wait for it/);
    terminal.press(CONTROL_D);
    assert.equal(await terminal.ended, 0);
  });
}

test('Ctrl-C twice ends with 130 and leaves no process; it can be gone on with', async (context) => {
  const mark = uniqueSleep(context);
  const command = `trap '' INT TERM; sleep ${mark}; sleep ${mark}`;
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done]);
  const terminal = openTerminal(context, place, ['--preset', 'auto']);
  await terminal.sees('ready');
  terminal.press('run\r');
  await until('the command', () => processesWith(mark).includes(`sleep ${mark}`));
  terminal.press(CONTROL_C);
  await terminal.sees('stopping');
  terminal.press(`${CONTROL_C}${CONTROL_C}`); // one write: they come soon after each other on any machine
  assert.equal(await terminal.ended, 130);
  await until('no process', () => processesWith(mark).length === 0);
  expectCode(await runPawl(place, ['--continue', '-p', 'go on']), 0);
  expectValid(place.server);
});

test('a terminal that goes away shuts the session down, with what runs in it', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: `sleep ${mark}` })),
  ]);
  const terminal = openTerminal(context, place, ['--preset', 'auto']);
  await terminal.sees('ready');
  terminal.press('run\r');
  await until('the command', () => processesWith(`sleep ${mark}`).length > 0);
  process.kill(terminal.pid, 'SIGHUP');
  assert.equal(await terminal.ended, 143);
  await until('nothing of it runs', () => processesWith(`sleep ${mark}`).length === 0);
});

test('a question is answered with no and a reason, with yes, or with always', async (context) => {
  const place = await makeServed(context, [
    ...[write('a', 'hello\n'), done, write('b', 'hello\n'), done],
    ...[write('c', 'again\n'), write('d', 'and again\n'), done],
  ]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  const answer = async (prompt: string, keys: string, seen: string | RegExp): Promise<void> => {
    terminal.mark();
    terminal.press(`${prompt}\r`);
    await terminal.sees(/y a (p )?s n · /);
    terminal.press(`${keys}\r`);
    await terminal.sees(seen);
  };
  await answer(
    'write it',
    'n use another name',
    '✗ write x.txt · refused by user: use another name',
  );
  await terminal.sees('Done.');
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /use another name/);
  await answer('write it after all', 'y', 'Done.');
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), 'hello\n');
  assert.match(terminal.shown(), /1 \+ hello/);
  await answer('write it again and again', 'a', 'Done.');
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), 'and again\n');
  expectValid(place.server);
  terminal.press(CONTROL_D);
  assert.equal(await terminal.ended, 0);
});

test('a retry wait ends with Enter on an empty line, or with Ctrl-C', async (context) => {
  const waiting = { ...overloaded, headers: { 'retry-after': '50' } } as ServerReply; // an error with a header is one
  const place = await makeServed(context, [waiting, done, waiting, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('go\r');
  await terminal.sees('(Enter: now)');
  terminal.press('\r');
  await terminal.sees('Done.');
  terminal.mark();
  terminal.press('again\r');
  await terminal.sees('trying again in');
  terminal.press(CONTROL_C);
  await terminal.sees('stopped ·');
  terminal.press('next\r');
  await terminal.sees('Done.');
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
});
