import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import * as v from 'valibot';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  callTools,
  command,
  hang,
  ok,
  rawCall,
  resultsOf,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { Stepped } from '../../src/ports/session.js';
import type { ApprovalQuestion, OnApproval } from '../../src/session/approvals.js';
import { createAgent, openSession } from '../../src/session/create-agent.js';
import { defineTool } from '../../src/session/define-tool.js';

const tools = [tool('change', ({ to }) => ok(`changed to ${to}`), command)];
const change = (callId: string, to: string) => rawCall(callId, 'change', { to });

type Row = { readonly answer: string; readonly onApproval: OnApproval; readonly then: RegExp };

const rows: readonly Row[] = [
  { answer: 'allow', onApproval: () => 'allow', then: /^changed to blue$/ },
  {
    answer: 'allow, after a while',
    onApproval: () => Promise.resolve('allow'),
    then: /^changed to blue$/,
  },
  { answer: 'deny', onApproval: () => ({ deny: 'I like it red' }), then: /I like it red/ },
  {
    answer: 'a fault',
    onApproval: () => {
      throw new Error('the dialogue broke');
    },
    then: /nobody could be asked/,
  },
  {
    answer: 'a rejection',
    onApproval: () => Promise.reject(new Error('the dialogue broke')),
    then: /nobody could be asked/,
  },
];

for (const { answer, onApproval, then } of rows) {
  test(`a call that needs approval, answered by ${answer}, ends so, and the turn goes on`, async (context) => {
    const model = testModel(callTools(change('1', 'blue')), say('done'));
    const faults: string[] = [];
    const { session } = await openHere(context, model, {
      tools,
      preset: 'careful',
      onApproval,
      report: ({ message }) => faults.push(message),
    });
    const turn = await session.prompt('paint it');
    assert.deepEqual([turn.ok, turn.text], [true, 'done']);
    assert.match(resultsOf(model.requests.at(-1)?.messages ?? [])['1'] ?? '', then);
    assert.deepEqual(faults, answer.startsWith('a ') ? ['the dialogue broke'] : []);
  });
}

test('always holds for the tool until the session ends: it is asked once', async (context) => {
  const model = testModel(callTools(change('1', 'a')), callTools(change('2', 'b')), say('done'));
  const asked: ApprovalQuestion[] = [];
  const { session, workspace } = await openHere(context, model, {
    tools,
    preset: 'careful',
    onApproval: (question) => {
      asked.push(question);
      return 'always';
    },
  });
  await session.prompt('paint it');
  assert.equal(asked.length, 1);
  const { oddCharacters, choices, ...question } = asked[0] ?? assert.fail('nobody was asked');
  assert.deepEqual(question, {
    batchId: 'batch-1',
    callId: '1',
    tool: 'change',
    input: { to: 'a' },
    subject: { kind: 'input', text: '{\n  "to": "a"\n}' },
    paths: [],
    argv: [],
    hosts: [],
    programs: [],
    folder: workspace,
    timeLimitMs: command.deadlineMs,
    background: false,
    needs: null,
    protectedPaths: [],
    why: 'the preset careful asks before changes',
  });
  assert.deepEqual(oddCharacters, []);
  assert.deepEqual(
    choices.map(({ answer, allows }) => `${answer}: ${allows}`),
    [
      'once: this call',
      'session: every change call (protected paths still ask)',
      'no: you may type a reason for the model',
    ],
  );
  assert.equal(resultsOf(model.requests.at(-1)?.messages ?? [])['2'], 'changed to b');
});

test('a question that is never answered is cancelled with the turn, and told that nobody waits any more', async (context) => {
  const model = testModel(callTools(change('1', 'a')), say('and now?'));
  let isAsked = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const signals: AbortSignal[] = [];
  const { session } = await openHere(context, model, {
    tools,
    preset: 'careful',
    onApproval: (_, signal) => {
      signals.push(signal);
      isAsked();
      return new Promise(() => undefined);
    },
  });
  const turn = session.prompt('paint it');
  await asked;
  assert.equal(signals[0]?.aborted, false);
  await session.cancel();
  assert.equal((await turn).reason.kind, 'cancelled');
  assert.equal(signals[0]?.aborted, true);
  assert.equal((await session.prompt('hello?')).text, 'and now?');
});

test('an answer that comes after the turn was cancelled answers nothing, also if a new question has its id', async (context) => {
  const ran: string[] = [];
  const watched = [
    tool(
      'change',
      ({ to }) => {
        ran.push(String(to));
        return ok('');
      },
      command,
    ),
  ];
  const model = testModel(callTools(change('1', 'a')), callTools(change('1', 'b')), say('later'));
  const answers: (() => void)[] = [];
  const { session, journals } = await openHere(context, model, {
    tools: watched,
    preset: 'careful',
    onApproval: () => new Promise((resolve) => answers.push(() => resolve('allow'))),
  });
  for (const asked of [1, 2]) {
    const turn = session.prompt('paint it');
    await until('the question', () => answers.length === asked);
    answers[asked - 2]?.(); // to the question before
    await setImmediate(); // it has come
    await session.cancel();
    await turn;
  }
  answers[1]?.();
  assert.equal((await session.prompt('hello?')).text, 'later');
  assert.deepEqual(ran, []);
  for await (const { event } of journals.read(session.id))
    assert.notEqual(event.type, 'ApprovalAnswered');
});

