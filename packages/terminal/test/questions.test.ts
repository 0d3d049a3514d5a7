import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApprovalRequest, describeQuestion } from '@pawl/agent/policy/approval-question';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import { fakeClock } from '../../../test/fake-clock.js';
import { edit } from '../../../test/kit/agent/given.js';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import { loadWordMarks } from '../src/diff-rows.js';
import { loadMarkdown } from '../src/markdown.js';
import { backdropCode, countColumns, paint } from '../src/paint.js';
import { questionRows } from '../src/question-rows.js';
import {
  type AnsweredQuestion,
  ContentQuestion,
  Questions,
  questionFrame,
  questionHeading,
} from '../src/questions.js';
import { safe } from '../src/safe-text.js';

const questionOf = (callId: string, diff?: string): ApprovalRequest => ({
  type: 'RequestApproval',
  batchId: 'batch-1',
  call: edit(callId),
  why: 'because',
  ...(diff === undefined ? {} : { diff }),
});

const look = { colour: 'no', columns: 60 } as const;
const window = { columns: 60, rows: 12 };
const long = `@@ -0,0 +1,40 @@\n${Array.from({ length: 40 }, (_, index) => `+line ${index}`).join('\n')}\n`;

const seat = () => {
  const clock = fakeClock();
  const opened: string[] = [];
  const back: string[] = [];
  const answers: (readonly string[])[] = [];
  let isTyping = false;
  const told = (answered: AnsweredQuestion): string =>
    `${answered.question.call.callId} ${answered.answer}${'reason' in answered ? ` ${answered.reason}` : ''}${'text' in answered ? `: ${answered.text}` : ''}`.trim();
  const questions = new Questions(clock, {
    open: ({ call }) => void opened.push(call.callId),
    answered: (given) => void answers.push(given.map(told)),
    unanswered: (reply) => void back.push(reply),
    isTyping: () => isTyping,
    changed: () => undefined,
  });
  const see = (
    actions: Stepped['actions'],
    name = 'ExecutingTools',
    previewing: readonly string[] = [],
  ): void => {
    const asked = actions.flatMap((action) =>
      action.type === 'RequestApproval' ? [action.call] : [],
    );
    const calls = ['a', 'b', 'c'].map((callId) => ({
      judged: asked.find((call: JudgedCall) => call.callId === callId) ?? edit(callId),
      status: previewing.includes(callId) ? 'previewing' : 'awaitingApproval',
    }));
    const session = { settings: { workspace: '/project' } };
    questions.see({ actions, state: { name, calls, session } } as unknown as Stepped); // it reads nothing else
  };
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) {
      questions.keyPressed();
      if (questions.takesKeys) questions.take({ kind: 'key', key: keyOf(key) }, window);
    }
  };
  /** What the window shows, as it is drawn. */
  const draw = (height = 6): readonly string[] => questions.rows(look, height, window);
  const type = (typing: boolean): void => {
    isTyping = typing;
  };
  return { clock, opened, back, answers, questions, see, press, draw, type };
};

const currentOf = ({ questions }: ReturnType<typeof seat>): string | null =>
  questions.current?.call.callId ?? null;

test('a question is shown when the keyboard is quiet, and answered when it was quiet while it stood there', () => {
  const at = seat();
  at.questions.keyPressed();
  at.see([questionOf('a')]);
  at.clock.advance(200);
  assert.equal(currentOf(at), null);
  at.clock.advance(100);
  assert.equal(currentOf(at), 'a');
  assert.equal(at.questions.takesKeys, false);
  at.clock.advance(200);
  at.questions.keyPressed();
  at.clock.advance(200);
  assert.deepEqual(at.opened, []);
  at.clock.advance(100);
  assert.deepEqual(at.opened, ['a']);
});

test('a user who is typing has more time before keys become answers', () => {
  const at = seat();
  at.type(true);
  at.questions.keyPressed();
  at.see([questionOf('a')]);
  at.clock.advance(1_299);
  assert.equal(currentOf(at), 'a');
  assert.deepEqual(at.opened, []);
  at.clock.advance(1);
  assert.deepEqual(at.opened, ['a']);
});

