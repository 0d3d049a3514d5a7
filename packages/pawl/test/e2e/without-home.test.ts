import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bin, makePlace, start } from './pawl.js';

/** A user id without an entry in /etc/passwd, and without HOME: containers with `--user`. */

const UID = '54321';

const run = (
  context: Parameters<typeof makePlace>[0],
  words: readonly string[],
  variables: readonly string[],
) => {
  const place = makePlace(context);
  const script = join(place.workspace, 'script.json');
  writeFileSync(script, JSON.stringify({ replies: [{ text: 'It works.' }] }));
  const named = variables.map((name) => `${name}=${join(place.folder, name)}`);
  const account = [
    '--unshare-user',
    '--uid',
    UID,
    '--gid',
    UID,
    '--bind',
    '/',
    '/',
    '--dev-bind',
    '/dev',
    '/dev',
  ];
  const environment = ['env', '-i', `PATH=${process.env.PATH}`, `TMPDIR=${place.folder}`, ...named];
  return start(place, 'bwrap', [...account, '--', ...environment, process.execPath, bin, ...words])
    .ended;
};

const PROMPT = ['-p', 'hello', '--model', 'scripted/script.json'];
const ENOUGH = ['XDG_STATE_HOME', 'XDG_CONFIG_HOME'];

for (const words of [PROMPT, ['doctor'], ['sessions']]) {
  test(`without an account and HOME, "${words[0]}" ends with 74 and names the variable to set`, async (context) => {
    const { code, stdout, stderr } = await run(context, words, ['XDG_STATE_HOME']);
    assert.deepEqual({ code, stdout }, { code: 74, stdout: '' }, stderr);
    assert.match(
      stderr,
      /^pawl: There is no home folder: .* 54321 .*Set HOME to a folder of yours, or XDG_CONFIG_HOME\.\n$/,
    );
  });
}

test('without an account and HOME a prompt is answered where the XDG variables say enough', async (context) => {
  const { code, stdout, stderr } = await run(context, PROMPT, ENOUGH);
  assert.deepEqual({ code, stdout }, { code: 0, stdout: 'It works.\n' }, stderr);
});

test('without an account and HOME doctor checks everything where the XDG variables say enough', async (context) => {
  const { code, stdout, stderr } = await run(context, ['doctor'], ENOUGH);
  assert.equal(code, 1, `${stdout}${stderr}`); // there is no key
  assert.match(stdout, /noKey/);
  assert.doesNotMatch(stdout, /check itself failed|homeMissing/);
});
