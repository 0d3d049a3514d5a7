import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bin, type Ended, expectCode, makePlace, makeServed, type Place, start } from './pawl.js';
import { done, last } from './wire-words.js';

/** Where the prompt comes from. Stdin is a pipe, a file, /dev/null: what a shell makes of it. */

const PAWL = `'${process.execPath}' '${bin}'`;
const NOT_READ = /stdin is not read; .*pawl -p "prompt" -\n/;

/** Runs a line of a shell in which `pawl` is the program. */
const shell = (place: Place, line: string): Promise<Ended> =>
  start(place, 'bash', ['-c', `pawl() { ${PAWL} "$@"; }; ${line}`]).ended;

const rows: readonly (readonly [string, string, string, boolean])[] = [
  ['-p without a prompt reads stdin', 'echo piped | pawl -p', 'piped', false],
  ['-p - reads stdin', 'echo piped | pawl -p -', 'piped', false],
  ['- after the prompt adds stdin to it', 'echo piped | pawl -p explain -', 'explain\n\npiped', false],
  ['flags may follow', 'echo piped | pawl -p explain - --preset plan', 'explain\n\npiped', false],
  [
    '- before more words stands for stdin, too',
    'echo piped | pawl run - explain this',
    'explain this\n\npiped',
    false,
  ],
  ['a - in the middle is a word', 'pawl run 3 - 2 </dev/null', '3 - 2', false],
  ['an empty stdin adds nothing', 'pawl -p explain - </dev/null', 'explain', false],
  ['a pipe beside a prompt is left alone, and that is said', 'echo piped | pawl -p explain', 'explain', true],
  ['so is a file', 'pawl -p explain <list.txt', 'explain', true],
  ['of an empty file or /dev/null nothing is said', 'pawl -p explain </dev/null', 'explain', false],
  ['neither of a stdin that is closed', 'pawl -p explain <&-', 'explain', false],
];

const prompted = async (context: TestContext, line: string) => {
  const place = await makeServed(context, [done]);
  writeFileSync(join(place.workspace, 'list.txt'), 'one\ntwo\n');
  const ended = await shell(place, line);
  expectCode(ended, 0);
  return { ended, said: last(place.server.requests[0]?.body).map(({ text }) => String(text).trimEnd()) };
};

for (const [title, line, prompt, noted] of rows) {
  test(title, async (context) => {
    const { ended, said } = await prompted(context, line);
    assert.deepEqual(said, [prompt]);
    if (noted) assert.match(ended.stderr, NOT_READ);
    else assert.equal(ended.stderr, '');
  });
}

test('a pipe that never ends, as scripts and CI hand it down, holds nothing up', async (context) => {
  const { ended, said } = await prompted(context, 'mkfifo pipe && pawl -p explain 3<>pipe <&3');
  assert.deepEqual(said, ['explain']);
  assert.match(ended.stderr, NOT_READ);
});

test('a loop that reads its list from stdin keeps it', async (context) => {
  const place = await makeServed(context, [done, done]);
  const ended = await shell(
    place,
    'while read -r word; do pawl -p "look at $word"; done < <(echo one; echo two)',
  );
  expectCode(ended, 0);
  assert.deepEqual(
    place.server.requests.map(({ body }) => last(body)[0]?.text),
    ['look at one', 'look at two'],
  );
});

for (const line of ['pawl </dev/null', 'echo hello | pawl', 'pawl --continue </dev/null']) {
  test(`'${line}' has no terminal, and says what to do instead: exit 2`, async (context) => {
    const ended = await shell(makePlace(context, { ANTHROPIC_API_KEY: 'key' }), line);
    expectCode(ended, 2);
    assert.match(ended.stderr, /no terminal.*pawl -p "prompt"/);
    assert.equal(ended.stdout, '');
  });
}
