import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { startChatServer } from '../../../../test/servers/chat.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  expectCode,
  expectValid,
  makePlace,
  makeServed,
  type Place,
  sessionOf,
  uniqueSleep,
} from './pawl.js';
import { openWindow, type Window } from './window.js';
import { done, last } from './wire-words.js';

/** Pictures that are pasted: a file dragged into the window, and the clipboard; and models that do not say that they see. */

const [CONTROL_D, CONTROL_U, CONTROL_V, UNDO] = ['\u0004', '\u0015', '\u0016', '\u001f'];
const SHOT = makePng(4);

const paste = (text: string): string => `\u001b[200~${text}\u001b[201~`;

/** A window with a program for the clipboard, a shell script, on its path; null: with none at all. */
const openWith = async (
  context: TestContext,
  place: Place,
  script: string | null,
  words: readonly string[] = [],
): Promise<Window> => {
  const programs = join(place.folder, 'bin');
  mkdirSync(programs);
  writeFileSync(join(place.folder, 'clip.png'), SHOT);
  if (script !== null)
    writeFileSync(join(programs, 'xclip'), `#!/bin/sh\ncd '${place.folder}'\n${script}\n`, {
      mode: 0o700,
    });
  const PATH = script === null ? programs : `${programs}:/usr/bin:/bin`;
  const environment = { PATH, DISPLAY: ':7', WAYLAND_DISPLAY: '' };
  const window = openWindow(context, place, { words, environment, columns: 160 }); // the name of the temporary folder is on one line
  await window.sees(words.includes('--plain') ? /help/ : /ready/);
  return window;
};

const leave = async (window: Window): Promise<void> => {
  window.press(CONTROL_D);
  assert.equal(await window.ended, 0);
};

/** What was pasted into the only session of a place. */
const pastedIn = (place: Place): readonly string[] => {
  const folder = join(place.state, 'pawl', 'sessions', sessionOf(place));
  return readdirSync(folder).map((name) => join(folder, name));
};

test('a picture that is dragged into the window is named, and goes along; undo brings back the path', async (context) => {
  const place = await makeServed(context, [done]);
  const file = join(place.home, 'my shot.png');
  writeFileSync(file, SHOT);
  writeFileSync(join(place.workspace, 'here.png'), SHOT);
  const window = openWindow(context, place, { columns: 200 });
  await window.sees(/ready/);
  window.press(`see${paste(`'${file}' `)}`);
  await window.seesLine(`> see @"${file}"`);
  window.press(UNDO);
  await window.seesLine(`> see'${file}'`);
  window.press(UNDO);
  await window.seesLine('> see');
  window.press(paste(`${file.replace(' ', '\\ ')}`));
  await window.seesLine(`> see @"${file}"`);
  window.press(`and${paste(join(place.workspace, 'here.png'))}`);
  await window.seesLine(`> see @"${file}" and @here.png`);
  window.press('please\r');
  await window.sees('Done.');
  window.press(`!open ${paste(file)}`);
  await window.seesLine(`> !open ${file}`);
  window.press(CONTROL_U);
  await leave(window);
  expectValid(place.server);
  assert.deepEqual(
    last(place.server.requests[0]?.body).map(({ type, text }) => text ?? type),
    [`see @"${file}" and @here.png please`, 'image', 'image'],
  );
});

const waysToPaste = [
  ['Ctrl-V', CONTROL_V],
  ['/paste', '/paste\r'],
] as const;
for (const [title, keys] of chooseRows(waysToPaste)) {
  test(`${title} takes the picture from the clipboard: a file of the session that nobody else reads, named in the line, sent to the byte`, async (context) => {
    const place = await makeServed(context, [done]);
    const window = await openWith(context, place, 'exec cat clip.png');
    window.press(keys);
    await window.seesLine(/^> @\S+\/sessions\/\S+\/pasted-[0-9a-f]{12}\.png$/);
    await leaveAfterSending(window);
    expectValid(place.server);
    const [file = '', ...more] = pastedIn(place);
    assert.deepEqual(more, []);
    assert.deepEqual(readFileSync(file), SHOT);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(statSync(join(file, '..')).mode & 0o777, 0o700);
    const [text, image] = last(place.server.requests[0]?.body);
    assert.equal(text?.text, `@${file} what is it?`);
    assert.ok(JSON.stringify(image).includes(SHOT.toString('base64')));
  });
}

const leaveAfterSending = async (window: Window): Promise<void> => {
  window.press('what is it?\r');
  await window.sees('Done.');
  await leave(window);
};

