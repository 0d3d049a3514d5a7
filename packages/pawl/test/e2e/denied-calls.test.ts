import assert from 'node:assert/strict';
import { mkdirSync, realpathSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, readRecords } from './pawl.js';
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
  ['a file outside the workspace', write('../outside.txt'), LEAVES],
  ['a protected path', write('.envrc'), LEAVES],
  ['a command for the network', bash('true', { needs: 'network' }), LEAVES],
  ['a command that leaves the sandbox', bash('true', { needs: 'outside' }), LEAVES],
  ['a command that is not clear', bash('$(cat x)'), NOBODY],
  ['a git command that destroys work', bash('git reset --hard'), NOBODY],
  ['the deletion of everything', bash('rm -rf .'), NOBODY],
  [
    'a command that loses a file that can be taken back',
    bash('echo x > notes.txt'),
    { plan: 0, careful: 0, auto: 0, ci: 0 },
  ],
  [
    'a command that loses a file that is too large to be kept',
    bash('echo x > large.bin'),
    { plan: 0, careful: 77, auto: 0, ci: 0 },
  ],
  ['a host that nobody named', ['fetch', { url: 'https://example.invalid/' }], LEAVES],
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
  writeFileSync(path.join(place.workspace, 'notes.txt'), 'untracked\n');
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
    assert.match(ended.stderr, /--sandbox off runs commands without one/);
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