test('a question that replaces one whose keys still went to the input line takes no key of it', () => {
  const at = seat();
  at.type(true);
  at.questions.keyPressed();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(400);
  assert.equal(currentOf(at), 'a');
  at.see([{ type: 'WithdrawApproval', batchId: 'batch-1', callId: 'a' }]);
  assert.equal(currentOf(at), 'b');
  assert.equal(at.questions.takesKeys, false);
  at.questions.keyPressed();
  at.clock.advance(999);
  assert.deepEqual(at.opened, []);
  at.clock.advance(1);
  assert.deepEqual(at.opened, ['b']);
});

test('a text that is no key scrolls nowhere', () => {
  const at = seat();
  at.see([questionOf('a', long)]);
  at.clock.advance(600);
  const before = at.draw();
  at.press("'constructor'");
  assert.deepEqual(at.draw(), before);
});

test('a letter with Control or Alt answers no question about a text', () => {
  const answers: unknown[] = [];
  const clock = fakeClock();
  const question = new ContentQuestion(
    { title: 'title', content: 'text', kind: 'text', meaning: 'meaning' },
    clock,
    { answered: (answer) => void answers.push(answer), changed: () => undefined },
  );
  question.open();
  clock.advance(600);
  question.frame(look, window);
  const press = (short: string): void => question.take({ kind: 'key', key: keyOf(short) }, window);
  for (const short of ['C-y', 'A-y', 'C-n', 'A-n']) press(short);
  assert.deepEqual(answers, []);
  press("'n'");
  assert.deepEqual(answers, ['no']);
});

test('one key answers: yes once, always this, the session, no with a reason', () => {
  for (const [keys, then] of [
    [["'y'"], 'a once'],
    [["'Y'"], 'a once'],
    [["'a'"], 'a always'],
    [["'s'"], 'a session'],
    [["'n'", 'enter'], 'a no'],
    [["'n'", "'use pnpm'", 'enter'], 'a no use pnpm'],
  ] as const) {
    const at = seat();
    at.see([questionOf('a')]);
    at.clock.advance(600);
    at.draw(100);
    at.press(...keys);
    assert.deepEqual(at.answers, [[then]]);
  }
});

test('an answer that is not offered and a wrong key give advice and answer nothing', () => {
  const at = seat();
  at.see([questionOf('a')]);
  at.clock.advance(600);
  at.draw(40);
  at.press("'p'");
  assert.match(at.questions.advice, /does not offer/);
  at.press("'x'");
  assert.match(at.questions.advice, /'x' is no answer/);
  at.press("'A'");
  assert.deepEqual(at.answers, []);
});

test('a yes does not count before the end was on the screen; the key shows more instead', () => {
  const at = seat();
  at.see([questionOf('a', long)]);
  at.clock.advance(600);
  const shown = new Set(at.draw());
  at.press("'y'", "'a'", "'s'", 'end', "'y'");
  assert.deepEqual(at.answers, []);
  assert.match(at.questions.advice, /read to the end first/);
  // pressed a hundred times without being drawn, nothing is passed over
  at.press(...Array.from({ length: 100 }, () => 'pagedown'), "'y'");
  assert.deepEqual(at.answers, []);
  for (let page = 0; page < 30; page += 1) {
    for (const row of at.draw()) shown.add(row);
    at.press('pagedown');
  }
  for (let line = 0; line < 40; line += 1)
    assert.ok(
      [...shown].some((row) => row.endsWith(`+ line ${line}`)),
      `line ${line}`,
    );
  at.press("'y'");
  assert.deepEqual(at.answers, [['a once']]);
});

test('a refusal needs no reading', () => {
  const at = seat();
  at.see([questionOf('a', long)]);
  at.clock.advance(600);
  at.draw();
  at.press("'n'", 'enter');
  assert.deepEqual(at.answers, [['a no']]);
});

