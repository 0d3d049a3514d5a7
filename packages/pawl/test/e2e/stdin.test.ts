import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { bin, type Ended, expectCode, makePlace, makeServed, type Place, start } from './pawl.js';
import { done, last } from './wire-words.js';

/** Where the prompt comes from. Stdin is a pipe, a file, /dev/null: what a shell makes of it. */

const PAWL = `'${process.execPath}' '${bin}'`;
const NOT_WAITED_FOR =
  /stdin is a pipe without data, so it is ignored\. .*pawl -p "prompt" - .*<\s\/dev\/null\n/;

/** Runs a line of a shell in which `pawl` is the program. */
const shell = (place: Place, line: string): Promise<Ended> =>
  start(place, 'bash', ['-c', `pawl() { ${PAWL} "$@"; }; ${line}`]).ended;

const rows: readonly (readonly [string, string, string])[] = [
  ['-p without a prompt reads stdin', 'echo piped | pawl -p', 'piped'],
  ['-p - reads stdin', 'echo piped | pawl -p -', 'piped'],
  ['- after the prompt adds stdin to it', 'echo piped | pawl -p explain -', 'explain\n\npiped'],
  ['an empty stdin adds nothing', 'pawl -p explain - </dev/null', 'explain'],
  ['a pipe beside a prompt is added to it', 'echo piped | pawl -p explain', 'explain\n\npiped'],
  ['so is a file', 'pawl -p explain <list.txt', 'explain\n\none\ntwo'],
  [
    'what has begun within a second is read to its end',
    '(echo one; sleep 1.2; echo two) | pawl -p explain',
    'explain\n\none\ntwo',
  ],
  ['a pipe that ends empty adds nothing', ': | pawl -p explain', 'explain'],
  ['/dev/null adds nothing', 'pawl -p explain </dev/null', 'explain'],
  ['neither does a stdin that is closed', 'pawl -p explain <&-', 'explain'],
];

/** Of those that add nothing one is enough. */
const kindOf = ([title, , prompt]: (typeof rows)[number]): string =>
  prompt === 'explain' ? 'nothing' : title;

const prompted = async (context: TestContext, line: string) => {
  const place = await makeServed(context, [done]);
  writeFileSync(join(place.workspace, 'list.txt'), 'one\ntwo\n');
  const ended = await shell(place, line);
  expectCode(ended, 0);
  return {
    ended,
    said: last(place.server.requests[0]?.body).map(({ text }) => String(text).trimEnd()),
  };
};

for (const [title, line, prompt] of chooseRows(rows, kindOf)) {
  test(title, async (context) => {
    const { ended, said } = await prompted(context, line);
    assert.deepEqual(said, [prompt]);
    assert.equal(ended.stderr, '');
  });
}

/** What words mean beside a stdin that is piped. */
const wordRows: readonly (readonly [string, readonly string[], string, string])[] = [
  ['flags may follow', ['-p', 'explain', '-', '--preset', 'plan'], 'piped\n', 'explain\n\npiped'],
  [
    '- before more words stands for stdin, too',
    ['run', '-', 'explain', 'this'],
    'piped\n',
    'explain this\n\npiped',
  ],
  ['a - in the middle is a word', ['run', '3', '-', '2'], '', '3 - 2'],
  ['a prompt may begin with -', ['-p', '- fix it'], '', '- fix it'],
  ['a prompt that looks like a flag goes behind --', ['-p', '--', '--json'], '', '--json'],
  ['words that begin with - go behind -- too', ['run', '--', '--preset=auto'], '', '--preset=auto'],
];

for (const [title, words, input, prompt] of wordRows) {
  test(title, async (context) => {
    const place = await makeServed(context, [done]);
    const ended = await runInProcess(place, words, input);
    expectCode(ended, 0);
    assert.deepEqual(
      last(place.server.requests[0]?.body).map(({ text }) => String(text).trimEnd()),
      [prompt],
    );
    assert.equal(ended.stderr, '');
  });
}

test('a pipe that never ends, as scripts and CI hand it down, holds nothing up', async (context) => {
  const { ended, said } = await prompted(context, 'mkfifo pipe && pawl -p explain 3<>pipe <&3');
  assert.deepEqual(said, ['explain']);
  assert.match(ended.stderr, NOT_WAITED_FOR);
});

for (const word of ['--json', '--preset=auto', '--sandbox=off', '-V']) {
  test(`a text '${word}' behind -p is never taken for a flag`, async (context) => {
    const place = await makeServed(context, [done]);
    const ended = await runInProcess(place, ['-p', word]);
    expectCode(ended, 2);
    assert.match(
      ended.stderr,
      /could be the prompt or a flag.*\n.*\n.*is the prompt: pawl -p -- "/,
    );
    assert.equal(place.server.requests.length, 0);
  });
}

test('a loop that reads its list from stdin keeps it by giving its program /dev/null', async (context) => {
  const place = await makeServed(context, [done, done]);
  const ended = await shell(
    place,
    'while read -r word; do pawl -p "look at $word" </dev/null; done < <(echo one; echo two)',
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

test('input far too large for a prompt is refused with advice, and not held in memory', async (context) => {
  const place = await makeServed(context, [done]);
  const ended = await shell(place, "head -c 60000000 /dev/zero | tr '\\0' x | pawl -p -");
  expectCode(ended, 2);
  assert.match(
    ended.stderr,
    /too large for a prompt: at most 20 million characters\. Write it to a file/,
  );
  assert.equal(place.server.requests.length, 0);
});
