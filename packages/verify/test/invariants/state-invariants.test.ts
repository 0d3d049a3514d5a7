import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asked,
  batch,
  calling,
  check,
  endedCall,
  event,
  llm,
  queued,
  type Row,
  reply,
  result,
  running,
  send,
  session,
  text,
  user,
  waiting,
  withTalk,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { stateFaults } from '../../src/invariants.js';

/**
 * The promises themselves: each is broken on purpose, and has to say so; what looks like a breach and is none has to
 * pass. Steps are made by hand, because the machine takes none that breaks them.
 */

// ---- The conversation ----

const talk: readonly Row[] = [
  { title: 'a question and its answer', after: waiting(withTalk([asked(), reply()])) },
  { title: 'a question that waits', after: waiting(withTalk([], asked())) },
  {
    title: 'calls and their results, then text',
    after: waiting(
      withTalk([asked(), calling('1', '2')], user(result('1'), result('2'), text('user', 'and'))),
    ),
  },
  {
    title: 'an empty message',
    after: waiting(withTalk([], user())),
    says: 'roles-alternate: a message is empty',
  },
  {
    title: 'blank text of a user',
    after: waiting(withTalk([], user(text('note', ' \n')))),
    says: 'roles-alternate: a user message holds blank text',
  },
  { title: 'blank text of the model', after: waiting(withTalk([asked(), reply(' ')])) },
  {
    title: 'an answer to nothing',
    after: waiting(withTalk([reply()])),
    says: 'roles-alternate: roles do not alternate: start, assistant',
  },
  {
    title: 'two users in a row',
    after: waiting(withTalk([asked()], asked('again'))),
    says: 'roles-alternate: roles do not alternate: user, user',
  },
  {
    title: 'a result is missing',
    after: waiting(withTalk([asked(), calling('1', '2')], user(result('1')))),
    says: 'every-call-answered: calls [1,2] are answered by [1]',
  },
  {
    title: 'results in another order',
    after: waiting(withTalk([asked(), calling('1', '2')], user(result('2'), result('1')))),
    says: 'every-call-answered: calls [1,2] are answered by [2,1]',
  },
  {
    title: 'a result without a call',
    after: waiting(withTalk([asked(), reply()], user(result('1')))),
    says: 'every-call-answered: calls [] are answered by [1]',
  },
  {
    title: 'text before a result',
    after: waiting(withTalk([asked(), calling('1')], user(text('note', 'so'), result('1')))),
    says: 'every-call-answered: text stands before a result',
  },
  {
    title: 'a result without a word',
    after: waiting(withTalk([asked(), calling('1')], user({ ...result('1'), text: ' ' }))),
  },
  {
    title: 'calls that are not answered while waiting',
    after: waiting(withTalk([asked(), calling('1')])),
    says: 'every-call-answered: the last calls are not answered',
  },
  {
    title: 'calls that are not answered after the end',
    after: { name: 'ShuttingDown', session: withTalk([asked(), calling('1')]) },
    says: 'every-call-answered: the last calls are not answered',
  },
  {
    title: 'calls that run',
    after: batch([running('1')], withTalk([asked(), calling('1')])),
  },
];
for (const row of talk) check(row);

// ---- 2 and 4: requests ----

const requests: readonly Row[] = [
  {
    title: 'a request',
    after: llm(withTalk([asked(), reply()], asked('more'))),
    actions: [send(3)],
  },
  {
    title: 'a request that ends with the model',
    after: llm(withTalk([asked(), reply()])),
    actions: [send(2)],
    says: 'roles-alternate: a request does not end with the user',
  },
  {
    title: 'a request of a part of the conversation',
    after: llm(withTalk([asked(), reply()], asked('more'))),
    actions: [send(2)],
    says: 'roles-alternate: a request is not the whole conversation',
  },
  {
    title: 'two requests in one step',
    after: llm(withTalk([], asked())),
    actions: [send(1), send(1)],
    says: 'one-request: a step sends two requests',
  },
  {
    title: 'a request of an old id',
    after: llm(withTalk([], asked())),
    actions: [send(1, 'req-0')],
    says: 'one-request: a request is not the current one',
  },
  {
    title: 'a request that nobody waits for',
    after: waiting(withTalk([], asked())),
    actions: [send(1)],
    says: 'one-request: a request is not the current one',
  },
];
for (const row of requests) check(row);

test('a request in front of which calls are not answered: 1 and 2', () => {
  const after = llm(withTalk([asked(), calling('1')]));
  assert.deepEqual(
    stateFaults(waiting(), event, { state: after, actions: [send(2)], path: [], diagnostics: [] }),
    [
      'every-call-answered: the last calls are not answered',
      'roles-alternate: a request does not end with the user',
    ],
  );
});

// ---- 3: liveness ----

const lives: readonly Row[] = [
  { title: 'a batch with a call that runs', after: batch([endedCall('1'), running('2')]) },
  {
    title: 'a batch with a call that awaits an answer',
    after: batch([{ judged: g.grep('1'), requestedAt: 1, status: 'awaitingApproval' }]),
  },
  {
    title: 'a batch whose calls only wait',
    after: batch([endedCall('1'), queued('2')]),
    says: 'never-stuck: a batch waits for nothing',
  },
  {
    title: 'a batch that is over',
    after: batch([endedCall('1')]),
    says: 'never-stuck: a batch whose calls have all ended rests',
  },
  {
    title: 'a hook that runs',
    after: {
      name: 'PostToolsHook',
      session: session(),
      phase: 'CheckingGitCommits',
      hookId: 'hook-1',
      mutated: [],
      tree: 'unknown',
    },
  },
  {
    title: 'a hook that was never started',
    after: {
      name: 'PostToolsHook',
      session: session(),
      phase: 'CheckingGitCommits',
      hookId: '',
      mutated: [],
      tree: 'unknown',
    },
    says: 'never-stuck: a hook rests without having been started',
  },
  {
    title: 'a state that is only passed',
    after: { name: 'CheckingBudget', session: session() },
    says: 'never-stuck: the transient state CheckingBudget rests',
  },
];
for (const row of lives) check(row);

// ---- What is looked at ----

const over = batch([endedCall('1')]);
const told: Row['event'] = {
  type: 'ToolProgress',
  at: g.NOW,
  batchId: 'batch-1',
  callId: '1',
  text: '50 %',
};

const steps: readonly Row[] = [
  {
    title: 'a breach in a state that nothing happens to',
    before: over,
    event: told,
    after: over,
    actions: [],
  },
  {
    title: 'a breach in a state that is new',
    before: over,
    event: told,
    after: { ...over },
    actions: [],
    says: 'never-stuck: a batch whose calls have all ended rests',
  },
  {
    title: 'a breach in a state that does something',
    before: over,
    event: told,
    after: over,
    says: 'never-stuck: a batch whose calls have all ended rests',
  },
];
for (const row of steps) check(row);
