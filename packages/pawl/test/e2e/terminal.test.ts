import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
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
const write = message(text('I write.'), call('a', 'write', { path: 'x.txt', content: 'hello\n' }));

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

for (const environment of [{ TERM: 'dumb' }, { PAWL_PLAIN: '1' }]) {
  test(`with ${JSON.stringify(environment)} no escape is written`, async (context) => {
    const place = await makeServed(context, [message(text('Hello, world.'))]);
    const terminal = openTerminal(context, place, [], environment);
    await terminal.sees('/help');
    terminal.press('say hello\r');
    await terminal.sees('Hello, world.');
    terminal.press('/quit\r');
    assert.equal(await terminal.ended, 0);
    assert.ok(!terminal.raw().includes(ESCAPE), JSON.stringify(terminal.raw()));
  });
}

test('a change needs an answer: yes runs it and shows the diff', async (context) => {
  const place = await makeServed(context, [write, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('write it\r');
  await terminal.sees(/y a (p )?s n · /);
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  terminal.press('y\r');
  await terminal.sees('Done.');
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), 'hello\n');
  assert.match(terminal.shown(), /1 \+ hello/);
  terminal.press(CONTROL_D);
  assert.equal(await terminal.ended, 0);
});

test('a no with a reason reaches the model', async (context) => {
  const place = await makeServed(context, [write, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('write it\r');
  await terminal.sees(/y a (p )?s n · /);
  terminal.press('n use another name\r');
  await terminal.sees('✗ write x.txt · refused by user: use another name');
  await terminal.sees('Done.');
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /use another name/);
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
});

test('"always" answers the same call once and for all', async (context) => {
  const again = message(call('b', 'write', { path: 'x.txt', content: 'again\n' }));
  const place = await makeServed(context, [write, again, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('write it\r');
  await terminal.sees(/y a (p )?s n · /);
  terminal.press('a\r');
  await terminal.sees('Done.');
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), 'again\n');
  terminal.press(CONTROL_D);
  await terminal.ended;
});

test('keys typed before the question stood there do not answer it', async (context) => {
  const place = await makeServed(context, [write, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('write it\ry'); // one write: the y is read before the reply can come
  await terminal.sees(/y a (p )?s n · /);
  assert.ok(!existsSync(join(place.workspace, 'x.txt')), 'the early y must not allow it');
  terminal.press('n\r');
  await terminal.sees('Done.');
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  await terminal.shows(/ready · [^>]*> y/);
  terminal.press(`${CONTROL_C}${CONTROL_D}`);
  assert.equal(await terminal.ended, 0);
});

test('text typed during a turn is sent with the next results', async (context) => {
  const command = 'until [ -e go ]; do sleep 0.02; done';
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done]);
  const terminal = openTerminal(context, place, ['--preset', 'auto']);
  await terminal.sees('ready');
  terminal.press('read it\r');
  await terminal.sees('running bash');
  terminal.press('and be brief\r');
  await terminal.sees('1 queued');
  writeFileSync(join(place.workspace, 'go'), '');
  await terminal.sees('Done.');
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /tool_result.*and be brief/);
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
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

test('Ctrl-C during a command leaves no process; the next prompt works', async (context) => {
  const mark = uniqueSleep(context);
  const command = `(sleep ${mark} & sleep ${mark}) & sleep ${mark}`;
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done]);
  const terminal = openTerminal(context, place, ['--preset', 'auto']);
  await terminal.sees('ready');
  terminal.press('run\r');
  const sleeps = (line: string): boolean => line === `sleep ${mark}`;
  await until('the family', () => processesWith(mark).filter(sleeps).length === 3);
  terminal.press(CONTROL_C);
  await terminal.sees('stopped ·');
  await until('nothing of it runs', () => processesWith(`sleep ${mark}`).length === 0);
  terminal.press('next\r');
  await terminal.sees('Done.');
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
});

test('Enter on an empty line ends a retry wait', async (context) => {
  const waiting = { ...overloaded, headers: { 'retry-after': '50' } } as ServerReply; // an error with a header is one
  const place = await makeServed(context, [waiting, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('go\r');
  await terminal.sees('(Enter: now)');
  terminal.press('\r');
  await terminal.sees('Done.');
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
});

test('Ctrl-C during a retry wait cancels; the next prompt works', async (context) => {
  const waiting = { ...overloaded, headers: { 'retry-after': '50' } } as ServerReply; // an error with a header is one
  const place = await makeServed(context, [waiting, done]);
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('go\r');
  await terminal.sees('trying again in');
  terminal.press(CONTROL_C);
  await terminal.sees('stopped ·');
  terminal.press('next\r');
  await terminal.sees('Done.');
  expectValid(place.server);
  terminal.press(CONTROL_D);
  await terminal.ended;
});

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

test('--continue shows the last messages and goes on', async (context) => {
  const place = await makeServed(context, [message(text('I am Pawl.')), done]);
  expectCode(await runPawl(place, ['-p', 'who are you?']), 0);
  const terminal = openTerminal(context, place, ['--continue']);
  await terminal.sees('I am Pawl.');
  terminal.press('go on\r');
  await terminal.sees('Done.');
  assert.equal(place.server.requests[1]?.body.messages.length, 3);
  terminal.press('/quit\r');
  assert.equal(await terminal.ended, 0);
});
