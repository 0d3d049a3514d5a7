import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  collect,
  command,
  ok,
  type Play,
  play,
  rawCall,
  resultsOf,
  say,
  settle,
  testModel,
  tool,
  traits,
  typesOf,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { Checkpoints } from '../../src/ports/checkpoints.js';
import type { FileHashes, Tool, ToolContext, ToolOutcome } from '../../src/ports/tool.js';
import { hooksOf } from './hooks.js';

/** A tool whose calls end when the test says so; what it saw is kept. */
const heldTool = (name: string, own = traits()) => {
  const calls = new Map<string, { context: ToolContext; end: (outcome: ToolOutcome) => void }>();
  const held = tool(
    name,
    (_input, context) =>
      new Promise<ToolOutcome>((end) => calls.set(context.callId, { context, end })),
    own,
  );
  const callOf = (callId: string) => {
    const call = calls.get(callId);
    assert.ok(call !== undefined, `call ${callId} has not started`);
    return call;
  };
  return { held, started: () => [...calls.keys()], callOf };
};

const runBatch = async (tools: readonly Tool[], ...calls: ReturnType<typeof rawCall>[]) => {
  const on = await play({ tools, model: testModel(callTools(...calls), say('done')) });
  await on.say('go');
  await settle();
  return on;
};

const secondRequest = (on: Play) => resultsOf(on.model.requests[1]?.messages ?? []);

test('parallel calls run side by side; results stand in call order whatever the order of ends', async () => {
  const { held, started, callOf } = heldTool('look');
  const on = await runBatch(
    [held],
    rawCall('1', 'look'),
    rawCall('2', 'look'),
    rawCall('3', 'look'),
  );
  assert.deepEqual(started(), ['1', '2', '3']);
  for (const callId of ['3', '1', '2']) {
    callOf(callId).end(ok(`out ${callId}`));
    await settle();
  }
  await on.rest();
  assert.deepEqual(Object.entries(secondRequest(on)), [
    ['1', 'out 1'],
    ['2', 'out 2'],
    ['3', 'out 3'],
  ]);
});

test('calls that are not parallel-safe run one after the other', async () => {
  const { held, started, callOf } = heldTool('make', command);
  await runBatch([held], rawCall('1', 'make'), rawCall('2', 'make'));
  assert.deepEqual(started(), ['1']);
  callOf('1').end(ok('one'));
  await settle();
  assert.deepEqual(started(), ['1', '2']);
});

test('a tool that throws has failed by itself, and the turn goes on', async () => {
  const broken = tool('broken', () => {
    throw new Error('null has no length');
  });
  const on = await runBatch([broken], rawCall('1', 'broken'));
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /the tool itself failed: null has no length/);
  assert.equal(on.model.requests.length, 2);
});

test('arguments that are no JSON never reach a tool', async () => {
  const { held, started } = heldTool('look');
  const on = await runBatch([held], rawCall('1', 'look', '{"path":'), rawCall('2', 'lokk'));
  await on.rest();
  assert.deepEqual(started(), []);
  assert.match(secondRequest(on)['1'] ?? '', /not valid JSON.*\{"path":/);
  assert.match(secondRequest(on)['2'] ?? '', /look/);
});

test('cancel asks running tools to end; one that does keeps its real result', async () => {
  const { held, callOf } = heldTool('make', command);
  const on = await runBatch([held], rawCall('1', 'make'), rawCall('2', 'make'));
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  const { context, end } = callOf('1');
  assert.deepEqual(
    [context.signal.aborted, context.signal.reason, context.force.aborted],
    [true, 'cancelled', false],
  );
  end({ status: 'ok', text: 'finished in time' });
  const state = await on.rest();
  assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'cancelled');
  await on.say('and?');
  await on.rest();
  const [first, second] = on.model.requests.at(-1)?.messages.at(-1)?.parts ?? [];
  assert.match(first?.type === 'result' ? first.text : '', /finished in time/);
  assert.equal(second?.type, 'result');
  assert.equal(on.clock.waiting() <= 1, true);
});

