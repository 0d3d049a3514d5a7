import assert from 'node:assert/strict';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import { openHistory } from '../../src/interactive/terminal-session.js';
import { makeServed, uniqueSleep } from './pawl.js';
import { openReady } from './window.js';
import { call, done, last, message } from './wire-words.js';

/** Each key, as a real terminal sends it, and what it does. */

const E = '\u001b';
const C = (letter: string): string => String.fromCharCode(letter.toUpperCase().charCodeAt(0) - 64);

/** What is pressed in an empty line, and the line that stands there then. */
const rows: readonly (readonly [title: string, keys: string, line: string])[] = [
  ['letters', 'hello', '> hello'],
  ['wide letters', '日本 é', '> 日本 é'],
  ['Left, Right', `ac${E}[Db${E}[Cd`, '> abcd'],
  ['Home, End', `b${E}[Ha${E}[Fc`, '> abc'],
  ['Ctrl-A, Ctrl-E', `b${C('a')}a${C('e')}c`, '> abc'],
  ['Ctrl-B, Ctrl-F', `ac${C('b')}b${C('f')}d`, '> abcd'],
  ['Alt-B, Alt-F', `one two${E}bx${E}fy`, '> one xtwoy'],
  ['Ctrl-Left, Ctrl-Right', `one two${E}[1;5Dx${E}[1;5Cy`, '> one xtwoy'],
  ['Backspace, Delete', `abcd\u007f${E}[D${E}[3~`, '> ab'],
  ['Ctrl-D in a text deletes', `ab${C('a')}${C('d')}`, '> b'],
  ['Ctrl-H', `ab${C('h')}`, '> a'],
  ['Ctrl-W, Ctrl-Y', `one two${C('w')}${C('y')}${C('y')}`, '> one twotwo'],
  ['Alt-Backspace', `one two${E}\u007f`, '> one'],
  ['Alt-D', `one two${C('a')}${E}d`, '>  two'],
  ['Ctrl-U', `one${C('u')}two`, '> two'],
  ['Ctrl-K', `one${C('a')}${E}[C${C('k')}`, '> o'],
  ['Ctrl-_ undoes', `one two${C('u')}\u001f`, '> one two'],
  ['Ctrl-J', `a${C('j')}b`, '> a\n  b'],
  ['Shift+Enter, as Kitty writes it', `a${E}[13;2ub`, '> a\n  b'],
  ['Shift+Enter, as modifyOtherKeys writes it', `a${E}[27;2;13~b`, '> a\n  b'],
  ['a backslash before Enter', 'a\\\rb', '> a\n  b'],
  ['Up and Down in a text', `a${C('j')}b${E}[Ax${E}[By`, '> ax\n  by'],
  ['a short paste', `${E}[200~a\nb${E}[201~`, '> a\n  b'],
  ['a long paste', `${E}[200~${'x\n'.repeat(20)}${E}[201~!`, '> [paste #1 +21 lines]!'],
  ['letters as Kitty writes them', `${E}[97;1u${E}[65;2u`, '> aA'],
  ['a colour that the terminal tells late', `a${E}]11;rgb:ffff/ffff/ffff${E}\\b`, '> ab'],
  ['sequences that nobody knows', `a${E}[99;9z${E}[?1;2c${E}OZ${E}[Ib`, '> ab'],
  ['a function key', `a${E}[15~b`, '> ab'],
];

test('keys of the line', async (context) => {
  const place = await makeServed(context, []);
  const window = await openReady(context, place);
  for (const [title, keys, line] of rows) {
    await context.test(title, async () => {
      window.press(keys);
      await window.seesLine(line);
      window.press(`${E}[1;5F${'\u007f'.repeat(60)}`);
      await window.seesLine('>');
    });
  }
  window.press(C('d'));
  assert.equal(await window.ended, 0);
});

test('Enter, then Up, Down and Ctrl-R; in the next session of the folder, too', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  const window = await openReady(context, place);
  window.press('first\r');
  await window.sees('Done.');
  window.press('second\r');
  await window.sees(/second[\s\S]*Done\./);
  window.press(`draft${E}[A`);
  await window.seesLine('> second');
  window.press(`${E}[A`);
  await window.seesLine('> first');
  window.press(`${E}[B${E}[B`);
  await window.seesLine('> draft');
  window.press(`${C('u')}${C('d')}`);
  await window.ended;
  const history = openHistory(join(place.state, 'pawl'), realpathSync(place.workspace));
  history.add('x'.repeat(40_000), 'unsent');
  history.add('short');
  const next = await openReady(context, place);
  next.press(`${C('r')}fir`);
  await next.seesLine('> first\n  search: fir');
  next.press('\r');
  await next.sees('Done.');
  assert.equal(last(place.server.requests[2]?.body)[0]?.text, 'first');
  // a text that no journal has, changed and put aside
  next.press(`${E}[A${E}[A${E}[A`);
  await next.seesLine('> [paste #1 40000 characters]');
  next.press(`!${C('c')}`);
  await next.seesLine('>');
  next.press('not sent');
  await next.seesLine('> not sent');
  process.kill(next.pid, 'SIGTERM');
  assert.equal(await next.ended, 143);
  const third = await openReady(context, place);
  third.press(`${E}[A`);
  await third.seesLine('> not sent');
  third.press(`${E}[A`);
  await third.seesLine('> [paste #1 40001 characters]');
});

