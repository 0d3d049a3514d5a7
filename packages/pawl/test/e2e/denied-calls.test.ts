import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path, { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords, sessionOf } from './pawl.js';
import { call, done, message } from './wire-words.js';

// A call that was denied since nobody could approve it ends `pawl -p` with 77, in every preset that asks about it.

type Input = Readonly<Record<string, unknown>>;
const bash = (command: string, more: Input = {}): readonly [string, Input] => [
  'bash',
  { command, ...more },
];
const write = (file: string): readonly [string, Input] => ['write', { path: file, content: 'x' }];

/** 0: allowed, or denied by the preset or the user and not for lack of a user. */
type Codes = {
  readonly plan: 0 | 77;
  readonly careful: 0 | 77;
  readonly auto: 0 | 77;
  readonly ci: 0 | 77;
};

const NOBODY: Codes = { plan: 77, careful: 77, auto: 77, ci: 0 };
const LEAVES: Codes = { plan: 0, careful: 77, auto: 77, ci: 0 };
const rows: readonly (readonly [kind: string, call: readonly [string, Input], codes: Codes])[] = [
  ['an edit in the workspace', write('new.txt'), { plan: 0, careful: 77, auto: 0, ci: 0 }],
  ['a command for the network', bash('true', { needs: 'network' }), LEAVES],
  ['a git command that destroys work', bash('git reset --hard'), NOBODY],
  [
    'a command that loses a file that is too large to be kept',
    bash('echo x > large.bin'),
    { plan: 0, careful: 77, auto: 0, ci: 0 },
  ],
  ['a command that a rule denies', bash('git push'), { plan: 0, careful: 0, auto: 0, ci: 0 }],
  ['a harmless command', bash('true'), { plan: 0, careful: 0, auto: 0, ci: 0 }],
];

const makePlaceWith = async (
  context: TestContext,
  [tool, input]: readonly [string, Input],
  more = {},
  replies = [message(call('a', tool, input)), done],
) => {
  const place = await makeServed(context, replies, more);
  const large = path.join(place.workspace, 'large.bin');
  writeFileSync(large, '');
  truncateSync(large, 21 * 1024 * 1024);
  const folder = path.join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'config.toml'), '[rules]\ndeny = ["git push"]\n');
  return place;
};

const PRESETS = ['plan', 'careful', 'auto', 'ci'] as const;
const all = rows.flatMap((row) => PRESETS.map((preset) => ({ row, preset })));

// What is asked about is for the tests of the policy, and the gate: here are the codes.
for (const { row, preset } of chooseRows(
  all,
  ({ row: [, , codes], preset }) => `${preset} ${codes[preset]}`,
)) {
  const [kind, tried, codes] = row;
  test(`${kind}, with the preset ${preset} and nobody there: exit code ${codes[preset]}`, async (context) => {
    const place = await makePlaceWith(context, tried);
    const ended = await runInProcess(place, ['-p', 'go', '--preset', preset, '--json']);
    expectCode(ended, codes[preset]);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result');
    assert.deepEqual([result.exit, result.ok], [codes[preset], codes[preset] === 0]);
    if (codes[preset] === 77)
      assert.match(result.message, /no user to approve (bash|write|fetch) /);
  });
}

/** A PATH with all that a session needs but bubblewrap. */
const pathWithoutSandbox = (folder: string): string => {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  for (const name of ['bash', 'sh', 'git', 'dd', 'true', 'cat'])
    for (const from of ['/usr/bin', '/bin']) {
      try {
        symlinkSync(realpathSync(path.join(from, name)), path.join(bin, name));
        break;
      } catch {
        // it lies in the other folder
      }
    }
  return bin;
};

