import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createFolderRule,
  describeGrant,
  describeQuestion,
  describeSubject,
  quoteWord,
  scopeOfAnswer,
} from '../../src/policy/approval-question.js';
import type { CallFacts, CallTraits, JudgedCall, Needs } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';

// What a question shows, which answers it offers, and which characters it points out.

const FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: 'x' };
const TRAITS: CallTraits = { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 };
const callOf = (
  tool: string,
  facts: Partial<CallFacts>,
  traits: Partial<CallTraits> = {},
  input: JudgedCall['input'] = {},
): JudgedCall => ({
  ...{ callId: '1', tool, input, verdict: { kind: 'ok' } },
  ...{ traits: { ...TRAITS, ...traits }, facts: { ...FACTS, ...facts } },
});
const bash = (text: string, more: Partial<CallFacts> = {}): JudgedCall => {
  const program = '/usr/bin/npm';
  const commands = [{ words: text.split(' '), assignments: [], writes: [], program }];
  const shell = { commands, unclear: null };
  return callOf('bash', { argv: [text], shape: text, paths: ['/w'], shell, ...more });
};
const editing = (file: string): JudgedCall =>
  callOf('edit', { shape: file, paths: [file] }, { group: 'fileChanges' });
const describe = (
  call: JudgedCall,
  more: { diff?: string; grantable?: 'thisCall' | 'once' } = {},
) => describeQuestion({ type: 'RequestApproval', batchId: 'b', call, why: 'w', ...more }, '/w');

test('a question shows everything that would run or change', () => {
  const { choices: _, ...shown } = describe(bash('npm test'));
  const command = { kind: 'command', text: 'npm test' } as const;
  const plain = {
    ...{ tool: 'bash', subject: command, paths: ['/w'], hosts: [], programs: ['/usr/bin/npm'] },
    ...{ folder: '/w', timeLimitMs: null, background: false, needs: null, protectedPaths: [] },
    ...{ why: 'w', oddCharacters: [] },
  };
  assert.deepEqual(shown, plain);
  const start = bash('npm test').facts.shell?.commands[0] ?? assert.fail();
  const shell = { commands: [start, start, { ...start, program: null }], unclear: null };
  const facts = { shell, background: 'yes', needs: 'network', protected: ['/w/.git'] } as const;
  const full = bash('npm test', facts);
  const { choices: __, ...all } = describe({ ...full, traits: { ...TRAITS, deadlineMs: 5 } });
  const more = { timeLimitMs: 5, background: true, needs: 'network', protectedPaths: ['/w/.git'] };
  assert.deepEqual(all, { ...plain, ...more });
  assert.equal(describe(editing('/x/a')).needs, 'outside');
  assert.deepEqual(describe(editing('/x/a')).programs, []);
});

/** `KIND: TEXT < INPUT`, as a call of a host with this input, or one with this trait. */
const SUBJECTS = `
  address: http://h < {"url":"http://h"}
  input: {"url":"http://h","a":1} < {"url":"http://h","a":1}
  input: {"a":"b","c":"d"} < {"a":"b","c":"d"}
  input: {"a":1} < {"a":1}
  question: Which? < {"question":"Which?"}
  plan: A b¶1. c d¶2. 2¶¶e < {"title":"A\\n b","steps":["c\\n d",2],"text":" e "}
  plan: A < {"title":"A","steps":"b","text":" "}
  plan: A < {"title":"A","steps":[],"text":1}`;

test('the subject is the command, the change, the address, the plan, or the whole input', () => {
  for (const row of SUBJECTS.trim().split('\n')) {
    const [, kind = '', text = '', input = ''] = /^ *(\w+): (.*) < (.*)$/.exec(row) ?? [];
    const traits = kind === 'question' || kind === 'plan' ? ({ asks: kind } as const) : {};
    const { subject } = describe(callOf('x', { hosts: ['h'] }, traits, JSON.parse(input)));
    const plain = kind === 'input' ? JSON.stringify(JSON.parse(subject.text)) : subject.text;
    assert.deepEqual([subject.kind, plain.replaceAll('\n', '¶')], [kind, text]);
  }
  const subject = (facts: Partial<CallFacts>, diff?: string) =>
    describe(callOf('x', facts, {}, { url: 'b' }), diff === undefined ? {} : { diff }).subject.text;
  assert.equal(subject({ argv: ["it's", 'a-b', '', 'c d'] }, 'diff'), `'it'\\''s' a-b '' 'c d'`);
  assert.equal(subject({ argv: ['a b'] }, 'diff'), 'a b');
  assert.equal(subject({ hosts: ['h'] }, 'diff'), 'diff');
  assert.equal(subject({}), '{\n  "url": "b"\n}');
  for (const word of ['a@%+=:,./-9_', 'B']) assert.equal(quoteWord(word), word);
  for (const word of ['a b', '$x', 'é', 'a|b']) assert.equal(quoteWord(word), `'${word}'`);
});

