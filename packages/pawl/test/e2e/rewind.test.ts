import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ServerReply } from '../../../../test/servers/anthropic.js';
import { until } from '../../../../test/until.js';
import { plantCheckpoint } from './forged-journal.js';
import { makeServed, sessionOf, uniqueSleep } from './pawl.js';
import { openWindow, type WindowOptions } from './window.js';
import { call, message, text } from './wire-words.js';

/** Turns are taken back in a real terminal, with their files. */

const E = '\u001b';
const READY = /ready[^\n]*\n─+\n>[^\n]*\n/;
const AUTO = ['--preset', 'auto', '--sandbox', 'off'] as const;

const DURING = ', changed while commands ran (some may be yours)';
/** The text, wherever a window breaks its lines. */
const wrapped = (text: string): RegExp =>
  new RegExp(text.replace(/[.*()/]/g, '\\$&').replaceAll(' ', '\\s+'));

const bash = (id: string, command: string): ServerReply => message(call(id, 'bash', { command }));

const openPlace = async (
  context: TestContext,
  replies: readonly ServerReply[],
  options: WindowOptions = {},
) => {
  const place = await makeServed(context, replies);
  const file = (name: string): string | null => {
    const path = join(place.workspace, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : null;
  };
  for (const name of ['a.txt', 'precious.txt']) writeFileSync(join(place.workspace, name), name);
  const words = [...AUTO, ...(options.words ?? [])];
  const window = openWindow(context, place, { ...options, words });
  await window.sees(/ready|lists the commands/);
  const say = async (prompt: string, answer: string): Promise<void> => {
    window.press(`${prompt}\r`);
    await window.sees(answer);
    await window.sees(READY);
  };
  /** Four keys. An Enter right after Escape would be Alt+Enter. */
  const takeBack = async (): Promise<void> => {
    const lists = (await window.text()).split('Take back this').length;
    window.press(`${E}${E}`);
    await window.sees(/Take back this and everything since:/);
    assert.equal((await window.text()).split('Take back this').length, lists + 1);
    window.press('\r');
  };
  return { place, window, file, say, takeBack };
};

test('three wrong turns are taken back with three keys each, and come again with /redo', async (context) => {
  const { window, file, say, place, takeBack } = await openPlace(context, [
    bash('1', 'rm precious.txt'),
    message(text('Removed one.')),
    message(call('2', 'write', { path: 'new.txt', content: 'new\n' })),
    message(text('Written two.')),
    bash('3', 'echo changed > a.txt'),
    message(text('Changed three.')),
    message(text('What now?')),
  ]);
  await say('clean up', 'Removed one.');
  await say('write it', 'Written two.');
  await say('change it', 'Changed three.');
  assert.equal(file('a.txt'), 'changed\n');
  for (const [prompt, name, content] of [
    ['change it', 'a.txt', 'a.txt'],
    ['write it', 'new.txt', null],
    ['clean up', 'precious.txt', 'precious.txt'],
  ] as const) {
    await takeBack();
    await window.seesLine(`> ${prompt}`);
    assert.equal(file(name), content);
  }
  const shown = await window.text();
  assert.match(
    shown,
    wrapped(`· taken back: 4 messages; a.txt as before${DURING} · forward again: /redo`),
  );
  assert.match(shown, wrapped(`· taken back: 4 messages; new.txt removed · forward again: /redo`));
  assert.match(
    shown,
    wrapped(`· taken back: 4 messages; precious.txt is back${DURING} · forward again: /redo`),
  );
  assert.match(shown, /Removed one\.[\s\S]*Changed three\./);
  for (const [name, content, words] of [
    ['precious.txt', null, 'precious.txt removed'],
    ['new.txt', 'new\n', 'new.txt is back'],
    ['a.txt', 'changed\n', 'a.txt changed again'],
  ] as const) {
    window.press(`\u0015/redo\r`);
    // the file is there before the session is ready again, and the screen of before says ready, too
    await window.sees(`· done again: 4 messages; ${words}`);
    await window.sees(READY);
    assert.equal(file(name), content);
  }
  window.press('/redo\r');
  await window.sees('There is nothing to go forward to');
  await say('well', 'What now?');
  assert.equal(place.server.requests.at(-1)?.body.messages.length, 13);
  window.press('/diff session\r');
  await window.sees('/rewind has taken changes back');
});

test('the list says what each turn has done; files and conversation can be taken back alone', async (context) => {
  const { window, file, say } = await openPlace(context, [
    bash('1', 'rm precious.txt'),
    message(text('Removed.')),
  ]);
  await say('clean up', 'Removed.');
  window.press('/rewind\r');
  await window.sees(/› \d\d:\d\d clean up +precious\.txt deleted while rm precious\.txt ran/);
  await window.sees(/│ {9}bash rm precious\.txt +precious\.txt deleted/);
  window.press('\t');
  await window.sees('Take back "clean up":');
  await window.sees(/› both +4 messages; precious\.txt is back/);
  await window.sees(/ {2}conversation +4 messages; files stay as they are/);
  await window.sees(/ {2}files +precious\.txt is back, changed while commands ran/);
  window.press(`${E}[B${E}[B\r`);
  await window.sees(wrapped(`· taken back: precious.txt is back${DURING}; the conversation stays`));
  assert.equal(file('precious.txt'), 'precious.txt');
  await window.seesLine('>');
  window.press('/redo\r');
  await window.sees('· done again: precious.txt removed');
  window.press(`${E}${E}`);
  await window.sees(/› \d\d:\d\d clean up/);
  window.press('\t');
  await window.sees('› both');
  window.press(`${E}[B\r`);
  await window.seesLine('> clean up');
  assert.equal(file('precious.txt'), null);
  await window.sees('· taken back: 4 messages; files stay as they are · forward again: /redo');
});

test('the answers name a branch that would go back, and one of them takes it back', async (context) => {
  const { window, say, place } = await openPlace(context, [
    bash('1', 'git commit -qam "By the agent"'),
    message(text('Committed.')),
  ]);
  const git = (...words: readonly string[]): string =>
    execFileSync('git', words, { cwd: place.workspace, env: place.environment, encoding: 'utf8' });
  git('init', '-q', '-b', 'main');
  for (const [name, value] of [
    ['user.name', 'Ada'],
    ['user.email', 'a@b.c'],
  ] as const)
    git('config', name, value);
  git('add', '.');
  git('commit', '-qm', 'first');
  const first = git('rev-parse', 'main');
  writeFileSync(join(place.workspace, 'a.txt'), 'dirty');
  await say('commit it', 'Committed.');
  assert.notEqual(git('rev-parse', 'main'), first);
  window.press(`${E}${E}`);
  await window.sees('Take back this and everything since:');
  window.press('\t');
  await window.sees(/ {2}both, refs +in git too: .*branch main is at/);
  window.press(`${E}[B\r`);
  await window.sees('taken back: 4 messages');
  await until('the branch is back', () => git('rev-parse', 'main') === first);
  assert.equal(readFileSync(join(place.workspace, 'a.txt'), 'utf8'), 'dirty');
});

test('a file that somebody else changed is left and said, and taken by force once it is saved', async (context) => {
  const { window, file, say, place, takeBack } = await openPlace(context, [
    bash('1', 'echo agent > a.txt; rm precious.txt'),
    message(text('Changed.')),
  ]);
  await say('do it', 'Changed.');
  await new Promise((resolve) => setTimeout(resolve, 50));
  writeFileSync(join(place.workspace, 'a.txt'), 'mine\n');
  await takeBack();
  await window.seesLine('> do it');
  await window.sees(
    wrapped(`taken back: 4 messages; precious.txt is back${DURING} · left as it is: a.txt (`),
  );
  assert.equal(file('a.txt'), 'mine\n');
  assert.equal(file('precious.txt'), 'precious.txt');
});

test('while a turn runs nothing is taken back; what a command of the user has changed is theirs', async (context) => {
  const sleep = `sleep ${uniqueSleep(context)}`;
  const { window, file, say, place } = await openPlace(context, [
    message(text('Hello.')),
    bash('1', sleep),
  ]);
  await say('hi', 'Hello.');
  window.press('!rm precious.txt\r');
  await window.sees('the model gets it with your next message');
  assert.equal(file('precious.txt'), null);
  window.press('wait\r');
  await window.sees(`▸ bash ${sleep}`);
  window.press('/rewind\r');
  await window.sees('A turn is running. Stop it with Escape, then try again.');
  window.press('/redo\r');
  window.press(E);
  await window.sees('stopped');
  window.press(`${E}${E}`);
  await window.sees(/› \d\d:\d\d .*wait\n/);
  window.press(`${E}[B\t`);
  await window.sees('Take back "hi":');
  await window.sees(/› conversation +5 messages; files stay as they are/);
  window.press('\r');
  await window.seesLine('> hi');
  assert.equal(file('precious.txt'), null);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  assert.match(readFileSync(journal, 'utf8'), /"CheckpointTaken"[^\n]*"by":"user"/);
});

test('--plain: the list has numbers, and a number takes back', async (context) => {
  const { window, file } = await openPlace(
    context,
    [bash('1', 'rm precious.txt'), message(text('Removed.'))],
    { words: ['--plain'] },
  );
  window.press('clean up\r');
  await window.sees('Removed.');
  window.press('/rewind\r');
  await window.sees(/\n {2}(\d+) {2}clean up · precious\.txt deleted while rm precious\.txt ran\n/);
  const seq = /\n {2}(\d+) {2}clean up/.exec(await window.text())?.[1];
  window.press(`/rewind ${seq}\r`);
  await window.sees(
    wrapped(`note: taken back: 4 messages; precious.txt is back${DURING} · forward again: /redo`),
  );
  await window.sees('note: you wrote: clean up');
  assert.equal(file('precious.txt'), 'precious.txt');
  window.press('/redo\r');
  await window.sees('note: done again: 4 messages; precious.txt removed');
  assert.equal(file('precious.txt'), null);
});

test('a summary is taken back, comes again, and is made anew with a wish', async (context) => {
  const { window, say, place } = await openPlace(context, [
    message(text('First answer.')),
    message(text('Second answer.')),
    message(text('SUMMARY ONE')),
    message(text('SUMMARY TWO')),
    message(text('Third answer.')),
  ]);
  await say('one', 'First answer.');
  await say('two', 'Second answer.');
  window.press('/compact undo\r');
  await window.sees('There is no summary to take back');
  window.press('/compact\r');
  await window.sees('SUMMARY ONE');
  window.press('/compact undo\r');
  await window.sees(/taken back: a summary, its messages are back.* · forward again: \/redo/);
  window.press('/export talk.md\r');
  await window.sees(/4 messages in \S*talk\.md/);
  window.press('/export --force\r');
  await window.sees('/export --force FILE');
  window.press('/redo\r');
  await window.sees('done again: a summary');
  window.press('/compact redo keep the ports\r');
  await window.sees('SUMMARY TWO');
  assert.match(JSON.stringify(place.server.requests.at(-1)?.body), /keep the ports/);
  assert.match(JSON.stringify(place.server.requests.at(-1)?.body), /First answer/);
  await say('three', 'Third answer.');
  const sent = JSON.stringify(place.server.requests.at(-1)?.body.messages);
  assert.match(sent, /SUMMARY TWO[\s\S]*three/);
  assert.doesNotMatch(sent, /SUMMARY ONE/);
});

test('/rewind of a session from elsewhere leaves protected files, and names them', async (context) => {
  const place = await makeServed(context, []);
  const id = await plantCheckpoint(join(place.state, 'pawl'), place.workspace, [
    '.envrc',
    'ok.txt',
  ]);
  const window = openWindow(context, place, { words: ['--resume', id] });
  await window.sees(/was not created here/);
  window.press('/rewind\r');
  await window.sees(/\.envrc deleted \(stays as it is/);
  window.press(E);
  await window.sees(READY);
  window.press('/rewind 0 force\r');
  await window.sees(/ok\.txt is back · left as it is: \.envrc \(other programs obey it/);
  assert.deepEqual(readdirSync(place.workspace), ['ok.txt']);
});
