import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import {
  answers,
  askAbout,
  endOf,
  journaled,
  memoryRuns,
  notingModel,
  program,
} from '../../../../test/kit/ask/ask-stage.js';
import type { AskTypes } from '../../src/ports.js';
import type { StopFacts } from '../../src/run/stop-policies.js';

/** A tree while it is open: every effect after its event, limits, policies, and a journal that fails. */

const full = (after: number): InspectableStore<AskTypes> => {
  const store = memoryRuns();
  return {
    ...store,
    create: async (header) => {
      const journal = await store.create(header);
      return {
        ...journal,
        append: async (drafts) => {
          if (journal.seq + drafts.length > after) throw new Error('the disk is full');
          await journal.append(drafts);
        },
        get seq() {
          return journal.seq;
        },
      };
    },
  };
};

test('an event that can’t be journaled is not performed: the run stops with the journal’s error', async (context) => {
  const model = notingModel({
    replies: [{ text: program('llm_query("leaf")') }],
    rules: [{ when: '^leaf', text: '1' }],
  });
  const asked = await askAbout(context, 'abc', { journals: full(3), model });
  await assert.rejects(asked.run.outcome, /the disk is full/);
  assert.equal(asked.steps.length, 3);
  assert.equal(model.requests.length, 1, 'the sub-call was made though it was not journaled');
  await assert.rejects(asked.run.close(), /the disk is full/);
  await assert.rejects(asked.run.cancel(), /the disk is full/);
});

test('a full disk stands the run down in order: its end goes to reserved space, and nothing more is done', async (context) => {
  const store = memoryRuns();
  let isFull = false;
  const journals: typeof store = {
    ...store,
    create: async (header) => {
      const journal = await store.create(header);
      return {
        ...journal,
        append: async (drafts) => {
          await journal.append(drafts);
          isFull ||= drafts.some(({ event }) => event.type === 'SubcallAsked');
        },
        get seq() {
          return journal.seq;
        },
        get full() {
          return isFull ? new Error('the disk is full') : null;
        },
      };
    },
  };
  const model = notingModel({
    replies: [{ text: program('llm_query("leaf")') }],
    rules: [{ when: '^leaf', text: '1' }],
  });
  const { run } = await askAbout(context, 'abc', { journals, model });
  await assert.rejects(run.outcome, /the disk is full/);
  assert.equal(model.requests.length, 1, 'nothing is asked on a full disk');
  const events = await journaled(store, run.id);
  assert.equal(events.at(-1)?.type, 'ShutdownRequested');
  assert.equal((await store.peek(run.id)).state.name, 'ShutDown');
});

test('the time limit ends a run whatever it does', async (context) => {
  const script = { replies: [{ text: program('for (;;) {}') }] };
  const settings = { limits: { usd: 0, tokens: 0, timeMs: 1_500 } };
  const { run } = await askAbout(context, 'abc', { script, options: { settings } });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped');
  assert.equal(outcome.reason, 'time');
});

test('the user’s policy is asked before every call, and its word counts', async (context) => {
  const seen: StopFacts[] = [];
  const script = {
    replies: [
      { text: program('print(1)') },
      { text: program('print(2)') },
      { text: 'The best I have.' },
    ],
  };
  const { run } = await askAbout(context, 'abc', {
    script,
    asker: {
      policy: async (facts) => {
        seen.push(facts);
        return facts.iterations < 2
          ? { kind: 'go' }
          : { kind: 'finish', reason: 'policy', why: 'it is enough' };
      },
    },
  });
  assert.deepEqual(await endOf(run), {
    status: 'answered',
    answer: 'The best I have.',
    by: 'limit',
    closing: 'policy',
  });
  assert.deepEqual(
    seen.map(({ iterations }) => iterations),
    [0, 1, 2],
  );
});

test('a policy that fails stops the run, and is named', async (context) => {
  const { run } = await askAbout(context, 'abc', {
    script: { replies: [{ text: program('1') }] },
    asker: {
      policy: () => {
        throw new Error('no connection');
      },
    },
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped');
  assert.match(outcome.message, /the policy failed: no connection/);
});

test('a watcher is told of every step in order; one that throws is dropped and reported', async (context) => {
  const asked = await askAbout(context, 'abc', { script: { replies: [{ text: answers('1') }] } });
  let calls = 0;
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  asked.run.watch(() => {
    calls += 1;
    throw new Error('nobody looks');
  });
  await asked.run.outcome;
  assert.equal(calls, 1);
  assert.match((await warned).message, /nobody looks/);
  assert.deepEqual(
    asked.steps.map(({ seq }) => seq),
    asked.steps.map((_, index) => index + 1),
  );
});

test('events carry the run that they are of, and timers find theirs', async (context) => {
  const script = {
    replies: [{ text: program('a = llm_query("flaky");') }, { text: answers('a') }],
    rules: [{ when: '^flaky', fail: { kind: 'overloaded' as const } }],
  };
  const settings = { maxRetries: 2, retrySchedule: { kind: 'linear', stepMs: 5 } as const };
  const asked = await askAbout(context, 'abc', { script, options: { settings } });
  await asked.run.outcome;
  const timers = asked.steps.filter(({ event }) => event.type === 'TimerFired');
  assert.deepEqual(
    timers.map(({ event, diagnostics }) => [event.node, diagnostics.length]),
    [
      ['n0.c1.1.1', 0],
      ['n0.c1.1.1', 0],
    ],
  );
});

test('two runs at once do not meet', async (context) => {
  const runs = await Promise.all(
    ['one', 'other'].map((name) =>
      askAbout(context, name, {
        script: {
          replies: [
            { text: program(`mine = llm_query("leaf ${name}")`) },
            { text: answers('context + mine') },
          ],
          rules: [{ when: '^leaf (.*)', text: '<$1>' }],
        },
      }),
    ),
  );
  const outcomes = await Promise.all(runs.map(({ run }) => run.outcome));
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'answered' ? outcome.answer : outcome.status)),
    ['one<one>', 'other<other>'],
  );
});