/** `COMMAND or FILE [NEEDS or ANSWERS]: WHAT ITS LASTING ANSWERS ALLOW`. */
const LASTING = `
  npm test a: this exact command/npm test …/every bash call
  npm test [network]: this exact command, NETWORK/npm test …, NETWORK/every bash call, NETWORK
  rm x [repository]: this exact command, GIT/every bash call, GIT
  rm x [outside]: this exact command, BEYOND/every bash call, BEYOND
  npm test [thisCall]: this exact command
  npm test [once]:
  /w/a/b: every edit of a/b/every edit in this folder
  /x/a: every edit of /x/a, BEYOND/every edit, BEYOND`;

test('each answer says exactly what it would allow', () => {
  const choicesOf = (call: JudgedCall, more: Parameters<typeof describe>[1] = {}) =>
    describe(call, more).choices.map(({ answer, allows }) => `${answer}: ${allows}`);
  for (const row of LASTING.trim().split('\n')) {
    const [, text = '', limit, expected = ''] = /^ *(.*?)(?: \[(\w+)\])?: ?(.*)$/.exec(row) ?? [];
    const grantable =
      limit === 'thisCall' || limit === 'once' ? ({ grantable: limit } as const) : {};
    const needs = limit === undefined || 'grantable' in grantable ? {} : { needs: limit as Needs };
    const call = text.startsWith('/') ? editing(text) : bash(text, needs);
    const lasting = choicesOf(call, grantable)
      .slice(1, -1)
      .map((choice) => choice.replace(/^\w+: /, ''));
    const beyond = expected
      .replaceAll('BEYOND', 'outside the sandbox and the workspace too')
      .replaceAll('NETWORK', 'with the network')
      .replaceAll('GIT', 'with changes of git folders');
    assert.equal(lasting.join('/').replace(' (protected paths still ask)', ''), beyond, row);
  }
  const no = 'no: you may type a reason for the model';
  const session = 'session: every x call (protected paths still ask)';
  assert.deepEqual(choicesOf(callOf('x', { shape: 'x' })), ['once: this call', session, no]);
  const question = (choices: string | readonly (string | number)[]) =>
    choicesOf(callOf('x', {}, { asks: 'question' }, { choices }));
  const others = ['reply: your own words', 'no: the model decides'];
  assert.deepEqual(question(['a', 2]), ['1: a', '2: 2', ...others]);
  assert.deepEqual(question('a'), others);
  const plan = choicesOf(callOf('x', {}, { asks: 'plan' })).map((choice) => choice.split(':')[0]);
  assert.deepEqual(plan, ['once', 'edit', 'no']);
  const scopes = (['once', 'always', 'prefix', 'session'] as const).map(scopeOfAnswer);
  assert.deepEqual(scopes, ['once', 'shape', 'prefix', 'session']);
  const shape = { scope: 'shape', tool: 'x', shape: 'x', needs: 'network' } as const;
  assert.equal(describeGrant(shape), 'every x call, with the network');
  assert.equal(describeGrant({ ...shape, shape: 'null/a' }), 'x null/a, with the network');
  assert.equal(describeGrant({ ...shape, shape: '/wx/a' }, '/w'), 'x /wx/a, with the network');
  assert.equal(describeSubject({ kind: 'host', pattern: 'a.com' }), 'every call of a.com');
  const rule = { kind: 'command', words: ['npm', 'ci'], needs: 'network' } as const;
  assert.equal(describeSubject(rule), 'npm ci …, with the network');
});

test('a rule of a folder is offered for plain words and for one host', () => {
  const rules = presetRules.careful;
  const settings = { rules, workspace: '/w', sandbox: 'workspace', preset: 'careful' } as const;
  const offered = (call: JudgedCall) => {
    const rule = createFolderRule(call, settings);
    return rule === null ? null : describeSubject(rule);
  };
  const reading = (hosts: string) =>
    callOf('fetch', { hosts: hosts.split(',') }, { mutating: false });
  assert.equal(offered(bash('npm ci', { needs: 'network' })), 'npm ci …, with the network');
  const words = { kind: 'command', words: ['eslint', 'x'] };
  assert.deepEqual(createFolderRule(bash('eslint x'), settings), words);
  assert.equal(offered(reading('a.com')), 'every call of a.com');
  assert.equal(offered(reading('10.0.0.5')), 'every call of 10.0.0.5');
  for (const text of ["it's x", 'a/b x'])
    assert.equal(offered(bash(text, { needs: 'network' })), null);
  for (const hosts of ['*.a.com', 'a b', 'a.com,b.com'])
    assert.equal(offered(reading(hosts)), null);
  for (const call of [
    bash('git add', { needs: 'repository' }),
    callOf('x', { hosts: ['a.com'] }),
    callOf('x', {}, { mutating: false }),
  ])
    assert.equal(offered(call), null);
});