test('Alt+Enter waits for the end of the turn, Enter for the next results', async (context) => {
  const command = 'until [ -e go ]; do sleep 0.05; done';
  const place = await makeServed(context, [message(call('a', 'bash', { command })), done, done]);
  const window = await openReady(context, place, { words: ['--preset', 'auto'] });
  window.press('go\r');
  await window.sees('running bash');
  window.press(`afterwards${E}\rnow\r`);
  await window.sees(/(?:queued: .*\n){2}/);
  writeFileSync(join(place.workspace, 'go'), '');
  await window.sees(/ready[^\n]*\n─+\n>\n─/);
  await window.sees(/Done\.[\s\S]*Done\./);
  const [, second, third] = place.server.requests.map(({ body }) => JSON.stringify(last(body)));
  assert.match(second ?? '', /tool_result.*now/);
  assert.match(third ?? '', /afterwards/);
});

test('@ completes files, not ignored ones; Tab takes, Escape leaves the list', async (context) => {
  const place = await makeServed(context, [done]);
  mkdirSync(join(place.workspace, 'src'));
  for (const name of ['src/parser.ts', 'src/printer.ts', 'secret.log'])
    writeFileSync(join(place.workspace, name), '');
  writeFileSync(join(place.workspace, '.gitignore'), '*.log\n');
  const window = await openReady(context, place);
  window.press('see @s');
  await window.seesLine('> see @s\n› src/\n  src/parser.ts\n  src/printer.ts');
  window.press(`p${E}[B\t`);
  await window.seesLine(/^> see @src\/p\w+\.ts$/);
  window.press('and @zzz');
  await window.seesLine(/and @zzz$/);
  window.press('\r');
  await window.sees('Done.');
  window.press('@pars');
  await window.seesLine('> @pars\n› src/parser.ts');
  window.press(E);
  await window.seesLine('> @pars');
});

test('!command runs here; the model reads the output with the next message; Escape stops one', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [done]);
  const window = await openReady(context, place);
  // output that comes in pieces is shown in its lines
  window.press('!for i in 4 2; do printf $i; sleep 0.2; done; echo; pwd\r');
  await window.sees(/\n {2}42\n/);
  await window.sees('the model gets it with your next message');
  assert.equal(place.server.requests.length, 0);
  window.press(`!sleep ${mark}\r`);
  await window.sees(`> !sleep ${mark}`);
  await until('it sleeps', () => processesWith(`sleep ${mark}`).length > 0);
  window.press(E);
  await window.sees('stopped after');
  window.press('what was that?\r');
  await window.sees('Done.');
  const sent = String(last(place.server.requests[0]?.body)[0]?.text);
  assert.match(
    sent,
    /^I ran this command myself:\n\$ for .*\n42\n[\s\S]*sleep 313[\s\S]*\nwhat was that\?$/,
  );
});

test('Ctrl-O shows what was folded', async (context) => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n');
  const place = await makeServed(context, [message(call('a', 'read', { path: 'x' })), done]);
  writeFileSync(join(place.workspace, 'x'), lines);
  const window = await openReady(context, place);
  window.press('read\r');
  await window.sees('Done.');
  assert.doesNotMatch(await window.text(), /line 17/);
  window.press(C('o'));
  await window.sees('line 17');
});

test('the window can be made narrower and wider; nothing is lost or twice', async (context) => {
  const place = await makeServed(context, [done]);
  const window = await openReady(context, place);
  window.press('a text that is longer than the narrow window');
  await window.seesLine('> a text that is longer than the narrow window');
  for (const columns of [30, 90, 24, 100]) {
    const before = window.raw().length;
    await window.resize(columns, 20);
    await until('it is drawn again', () => window.raw().length > before);
  }
  await window.seesLine('> a text that is longer than the narrow window');
  const text = await window.text();
  assert.equal(text.match(/longer/g)?.length, 1, text);
  assert.equal(text.match(/ready/g)?.length, 1, text);
});
