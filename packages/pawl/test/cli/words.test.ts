import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateFolder } from '@pawl/agent/platform/environment';
import { nearestWord } from '@pawl/agent/platform/text';
import {
  detectLook,
  formatCost,
  formatDuration,
  formatSeconds,
  formatSpent,
  formatTokens,
  harmless,
  oneLine,
  paintDiff,
  wrapText,
} from '@pawl/terminal/paint';
import { keepStyles } from '@pawl/terminal/safe-text';
import { readAnswer } from '../../src/interactive/plain-questions.js';
import { readTypedInput } from '../../src/sessions/typed-input.js';
import { readAfterTools, readLimits, readPreset } from '../../src/settings/flags.js';

const answers: readonly (readonly [string, string | null])[] = [
  ['y', 'once'],
  [' YES ', 'once'],
  ['a', 'always'],
  ['p', 'prefix'],
  ['s', 'session'],
  ['n', 'no'],
  ['no, use spaces', 'no use spaces'],
  ['n because\nof that', 'no because\nof that'],
  ['Y', 'once'],
  ['N because', 'no because'],
  ['P', 'folder'],
  ['ALWAYS', 'always'],
  ['A', null], // yes to all questions, which has become one
  ['S', null],
  ['T x', null],
  ['t', null],
  ['e', null],
  ['constructor', null],
  ['', null],
  ['yy', null],
  ['nothing', null],
  ['ok', null],
];

for (const [typed, then] of answers) {
  test(`the answer '${typed}' means ${then}`, () => {
    const read = readAnswer(typed);
    assert.equal(read === null ? null : `${read.answer} ${read.reason}`.trim(), then);
  });
}

const wishes: readonly (readonly [string, string])[] = [
  ['fix it', 'say steer fix it'],
  ['?', 'command help'],
  ['quit', 'command quit'],
  ['help me', 'say steer help me'],
  ['/jobs kill 1', 'command jobs kill 1'],
  ['/etc/hosts is wrong', 'say steer /etc/hosts is wrong'],
  ['/later and then this', 'say followUp and then this'],
  ['/quit', 'command quit'],
  ['/exit', 'command quit'],
  ['/help', 'command help'],
  ['/budget 5', 'command budget 5'],
  ['/budget', 'command budget'],
  ['/compact  keep the plan ', 'command compact keep the plan'],
  ['/HELP', 'command help'],
  ['!ls -l', 'shell ls -l'],
  ['! ls', 'shell ls'],
  ['!', 'refused'],
  ['![a](b.png) is wrong', 'say steer ![a](b.png) is wrong'],
  ['!rm -rf x\nsecond line', 'say steer !rm -rf x\nsecond line'],
  ['/halp', 'refused'],
  ['/foo-bar 2', 'refused'],
  ['/', 'refused'],
  ['/help me', 'refused'],
  ['/later', 'refused'],
  ['/export', 'refused'],
  ['// a comment', 'say steer // a comment'],
  ['   ', 'nothing'],
];

for (const [typed, then] of wishes) {
  test(`the line '${typed}' is a wish: ${then}`, () => {
    const wish = readTypedInput(typed, 'steer');
    const said = {
      say: () => (wish.kind === 'say' ? ` ${wish.mode} ${wish.text}` : ''),
      command: () => (wish.kind === 'command' ? ` ${wish.name} ${wish.words}`.trimEnd() : ''),
      shell: () => (wish.kind === 'shell' ? ` ${wish.command}` : ''),
      refused: () => '',
      nothing: () => '',
    }[wish.kind]();
    assert.equal(wish.kind + said, then);
  });
}

test('a line that is refused says why: what was meant, and what there is', () => {
  const why = (typed: string): string => {
    const wish = readTypedInput(typed, 'steer');
    return wish.kind === 'refused' ? wish.why : '';
  };
  assert.match(
    why('/halp'),
    /^There is no \/halp\. Did you mean \/help\? \/help lists them all\.$/,
  );
  assert.equal(why('/xyzzy'), 'There is no /xyzzy. /help lists all commands.');
  for (const name of ['plan', 'Undo', 'context', 'status', 'new'])
    assert.match(why(`/${name}`), /^There is no \/\w+\. \/(preset plan|rewind|cost|clear) /);
  assert.match(why('/init'), /AGENTS\.md/);
  assert.match(why('/export'), /^\/export needs an argument: \/export FILE\.$/);
  assert.match(why('/help me'), /\/help takes no arguments/);
});

test('a command that is nearly right is suggested, a far one is not', () => {
  const names = ['sessions', 'show', 'replay'];
  assert.equal(nearestWord('sesions', names), 'sessions');
  assert.equal(nearestWord('replya', names), 'replay');
  assert.equal(nearestWord('hlep', ['cost', 'help']), 'help');
  assert.equal(nearestWord('xyzzy', names), undefined);
});

test('limits are read from flags: minutes become milliseconds, what is missing is left out', () => {
  assert.deepEqual(readLimits({ maxMinutes: '0.5', maxRounds: '7' }), {
    timeMs: 30_000,
    rounds: 7,
  });
  for (const maxRounds of ['0', '-1', '1.5', 'ten', '']) {
    assert.throws(() => readLimits({ maxRounds }), /--max-rounds/);
  }
  assert.throws(() => readPreset({ preset: 'none' }), /plan, careful, auto, ci/);
});