/** `CODE NAME`, of characters that are shown wherever they stand. */
const ODD = `
  0 NUL|9 tab|D carriage return|1B escape|7F delete|A0 no-break space|AD soft hyphen
  200B zero-width space
  200C zero-width non-joiner|200D zero-width joiner|61C RTL mark|200E LTR mark
  200F RTL mark|2028 line separator|2029 paragraph separator|202A LTR embedding
  202B RTL embedding|202C end of embedding|202D LTR override
  202E RTL override
  2066 LTR isolate|2067 RTL isolate|2068 isolate|2069 end of isolate
  2800 blank pattern
  FEFF zero-width no-break space|1 control character|1F control character|80 control character
  9F control character
  E0000 tag character|E0041 tag character|E007F tag character|D800 half of a character
  2003 unusual blank
  301 combining sign|E0100 combining sign|E000 character without a meaning
  378 character without a meaning
  E0080 character without a meaning|2060 invisible character|FFFC invisible character`;
const RIGHT_TO_LEFT = 'אابܐހߊ';
const LOOK_ALIKE = 'аοօᎪⲟꓐａ𝐚‐―∕⁄ıɩⅼǀ';

test('characters that make a text look like another one are named and counted', () => {
  const oddIn = (text: string) => describe(callOf('x', { argv: [text] })).oddCharacters;
  for (const row of ODD.trim().split(/\||\n/)) {
    const [, code = '', short = ''] = /^(\w+) (.*)$/.exec(row.trim()) ?? [];
    const name = short.replace('LTR', 'left-to-right').replace('RTL', 'right-to-left');
    const character = String.fromCodePoint(Number.parseInt(code, 16));
    const expected = [{ code: `U+${code.padStart(4, '0')}`, name, count: 2 }];
    assert.deepEqual(oddIn(`é${character}ß${character}`), expected, row);
  }
  const codes = (text: string) =>
    [...text].map((one) => one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0'));
  const named = (text: string, name: string) =>
    codes(text).map((code) => ({ code: `U+${code}`, name, count: 1 }));
  assert.deepEqual(
    oddIn(RIGHT_TO_LEFT),
    named(RIGHT_TO_LEFT, 'letter that is written right to left'),
  );
  for (const letter of LOOK_ALIKE) {
    assert.deepEqual(oddIn(`x${letter}`), named(letter, 'looks like a common sign'), letter);
    assert.deepEqual(oddIn(`x,${letter} é`), [], letter);
  }
  assert.deepEqual(oddIn('Ünïcode, привет!\n ~'), []);
  assert.deepEqual(
    describe(callOf('x', { argv: ['a'], paths: ['/\t'], hosts: ['h\r'] })).oddCharacters.map(
      ({ name }) => name,
    ),
    ['tab', 'carriage return'],
  );
});

test('long runs of blanks and line breaks are counted, and many kinds are cut', () => {
  const oddIn = (text: string) => describe(callOf('x', { argv: [text] })).oddCharacters;
  const runs = [
    { code: 'U+0020', name: 'run of blanks', count: 20 },
    { code: 'U+000A', name: 'run of line breaks', count: 16 },
  ];
  const text = `a${' '.repeat(18)}b${' '.repeat(20)}c${' '.repeat(16)}${'\n'.repeat(16)}d`;
  assert.deepEqual(oddIn(text), runs);
  assert.deepEqual(oddIn(`é${text}`), runs);
  assert.deepEqual(oddIn(`a${' '.repeat(15)}b${'\n'.repeat(15)}`), []);
  const kinds = (count: number) =>
    String.fromCodePoint(...Array.from({ length: count }, (_, at) => 0xe000 + at));
  assert.equal(oddIn(kinds(20)).at(-1)?.code, 'U+E013');
  assert.deepEqual(oddIn(kinds(22)).slice(18), [
    { code: 'U+E012', name: 'character without a meaning', count: 1 },
    { code: '…', name: 'others', count: 3 },
  ]);
});