test('a session that was closed while it asked asks again when it is resumed', async (context) => {
  const model = testModel(callTools(change('1', 'a')), say('done'));
  let isAsked = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const { session, journals, workspace } = await openHere(context, model, {
    tools,
    preset: 'careful',
    onApproval: () => {
      isAsked();
      return new Promise(() => undefined);
    },
  });
  const turn = session.prompt('paint it');
  await asked;
  await session.close();
  assert.equal((await turn).ok, false);
  const events: string[] = [];
  const again = await openSession({
    journals,
    model,
    workspace,
    tools,
    resume: session.id,
    onApproval: () => 'allow',
    watcher: ({ event }) => {
      events.push(event.type);
      throw new Error('the watcher is broken');
    },
    report: ({ message }) => void events.push(message),
  });
  const state = await again.idle();
  assert.equal(state.name, 'WaitingForUserInput');
  assert.deepEqual(events.slice(0, 2), ['Resumed', 'the watcher is broken']);
  await again.close();
});

test('a watcher that throws does not take the answers away', async (context) => {
  const model = testModel(callTools(change('1', 'blue')), say('done'));
  const faults: string[] = [];
  const { session } = await openHere(context, model, {
    tools,
    preset: 'careful',
    onApproval: () => 'allow',
    watcher: () => {
      throw new Error('the watcher is broken');
    },
    report: ({ message }) => faults.push(message),
  });
  assert.equal((await session.prompt('paint it')).text, 'done');
  assert.deepEqual(faults, ['the watcher is broken']);
});

test('closing while a model hangs and nobody was asked leaves nothing to answer', async (context) => {
  const { session } = await openHere(context, testModel(hang()), {
    tools,
    onApproval: () => 'allow',
  });
  await session.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
  await session.close();
  assert.equal((await session.state()).name, 'ShuttingDown');
});

/** A tool that contacts a host, for which the default preset asks. */
const contact = defineTool({
  name: 'weather',
  description: 'The weather of a town.',
  input: v.object({ town: v.string() }),
  inputSchema: { type: 'object', properties: { town: { type: 'string' } } },
  effect: 'reads',
  touches: () => ({ hosts: ['weather.example'] }),
  run: async ({ town }) => `fine in ${town}`,
});

test('without a callback a call that needs an approval ends the turn, whose reason names it, and the session goes on', async (context) => {
  const call = rawCall('1', 'weather', { town: 'Bern' });
  const model = testModel(callTools(call), say('sorry'), callTools(call), say('fine'));
  const { session, journals, workspace } = await openHere(context, model, { tools: [contact] });
  const turn = await session.prompt('the weather?');
  assert.equal(turn.ok, false);
  assert.deepEqual(turn.reason, {
    kind: 'cancelled',
    cause: 'approval',
    unapproved: [
      { tool: 'weather', why: 'the host was not allowed by name', hosts: ['weather.example'] },
    ],
  });
  assert.equal(model.requests.length, 1);
  const next = await session.prompt('and?');
  assert.deepEqual([next.ok, next.text], [true, 'sorry']);
  await session.close();
  const options = { journals, model, workspace, tools: [contact], resume: session.id };
  const asked: string[] = [];
  const answered = await openSession({
    ...options,
    onApproval: ({ tool: name }) => {
      asked.push(name);
      return 'allow';
    },
  });
  assert.equal((await answered.prompt('the weather?')).text, 'fine');
  assert.deepEqual(asked, ['weather']);
  await answered.close();
});

test('a question that is open when a session is opened, and that nobody answers now, ends the turn', async (context) => {
  const model = testModel(callTools(rawCall('1', 'weather', { town: 'Bern' })), say('sorry'));
  const workspace = temporaryFolder(context, 'library');
  const journals = memoryJournals();
  const agent = createAgent({ model, journals, tools: [contact] });
  let isAsked = false;
  const onApproval: OnApproval = () => {
    isAsked = true;
    return new Promise(() => undefined);
  };
  let last = 0;
  const watcher = ({ seq }: Stepped): void => {
    last = seq ?? last;
  };
  const session = await agent.open({ workspace, onApproval, watcher });
  const first = session.prompt('the weather?');
  await until('the question', () => isAsked);
  const resume = await agent.runtime.fork(session.id, last); // what a crash would leave
  const next = await openSession({ journals, model, workspace, tools: [contact], resume });
  assert.equal((await next.idle()).name, 'WaitingForUserInput');
  assert.equal((await next.prompt('and?')).text, 'sorry');
  await next.close();
  await session.cancel();
  assert.deepEqual((await first).reason, { kind: 'cancelled', cause: 'user' });
  await session.close();
});

test('whoever answers the questions himself says so, and is waited for', async (context) => {
  const model = testModel(callTools(rawCall('1', 'weather', { town: 'Bern' })), say('fine'));
  const { session } = await openHere(context, model, {
    tools: [contact],
    settings: { onAsk: 'ask' },
    watcher({ actions }) {
      for (const action of actions)
        if (action.type === 'RequestApproval')
          void session.send({
            type: 'ApprovalAnswered',
            batchId: action.batchId,
            callId: action.call.callId,
            answer: { kind: 'allow' },
            scope: 'once',
          });
    },
  });
  assert.equal((await session.prompt('the weather?')).text, 'fine');
});