test('flags set what happens after tools; contradictory flags are refused', () => {
  assert.deepEqual(readAfterTools({}), {});
  assert.deepEqual(readAfterTools({ hooks: 'always', formatter: 'on', autoCommit: true }), {
    hooks: 'always',
    formatter: 'onChanges',
    autoCommit: 'on',
  });
  assert.deepEqual(readAfterTools({ hooks: 'never', formatter: 'off', autoCommit: false }), {
    hooks: 'never',
    formatter: 'off',
    autoCommit: 'off',
  });
  assert.throws(
    () => readAfterTools({ hooks: 'no' }),
    /--hooks needs one of never, mutatingOk, mutating, always, not 'no'/,
  );
  assert.throws(
    () => readAfterTools({ formatter: 'prettier' }),
    /--formatter needs one of off, on/,
  );
  assert.throws(
    () => readAfterTools({ hooks: 'never', autoCommit: true }),
    /--auto-commit does nothing/,
  );
  assert.throws(
    () => readAfterTools({ hooks: 'never', formatter: 'on' }),
    /--formatter on does nothing/,
  );
});

const folders: readonly (readonly [NodeJS.ProcessEnv, string])[] = [
  [{ XDG_STATE_HOME: '/s', HOME: '/h' }, '/s/pawl'],
  [{ XDG_STATE_HOME: 'relative', HOME: '/h' }, '/h/.local/state/pawl'],
  [{ HOME: '/h' }, '/h/.local/state/pawl'],
];

for (const [environment, then] of folders) {
  test(`with ${JSON.stringify(environment)} the state folder is ${then}`, () => {
    assert.equal(stateFolder(environment), then);
  });
}

test('text of others can write no escape to a terminal', () => {
  assert.equal(harmless('a\u001b[2Jb\u0007\r\nc\u009bd\te'), 'a␛[2Jb␇\nc⟨U+009B⟩d\te');
  assert.equal(oneLine('a\n\u001b]0;x\u0007  b', 80), 'a ␛]0;x␇ b');
  assert.equal(oneLine('abcdef', 4), 'abc…');
});

test('colours are for terminals that want them', () => {
  const terminal = { isTTY: true, columns: 80 } as NodeJS.WriteStream; // all that is looked at
  const pipe = { isTTY: false } as NodeJS.WriteStream; // as above
  assert.equal(detectLook(terminal, {}).colour, 'yes');
  assert.equal(detectLook(terminal, { NO_COLOR: '1' }).colour, 'no');
  assert.equal(detectLook(terminal, { TERM: 'dumb' }).colour, 'no');
  assert.equal(detectLook(pipe, {}).colour, 'no');
});

test('a diff is coloured by line', () => {
  const diff = '--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n';
  assert.match(
    paintDiff({ colour: 'yes', columns: 80 }, diff).join('\n'),
    /\u001b\[31m-old\u001b\[39m\n\u001b\[32m\+new\u001b\[39m\n same$/,
  );
  assert.equal(paintDiff({ colour: 'no', columns: 80 }, diff).join('\n'), diff.trimEnd());
});

test('dollars that were spent are told with their bounds', () => {
  const estimated = ['local/model'];
  const rows = [
    [0.126, {}, '$0.13'],
    [0.126, { atLeast: true }, 'at least $0.126'],
    [0, { atLeast: true }, 'at least $0.00'],
    [0.126, { estimated }, 'at most $0.126'],
    [0.126, { estimated, atLeast: true }, 'about $0.126'],
    [null, { estimated, atLeast: true }, 'price unknown'],
  ] as const;
  for (const [usd, bounds, text] of rows) assert.equal(formatSpent(usd, bounds), text);
});

test('amounts are short', () => {
  assert.deepEqual([0, 0.001, 0.126, null].map(formatCost), [
    '$0.00',
    '<$0.01',
    '$0.13',
    'price unknown',
  ]);
  assert.deepEqual([999, 1_500, 2_500_000].map(formatTokens), ['999', '1.5k', '2.5M']);
  assert.deepEqual([40, 1_250, 9_960, 61_000].map(formatSeconds), ['0.0s', '1.3s', '10s', '1m01s']);
  const durations = [40, 999.6, 61_000, 3_599_900, 7_800_000, 86_399_900, 273_600_000];
  assert.deepEqual(
    durations.map((ms) => formatDuration(ms)),
    ['40ms', '1.0s', '1m01s', '1h00m', '2h10m', '1d00h', '3d04h'],
  );
});

const wraps: readonly (readonly [string, string, number, readonly string[]])[] = [
  ['short text is one row', 'abc', 5, ['abc']],
  ['long text is broken', 'abcdef', 4, ['abcd', 'ef']],
  ['new lines are kept', 'a\n\nb', 4, ['a', '', 'b']],
  ['wide characters take two columns', '日本語', 4, ['日本', '語']],
  ['escapes take none', '\u001b[31mabcd\u001b[0m', 4, ['\u001b[31mabcd\u001b[0m']],
];

for (const [title, given, columns, then] of wraps) {
  test(title, () => assert.deepEqual(wrapText(keepStyles(given), columns), then));
}