const unfenced = [
  ['--preset', 'plan'],
  ['--preset', 'careful'],
  ['--preset', 'auto'],
  ['--preset', 'ci'],
  ['--preset', 'careful', '--on-ask', 'deny'],
];
for (const words of chooseRows(unfenced, (one) => String(one.length)))
  test(`commands that are denied for lack of a sandbox end with 77: ${words.join(' ')}`, async (context) => {
    const place = await makePlaceWith(context, bash('true'));
    place.environment.PATH = pathWithoutSandbox(place.folder);
    const ended = await runInProcess(place, ['-p', 'go', ...words]);
    expectCode(ended, 77);
    assert.match(
      ended.stderr,
      /^pawl: No sandbox works here, so commands were denied: bash true\.$/m,
    );
    assert.match(ended.stderr, /pawl doctor says why.*--sandbox off runs commands without one/);
    assert.match(
      ended.stderr,
      /bwrap\) is not installed\. So commands .*, and each one is denied\. Install/,
    );
    assert.notEqual(ended.stdout, '');
  });

test('the result counts the calls that were denied, whoever denied them', async (context) => {
  const replies = [
    message(call('a', ...bash('git push')), call('b', ...bash('true'))),
    message(call('c', ...bash('true', { needs: 'network' }))),
    done,
  ];
  const place = await makePlaceWith(context, bash('true'), {}, replies);
  const ended = await runInProcess(place, ['-p', 'go', '--on-ask', 'deny', '--json']);
  expectCode(ended, 0);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result');
  assert.equal(result.denied, 2);
  const told = await makePlaceWith(context, bash('true'), {}, replies);
  const shown = await runInProcess(told, ['-p', 'go', '--on-ask', 'deny', '--verbose']);
  assert.match(shown.stderr, /^session .* · 2 calls denied$/m);
  const none = await makePlaceWith(context, bash('true'));
  const quiet = await runInProcess(none, ['-p', 'go', '--verbose']);
  assert.doesNotMatch(quiet.stderr, /denied/);
});

const failing: readonly (readonly [
  title: string,
  call: readonly [string, Input],
  words: readonly string[],
  code: 0 | 77,
])[] = [
  ['a rule', bash('git push'), ['--fail-on', 'denied'], 77],
  ['a rule, without the flag', bash('git push'), [], 0],
  [
    'the preset ci',
    bash('true', { needs: 'network' }),
    ['--fail-on', 'denied', '--preset', 'ci'],
    77,
  ],
  ['nobody', bash('true', { needs: 'network' }), ['--fail-on', 'denied', '--on-ask', 'deny'], 77],
  ['no one', bash('true'), ['--fail-on', ' denied '], 0],
];
for (const [title, tried, words, code] of failing)
  test(`--fail-on denied: a call denied by ${title} ends with ${code}`, async (context) => {
    const place = await makePlaceWith(context, tried);
    const ended = await runInProcess(place, ['-p', 'go', ...words]);
    expectCode(ended, code);
    assert.equal(ended.stdout, 'Done.\n');
    if (code === 77)
      assert.match(ended.stderr, /^pawl: 1 call denied: bash .*\n.*--fail-on denied\.$/m);
    const other = await makePlaceWith(context, tried);
    const records = await runInProcess(other, ['-p', 'go', '--json', ...words]);
    const result = readRecords(records.stdout).at(-1);
    assert.ok(result?.type === 'result');
    assert.deepEqual([result.exit, result.reason], code === 77 ? [77, 'denied'] : [0, 'answer']);
  });