test('in a window of another size it is to be read again', () => {
  const at = seat();
  at.see([questionOf('a', long)]);
  at.clock.advance(600);
  at.questions.rows(look, 100, window);
  const wider = { columns: 61, rows: 12 };
  at.questions.take({ kind: 'key', key: keyOf("'y'") }, wider);
  assert.deepEqual(at.answers, []);
  at.questions.rows({ ...look, columns: 61 }, 100, wider);
  at.questions.take({ kind: 'key', key: keyOf("'y'") }, wider);
  assert.deepEqual(at.answers, [['a once']]);
});

test('several questions stand in the order of the calls, and none is shown before all are known', () => {
  const at = seat();
  at.see([questionOf('c'), questionOf('b')], 'ExecutingTools', ['a']);
  at.clock.advance(5_000);
  assert.equal(currentOf(at), null);
  at.see([questionOf('a')]);
  at.clock.advance(600);
  assert.equal(currentOf(at), 'a');
  assert.equal(at.questions.position, 1);
  assert.equal(at.questions.all.length, 3);
});

test('one key answers all of them when all were read', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(600);
  at.draw(100);
  at.press("'A'");
  assert.deepEqual(at.answers, []);
  assert.match(at.questions.advice, /read all of them/);
  assert.equal(currentOf(at), 'b');
  at.draw(100);
  at.press("'A'");
  assert.deepEqual(at.answers, [['a once', 'b once']]);
});

test('one after the other; what is typed at one is no answer to the next', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(600);
  at.draw(100);
  at.press("'y'");
  at.draw(100);
  at.press("'y'", "'y'");
  assert.deepEqual(at.answers, [['a once']]);
  assert.match(at.questions.advice, /new question/);
  at.clock.advance(300);
  at.press("'y'");
  assert.deepEqual(at.answers, [['a once'], ['b once']]);
});

test('tab looks at the next; the answer is for the one on the screen', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(600);
  at.draw(100);
  at.press('tab');
  at.draw(100);
  at.press("'y'");
  assert.deepEqual(at.answers, [['b once']]);
});

test('a question that goes away gives the reason back that was being typed', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(600);
  at.press("'n'", "'use pnpm'");
  at.see([{ type: 'WithdrawApproval', batchId: 'batch-1', callId: 'b' }]);
  assert.equal(at.questions.replied, 'use pnpm');
  at.see([{ type: 'WithdrawApproval', batchId: 'batch-1', callId: 'a' }]);
  assert.deepEqual(at.back, ['use pnpm']);
  assert.equal(currentOf(at), null);
});

test('backspace in an empty reason leads back to the question; a paste answers nothing', () => {
  const at = seat();
  at.see([questionOf('a')]);
  at.clock.advance(600);
  at.draw(100);
  at.press("'n'", 'backspace');
  at.questions.take({ kind: 'paste', text: 'y' }, window);
  assert.deepEqual(at.answers, []);
  at.press("'y'");
  assert.deepEqual(at.answers, [['a once']]);
});

