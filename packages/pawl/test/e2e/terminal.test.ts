import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  ASK_FOCUS,
  ENABLE_TITLE_AND_FOCUS,
  RESTORE_TERMINAL,
  RESTORE_TITLE_AND_FOCUS,
} from '@pawl/terminal/paint';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import type { Replies, ServerReply } from '../../../../test/servers/anthropic.js';
import { until } from '../../../../test/until.js';
import { createHostile } from '../terminal/surfaces/hostile.js';
import { watchTerminal } from '../terminal/surfaces/watched-terminal.js';
import { runInProcess } from './in-process.js';
import { bin, expectCode, expectValid, makePlace, makeServed, uniqueSleep } from './pawl.js';
import { openProgram, openTerminal } from './pty.js';
import { openReady, openWindow } from './window.js';
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
  await terminal.shows(/ready · \?/);
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
    await terminal.sees('queued: wait for it');
    terminal.mark();
    terminal.press(key);
    await terminal.shows(/stopped\n─+\n> wait for it/);
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
  expectCode(await runInProcess(place, ['--continue', '-p', 'go on']), 0);
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

/** Around a session in the terminal: what is refused, what is said at the start, the shell beside it. */

const CONTROL_Z = '\u001a';

test('Ctrl-Z gives the terminal back to the shell; fg goes on with the line as it was', async (context) => {
  const place = await makeServed(context, [done]);
  const terminal = openProgram(context, place, ['bash', '--norc', '--noprofile', '-i'], {
    PS1: 'shell: ',
  });
  terminal.press(`'${process.execPath}' '${bin}'\r`);
  await terminal.sees('ready');
  terminal.press('say he');
  await terminal.sees('> say he');
  terminal.press(CONTROL_Z);
  await terminal.sees('Stopped');
  terminal.press('stty -a\r');
  await terminal.sees(/ icanon .* echo /s);
  terminal.mark();
  terminal.press('fg\r');
  await terminal.sees(/ready · .*> say he/s);
  // A key that is pressed as soon as the frame shows must not meet the shell's modes.
  const again = terminal.raw().slice(terminal.raw().lastIndexOf('fg\r'));
  const [modes, frame] = [again.indexOf('\u001b[>1u'), again.indexOf('say he')];
  assert.ok(0 <= modes && modes < frame, JSON.stringify(again));
  terminal.press('llo\r');
  await terminal.sees('Done.');
  assert.equal(last(place.server.requests[0]?.body)[0]?.text, 'say hello');
  terminal.press(CONTROL_D);
  await terminal.sees('To continue');
  terminal.press('exit\r');
  assert.equal(await terminal.ended, 0);
});

test('the list of sessions to resume from: a wrong number is wrong usage, Ctrl-C is no choice', async (context) => {
  const place = await makeServed(context, [done]);
  expectCode(await runInProcess(place, ['-p', 'one']), 0);
  for (const [keys, code] of [
    ['seven\r', 2],
    [CONTROL_C, 130],
    [CONTROL_D, 2],
  ] as const) {
    const terminal = openTerminal(context, place, ['--resume']);
    await terminal.sees('Which one?');
    terminal.press(keys);
    assert.equal(await terminal.ended, code, terminal.shown());
  }
});

/** The answer `P`: a rule for ever, in the user's own file, until it is revoked. */

const counts = (name: string) => message(call(name, 'bash', { command: `wc ${name}.txt` }));
const FOR_EVER = 'P  always in this folder: wc …';
/** The keys of the question are shown once it takes them. */
const ARMED = 'y a p s P n · ';
const words = ['--sandbox', 'off', '--preset', 'careful'];

const makeHere = async (context: TestContext, replies: Replies, name = 'work') => {
  const place = await makeServed(context, replies);
  const workspace = join(place.folder, name);
  if (workspace !== place.workspace) renameSync(place.workspace, workspace);
  for (const file of ['a', 'b', 'c']) writeFileSync(join(workspace, `${file}.txt`), 'one\n');
  mkdirSync(join(place.home, '.config/pawl'), { recursive: true });
  const file = join(place.home, '.config/pawl/config.toml');
  return { ...place, workspace, file };
};

test('P writes a rule that the next session has, and /permissions revokes it', async (context) => {
  const replies = [counts('a'), counts('b'), done, counts('c'), done, counts('a'), done];
  const place = await makeHere(context, replies, 'a "folder" of\nmine');
  const settings = '# mine\nmax_rounds = 50 # enough\n';
  writeFileSync(place.file, settings);
  const first = await openReady(context, place, { words });
  first.press('count\r');
  await first.sees(FOR_EVER);
  await first.sees(ARMED);
  first.press('P');
  await first.sees(/config\.toml:5: allow = \["wc"\]/);
  await first.sees('Done.');
  first.press('/quit\r');
  assert.equal(await first.ended, 0);
  const written = readFileSync(place.file, 'utf8');
  assert.ok(written.startsWith(settings), written);
  assert.match(
    written,
    /\n\[folder\."[^\n]*a \\"folder\\" of\\nmine"\.rules\]\nallow = \["wc"\]\n$/,
  );

  const next = await openReady(context, place, { words });
  next.press('again\r');
  await next.sees('Done.');
  next.press('/permissions\r');
  await next.sees(/1 {2}allow "wc" \([^)]*config\.toml:5, in this folder\)/);
  next.press('/permissions revoke 1\r');
  await next.sees('asks again for: allow "wc"');
  assert.equal(readFileSync(place.file, 'utf8'), settings);
  next.press('once more\r');
  await next.sees(FOR_EVER);
  await next.sees(ARMED);
  next.press('y');
  await next.sees(/Done\.[\s\S]*Done\./);
  next.press('/quit\r');
  assert.equal(await next.ended, 0);
});