for (const by of ['the grace time', 'a second cancel'] as const) {
  test(`a tool that does not end is forced by ${by}, and what it says later changes nothing`, async () => {
    const { held, callOf } = heldTool('make', command);
    const on = await runBatch([held], rawCall('1', 'make'));
    await on.runtime.send(on.id, { type: 'CancelTurn' });
    if (by === 'the grace time') on.clock.advance(5_000);
    else await on.runtime.send(on.id, { type: 'CancelTurn' });
    const state = await on.rest();
    assert.equal(callOf('1').context.force.aborted, true);
    const { seq } = await on.runtime.state(on.id);
    callOf('1').end(ok('too late'));
    await settle();
    assert.equal((await on.runtime.state(on.id)).seq, seq);
    assert.match(JSON.stringify(state.session.conversation), /effects unknown/);
    assert.equal(on.clock.waiting(), 0);
  });
}

test('what a cancelled call has lost of the user is said', async () => {
  const notAsked = () => assert.fail('nobody asks');
  const withdrawn: string[] = [];
  const checkpoints: Checkpoints = {
    before: async () => undefined,
    after: async ({ callId }) => `text of the user is gone after ${callId}`,
    withdraw: async ({ callId }) => void withdrawn.push(callId),
    take: async () => null,
    sweep: async () => null,
    recorded: async () => undefined,
    unkept: async () => [],
    describe: notAsked,
    plan: notAsked,
    planFile: notAsked,
    restore: notAsked,
    close: async () => undefined,
  };
  const { held, callOf } = heldTool('make', command);
  const model = testModel(callTools(rawCall('1', 'make'), rawCall('2', 'make')), say('done'));
  const on = await play({ tools: [held], model, checkpoints });
  await on.say('go');
  await settle();
  for (const [callId, ran] of [['1'], ['2', 'no']] as const) {
    await on.runtime.send(on.id, { type: 'CancelTool', batchId: 'batch-1', callId });
    callOf(callId).end({ status: 'cancelled', text: 'so far', ...(ran ? { ran } : {}) });
    await settle();
  }
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /so far\n\[text of the user is gone after 1\]/);
  assert.doesNotMatch(secondRequest(on)['2'] ?? '', /gone/);
  assert.deepEqual(withdrawn, ['2']);
});

test('one call can be cancelled while the others go on', async () => {
  const { held, callOf } = heldTool('look');
  const on = await runBatch([held], rawCall('1', 'look'), rawCall('2', 'look'));
  await on.runtime.send(on.id, { type: 'CancelTool', batchId: 'batch-1', callId: '1' });
  assert.deepEqual(
    [callOf('1').context.signal.aborted, callOf('2').context.signal.aborted],
    [true, false],
  );
  callOf('1').end({ status: 'cancelled', text: 'as far as I came' });
  callOf('2').end(ok('whole'));
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /as far as I came/);
  assert.equal(secondRequest(on)['2'], 'whole');
});

for (const by of ['a cancel', 'a second cancel'] as const)
  test(`a call never runs if ${by} comes before its start is durable`, async () => {
    let looked: (hashes: FileHashes) => void = () => undefined;
    const before = (): Promise<FileHashes> =>
      new Promise((resolve) => {
        looked = resolve;
      });
    let ran = 0;
    const edit = tool(
      'edit',
      () => ok(`ran ${++ran}`),
      { ...command, effect: 'probeable' },
      before,
    );
    const hooks = hooksOf();
    const model = testModel(callTools(rawCall('1', 'edit')), say('done'));
    const on = await play({ tools: [edit], model, hooks, settings: { hooks: 'mutating' } });
    await on.say('go');
    await settle();
    await on.runtime.send(on.id, { type: 'CancelTurn' });
    if (by === 'a second cancel') await on.runtime.send(on.id, { type: 'CancelTurn' });
    looked({ before: 'abc' });
    const state = await on.rest();
    await settle();
    assert.equal(ran, 0);
    assert.deepEqual(hooks.log, ['before 1', 'after 1'], 'what follows is not its work');
    const said = JSON.stringify(state.session.conversation);
    assert.equal(/"text":"not run: cancelled by user"/.test(said), by === 'a cancel');
    assert.equal(/effects unknown/.test(said), by === 'a second cancel'); // the machine settles it
  });