test('the row of keys says how much is left of the picture that it stands in', () => {
  const at = seat();
  at.see([questionOf('a', long)]);
  at.clock.advance(1_000);
  const keys = (rows: number): string =>
    questionFrame(at.questions, look, { columns: 60, rows }, [], null).rows.slice(-2).join('\n');
  assert.match(keys(12), /↓ \d+ more rows \(PgDn\); then y a s · n · Escape/);
  assert.doesNotMatch(keys(80), /more/);
  assert.match(keys(12), /↓ \d+ more rows \(PgDn\); then y a s · n · Escape/);
  // keys that do not count yet are dim
  const coloured = questionFrame(
    at.questions,
    { ...look, colour: 'yes' },
    { columns: 60, rows: 12 },
    [],
    null,
  ).rows.at(-1);
  assert.match(coloured ?? '', /then \u001b\[[\d;]+my a s\u001b\[39m · n · /);
});

test('the numbers of waiting questions are aligned', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(1_000);
  const { rows } = questionFrame(at.questions, look, { columns: 60, rows: 30 }, [], null);
  assert.deepEqual(
    rows.flatMap((row) => /^ *›? *\d (?=edit)/.exec(row)?.[0] ?? []),
    ['  › 1 ', '    2 '],
  );
});

test('facts about a call are true, appear once, and break between words', () => {
  const description = {
    ...describeQuestion(questionOf('a'), '/project'),
    subject: { kind: 'input', text: '{}' },
    paths: ['/elsewhere/.ssh/id_rsa'],
    protectedPaths: ['/elsewhere/.ssh/id_rsa'],
    needs: 'outside',
    why: 'credentials are kept in /elsewhere/.ssh/id_rsa',
  } as const;
  const told = questionRows(description, look, 40).map((row): string => row.trim());
  assert.ok(told.includes('leaves the workspace'), told.join('\n'));
  assert.ok(!told.some((row) => row.startsWith('protected:')));
  const words = told.join(' ');
  assert.match(words, /reason: credentials are kept in \/elsewhere/);
  const command = {
    ...description,
    subject: { kind: 'command', text: 'npm start' },
    timeLimitMs: 120_000,
  } as const;
  const said = (background: boolean): string =>
    questionRows({ ...command, background, why: 'because' }, look, 100)
      .map(String)
      .join('\n');
  assert.match(said(false), /time limit: 2 min/);
  assert.doesNotMatch(said(true), /time limit/);
  assert.match(said(true), /protected: \/elsewhere\/\.ssh\/id_rsa$/m);
  const programs = ['/usr/bin/rm', '/bin/ls', '/opt/bin/git', '/usr/bin/x/head'];
  const call = { ...command, background: false, programs };
  const rowsOf = (part: object): string =>
    questionRows({ ...call, ...part }, look, 100)
      .map((row) => row.trim())
      .join('\n');
  const leaves = rowsOf({ needs: 'network', why: 'it leaves the sandbox' });
  assert.match(leaves, /^runs rm, ls, \/opt\/bin\/git, \/usr\/bin\/x\/head$/m);
  assert.equal(leaves.match(/leaves the sandbox/g)?.length, 1, leaves);
  // control: a reason that says more
  assert.match(rowsOf({ why: 'because' }), /^leaves the sandbox and.*\n(?:.*\n)*reason: because$/m);
});

test('in a plain terminal what would run is one line, and words about it are wrapped', () => {
  const text = `npm run ${'a-part '.repeat(20)}`.trim();
  const description = {
    ...describeQuestion(questionOf('a'), '/project'),
    subject: { kind: 'command', text },
    why: 'the sandbox of this machine holds no command that reaches the network',
  } as const;
  const [first = '', ...others] = questionRows(description, look, Number.MAX_SAFE_INTEGER, 40);
  assert.ok(first.endsWith(text), first);
  for (const row of others) assert.ok(countColumns(row) < 40, row);
  const words = others.join(' ').replace(/\s+/g, ' ');
  assert.ok(words.includes(`reason: ${description.why}`), words);
});

test('facts that warn are yellow, the others dim', () => {
  const description = {
    ...describeQuestion(questionOf('a'), '/project'),
    subject: { kind: 'command', text: 'npm start' },
    protectedPaths: ['/project/.env'],
    needs: 'network',
    background: true,
    oddCharacters: [
      { code: 'U+202E', name: 'RIGHT-TO-LEFT OVERRIDE', count: 1 },
      { code: 'U+000A', name: 'run of line breaks', count: 60 },
    ],
    why: 'because',
  } as const;
  const colours = { colour: 'yes', columns: 100 } as const;
  const rows = questionRows(description, colours, 100).map(String);
  const warned = ['protected: .env', 'leaves the sandbox', 'keeps running', 'unusual characters'];
  assert.match(rows.join(), /OVERRIDE ×1, 60 line breaks in a row/);
  for (const fact of [...warned, 'folder: ', 'reason: ']) {
    const style = warned.includes(fact) ? 'yellow' : 'dim';
    const [begin = ''] = paint(colours, style, safe`|`).split('|');
    const row = rows.find((text) => text.includes(fact));
    assert.ok(row?.startsWith(`  ${begin}${fact}`), `${style}: ${JSON.stringify(row)}`);
  }
});

const changed =
  '--- src/sum.ts\n+++ src/sum.ts\n@@ -1,2 +1,2 @@\n const a = 1;\n-return a - b;\n+return a + b;\n';

test('a question has the colours of its language, and marks the words that change', async () => {
  await loadWordMarks();
  const dark = { colour: 'yes', columns: 60, background: 'dark', depth: 'true' } as const;
  const description = describeQuestion(questionOf('a', changed), '/project');
  const [first, removed, added] = questionRows(description, dark, 60);
  assert.match(first ?? '', /\u001b\[38;5;177mconst\u001b\[39m/);
  assert.ok(removed?.includes(`\u001b[${backdropCode('removedWord', 'dark', 'true')}m-`), removed);
  assert.ok(added?.includes(`\u001b[${backdropCode('addedWord', 'dark', 'true')}m+`), added);
});

test('an indentation is no mark, other runs of spaces are', () => {
  const diff = `@@ -0,0 +1,2 @@\n+${' '.repeat(8)}deep\n+a${' '.repeat(8)}b\n`;
  const [deep, apart] = questionRows(describeQuestion(questionOf('a', diff), '/'), look, 60);
  assert.match(deep ?? '', /^ {2}1 \+ {9}deep$/);
  assert.match(apart ?? '', /a⟨8 blanks⟩b/);
});

test('the heading says what is asked, below a rule', () => {
  const at = seat();
  at.see([questionOf('a', changed)]);
  at.clock.advance(600);
  const high = { columns: 60, rows: 24 };
  const { rows } = questionFrame(at.questions, look, high, [], null);
  assert.equal(rows[0], '─'.repeat(40));
  assert.match(rows[1] ?? '', /^\? Pawl asks: change \S+$/);
  const low = questionFrame(at.questions, look, { columns: 60, rows: 8 }, [], null);
  assert.match(low.rows[0] ?? '', /^\? Pawl asks/);
  const description = describeQuestion(questionOf('a', changed), '/project');
  const asked = (part: Partial<typeof description>): string =>
    questionHeading({ ...description, ...part });
  const command = { kind: 'command', text: 'npm install' } as const;
  assert.equal(asked({ subject: command }), 'Pawl asks: run this command');
  assert.equal(
    asked({ subject: command, needs: 'network' }),
    'Pawl asks: run this command with the network',
  );
  const created = { kind: 'change', text: `--- /dev/null\n+++ x\n@@ -0,0 +1 @@\n+a\n` } as const;
  assert.match(asked({ subject: created }), /^Pawl asks: create /);
});

const asked = (callId: string, asks: 'question' | 'plan', input: JudgedCall['input']) => {
  const call = edit(callId);
  return { ...questionOf(callId), call: { ...call, input, traits: { ...call.traits, asks } } };
};
const which = (callId: string): ApprovalRequest =>
  asked(callId, 'question', { question: 'Which?', choices: ['this one', 'that one'] });

test('a question of the model is answered by the number of a choice, or in words', () => {
  const at = seat();
  at.see([which('a'), which('b'), which('c')]);
  // a key that was typed before it was there answers nothing
  at.press("'2'");
  at.clock.advance(600);
  at.draw(100);
  assert.match(
    at.draw(100).join('\n'),
    /│ Which\?\n {2}file: a\.ts\n {2}1 {2}this one\n {2}2 {2}that one\n {2}t {2}.*\n {2}n {2}skip: the model decides/,
  );
  at.press("'3'");
  assert.equal(at.questions.advice, "'3' is no answer");
  at.press("'y'");
  assert.equal(at.questions.advice, 'this call does not offer that answer');
  at.press("'A'");
  assert.deepEqual(at.answers, []);
  at.press("'2'");
  at.clock.advance(600);
  at.draw(100);
  at.press("'t'", 'enter');
  assert.equal(at.questions.advice, 'type an answer; Escape leads back to the question');
  at.questions.take({ kind: 'paste', text: ' neither' }, window);
  at.press('enter');
  at.clock.advance(600);
  assert.ok(at.questions.isForWords);
  at.questions.answer('no');
  assert.deepEqual(at.answers, [['a 2: that one'], ['b reply: neither'], ['c no']]);
});

test('a choice that was not read is no answer', () => {
  const at = seat();
  const question = Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n');
  at.see([asked('a', 'question', { question, choices: ['one', 'two'] })]);
  at.clock.advance(600);
  at.draw();
  at.press("'1'");
  assert.deepEqual(at.answers, []);
  assert.equal(at.questions.advice, 'read to the end first: ↓ or space');
});

test('a plan is accepted, sent back, or changed in the line', () => {
  const at = seat();
  const plan = { title: 'A parser', steps: ['read', 'write'], text: 'By hand.' };
  at.see([asked('a', 'plan', plan), asked('b', 'plan', plan), asked('c', 'plan', plan)]);
  at.clock.advance(600);
  assert.match(at.draw(100).join('\n'), / {2}y {2}yes: accept the plan and start\n/);
  assert.equal(at.questions.isForWords, false);
  at.press("'y'");
  at.clock.advance(600);
  at.press("'e'");
  assert.equal(at.questions.reason, null, 'it was not read');
  at.draw(100);
  at.press("'e'");
  assert.equal(at.questions.replied, 'A parser\n1. read\n2. write\n\nBy hand.');
  at.press("'!'", 'enter');
  at.clock.advance(600);
  at.draw(100);
  at.press("'n'", "'x'", 'enter');
  assert.deepEqual(at.answers, [
    ['a once'],
    ['b edit: A parser\n1. read\n2. write\n\nBy hand.!'],
    ['c no x'],
  ]);
});

test('below a typed reason stands what Enter and Escape do, and Escape gives the question back', () => {
  const at = seat();
  at.see([asked('a', 'plan', { title: 'A parser', steps: ['read'], text: '' })]);
  at.clock.advance(600);
  at.draw(100);
  const typed = (columns: number): string => {
    const size = { columns, rows: 24 };
    return questionFrame(at.questions, { colour: 'no', columns }, size, [], null).rows.join('\n');
  };
  at.press("'n'");
  assert.match(
    typed(80),
    /\nn \n {2}type a reason, or none · Enter sends the no · Escape takes it back$/,
  );
  assert.match(typed(40), /none\n {2}Enter sends the no\n {2}Escape takes it back$/);
  at.press("'e'");
  at.questions.stopTyping();
  assert.match(typed(80), /\n {2}y e n · Escape stops$/);
  at.draw(100);
  at.press("'e'");
  assert.match(typed(80), /change the plan · Enter accepts it · Escape takes it back$/);
  assert.deepEqual(at.answers, []);
});

test('the keys of a long question fit into a narrow window', () => {
  const at = seat();
  at.see([asked('a', 'question', { question: 'word '.repeat(200), choices: ['one', 'two'] })]);
  at.clock.advance(600);
  const size = { columns: 40, rows: 15 };
  const { rows } = questionFrame(at.questions, { colour: 'no', columns: 40 }, size, [], null);
  assert.match(
    rows.slice(-2).join('\n'),
    /^ {2}↓ \d+ more rows \(PgDn\); then 1 · 2\n {2}t type · n no · Escape declines$/,
  );
});

const keysAt: Readonly<Record<string, RegExp>> = {
  '40x15':
    /↓ \d+ more rows \(PgDn\); then y yes a always this file · s all files A yes to all 2 · n no · Tab next Escape stops/,
  '80x24':
    /y yes, once: this call a this session: .* n no: .*↓ \d+ more rows \(PgDn\); then y a s · A yes to all 2 · n /,
};

test('in a small window the heading, every key and the settings stay', () => {
  const at = seat();
  const last = [safe`  careful · $0.01`];
  at.see([questionOf('a', long), questionOf('b', long)]);
  at.clock.advance(1_000);
  for (const [columns, rows] of [
    [40, 15],
    [40, 8],
    [20, 15],
    [80, 24],
  ] as const) {
    const frame = questionFrame(
      at.questions,
      { ...look, columns },
      { columns, rows },
      [],
      null,
      last,
    );
    assert.ok(frame.rows.length < rows);
    assert.ok(frame.rows.every((row) => countColumns(row) < columns));
    const shown = frame.rows.join(' ').replace(/\s+/g, ' ');
    assert.match(shown, /\? Pawl asks: change \S+ · 1 of 2 /);
    assert.match(
      shown,
      keysAt[`${columns}x${rows}`] ??
        /↓ \d+ more rows \(PgDn\); then y a s( ·)? A yes to all 2( ·)? n · Tab next( ·)? Escape stops/,
    );
    assert.equal(frame.rows.at(-1), last[0]);
  }
});

test('the answers stand below a long text where there is room, however far it is scrolled', () => {
  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    const at = seat();
    at.see([questionOf('a', long)]);
    at.clock.advance(600);
    const size = { columns, rows };
    const draw = (): string =>
      questionFrame(at.questions, { ...look, columns }, size, [], null).rows.join('\n');
    const answers = /\n {2}y {2}yes, once: this call\n[\s\S]*\n {2}n {2}no: you may type a reason/;
    const take = (key: string): void => at.questions.take({ kind: 'key', key: keyOf(key) }, size);
    assert.match(draw(), /^─+\n\? Pawl asks: change a\.ts\n +1 \+ line 0\n/);
    assert.match(draw(), answers);
    take("'y'");
    assert.deepEqual(at.answers, [], 'answers that are seen do not make a text that is read');
    for (let page = 0; page < 10; page += 1) {
      draw();
      take('pagedown');
    }
    assert.match(draw(), /\+ line 39\n/);
    assert.match(draw(), answers);
    take("'n'");
    assert.doesNotMatch(draw(), /yes, once|no:/, 'no answers while a reason is typed');
    take('backspace');
    take("'y'");
    assert.deepEqual(at.answers, [['a once']]);
  }
});

const planShown = async (text: string, columns: number, colour: 'yes' | 'no' = 'no') => {
  await loadMarkdown();
  const at = seat();
  at.see([asked('a', 'plan', { title: 'A parser', steps: ['read `a`', 'write'], text })]);
  at.clock.advance(600);
  const size = { columns, rows: 60 };
  return questionFrame(at.questions, { colour, columns }, size, [], null).rows.join('\n');
};

test('a plan is drawn as answers are, each row behind a bar', async () => {
  const text =
    '## Why\n\n- one `code` and **bold** words that go on until this row has ended\n\n```ts\nconst a = 1;\n```\n\n| a | b |\n|---|---|\n| one | two |';
  const shown = await planShown(text, 40);
  assert.match(shown, /│ A parser\n│ 1\. read a\n│ 2\. write\n│ *\n│ Why\n/);
  assert.match(shown, /│ - one code and bold words that go on\n│ {3}until this row has ended\n/);
  assert.match(shown, /│ const a = 1;\n/);
  assert.match(shown, /│ one │ two\n/);
  assert.match(await planShown(text, 40, 'yes'), /\u001b\[[\d;]+mcode\u001b/);
});

test('Markdown hides nothing in a plan: such a block is shown as it was written', async () => {
  const hidden = [
    'one <!-- rm -rf x --> two',
    'one [two](https://a.example "rm -rf x") three',
    '[a]: https://a.example/rm-rf-x',
    '1. one\n1. two\n7. rm-rf-x',
    '![one](a.png "rm -rf x")',
    'one &#114;&#109; two',
    '```rm -rf x\none\n```',
  ];
  for (const text of hidden)
    for (const line of text.split('\n'))
      assert.ok((await planShown(`before\n\n${text}\n\nafter`, 80)).includes(line), line);
  const odd = await planShown('one \u202e two \u001b[2J three', 80);
  assert.match(odd, /one ⟨U\+202E⟩ two ␛\[2J three/);
  const wide = await planShown(`${'ü'.repeat(30)} `.repeat(9), 40);
  for (const row of wide.split('\n').filter((one) => one.includes('ü')))
    assert.ok(row.replace(/[^ -~]/g, '  ').length < 40, row);
});