test('a program that hangs holds up no typing; it is ended and said, and the line is what was typed', async (context) => {
  const place = await makeServed(context, [done]);
  const seconds = uniqueSleep(context);
  const window = await openWith(context, place, `sleep ${seconds}`);
  window.press(CONTROL_V);
  await until('the program', () => processesWith(seconds).length > 0);
  window.press('what is ');
  await window.seesLine('> what is');
  window.press(`${CONTROL_V}it?`);
  await window.sees(/Can't paste a picture: xclip took longer than 3 s and was stopped\./);
  await window.seesLine('> what is it?');
  assert.equal((await window.text()).match(/Can't paste a picture/g)?.length, 1);
  await until('its end', () => processesWith(seconds).length === 0);
  window.press('\r');
  await window.sees('Done.');
  await leave(window);
  assert.equal(last(place.server.requests[0]?.body)[0]?.text, 'what is it?');
});

test('leaving while the clipboard is read leaves no program behind', async (context) => {
  const place = await makeServed(context, []);
  const seconds = uniqueSleep(context);
  const window = await openWith(context, place, `sleep ${seconds}`);
  window.press(CONTROL_V);
  await until('the program', () => processesWith(seconds).length > 0);
  await leave(window);
  await until('its end', () => processesWith(seconds).length === 0);
});

const failures = [
  ['no program is installed', null, /can't be read without xclip, which is not\s+installed/],
  [
    'there is text in the clipboard',
    'echo "Error: no image" >&2; exit 1',
    /xclip finds no picture in the clipboard \(Error: no image\)/,
  ],
] as const;
for (const [title, script, said] of chooseRows(failures)) {
  test(`${title}: a line says so and what to do, and nothing is kept`, async (context) => {
    const place = await makeServed(context, []);
    const window = await openWith(context, place, script);
    window.press(`look ${CONTROL_V}`);
    await window.sees(
      /Can't paste a picture: [\s\S]*Or\s+save\s+it\s+as\s+a\s+file\s+and\s+mention\s+it:\s+@shot\.png/,
    );
    await window.sees(said);
    await window.seesLine('> look');
    window.press(CONTROL_U);
    await leave(window);
    assert.throws(() => pastedIn(place), /ENOENT/);
  });
}

test('in a plain terminal /paste says how the picture is named', async (context) => {
  const place = await makeServed(context, []);
  const window = await openWith(context, place, 'exec cat clip.png', ['--plain']);
  window.press('/paste\r');
  await window.sees(/· the picture is stored: mention it in your text as @\S+/);
  await leave(window);
  assert.equal(pastedIn(place).length, 1);
});

const answer: WireReply = { type: 'message', parts: [{ type: 'text', text: 'seen' }] };

const settings = [
  ['a model of which nobody knows is shown none', [], {}, 0],
  ['--pictures yes: it is shown them', ['--pictures', 'yes'], {}, 1],
  [
    '--pictures auto: what is known decides',
    ['--pictures', 'auto'],
    { architecture: { input_modalities: ['image'] } },
    1,
  ],
  [
    '--pictures no: also one that sees is shown none',
    ['--pictures', 'no'],
    { architecture: { input_modalities: ['image'] } },
    0,
  ],
  [
    '--pictures yes wins over what its server says',
    ['--pictures', 'yes'],
    { architecture: { input_modalities: ['text'] } },
    1,
  ],
] as const;
for (const [title, words, listed, shown] of chooseRows(
  settings,
  ([, [, word]]) => word ?? 'none',
)) {
  test(`${title}; so does the next process that sets it`, async (context) => {
    const server = await startChatServer([answer, answer], {
      listed: [{ id: 'local', ...listed }],
    });
    context.after(() => server.close());
    const place = makePlace(context, { OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1` });
    writeFileSync(join(place.workspace, 'shot.png'), SHOT);
    const ended = await runInProcess(place, [
      ...['-p', 'see @shot.png', '--model', 'openai-compatible/local'],
      ...words,
    ]);
    expectCode(ended, 0);
    const variables = words[1] === undefined ? {} : { PAWL_PICTURES: words[1] };
    const later = { ...place, environment: { ...place.environment, ...variables } };
    expectCode(await runInProcess(later, ['--continue', '-p', 'again']), 0);
    assert.deepEqual(
      server.requests.map(({ text, fault }) => [
        fault,
        text.split(SHOT.toString('base64')).length - 1,
      ]),
      [
        [null, shown],
        [null, shown],
      ],
    );
    const isUnknown = words.length === 0;
    assert.equal(
      /not known to take any\. If it accepts pictures, start with --pictures yes\./.test(
        ended.stderr,
      ),
      isUnknown,
    );
  });
}
