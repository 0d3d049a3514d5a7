import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from '@pawl/ask/run/state';
import type { PolicyReason } from '@pawl/ask/run/stop-policies';
import { noPieces, piecesOf } from '@pawl/ask/tree/tree-state';
import { readQuestion } from '../../src/commands/ask.js';
import { askFlags, frozenFlags } from '../../src/commands/ask-flags.js';
import { getAnswer, outcomeEnding } from '../../src/commands/ask-records.js';

/** What the words after `pawl ask` mean, and what its end says to a script. */

const read: readonly (readonly [
  readonly string[],
  readonly string[],
  readonly string[],
  string,
])[] = [
  // given --context,      and words,      then inputs,      and the question
  [['a.txt', 'how many?'], [], ['a.txt'], 'how many?'],
  [['a.txt', 'b.txt', ' how many? '], [], ['a.txt', 'b.txt'], 'how many?'],
  [['a.txt'], ['how', 'many?'], ['a.txt'], 'how many?'],
  [['a.txt', 'b.txt'], ['how many?'], ['a.txt', 'b.txt'], 'how many?'],
  [['-', 'how many?'], [], ['-'], 'how many?'],
  [['a.txt', 'how? '.repeat(60)], [], ['a.txt'], 'how? '.repeat(60).trim()], // too long for a path
];

for (const [context, words, contexts, question] of read) {
  test(`--context ${context.join(' ')}, words ${words.join(' ') || '(none)'}: asks '${question}' of ${contexts.join(' ')}`, () => {
    assert.deepEqual(readQuestion(context, words), { question, contexts });
  });
}

const unread: readonly (readonly [readonly string[], readonly string[], RegExp])[] = [
  [[], [], /There is no question/],
  [[], ['how many?'], /no files to ask about/],
  [['how many?'], [], /no files to ask about/],
  [['a.txt', '-'], [], /There is no question/],
  [['a.txt', 'package.json'], [], /There is no question/],
  [['a.txt', ' '], [], /There is no question/],
  [['-', '-'], ['how many?'], /stdin can be read only once/],
];

for (const [context, words, message] of unread) {
  test(`--context ${context.join(' ')}, words ${words.join(' ') || '(none)'}: is refused`, () => {
    assert.throws(() => readQuestion(context, words), { exit: 2, message });
  });
}

test('a resumed run refuses changes of its fixed settings and accepts all others', () => {
  const names = askFlags.map(([flag]) => flag.split(' ')[0] ?? '');
  const all = Object.fromEntries(
    names.map((name) => [
      name.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
      'x',
    ]),
  );
  const limits = ['--max-iterations', '--max-usd', '--max-tokens', '--max-minutes'];
  const free = [
    '--base-url',
    '--effort',
    '--json',
    '--continue',
    '--resume',
    '--take-over',
    '--verbose',
    ...limits,
  ];
  assert.deepEqual(
    [...frozenFlags(all)].sort(),
    names.filter((name) => !free.includes(name)).sort(),
  );
});

const stopped = (reason: PolicyReason): Outcome => ({
  status: 'stopped',
  reason,
  message: 'why',
  partial: 'p',
});
const answered = (closing: PolicyReason | null, by: 'record' | 'limit'): Outcome => ({
  status: 'answered',
  answer: 'A',
  by,
  closing,
});

const endings: readonly (readonly [string, Outcome, number, string])[] = [
  ['an answer', answered(null, 'record'), 0, 'A'],
  ['an answer that was submitted at the limit', answered('iterations', 'record'), 0, 'A'],
  ['last words at the limit of iterations', answered('iterations', 'limit'), 126, 'A'],
  ['last words of a model that only repeats', answered('repeated', 'limit'), 1, 'A'],
  ['no dollars', stopped('usd'), 125, ''],
  ['no tokens', stopped('tokens'), 125, ''],
  ['a price that is not known', stopped('unpriced'), 125, ''],
  ['no time', stopped('time'), 124, ''],
  ['no iterations', stopped('iterations'), 126, ''],
  ['too many errors', stopped('errors'), 1, ''],
  ['the policy', stopped('policy'), 1, ''],
  ['a rate limit', { status: 'failed', kind: 'rateLimited', message: 'why', partial: '' }, 75, ''],
  ['no provider', { status: 'failed', kind: 'unreachable', message: 'why', partial: '' }, 69, ''],
  ['a wrong key', { status: 'failed', kind: 'auth', message: 'why', partial: '' }, 78, ''],
  [
    'a broken environment',
    { status: 'failed', kind: 'environment', message: 'why', partial: '' },
    70,
    '',
  ],
  ['a cancel', { status: 'cancelled', cause: 'user', partial: '' }, 130, ''],
];

for (const [what, outcome, exit, answer] of endings) {
  test(`${what} ends with ${exit}`, () => {
    const ending = outcomeEnding(outcome, piecesOf(noPieces));
    assert.equal(ending.exit, exit);
    assert.equal(getAnswer(outcome), answer);
    assert.equal(ending.message === '', exit === 0 || outcome.status === 'cancelled');
  });
}
