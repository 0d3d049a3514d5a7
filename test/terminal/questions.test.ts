import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stepped } from '../../src/needs.js';
import { dialogueRows } from '../../src/terminal/dialogue.js';
import { type Question, Questions } from '../../src/terminal/questions.js';
import { fakeClock } from '../../src/testing/clock.js';
import { edit } from '../agent/given.js';
import { keyOf } from './typing.js';

const questionOf = (callId: string): Question => ({
  type: 'RequestApproval',
  batchId: 'batch-1',
  call: edit(callId),
  why: 'because',
});

const seat = (foresee: (question: Question) => Promise<string | null> | null = () => null) => {
  const clock = fakeClock();
  const opened: string[] = [];
  const back: string[] = [];
  const questions = new Questions(clock, {
    foresee,
    open: ({ call }) => void opened.push(call.callId),
    unanswered: (reply) => void back.push(reply),
  });
  const see = (actions: Stepped['actions'], name = 'ExecutingTools'): void =>
    questions.see({ actions, state: { name } } as unknown as Stepped); // it reads nothing else
  const type = (...keys: readonly string[]): void => {
    for (const key of keys) {
      questions.notice();
      if (questions.asked !== null) questions.take({ kind: 'key', key: keyOf(key) });
    }
  };
  return { clock, opened, back, questions, see, type };
};

test('a question may be answered when it stood there and the keyboard was quiet', () => {
  const at = seat();
  at.see([questionOf('a')]);
  assert.deepEqual(at.opened, []);
  at.clock.advance(200);
  at.questions.notice();
  at.clock.advance(200);
  assert.deepEqual(at.opened, []);
  at.clock.advance(100);
  assert.deepEqual(at.opened, ['a']);
  assert.equal(at.questions.asked?.call.callId, 'a');
});

test('it is not shown, and can’t be answered, before it is known what it would change', async () => {
  let know = (_diff: string): void => undefined;
  const at = seat(() => new Promise((resolve) => (know = resolve)));
  at.see([questionOf('a')]);
  at.clock.advance(5_000);
  assert.equal(at.questions.asked, null);
  know('+x');
  await new Promise(setImmediate);
  assert.equal(at.questions.asked, null, 'it must be quiet after it stands there');
  at.clock.advance(300);
  assert.equal(at.questions.foreseen, '+x');
  assert.deepEqual(at.opened, ['a']);
});

test('what can’t be foreseen is asked for all the same', async () => {
  const at = seat(() => Promise.reject(new Error('no such file')));
  at.see([questionOf('a')]);
  await new Promise(setImmediate);
  at.clock.advance(300);
  assert.deepEqual(at.opened, ['a']);
});

test('one after the other; what was typed at one is no answer to the next', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b'), questionOf('c')]);
  at.clock.advance(300);
  assert.equal(at.questions.more, 2);
  at.type("'y'");
  at.questions.next();
  assert.equal(at.questions.replied, '');
  at.clock.advance(300);
  assert.equal(at.questions.asked?.call.callId, 'b');
  assert.deepEqual(at.back, []);
});

test('a question that goes away gives back what was being typed', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(300);
  at.type("'n use pnpm'");
  at.see([{ type: 'WithdrawApproval', batchId: 'batch-1', callId: 'a' }]);
  assert.deepEqual(at.back, ['n use pnpm']);
  at.clock.advance(300);
  assert.equal(at.questions.asked?.call.callId, 'b');
  at.see([], 'WaitingForUserInput');
  assert.equal(at.questions.asked, null);
});

test('a question behind the first that is withdrawn leaves the first as it is', () => {
  const at = seat();
  at.see([questionOf('a'), questionOf('b')]);
  at.clock.advance(300);
  at.type("'n'");
  at.see([{ type: 'WithdrawApproval', batchId: 'batch-1', callId: 'b' }]);
  assert.equal(at.questions.replied, 'n');
  assert.equal(at.questions.more, 0);
});

const look = { colour: 'no', columns: 60 } as const;
const dialogue = {
  tool: 'edit',
  title: 'src/a.ts',
  why: 'the preset asks',
  diff: null,
  choices: 'y once · n (and why)',
  more: 0,
};

test('the question: what, why, how to answer, how many more', () => {
  assert.deepEqual(dialogueRows({ ...dialogue, more: 2 }, look, 60, 5), [
    '? edit src/a.ts (2 more wait)',
    '  the preset asks',
    '  y once · n (and why)',
  ]);
});

test('of a long diff the beginning is shown, and how to see the rest', () => {
  const lines = Array.from({ length: 9 }, (_, index) => `+line ${index}`);
  const diff = ['--- a', '+++ b', '@@ -0,0 +1,9 @@', ...lines].join('\n');
  assert.deepEqual(dialogueRows({ ...dialogue, diff }, look, 60, 2), [
    '? edit src/a.ts',
    '  the preset asks',
    '    1 + line 0',
    '    2 + line 1',
    '    … 7 more lines: d shows all',
    '  y once · n (and why) · d all of it',
  ]);
});

test('a command of many lines is shown as it is, up to a bound; escapes in it do nothing', () => {
  const title = ['cat <<X', ...Array.from({ length: 9 }, (_, index) => `row \u001b[2J${index}`)].join('\n');
  const rows = dialogueRows({ ...dialogue, tool: 'bash', title }, look, 60, 5);
  assert.equal(rows[0], '? bash cat <<X');
  assert.equal(rows[1], '    row \ufffd[2J0');
  assert.ok(rows.includes('    … 3 more lines'));
});
