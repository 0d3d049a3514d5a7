import assert from 'node:assert/strict';
import { test } from 'node:test';
import { presetRules } from '@pawl/agent/policy/presets';
import * as g from '../../../../test/kit/agent/given.js';
import { start } from '../../../../test/kit/agent/walker.js';
import { minimal } from '../../src/projections/seed-minimal.js';
import {
  ALL_DONE,
  ASKS,
  ENDS_IN,
  GIVES_UP,
  ONE_OF_SOME,
  REPLIES,
  RUNS,
  SAYS,
  SAYS_NOTHING,
  TRIES_AGAIN,
  twoReads,
} from './minimal-rows.js';
import { check, lineOf, projected, takenBy } from './projected.js';

/** Seed 000: what our machine does and the seed does not know. */

check(minimal, [
  {
    title: 'opening the session is not seen',
    given: 'Ready',
    send: [g.begin],
    then: [],
  },
  { title: 'a message may come first', given: 'Ready', send: [g.input('hi')], then: [ASKS] },
  {
    title: 'text is shown when it is whole: the seed does not stream',
    given: 'C[u]',
    send: [g.delta('y')],
    then: [],
  },
  {
    title: 'text that was streamed was shown',
    given: 'C[u]',
    send: [g.delta('yo'), g.says('yo')],
    then: [REPLIES, SAYS],
  },
  {
    title: 'a stale event is none',
    given: 'C[u]',
    send: [g.completed({ text: 'old', requestId: 'req-0' })],
    then: [],
  },
  {
    title: 'the last ToolCompleted is held until the hook has ended',
    given: 'C[u]',
    settings: { hooks: 'mutating' },
    send: [g.wants(g.edit('1'), g.edit('2')), g.ended('1'), g.ended('2')],
    then: [],
  },
  {
    title: 'when the hook has ended, the batch has',
    given: 'H[a]',
    settings: { hooks: 'mutating', formatter: 'onChanges', autoCommit: 'on' },
    send: [g.hookDone()],
    then: [ALL_DONE],
    does: ['SendLlmRequest'],
  },
  {
    title: 'a call that cannot run is completed at once, like every other',
    given: 'C[u]',
    send: [g.wants(g.unknownTool('1'), g.grep('2'), g.notJson('3'))],
    then: [REPLIES, RUNS, ONE_OF_SOME, ONE_OF_SOME],
  },
  {
    title: 'a batch that cannot run is over at once',
    given: 'C[u]',
    send: [g.wants(g.unknownTool('1'), g.notJson('2'))],
    then: [REPLIES, RUNS, ONE_OF_SOME, ALL_DONE],
  },
  {
    title: 'a message that was queued is a UserInput when it opens a turn',
    given: 'C[u]',
    send: [g.input('and'), g.says('yo')],
    then: [REPLIES, SAYS, ASKS],
  },
  { title: 'a message while busy is ignored', given: 'C[u]', send: [g.input('and')], then: [] },
  {
    title: 'the last message is sent again as a UserInput',
    given: 'C[u]',
    send: [g.refusedRequest, g.retryLast],
    then: [ASKS],
  },
  {
    title: 'a retry before its time rings the timer',
    given: 'Er',
    send: [g.retryNow],
    then: [TRIES_AGAIN],
  },
  {
    title: 'an empty reply that is asked for again is an error',
    given: 'C[u]',
    settings: { emptyRetries: 1 },
    send: [g.empty],
    then: ['CallingLlm --LlmError--> Error / ScheduleRetry'],
  },
  {
    title: 'a session that is opened again begins a new trace',
    given: 'Z',
    send: [g.resumed, g.input('hi')],
    then: [ASKS],
  },
]);

const stops = { hooks: 'mutating', formatter: 'off', autoCommit: 'off' } as const;

