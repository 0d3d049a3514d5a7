import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';
import { openReady } from './window.js';

/** Skills and commands, from the files to the requests of the real program. */

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

test('a skill is offered and loaded, a command is expanded, a broken skill is named, and a resumed session goes on', async (context) => {
  const load = { type: 'call', id: 'a', name: 'skill', input: { name: 'release' } } as const;
  const again = { ...load, id: 'b' } as const;
  const place = await makeServed(context, [
    { type: 'message', parts: [load] },
    { type: 'message', parts: [{ type: 'text', text: 'Done.' }] },
    { type: 'message', parts: [again] },
    { type: 'message', parts: [{ type: 'text', text: 'It is gone.' }] },
  ]);
  const skills = path.join(place.workspace, '.agents/skills');
  write(
    path.join(skills, 'release/SKILL.md'),
    '---\nname: release\ndescription: How to release\n---\nRun it.',
  );
  write(path.join(skills, 'broken/SKILL.md'), '---\nname: [\n---\n');
  write(
    path.join(place.home, '.config/pawl/commands/git/fix.md'),
    'Fix issue $1. !`touch was-here`',
  );
  const first = await runInProcess(place, ['-p', '/git:fix 12']);
  expectCode(first, 0);
  assert.match(first.stderr, /broken\/SKILL\.md:\d: the skill is not used: the YAML is invalid/);
  const [asked, loaded] = place.server.requests.map(({ body }) => body);
  assert.match(JSON.stringify(asked?.system), /# Skills\\n.*- release: How to release"/);
  assert.match(JSON.stringify(asked?.tools), /"name":"skill".*"enum":\["release"\]/);
  const command =
    '/git:fix 12\\n\\n<command name=\\"git:fix\\">\\nFix issue 12. !`touch was-here`\\n</command>';
  assert.ok(JSON.stringify(asked?.messages).includes(command), JSON.stringify(asked?.messages));
  assert.match(JSON.stringify(loaded?.messages.at(-1)), /<skill name=\\"release\\">.*Run it\./);

  rmSync(skills, { recursive: true });
  const second = await runInProcess(place, ['--continue', '-p', '/nothing']);
  expectCode(second, 0);
  const [third, fourth] = place.server.requests.slice(2).map(({ body }) => body);
  assert.deepEqual(third?.system, asked?.system, 'the instructions of a session never change');
  assert.match(JSON.stringify(third?.messages.at(-1)), /"\/nothing"/);
  assert.match(JSON.stringify(fourth?.messages.at(-1)), /"is_error":true/);
});

test('without skills nothing is said of them', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [{ type: 'text', text: 'Done.' }] },
  ]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const [asked] = place.server.requests;
  assert.doesNotMatch(JSON.stringify(asked?.body), /skill/i);
});

test('in a terminal a command is completed, sent with its text, and shown as it was typed', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [{ type: 'text', text: 'Undone.' }] },
  ]);
  write(
    path.join(place.workspace, '.pawl/commands/git/undo.md'),
    '---\ndescription: Undo work\n---\nUndo $1.',
  );
  const window = await openReady(context, place);
  window.press('/git:');
  await window.sees('Undo work');
  window.press('\t');
  window.press('two\r');
  await window.sees('Undone.');
  const shown = await window.text();
  assert.match(shown, /\/git:undo two/);
  assert.doesNotMatch(shown, /Undo two/, 'the text is for the model');
  const [asked] = place.server.requests;
  assert.match(
    JSON.stringify(asked?.body.messages),
    /\/git:undo two\\n\\n<command name=.*Undo two\./,
  );
  window.press('/nothing\r');
  await window.sees('There is no /nothing');
  assert.equal(place.server.requests.length, 1);
});
