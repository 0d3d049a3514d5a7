import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';
import { invalidText, outcomeText, refusedText } from '../../src/machine/moves/batch-calls.js';
import { cutMiddle, utf8Bytes } from '../../src/machine/moves/retry.js';
import { durationText, resetText } from '../../src/machine/moves/stop.js';

// What the machine says, where a number or a length decides about the words.

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

test('a duration is said in the largest unit of which there are two, seconds from one on', () => {
  const said = [0, 999, second, 119 * second, 2 * minute, 119 * minute, 2 * hour, 30 * hour].map(
    durationText,
  );
  assert.deepEqual(said, ['0 ms', '999 ms', '1 s', '119 s', '2 min', '119 min', '2 h', '30 h']);
  assert.deepEqual([1_499.6, 1_500, 150_001, 3 * hour - 1].map(durationText), [
    '1 s',
    '2 s',
    '3 min',
    '3 h',
  ]);
});

test('a limit resets after a while, at a time of day', () => {
  const midnight = Date.UTC(2026, 10, 22);
  assert.equal(resetText(midnight, 90 * second), 'it resets in 90 s, at 00:01 UTC');
  assert.equal(resetText(midnight + 13 * hour, 65 * minute), 'it resets in 65 min, at 14:05 UTC');
  assert.equal(resetText(midnight + 23 * hour, 2 * hour), 'it resets in 2 h, at 01:00 UTC');
});

test('bytes are those of UTF-8, at the borders of its lengths, too', () => {
  const letters = ['\u007f', '\u0080', '\u07ff', '\u0800', '\uffff', '\u{10000}', '\u{10ffff}'];
  assert.deepEqual(
    letters.map(utf8Bytes),
    letters.map((letter) => Buffer.byteLength(letter)),
  );
  assert.equal(utf8Bytes(''), 0);
  assert.equal(utf8Bytes('aé€😀'), 10);
});

test('a text that fits is not cut', () => {
  assert.equal(cutMiddle('12345678', 8, '…'), '12345678');
  assert.equal(cutMiddle('', 0, '…'), '');
});

test('head and tail are kept in equal parts, and the note counts', () => {
  assert.equal(cutMiddle('0123456789', 9, '[-]'), '012[-]789');
  assert.equal(cutMiddle('0123456789', 8, '[-]'), '01[-]89');
  assert.equal(cutMiddle('0123456789', 3, '[-]'), '[-]');
});

test('a limit smaller than the note leaves the note', () => {
  assert.equal(cutMiddle('0123456789', 1, '[-]'), '[-]');
});

test('only whole characters are kept', () => {
  assert.equal(cutMiddle('😀😀😀😀', 12, '[-]'), '😀[-]😀');
  assert.equal(cutMiddle('a😀😀😀b', 13, '[-]'), 'a😀[-]😀b');
});

test('the model’s text is quoted up to 400 characters', () => {
  const text = (raw: string) => invalidText({ ...g.notJson('1'), rawInput: raw });
  assert.match(text('x'.repeat(400)), /What you wrote: x{400}$/);
  assert.match(text('x'.repeat(401)), /What you wrote: x{400}…$/);
});

const said = (walker: Walker): readonly string[] =>
  walker.last().actions.flatMap((action) => ('text' in action ? [action.text] : []));

check([
  {
    rule: 'refused-reply',
    title: 'a reply that ends for a reason of its own is no answer',
    given: 'C[u]',
    send: [g.completed({ text: 'no', stopReason: 'other' })],
    state: 'W(endOfTurn refused)',
    also: (walker) =>
      assert.deepEqual(said(walker), ['no', 'the model stopped for a reason of its own']),
  },
  {
    rule: 'retry-failed-call',
    title: 'a provider that has answered is not said to be out of reach',
    given: 'C[u]',
    send: [g.fails({ kind: 'unreachable', retryable: false, answered: 'yes', message: 'no' })],
    state: 'W(error unreachable)',
    also: (walker) => assert.deepEqual(said(walker), ['the provider failed: no']),
  },
  {
    rule: 'format-changes',
    title: 'files are named as they lie in the workspace, those elsewhere in full',
    given: 'H[f]',
    send: [g.hookDone({ changedFiles: ['/project/src/a.ts', '/projects/b.ts', 'c.ts'] })],
    state: 'C[t]',
    also: (walker) =>
      assert.deepEqual(said(walker), [
        'formatted src/a.ts\nformatted /projects/b.ts\nformatted c.ts',
      ]),
  },
]);

test('each way in which a call ends reads differently', () => {
  const read = (outcome: Parameters<typeof outcomeText>[0]) => outcomeText(outcome, 'user');
  assert.equal(read({ status: 'ok', text: 'found' }), 'found');
  assert.equal(read({ status: 'ok', text: '' }), '(no output)');
  assert.equal(read({ status: 'failed', text: 'no such file' }), 'failed: no such file');
  assert.equal(read({ status: 'failed', text: '' }), 'failed without output');
  const late = 'stopped: the deadline of the call was reached; its effects may be incomplete';
  assert.equal(read({ status: 'timedOut', text: 'half' }), `${late}\nhalf`);
  assert.equal(read({ status: 'timedOut', text: ' \n' }), late);
  const stopped = 'stopped while running by the user, effects unknown';
  assert.equal(read({ status: 'cancelled', text: 'half' }), `${stopped}\nhalf`);
  assert.equal(read({ status: 'cancelled', text: '', ran: 'no' }), 'not run: cancelled by user');
  assert.equal(read({ status: 'lost', text: 'half' }), 'outcome unknown after a crash\nhalf');
});

test('a reason is told where the user gave one', () => {
  assert.equal(refusedText(' '), 'refused by user');
  assert.equal(refusedText(' not this file\n'), 'refused by user: not this file');
});