check(minimal, [
  {
    title: 'cancel during a call: refused at its limit',
    given: 'C[u]',
    send: [g.cancel],
    then: [GIVES_UP],
  },
  {
    title: 'a failure that is not retried: the same',
    given: 'C[u]',
    send: [g.refusedRequest],
    then: [GIVES_UP],
  },
  {
    title: 'cancel before a retry: tried again, and refused',
    given: 'Er',
    send: [g.cancel],
    then: [TRIES_AGAIN, GIVES_UP],
  },
  {
    title: 'cancel of waiting calls: all done, and refused',
    given: 'C[u]',
    settings: { rules: presetRules.careful },
    send: [g.wants(g.edit('1'), g.edit('2')), g.cancel],
    then: [ONE_OF_SOME, ALL_DONE, GIVES_UP],
  },
  {
    title: 'the tools break: all done, and refused',
    given: 'X',
    send: [g.toolsFail],
    then: [ONE_OF_SOME, ALL_DONE, GIVES_UP],
  },
  {
    title: 'cancel during the hook: all done, and refused',
    given: 'H[c]',
    settings: stops,
    send: [g.cancel],
    then: [ALL_DONE, GIVES_UP],
  },
  {
    title: 'the hook says stop: all done, and refused',
    given: 'H[c]',
    settings: stops,
    send: [g.hookDone({ proceed: false })],
    then: [ALL_DONE, GIVES_UP],
  },
  {
    title: 'a limit is reached: all done, and refused',
    given: 'C[u]',
    settings: { limits: { rounds: 1 } },
    send: [g.wants(g.grep('1')), g.ended('1')],
    then: [ALL_DONE, GIVES_UP],
  },
  {
    title: 'a reply that is not understood ends like one without tools',
    given: 'C[u]',
    send: [g.completed({ message: null })],
    then: [REPLIES, SAYS_NOTHING],
  },
  {
    title: 'calls that come after the cancel: the reply ends like one without tools',
    given: 'C[u]',
    settings: { cancelMode: 'drain' },
    send: [g.cancel, twoReads],
    then: [REPLIES, SAYS_NOTHING],
  },
  { title: 'input that cannot be read is not seen', given: 'W', send: [g.inputFails], then: [] },
  {
    title: 'shutdown during the hook leaves the tools',
    given: 'H[c]',
    settings: stops,
    send: [g.shutdown],
    then: [ENDS_IN('ExecutingTools')],
  },
]);

const compacting = { windowTokens: 10_000, compactAtRatio: 0.8, compactMidRatio: 0.9 };

check(minimal, [
  {
    title: 'a summary before the message is sent: the call is under way',
    given: 'W full',
    settings: compacting,
    send: [g.input('x')],
    then: [ASKS],
    does: ['StartCompaction'],
  },
  {
    title: 'the summary is there: nothing is seen',
    given: 'K[i]',
    settings: compacting,
    send: [g.compacts()],
    then: [],
    does: ['SendLlmRequest'],
  },
  {
    title: 'the summary is cancelled: the call is refused',
    given: 'K[i]',
    settings: compacting,
    send: [g.cancel],
    then: [GIVES_UP],
  },
  {
    title: 'a call is refused if the text to send is gone',
    given: 'K[i]',
    settings: compacting,
    send: [g.unqueue('x'), g.compacts()],
    then: [GIVES_UP],
  },
  { title: 'a summary on request is not seen', given: 'W long', send: [g.compact], then: [] },
  {
    title: 'a summary on request is cancelled: not seen either',
    given: 'W long',
    send: [g.compact, g.cancel],
    then: [],
  },
  {
    title: 'a summary within the turn: the results are being sent',
    given: 'K[m]',
    settings: compacting,
    send: [g.compactionFails],
    then: [],
    does: ['SendLlmRequest'],
  },
  {
    title: 'a summary after an overflow fails: the call is refused',
    given: 'K[o]',
    settings: compacting,
    send: [g.compactionFails],
    then: [GIVES_UP],
  },
  {
    title: 'blank text is no text',
    given: 'C[u]',
    send: [g.says(' ')],
    then: [REPLIES, SAYS_NOTHING],
  },
  {
    title: 'blank text that was streamed is no text either',
    given: 'C[u]',
    send: [g.delta(' '), g.says(' ')],
    then: [REPLIES, SAYS_NOTHING],
  },
  {
    title: 'a thought is no text',
    given: 'C[u]',
    send: [g.completed({ reasoning: 'hm' })],
    then: [REPLIES, SAYS_NOTHING],
  },
  { title: 'an event that means nothing here is none', given: 'W', send: [g.retryNow], then: [] },
]);

test('minimal: each call of a reply is completed once, whatever becomes of it', () => {
  const walker = start({ ...minimal.settings, onAsk: 'deny', rules: presetRules.careful });
  walker.send(
    g.begin,
    g.input('hi'),
    g.wants(g.unknownTool('1'), g.edit('2'), g.grep('3'), g.grep('4')),
  );
  walker.send(g.ended('3'), g.ended('3'), g.cancel, g.ended('4'));
  const lines = projected(minimal, takenBy(walker)).flatMap(({ steps }) => steps.map(lineOf));
  assert.equal(lines.filter((line) => line.includes('--ToolCompleted-->')).length, 4);
});