test('--fail-on with an unknown kind, or without -p, is wrong usage: nothing is sent', async (context) => {
  const place = await makePlaceWith(context, bash('true'));
  for (const kinds of ['refused', 'denied,', '', 'denied,refused']) {
    const ended = await runInProcess(place, ['-p', 'go', '--fail-on', kinds]);
    expectCode(ended, 2);
    assert.match(ended.stderr, /--fail-on takes a list of kinds, .*: denied\. There is no kind '/);
  }
  expectCode(await runInProcess(place, ['--fail-on', 'denied']), 2);
  assert.equal(place.server.requests.length, 0);
});

/** Approvals without a terminal, and what may be spent. */

const writes = message(call('a', 'write', { path: 'x.txt', content: 'x' }));
const look = (id: number) => message(call(`look-${id}`, 'read', { path: 'note.txt' }));

test('a call that needs approval is denied, the turn ends: exit 77', async (context) => {
  const place = await makeServed(context, [writes, done]);
  const ended = await runInProcess(place, ['-p', 'write', '--preset', 'careful']);
  expectCode(ended, 77);
  assert.ok(!existsSync(join(place.workspace, 'x.txt')));
  assert.equal(place.server.requests.length, 1);
  assert.match(ended.stderr, /^✗ write x\.txt · denied by policy: the preset careful asks/m);
  assert.match(ended.stderr, /^pawl: There was no user to approve write x\.txt\.$/m);
  for (const way of ['--preset auto', '--on-ask deny', `pawl --resume ${sessionOf(place)}`]) {
    assert.ok(ended.stderr.includes(way), way);
  }
});

test('a call that policy denies is seen, by people and by programs', async (context) => {
  const outside = message(call('a', 'write', { path: '../outside.txt', content: 'x' }));
  const place = await makeServed(context, [outside, done, outside, done]);
  const told = await runInProcess(place, ['-p', 'write']);
  assert.match(
    told.stderr,
    /^✗ write \/\S+\/outside\.txt · denied by policy: the path lies outside the workspace, and nobody is there to be asked\..*\npawl: There was no user to approve write \S+\.\nThe model went on without, .*\nWhat you can do: --on-ask deny accepts that with exit code 0,\nor answer in a terminal: pawl --resume \S+\n$/,
  );
  const { stdout } = await runInProcess(place, ['-p', 'write', '--json']);
  const results = readRecords(stdout).flatMap((record) =>
    record.type === 'toolResult' ? [[record.callId, record.tool, record.status]] : [],
  );
  assert.deepEqual(results, [['a', 'write', 'denied']]);
});

test('with --verbose calls that could not run are told with their reason', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'fly', { to: 'the moon' }), call('b', 'read', { lines: 'x' })),
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'go', '--verbose']);
  expectCode(ended, 0);
  assert.match(ended.stderr, /^✗ fly .*· no such tool: fly; available: read/m);
  assert.match(ended.stderr, /^✗ read .*· the arguments were not valid: /m);
});

/** What the first request could cost is above the limit in dollars, so it is not sent. */
const limits: readonly (readonly [string, readonly string[], number, string, number])[] = [
  ['dollars', ['--max-usd', '0.000001'], 125, 'usdLimit', 0],
  ['tokens', ['--max-tokens', '10'], 125, 'tokensLimit', 1],
  ['rounds', ['--max-rounds', '1'], 126, 'roundsLimit', 1],
];

for (const [title, flags, code, reason, requests] of limits) {
  test(`a limit of ${title} ends the turn: exit ${code}`, async (context) => {
    const place = await makeServed(context, [look(1), look(2), done]);
    writeFileSync(join(place.workspace, 'note.txt'), 'x\n');
    const ended = await runInProcess(place, ['-p', 'look', '--json', ...flags]);
    expectCode(ended, code);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result' && result.reason === reason && !result.ok);
    assert.match(result.message, new RegExp(flags[0] ?? ''), 'it says which flag raises it');
    assert.equal(place.server.requests.length, requests);
    expectValid(place.server);
  });
}

test('a limit of time ends the turn in the middle of a command: exit 124', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'sleep 313.09' })),
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'wait', '--max-minutes', '0.02']);
  expectCode(ended, 124);
  assert.match(ended.stderr, /stopped/);
  assert.match(ended.stderr, /^pawl: Continue with a higher one: .* --max-minutes N/m);
});

test('an answer that --profile tools asks for at the round limit is printed, and the limit gives reason and code', async (context) => {
  const place = await makeServed(context, [look(1), done]);
  const words = ['-p', 'look', '--profile', 'tools', '--max-rounds', '1', '--json'];
  const ended = await runInProcess(place, words);
  expectCode(ended, 126);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.text !== '', ended.stdout);
  assert.deepEqual([result.ok, result.reason], [false, 'roundsLimit']);
});

test('an answer that comes before the round limit is one', async (context) => {
  const place = await makeServed(context, [look(1), done]);
  expectCode(
    await runInProcess(place, ['-p', 'look', '--profile', 'tools', '--max-rounds', '5', '--json']),
    0,
  );
});