test('a tool that hangs while it looks at the file blocks nothing: the session can still be cancelled', async () => {
  const edit = tool(
    'edit',
    () => ok(''),
    { ...command, effect: 'probeable' },
    () => new Promise(() => undefined),
  );
  const on = await runBatch([edit], rawCall('1', 'edit'));
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  on.clock.advance(5_000);
  const state = await on.rest();
  assert.equal(state.name, 'WaitingForUserInput');
});

test('the hashes before and after the effect are in the journal with its start, which shares the sync of the reply', async () => {
  const appends: string[] = [];
  const journals = watchedStore(memoryJournals(), (drafts) =>
    appends.push(typesOf(drafts).join(' ')),
  );
  const before = async (): Promise<FileHashes> => {
    await settle();
    return { before: 'abc', after: 'def' };
  };
  const edit = tool('edit', () => ok('edited'), { ...command, effect: 'probeable' }, before);
  const on = await play({
    tools: [edit],
    journals,
    model: testModel(callTools(rawCall('1', 'edit')), say('done')),
  });
  await on.say('go');
  await on.rest();
  const started = (await collect(journals.read(on.id))).find(
    ({ event }) => event.type === 'ToolStarted',
  );
  assert.ok(started?.event.type === 'ToolStarted');
  assert.deepEqual([started.event.before, started.event.after], ['abc', 'def']);
  assert.deepEqual(appends, [
    'UserInput',
    'LlmCompleted ToolStarted',
    'ToolCompleted',
    'LlmCompleted',
  ]);
});

test('when the journal fails, running calls are ended by force', async () => {
  let isBroken = false;
  const journals = watchedStore(memoryJournals(), () => {
    if (isBroken) throw new Error('the disk is gone');
  });
  const { held, callOf } = heldTool('look');
  const on = await play({
    tools: [held],
    journals,
    model: testModel(callTools(rawCall('1', 'look'))),
  });
  await on.say('go');
  await settle();
  const { context, end } = callOf('1');
  isBroken = true;
  await assert.rejects(on.say('more'), /the disk is gone/);
  await settle();
  assert.equal(context.force.aborted, true);
  end(ok('late'));
});

test('a tool that cannot look at the file starts all the same, and says itself what is wrong', async () => {
  const before = (): Promise<FileHashes> => Promise.reject(new Error('no such file'));
  const fails = (): ToolOutcome => ({ status: 'failed', text: 'there is no file a' });
  const edit = tool('edit', fails, { ...command, effect: 'probeable' }, before);
  const on = await runBatch([edit], rawCall('1', 'edit'));
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /there is no file a/);
});

test('at its deadline a tool is asked to end, and its partial output is the result', async () => {
  const { held, callOf } = heldTool('make', { ...command, deadlineMs: 1_000 });
  const on = await runBatch([held], rawCall('1', 'make'));
  on.clock.advance(1_000);
  const { context, end } = callOf('1');
  assert.deepEqual([context.signal.reason, context.force.aborted], ['timedOut', false]);
  end({ status: 'timedOut', text: 'line 1' });
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /line 1/);
});

test('a tool that ignores its deadline is forced after the grace time and given up after another', async () => {
  const { held, callOf } = heldTool('make', { ...command, deadlineMs: 1_000 });
  const on = await runBatch([held], rawCall('1', 'make'));
  on.clock.advance(6_000);
  assert.equal(callOf('1').context.force.aborted, true);
  on.clock.advance(5_000);
  await on.rest();
  assert.match(secondRequest(on)['1'] ?? '', /time limit of 1 s reached; the tool did not stop/);
});