test('a file that can not be changed is named, and the answer holds for the session', async (context) => {
  const place = await makeHere(context, [counts('a'), counts('b'), done]);
  const window = await openReady(context, place, { words });
  window.press('count\r');
  await window.sees(FOR_EVER);
  await window.sees(ARMED);
  writeFileSync(place.file, 'max_rounds = [\n');
  window.press('P');
  await window.sees(/is not changed: it has an[\s\S]*error,[\s\S]*allowed in this\s+session only/);
  await window.sees('Done.');
  assert.equal(readFileSync(place.file, 'utf8'), 'max_rounds = [\n');
  window.press('/permissions\r');
  await window.sees('1  wc …');
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

/** The whole program in a terminal, in a folder whose name, files and sessions are hostile. */

test('a hostile folder, its files, sessions and commands have no effect on the terminal', async (context) => {
  const hostile = createHostile(11);
  const place = makePlace(context, { NO_COLOR: '1' });
  const workspace = join(place.workspace, hostile.name());
  mkdirSync(workspace);
  for (let count = 0; count < 5; count += 1) writeFileSync(join(workspace, hostile.name()), 'x');
  writeFileSync(join(workspace, 'bytes'), hostile.text(20_000));
  const script = join(place.workspace, 'script.json');
  writeFileSync(script, JSON.stringify({ replies: [{ text: hostile.text(2_000) }] }));
  const words = ['--workspace', workspace, '--model', `scripted/${script}`];
  const said = `fix ${hostile.text(200).replaceAll('\0', '')}`;
  expectCode(await runInProcess(place, [...words, '-p', said]), 0);

  const terminal = openTerminal(context, place, [...words, '--resume']);
  await terminal.sees('Which one?');
  terminal.press('1\r');
  await terminal.sees('ready');
  terminal.press('@n');
  await terminal.sees('› n');
  terminal.press('\u0015');
  terminal.press('!cat bytes\r');
  await terminal.sees('the model gets it with your next message');
  terminal.press('\u0016');
  await terminal.sees("Can't paste a picture");
  terminal.press('\u0004');
  await terminal.ended;

  const watched = watchTerminal(true);
  const own = [RESTORE_TERMINAL, ASK_FOCUS, ENABLE_TITLE_AND_FOCUS, RESTORE_TITLE_AND_FOCUS];
  const others = own.reduce<string>((raw, text) => raw.replaceAll(text, ''), terminal.raw());
  // Pawl's own titles: the folder's name is in them, without any control character.
  const title = /\u001b\]2;[^\u0000-\u001f\u007f-\u009f]* · pawl\u0007/g;
  assert.match(others, title);
  watched.write(others.replaceAll(title, ''));
  assert.deepEqual(await watched.faults(), []);
});

/** `pawl -p` whose stderr is a terminal: one line a call, while it works. */

const watch = async (context: TestContext, flags: string, environment: NodeJS.ProcessEnv = {}) => {
  const replies = [
    message(
      call('a', 'bash', { command: 'until [ -e go ]; do sleep 0.02; done; echo made' }),
      call('b', 'bash', { command: 'exit 3' }),
    ),
    message(call('c', 'bash', { command: 'true', needs: 'network' })),
    done,
  ];
  const place = await makeServed(context, [message(call('z', 'list', { path: '.' })), ...replies]);
  const program = `${process.execPath} ${bin} -p go --on-ask deny ${flags} >out.txt`;
  const window = openWindow(context, place, { program: ['/bin/sh', '-c', program], environment });
  return { place, window };
};

const LINES = [
  /^✓ list \. \d/m,
  /^✓ bash until .*echo made \d+(\.\d)?s$/m,
  /^✗ bash exit 3 failed \d/m,
  /^✗ bash true · denied by policy: /m,
  /^session \S+ · .* tokens · \S+ · 1 call denied$/m,
];

for (const [title, flags, environment] of [
  ['in colour', '', {}],
  ['with --plain', '--plain', {}],
  ['with NO_COLOR', '', { NO_COLOR: '1' }],
] as const)
  test(`a terminal on stderr shows each call when it ends, ${title}; stdout has the answer alone`, async (context) => {
    const { place, window } = await watch(context, flags, environment);
    // The first call is shown while the second one runs.
    await window.sees(LINES[0] ?? '');
    writeFileSync(path.join(place.workspace, 'go'), '');
    assert.equal(await window.ended, 0);
    for (const line of LINES) await window.sees(line);
    const shown = await window.text();
    assert.equal(shown.match(/^[✓✗] /gm)?.length, 4);
    assert.equal(window.raw().includes('\x1b['), title === 'in colour');
    assert.equal(readFileSync(path.join(place.workspace, 'out.txt'), 'utf8'), 'Done.\n');
  });
