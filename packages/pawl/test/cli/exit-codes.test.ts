import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JournalError, type JournalErrorKind } from '@pawl/agent/journal/journal-error';
import { addReply } from '@pawl/agent/machine/conversation';
import { initialState } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State, WaitReason } from '@pawl/agent/machine/state';
import { errorEnding, Stop, turnEnding } from '../../src/process/exit-codes.js';

const { session } = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
const waiting = (reason: WaitReason): State => ({
  name: 'WaitingForUserInput',
  session,
  reason,
  next: 'rest',
});
const failed = (error: Extract<WaitReason, { kind: 'error' }>['error']): WaitReason => ({
  kind: 'error',
  error,
  origin: 'llm',
  message: 'why',
});

const rows: readonly (readonly [string, WaitReason, number, string])[] = [
  ['an answer', { kind: 'endOfTurn', cause: 'answer' }, 0, 'answer'],
  ['an empty reply', { kind: 'endOfTurn', cause: 'empty' }, 1, 'empty'],
  ['a refusal', { kind: 'endOfTurn', cause: 'refused' }, 1, 'refused'],
  ['a truncated answer', { kind: 'endOfTurn', cause: 'truncated' }, 1, 'truncated'],
  ['a cancelled turn', { kind: 'cancelled', cause: 'user' }, 130, 'cancelled'],
  ['a veto of a hook', { kind: 'cancelled', cause: 'veto' }, 1, 'veto'],
  ['a missing approval', { kind: 'cancelled', cause: 'approval' }, 77, 'approval'],
  ['the dollar limit', { kind: 'budget', dimension: 'usd' }, 125, 'usdLimit'],
  ['the token limit', { kind: 'budget', dimension: 'tokens' }, 125, 'tokensLimit'],
  ['the time limit', { kind: 'budget', dimension: 'time' }, 124, 'timeLimit'],
  ['the round limit', { kind: 'budget', dimension: 'rounds' }, 126, 'roundsLimit'],
  [
    'replies cut off again and again',
    { kind: 'budget', dimension: 'truncation' },
    1,
    'truncationLimit',
  ],
  ['a rate limit', failed('rateLimited'), 75, 'rateLimited'],
  ['an overload', failed('overloaded'), 75, 'overloaded'],
  ['a provider out of reach', failed('unreachable'), 69, 'unreachable'],
  ['a silent provider', failed('timeout'), 69, 'timeout'],
  ['a used-up quota', failed('quotaExhausted'), 69, 'quotaExhausted'],
  ['a malformed reply', failed('malformed'), 69, 'malformed'],
  ['a window too small', failed('contextOverflow'), 1, 'contextOverflow'],
  ['a failed compaction', failed('compaction'), 1, 'compaction'],
  ['a refusal by the provider', failed('refused'), 1, 'refused'],
  ['a bad key', failed('auth'), 78, 'auth'],
  ['a request that the provider rejects', failed('badRequest'), 78, 'badRequest'],
  ['input that failed', failed('input'), 65, 'input'],
  ['a fault of the tools', failed('tools'), 70, 'tools'],
  ['a compaction on request', { kind: 'compacted' }, 0, 'compacted'],
];

for (const [title, reason, exit, word] of rows) {
  test(`${title} ends with ${exit}`, () => {
    const ending = turnEnding(waiting(reason));
    assert.deepEqual([ending.exit, ending.reason], [exit, word]);
    if (reason.kind === 'error') assert.match(ending.message, /^why(\. [A-Z].*[.")])?$/);
    else if (ending.exit === 0) assert.equal(ending.message, '');
    else assert.match(ending.message, /^[A-Z].*[.]$/);
  });
}

test('what a provider refuses in a session that it accepted before can be taken back', () => {
  const said = { role: 'assistant', model: 'm', cut: false, parts: [] } as const;
  const conversation = addReply(session.conversation, said);
  const reason = failed('badRequest');
  const first = turnEnding(waiting(reason));
  const later = turnEnding({ ...waiting(reason), session: { ...session, conversation } });
  assert.match(first.message, /^why\. Another model may take it: --model/);
  assert.match(later.message, /pawl rewind takes back what was refused.*--pictures no/);
});

test('a session that was shut down was terminated', () => {
  assert.equal(turnEnding({ name: 'ShuttingDown', session }).exit, 143);
});

test('a state that still works is an internal fault', () => {
  const state: State = {
    name: 'Compacting',
    session,
    compactionId: 'c',
    length: 1,
    mode: { kind: 'mid' },
  };
  assert.equal(turnEnding(state).exit, 70);
});

const journalRows: Readonly<Record<JournalErrorKind, number>> = {
  locked: 75,
  damaged: 65,
  newerVersion: 65,
  notFound: 65,
  cannotRead: 65,
  outOfRange: 2,
  otherMachine: 2,
  cannotWrite: 74,
  foreignChange: 74,
  takenOver: 74,
  exists: 65,
};

for (const [kind, exit] of Object.entries(journalRows)) {
  test(`a journal that is ${kind} ends with ${exit}`, () => {
    const error = new JournalError(kind as JournalErrorKind, '/j', 'said'); // a key of the table
    assert.deepEqual(errorEnding(error), { exit, reason: kind, message: 'said' });
  });
}

test('a damaged journal says what can still be done with it', () => {
  const damaged = (seq: number): string =>
    errorEnding(new JournalError('damaged', '/s/one.jsonl', 'said', { line: seq + 2, seq }))
      .message;
  assert.equal(
    damaged(3),
    'said\nTo see the undamaged part: pawl show one --at 3\nTo continue from there: pawl fork one --at 3',
  );
  assert.equal(damaged(0), 'said');
});

const systemRows: readonly (readonly [string, number])[] = [
  ['EPIPE', 141],
  ['ENOSPC', 74],
  ['EROFS', 74],
  ['EWHATEVER', 70],
];

for (const [code, exit] of systemRows) {
  test(`a system's ${code} ends with ${exit}`, () => {
    assert.equal(errorEnding(Object.assign(new Error('x'), { code })).exit, exit);
  });
}

test('a stop carries its own code', () => {
  assert.deepEqual(errorEnding(new Stop(78, 'configuration', 'set a key')), {
    exit: 78,
    reason: 'configuration',
    message: 'set a key',
  });
});

for (const code of ['EMFILE', 'ENFILE']) {
  test(`${code} is a matter of the set-up, told with the way out and without a stack`, () => {
    const { exit, reason, message } = errorEnding(
      Object.assign(new Error(`${code}: too many`), { code }),
    );
    assert.deepEqual([exit, reason], [78, 'openFiles']);
    assert.match(message, /^E[MN]FILE: too many\. .* then start again\.$/);
  });
}