test('long output reaches the model cut, and the blob holds all of it', async () => {
  const whole = `begin ${'x'.repeat(100_000)} end`;
  const on = await runBatch([tool('look', () => ok(whole))], rawCall('1', 'look'));
  await on.rest();
  const shown = secondRequest(on)['1'] ?? '';
  assert.match(
    shown,
    /^begin x+\n… 69,290 bytes left out; read or search blob:[0-9a-f]{64} for the whole output …\nx+ end$/s,
  );
  const completed = on.steps.find(({ event }) => event.type === 'ToolCompleted')?.event;
  const blob = completed?.type === 'ToolCompleted' ? completed.outcome.blob : undefined;
  assert.ok(blob !== undefined && shown.includes(blob));
});

test('progress is shown joined, and none comes after the result', async () => {
  const { held, callOf } = heldTool('make', command);
  const on = await runBatch([held], rawCall('1', 'make'));
  const { context, end } = callOf('1');
  for (const piece of ['a', 'b', 'c']) context.progress(piece);
  await settle();
  on.clock.advance(40);
  await settle();
  context.progress('d');
  end(ok('abcd'));
  await on.rest();
  context.progress('late');
  await settle();
  const shown = on.steps.map(({ event }) =>
    event.type === 'ToolProgress' ? event.text : event.type,
  );
  assert.deepEqual(shown.slice(3), ['a', 'bc', 'd', 'ToolCompleted', 'LlmCompleted']);
});

test('a tool is told that its call reaches more than the sandbox of the session, and who allowed that', async () => {
  const seen: (string | undefined)[] = [];
  const leaving = (name: string, needs?: 'network' | 'outside'): Tool => ({
    ...tool(name, (_input, { sandbox, widened }) => {
      seen.push(`${name} ${sandbox} ${widened ?? 'as the session'}`);
      return ok('done');
    }),
    judge: (input) => ({
      kind: 'ok',
      input,
      facts: {
        argv: [],
        paths: [],
        hosts: [],
        shape: name,
        ...(needs === undefined ? {} : { needs }),
      },
    }),
  });
  const tools = [
    leaving('stay'),
    leaving('net', 'network'),
    leaving('out', 'outside'),
    leaving('asked', 'network'),
  ];
  const about = { where: 'anywhere', touches: 'anything', why: 'a test' } as const;
  const rules = [
    { decision: 'ask', tool: 'asked', ...about },
    { decision: 'allow', tool: '*', ...about },
  ] as const;
  for (const sandbox of ['workspace', 'workspace+net', 'off'] as const) {
    seen.length = 0;
    const calls = tools.map(({ name }) => rawCall(name, name));
    const on = await play({
      tools,
      model: testModel(callTools(...calls), say('done')),
      settings: { sandbox, rules },
    });
    await on.say('go');
    const { actions } = await on.until((step) =>
      step.actions.some(({ type }) => type === 'RequestApproval'),
    );
    const question = actions.find((action) => action.type === 'RequestApproval');
    assert.ok(question?.type === 'RequestApproval');
    const { batchId, call } = question;
    const answer = {
      type: 'ApprovalAnswered',
      batchId,
      callId: call.callId,
      answer: { kind: 'allow' },
    } as const;
    await on.runtime.send(on.id, { ...answer, scope: 'once' });
    await on.rest();
    const widens = (byWhom: string): string =>
      sandbox === 'workspace' ? byWhom : 'as the session';
    const online = sandbox === 'off' ? 'off' : 'workspace+net';
    assert.deepEqual(seen, [
      `stay ${sandbox} as the session`,
      `net ${online} ${widens('unasked')}`,
      `out off ${sandbox === 'off' ? 'as the session' : 'unasked'}`,
      `asked ${online} ${widens('byUser')}`,
    ]);
  }
});
