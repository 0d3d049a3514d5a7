import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  type Ended,
  expectCode,
  expectValid,
  makePlace,
  makeServed,
  type Place,
  readRecords,
  sessionOf,
  start,
  startPawl,
} from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, last, message, text } from './wire-words.js';

/** `pawl "prompt"`: a session in the terminal that begins with a prompt; and the short flags. */

test('the first prompt of the command line is shown and sent, and the session goes on', async (context) => {
  const place = await makeServed(context, [done, message(text('Again.'))]);
  const window = openWindow(context, place, { words: ['why does', 'it fail?'] });
  await window.sees(/> why does it fail\?[\s\S]*Done\./);
  window.press('and now?\r');
  await window.sees('Again.');
  assert.match(JSON.stringify(last(place.server.requests[0]?.body)), /"text":"why does it fail\?"/);
  assert.equal(place.server.requests.length, 2);
  expectValid(place.server);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

for (const typed of chooseRows(['!touch made', '/preset auto', '/quit']))
  test(`"${typed}" on the command line is not run: it waits for Enter`, async (context) => {
    const place = await makeServed(context, [done]);
    const window = openWindow(context, place, { words: [typed] });
    await window.sees('A command is not run from the command line. Press Enter to run it.');
    await window.seesLine(new RegExp(`^> ${typed}`));
    assert.equal(existsSync(path.join(place.workspace, 'made')), false);
    window.press('\r');
    if (typed === '/quit') assert.equal(await window.ended, 0);
    else await window.sees(typed === '!touch made' ? /> !touch made/ : 'The preset is now auto');
    assert.equal(place.server.requests.length, 0);
  });

test('-c, -r and -m are --continue, --resume and --model, with a first prompt and with -p', async (context) => {
  const place = await makeServed(context, [done, done, done, done, done]);
  expectCode(await runInProcess(place, ['-p', 'one', '-m', 'anthropic/claude-haiku-4-5']), 0);
  const id = sessionOf(place);
  expectCode(await runInProcess(place, ['-c', '-p', 'two']), 0);
  expectCode(await runInProcess(place, ['-r', id, '-p', 'three']), 0);
  expectCode(await runInProcess(place, ['-cp', 'four']), 0);
  const window = openWindow(context, place, { words: ['-c', 'go on with it'] });
  await window.sees(/> go on with it[\s\S]*Done\./);
  assert.deepEqual(
    place.server.requests.map(({ body }) => [body.model, body.messages.length]),
    [1, 3, 5, 7, 9].map((messages) => ['claude-haiku-4-5', messages]),
  );
});

const wrong: readonly (readonly [words: readonly string[], said: RegExp])[] = [
  [['sesions'], /unknown command 'sesions'\. Did you mean 'sessions'\?/],
  [['sesions', 'delete', 'x'], /Did you mean 'sessions'\?/],
  [['mpc'], /Did you mean 'mcp'\?/],
  [['login'], /export ANTHROPIC_API_KEY=/],
  [['model'], /--model PROVIDER\/NAME .*\/model/],
  [['resume'], /pawl --resume lists/],
  [['help', 'sesions'], /no command and no flag 'sesions'\. pawl help all/],
  [[''], /The prompt is empty/],
  [['  '], /The prompt is empty/],
  [['fix the tests', '--json'], /--json needs -p/],
  [['--resume', 'one'], /There is no terminal/],
  [['how do the tests run?'], /There is no terminal .*: pawl -p "prompt"/],
  [['sesions are lost, why?'], /There is no terminal/],
  [['repair'], /There is no terminal/],
];
for (const [words, said] of wrong)
  test(`pawl ${words.map((word) => `"${word}"`).join(' ')} without a terminal is wrong usage`, async (context) => {
    const place = await makeServed(context, []);
    writeFileSync(path.join(place.workspace, 'a.txt'), '');
    const ended = await runInProcess(place, words);
    expectCode(ended, 2);
    assert.match(ended.stderr, said);
    assert.equal(place.server.requests.length, 0);
  });

test('an effort that the model lacks becomes the next lower one, and that is said', async (context) => {
  const place = await makeServed(context, [done, done]);
  const words = ['-p', 'go', '--effort', 'xhigh'];
  const nearest = await runInProcess(place, [...words, '-m', 'anthropic/claude-sonnet-4-6']);
  expectCode(nearest, 0);
  assert.match(
    nearest.stderr,
    /has no effort xhigh, so it gets high\. It has low, medium, high, max\./,
  );
  const equal = await runInProcess(place, [...words, '-m', 'anthropic/claude-opus-5-5']);
  expectCode(equal, 0);
  assert.equal(equal.stderr, '');
  assert.deepEqual(
    place.server.requests.map(({ body }) => body.output_config?.effort),
    ['high', 'xhigh'],
  );
  const unknown = await runInProcess(place, ['-p', 'go', '--effort', 'ultra']);
  expectCode(unknown, 2);
  assert.match(unknown.stderr, /auto, low, medium, high, xhigh, max, not 'ultra'/);
});

/** What somebody finds who has read nothing. */

const write = (id: string, content: string) =>
  message(call(id, 'write', { path: 'x.txt', content }));

test('help of all, of a command and of a flag goes to stdout', async (context) => {
  const place = await makeServed(context, []);
  for (const [words, then] of [
    [['help'], /^Pawl, [\s\S]*Usage: pawl[\s\S]*First: set .*API_KEY/],
    [['--help'], /^Pawl, [\s\S]*Usage: pawl[\s\S]*--max-usd/],
    [['help', 'all'], /^Usage: pawl[\s\S]*\n {2}bisect/],
    [['help', 'sessions'], /^Usage: pawl sessions/],
    [['sessions', '--help'], /^Usage: pawl sessions/],
    [['help', 'max-usd'], /^--max-usd <amount>\n/],
  ] as const) {
    const help = await runInProcess(place, words);
    expectCode(help, 0);
    assert.match(help.stdout, then);
    assert.equal(help.stderr, '');
  }
});

test('/jobs lists what runs in the background, shows what it said and ends it', async (context) => {
  const start = message(
    call('a', 'bash', { command: 'echo begun; touch begun; sleep 300', background: true }),
  );
  const place = await makeServed(context, [start, done]);
  const window = await openReady(context, place, { words: ['--preset', 'auto'] });
  window.press('/jobs\r');
  await window.sees('Nothing runs in the background.');
  window.press('start it\r');
  await window.sees('Done.');
  window.press('/jobs\r');
  await window.sees(/job-1 {2}running {2}echo begun; touch begun; sleep 300/);
  await until('the job has begun', () => existsSync(path.join(place.workspace, 'begun')));
  window.press('/jobs read 2\r');
  await window.sees(/There is no job-2. There are:\n +job-1 {2}running/);
  window.press('/jobs read 1\r');
  await window.sees(/read 1\n {4}begun\n {2}job-1 {2}running/);
  window.press('/jobs kill 1\r');
  await window.sees(/job-1 {2}ended by /);
  window.press('/jobs read 1\r');
  await window.sees(/read 1\n {4}begun\n {2}job-1 {2}ended by /);
});

test('a new session says which one was the last here; one that goes on keeps no permissions of it', async (context) => {
  const place = await makeServed(context, [write('a', 'hello\n'), done]);
  const first = await openReady(context, place);
  first.press('write it\r');
  await first.sees(/y a (p )?s n · /);
  first.press('s\r');
  await first.sees('Done.');
  first.press('quit\r');
  assert.equal(await first.ended, 0);
  const second = await openReady(context, place);
  await second.sees(/last here: "write it", .* Alt\+R or \/resume/);
  second.press('/resume\r');
  await second.sees('Enter selects');
  second.press('\r');
  await second.sees('Done.');
  second.press('/permissions\r');
  await second.sees(/nothing is allowed beyond|no permissions|Nothing/i);
  const third = await openReady(context, place);
  await third.sees(/another session is open in this folder: "write it" \(process \d+\)/);
});

/** What measuring a day of use found, without a terminal. */

const lastRecord = (stdout: string) => {
  const record = readRecords(stdout).at(-1);
  assert.ok(record?.type === 'result', stdout);
  return record;
};

const forks = (place: Parameters<typeof sessionOf>[0]): number =>
  readdirSync(join(place.state, 'pawl', 'sessions')).filter((name) => name.endsWith('.jsonl'))
    .length;

const unstartable: readonly (readonly [string, NodeJS.ProcessEnv, readonly string[], number])[] = [
  ['without a key', { ANTHROPIC_API_KEY: '' }, ['go on'], 78],
  ['with a bad flag', {}, ['go on', '--max-usd', 'much'], 2],
  ['with an empty prompt', {}, [''], 2],
];

for (const [title, environment, words, code] of unstartable) {
  test(`pawl fork with a prompt ${title} leaves no fork behind`, async (context) => {
    const place = await makeServed(context, [done, done]);
    expectCode(await runInProcess(place, ['-p', 'one']), 0);
    const id = sessionOf(place);
    const poorer = { ...place, environment: { ...place.environment, ...environment } };
    expectCode(await runInProcess(poorer, ['fork', id, '--at', '2', ...words]), code);
    assert.equal(forks(place), 1);
    // control: what can go on does
    expectCode(await runInProcess(place, ['fork', id, '--at', '2', 'go on']), 0);
    assert.equal(forks(place), 2);
  });
}

test('without a terminal a turn has no limit in rounds', async (context) => {
  const looks = Array.from({ length: 104 }, (_, index) =>
    message(call(`a${index}`, 'read', { path: `${index}.txt` })),
  );
  const place = await makeServed(context, [...looks, done]);
  for (let index = 0; index < looks.length; index++)
    writeFileSync(join(place.workspace, `${index}.txt`), `${index}\n`);
  const ended = await runInProcess(place, ['-p', 'look at all', '--json']);
  expectCode(ended, 0);
  assert.equal(place.server.requests.length, 105);
});

test('a turn that goes in circles is stopped all the same', async (context) => {
  const same = Array.from({ length: 40 }, (_, index) =>
    message(call(`a${index}`, 'list', { path: '.' })),
  );
  const place = await makeServed(context, same);
  const ended = await runInProcess(place, ['-p', 'look', '--json']);
  expectCode(ended, 1);
  assert.match(lastRecord(ended.stdout).reason, /^(repeats|sameResults)Limit$/);
  assert.equal(place.server.requests.length, 20);
});

test('a terminal that reports no size gets the usual one', async (context) => {
  const place = makePlace(context, { ANTHROPIC_API_KEY: 'key' });
  const program = ['bash', '-c', `stty cols 0 rows 0; '${process.execPath}' '${bin}'`];
  const window = openWindow(context, place, { program });
  await window.sees(/ready · [\s\S]*claude/);
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

/** Where the prompt comes from. Stdin is a pipe, a file, /dev/null: what a shell makes of it. */

const PAWL = `'${process.execPath}' '${bin}'`;
const NOT_WAITED_FOR =
  /stdin is a pipe without data, so it is ignored\. .*pawl -p "prompt" - .*<\s\/dev\/null\n/;

/** Runs a line of a shell in which `pawl` is the program. */
const shell = (place: Place, line: string): Promise<Ended> =>
  start(place, 'bash', ['-c', `pawl() { ${PAWL} "$@"; }; ${line}`]).ended;

const rows: readonly (readonly [string, string, string])[] = [
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

test('a pipe that delivers and does not end is waited for, and that is told', async (context) => {
  const place = await makeServed(context, [done]);
  const running = startPawl(place, ['-p', 'explain'], null);
  running.child.stdin?.write('one\n');
  await until('it is told', () => running.stderr().includes('still reading stdin'));
  running.child.stdin?.end('two\n');
  expectCode(await running.ended, 0);
  assert.match(JSON.stringify(last(place.server.requests[0]?.body)), /one\\ntwo/);
});

/** What words mean beside a stdin that is piped. */
const wordRows: readonly (readonly [string, readonly string[], string, string])[] = [
  ['-p without a prompt reads stdin', ['-p'], 'piped\n', 'piped'],
  ['-p - reads stdin', ['-p', '-'], 'piped\n', 'piped'],
  ['- after the prompt adds stdin to it', ['-p', 'explain', '-'], 'piped\n', 'explain\n\npiped'],
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

for (const [flag, word] of [
  ['-p', '--json'],
  ['-p', '--sandbox=off'],
  ['-p', '-V'],
  ['-p', '--worktree'], // of a command
  ['-cp', '--preset=auto'],
] as const) {
  test(`a text '${word}' behind ${flag} is never taken for a flag`, async (context) => {
    const place = await makeServed(context, [done]);
    const ended = await runInProcess(place, [flag, word]);
    expectCode(ended, 2);
    assert.match(
      ended.stderr,
      /could be the prompt or a flag.*\n.*\n.*is the prompt: pawl -c?p -- "/,
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

for (const line of chooseRows([
  'pawl </dev/null',
  'echo hello | pawl',
  'pawl --continue </dev/null',
])) {
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
