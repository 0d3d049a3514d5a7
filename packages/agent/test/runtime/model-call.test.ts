import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  callTools,
  collect,
  completed,
  hang,
  ok,
  overloaded,
  pieces,
  play,
  rawCall,
  say,
  settingsOf,
  settle,
  testModel,
  tool,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { toldUsage } from '../../src/machine/moves/request.js';
import { defaultSettings } from '../../src/machine/settings.js';
import { reservedUsd } from '../../src/machine/state.js';
import type { ModelPiece } from '../../src/ports/model.js';

const overflow: Answer = async function* () {
  const error = {
    kind: 'contextOverflow',
    message: 'too long',
    retryable: false,
    retryAfterMs: null,
  } as const;
  yield { type: 'failed', error, usage: null };
};

test('a reply is stored with its model and priced, and the next request holds it', async () => {
  const parts: Extract<ModelPiece, { type: 'completed' }>['parts'] = [
    { type: 'reasoning', text: 'hm', metadata: { test: { signature: 's' } } },
    { type: 'text', text: 'hello' },
  ];
  const on = await play({
    model: testModel(async function* () {
      yield completed(parts);
    }, say('again')),
  });
  await on.say('hi');
  const state = await on.rest();
  assert.deepEqual(messagesOf(state.session.conversation)[1], {
    role: 'assistant',
    model: 'test/one',
    cut: false,
    parts,
  });
  assert.equal(state.session.usage.costUsd.toFixed(6), '0.000200');
  await on.say('more');
  await on.rest();
  assert.deepEqual(on.model.requests[1]?.messages[1]?.parts, parts);
  assert.deepEqual(
    on.model.requests[1]?.messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
});

test('an unknown price is counted as unknown', async () => {
  const model = testModel(say('a'));
  const on = await play({ model: { ...model, facts: { ...model.facts, prices: null } } });
  await on.say('hi');
  const { session } = await on.rest();
  assert.deepEqual([session.usage.costUsd, session.usage.unpriced], [0, 1]);
});

test('a model that falls silent is asked again by the machine, after its wait', async () => {
  const on = await play({ model: testModel(hang({ type: 'text', text: 'half' }), say('whole')) });
  await on.say('hi');
  await settle();
  on.clock.advance(90_000);
  const failed = await on.until(({ event }) => event.type === 'LlmFailed');
  assert.ok(failed.event.type === 'LlmFailed');
  assert.equal(failed.event.jitter, 0.5);
  assert.equal(
    failed.event.at - (failed.event.firstPieceAt ?? 0),
    90_000,
    'it says when the reply began',
  );
  assert.equal(failed.state.name, 'Error');
  on.clock.advance(1_125); // half of the quarter that chance may add
  const state = await on.rest();
  assert.match(JSON.stringify(messagesOf(state.session.conversation)), /whole/);
  assert.doesNotMatch(JSON.stringify(messagesOf(state.session.conversation)), /half/);
});

test('cancel aborts the request; usage that comes later is counted once', async () => {
  let aborted = false;
  const on = await play({
    model: testModel(async function* (_request, signal) {
      yield { type: 'text', text: 'half' };
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      aborted = true;
      yield completed([{ type: 'text', text: 'half' }]);
    }),
  });
  await on.say('hi');
  await settle();
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  await settle();
  const { session } = await on.state();
  assert.equal(aborted, true);
  assert.equal(session.usage.outputTokens, 10);
  assert.equal((await collect(on.journals.read(on.id))).at(-1)?.event.type, 'UsageReported');
});

test('a request that is cancelled while its money is set aside is neither sent nor paid', async () => {
  // each append waits, so that the measure and the cancel come into one group
  const appends: (() => void)[] = [];
  const hold = () => new Promise<void>((resolve) => appends.push(resolve));
  const on = await play({
    model: testModel(hang()),
    journals: watchedStore(memoryJournals(), hold),
    settings: { limits: { ...settingsOf().limits, usd: 1 } },
  });
  const sent = [on.say('hi'), settle().then(() => on.say('later'))];
  for (let round = 0; round < 4; round++) {
    await settle();
    await settle();
    appends.shift()?.();
    await settle();
    if (round === 0) sent.push(on.runtime.send(on.id, { type: 'CancelTurn' }));
  }
  await Promise.all(sent);
  assert.ok(on.steps.some(({ event }) => event.type === 'RequestMeasured'));
  assert.deepEqual([on.model.requests, (await on.state()).session.reserved ?? []], [[], []]);
});

test('a compaction that is cancelled while its money is set aside is neither sent nor paid', async () => {
  const appends: (() => void)[] = [];
  let holds = false;
  const hold = async () => {
    if (holds) await new Promise<void>((resolve) => appends.push(resolve));
  };
  const on = await play({
    userHooks: { wants: () => true, run: async () => [] }, // so that the measure comes later
    model: testModel(say('a'), say('b'), hang()),
    journals: watchedStore(memoryJournals(), hold),
    settings: { limits: { ...settingsOf().limits, usd: 1 } },
  });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  const { usage } = (await on.state()).session;
  holds = true;
  const sent = [
    on.runtime.send(on.id, { type: 'CompactRequested' }),
    settle().then(() => on.say('later')),
  ];
  for (let round = 0; round < 4; round++) {
    await settle();
    await settle();
    appends.shift()?.();
    await settle();
    if (round === 0) sent.push(on.runtime.send(on.id, { type: 'CancelTurn' }));
  }
  holds = false;
  for (const go of appends) go();
  await Promise.all(sent);
  await settle();
  const { session } = await on.state();
  assert.equal(on.steps.filter(({ event }) => event.type === 'RequestMeasured').length, 3);
  assert.deepEqual([on.model.requests.length, session.reserved ?? []], [2, []]);
  assert.deepEqual([session.usage, session.unaccounted], [usage, []]);
});

test('a reply that is paid is counted although its calls could not be judged', async () => {
  const userHooks = {
    wants: (moment: string) => moment === 'before-tool',
    run: () => Promise.reject(new Error('out of files')),
  };
  const on = await play({
    userHooks,
    tools: [tool('look', () => ok(''))],
    model: testModel(callTools(rawCall('1', 'look'))),
  });
  await on.say('hi');
  const { session } = await on.rest();
  assert.equal(session.usage.outputTokens, 10);
});

test('a model that cannot be found is a failed request with the reason, not a failed program', async () => {
  const on = await play({ model: testModel(say('never')) });
  const broken = { ...on.model.facts };
  Object.defineProperty(on.model, 'stream', {
    value: () => {
      throw new Error(`no wire to ${broken.source}`);
    },
  });
  await on.say('hi');
  const state = await on.rest();
  assert.ok(state.name === 'WaitingForUserInput' && state.reason.kind === 'error');
  assert.match(state.reason.message, /no wire to test/);
});

test('a compaction asks once, with instructions, tools and choice of every request, and ends on its own', async () => {
  const on = await play({
    tools: [tool('look', () => ok(''))],
    model: testModel(say('a'.repeat(100)), say('b'), overflow, say('the summary'), say('c')),
  });
  for (const text of ['one', 'two', 'three']) {
    await on.say(text);
    await on.rest();
  }
  const [, before, , compaction] = on.model.requests;
  assert.equal(compaction?.instructions, 'be brief');
  assert.deepEqual(
    [compaction?.tools, compaction?.toolChoice, before?.toolChoice],
    [before?.tools, undefined, undefined],
  );
  assert.deepEqual(compaction?.messages.slice(0, 3), before?.messages);
  assert.deepEqual(compaction?.messages.at(-1), {
    role: 'user',
    parts: [{ type: 'text', origin: 'note', text: 'summarise' }],
  });
  assert.deepEqual(
    compaction?.messages.map(({ role }) => role),
    compaction?.messages.map((_message, index) => (index % 2 === 0 ? 'user' : 'assistant')),
  );
  const next = JSON.stringify(on.model.requests[4]?.messages);
  assert.match(next, /The conversation so far was replaced.*the summary.*three/s);
  assert.equal(on.model.requests.length, 5);
});

test('a compaction goes on from a trailing user message; a reply with calls is asked for again without tools', async () => {
  let runs = 0;
  const look = tool('look', () => {
    runs += 1;
    return ok('seen');
  });
  const called = rawCall('9', 'look');
  const working = pieces(completed([{ type: 'text', text: 'I go on' }, called], 'toolUse'));
  const on = await play({
    tools: [look],
    model: testModel(
      say('a'),
      callTools(rawCall('1', 'look')),
      overflow,
      working,
      say('the summary'),
      say('done'),
    ),
  });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  const compaction = on.model.requests[3]?.messages ?? [];
  assert.deepEqual(
    compaction.map(({ role, parts }) => [role, parts.length]),
    [
      ['user', 1],
      ['assistant', 1],
      ['user', 2],
    ],
  );
  assert.deepEqual(compaction.at(-1)?.parts.at(-1), {
    type: 'text',
    origin: 'note',
    text: 'summarise',
  });
  const again = on.model.requests[4];
  assert.deepEqual([on.model.requests[3]?.toolChoice, again?.toolChoice], [undefined, 'none']);
  assert.deepEqual(again?.messages, compaction, 'else the same request');
  const next = JSON.stringify(on.model.requests[5]?.messages);
  assert.match(next, /the summary.*seen/s);
  assert.doesNotMatch(next, /I go on/, 'words beside a call are no summary');
  assert.match(
    next,
    /"\[The conversation so far was replaced by your summary of it\. You are in the/,
  );
  assert.equal(runs, 1);
});

test('a compaction that only calls tools is asked for once more without a choice, and both are paid', async () => {
  const silent = callTools(rawCall('9', 'look'));
  const on = await play({
    tools: [tool('look', () => ok('seen'))],
    model: testModel(say('a'), say('b'), silent, say('the summary')),
  });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  const before = (await on.state()).session.usage.outputTokens;
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await on.until(({ event }) => event.type === 'CompactionCompleted');
  const choices = on.model.requests.slice(2).map(({ toolChoice }) => toolChoice);
  assert.deepEqual(choices, [undefined, 'none']);
  const { conversation, usage } = (await on.state()).session;
  assert.match(JSON.stringify(messagesOf(conversation)), /the summary/);
  const paid = on.model.requests.length / 2; // each reply has the same usage
  assert.equal(usage.outputTokens, before * paid);
});

test('a summary asks for little, and once for all that there is room for if it was cut', async () => {
  const cut = pieces(completed([{ type: 'text', text: 'half a summ' }], 'maxTokens'));
  const plain = testModel(say('a'), say('b'), cut, say('the summary'));
  const model = { ...plain, facts: { ...plain.facts, outputTokensMax: 60_000 } };
  const on = await play({ model });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await on.until(({ event }) => event.type === 'CompactionCompleted');
  const asked = plain.requests.map(({ outputTokensMax }) => outputTokensMax);
  assert.deepEqual(asked, [undefined, undefined, 4_000, 16_000]);
});

for (const [title, answer] of [
  ['fails', overflow],
  ['is blank', say('  ')],
  ['is cut off', pieces(completed([{ type: 'text', text: 'half a summ' }], 'maxTokens'))],
  ['is refused', pieces(completed([{ type: 'text', text: 'No.' }], 'refusal'))],
  [
    'breaks',
    () => {
      throw new Error('broken');
    },
  ],
] as const) {
  test(`a compaction that ${title} leaves the conversation as it was`, async () => {
    const on = await play({ model: testModel(say('a'), say('b'), answer) });
    for (const text of ['one', 'two']) {
      await on.say(text);
      await on.rest();
    }
    const before = (await on.state()).session.conversation;
    await on.runtime.send(on.id, { type: 'CompactRequested' });
    await on.until(({ event }) => event.type === 'CompactionFailed');
    assert.deepEqual(messagesOf((await on.state()).session.conversation), messagesOf(before));
    assert.equal((await on.state()).name, 'WaitingForUserInput');
  });
}

for (const usd of ['unlimited', 10] as const)
  test(`a summary that is refused costs nothing, also its second request: limit ${usd}`, async () => {
    const first = [[overloaded], [callTools(rawCall('9', 'look')), overloaded]] as const;
    for (const answers of first) {
      const on = await play({
        settings: { limits: { ...defaultSettings.limits, usd } },
        tools: [tool('look', () => ok('seen'))],
        model: testModel(say('a'), say('b'), ...answers),
      });
      for (const text of ['one', 'two']) {
        await on.say(text);
        await on.rest();
      }
      const before = (await on.state()).session.usage.costUsd;
      await on.runtime.send(on.id, { type: 'CompactRequested' });
      await on.until(({ event }) => event.type === 'CompactionFailed');
      const state = await on.state();
      const each = before / 2;
      const cost = state.session.usage.costUsd - before;
      assert.ok(Math.abs(cost - (answers.length - 1) * each) < 1e-9, `${cost}`);
      assert.deepEqual([reservedUsd(state.session), state.session.unaccounted], [0, []]);
      assert.equal(toldUsage(state).atLeast, undefined);
    }
  });

test('what no model has counted of a conversation counts for the summary, byte by byte', async () => {
  const half: Answer = async function* (_request, signal) {
    yield { type: 'text', text: 'half' };
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  };
  const freshOf = async (second: Answer): Promise<number> => {
    const on = await play({
      settings: { limits: { ...defaultSettings.limits, usd: 100 } },
      model: testModel(say('a'), second, say('c'), say('the summary')),
    });
    for (const text of ['one', 'x'.repeat(200_000), 'three']) {
      await on.say(text);
      await settle();
      if ((await on.state()).name === 'CallingLlm')
        await on.runtime.send(on.id, { type: 'CancelTurn' });
      await on.rest();
      if (second === half && text !== 'one') break;
    }
    await on.runtime.send(on.id, { type: 'CompactRequested' });
    const { event } = await on.until(
      ({ event: one }) => one.type === 'RequestMeasured' && one.usageId.startsWith('compaction'),
    );
    return (event.type === 'RequestMeasured' && event.freshBytes) || 0;
  };
  assert.ok((await freshOf(half)) > 200_000, 'the second request was not counted');
  assert.ok((await freshOf(say('b'))) < 20_000, 'control');
});

test('a reply that breaks off makes the sum a lower bound, unless the model is free', async () => {
  const breaksOff: Answer = async function* () {
    yield { type: 'text', text: 'half' };
  };
  const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const rows = [
    [breaksOff, null, true],
    [hang(), null, true],
    [breaksOff, free, undefined],
    [hang(), free, undefined],
  ] as const;
  for (const [answer, prices, atLeast] of rows) {
    const plain = testModel(answer, say('whole'));
    const model = prices === null ? plain : { ...plain, facts: { ...plain.facts, prices } };
    const on = await play({ model, settings: { maxRetries: 0 } });
    await on.say('hi');
    await settle();
    if ((await on.state()).name === 'CallingLlm')
      await on.runtime.send(on.id, { type: 'CancelTurn' });
    await on.rest();
    await settle();
    assert.equal(toldUsage(await on.state()).atLeast, atLeast);
  }
});

test('a compaction that is cancelled at its second request is paid whole, with late usage and without', async () => {
  const silent = callTools(rawCall('9', 'look'));
  const late: Answer = async function* (_request, signal) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    yield completed([{ type: 'text', text: 'the summary' }]);
  };
  const rows: readonly (readonly [last: Answer, requests: number])[] = [
    [late, 4],
    [hang(), 3],
  ];
  for (const [last, paid] of rows) {
    const on = await play({
      tools: [tool('look', () => ok('seen'))],
      model: testModel(say('a'), say('b'), silent, last),
    });
    for (const text of ['one', 'two']) {
      await on.say(text);
      await on.rest();
    }
    const each = (await on.state()).session.usage.outputTokens / 2;
    await on.runtime.send(on.id, { type: 'CompactRequested' });
    while (on.model.requests.length < 4) await settle();
    await on.runtime.send(on.id, { type: 'CancelTurn' });
    await settle();
    assert.equal((await on.state()).session.usage.outputTokens, paid * each);
  }
});

test('a compaction can be cancelled, and its answer changes nothing', async () => {
  const on = await play({ model: testModel(say('a'), say('b'), hang()) });
  for (const text of ['one', 'two']) {
    await on.say(text);
    await on.rest();
  }
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  assert.equal((await on.state()).name, 'Compacting');
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  assert.equal((await on.rest()).name, 'WaitingForUserInput');
  assert.equal(on.clock.waiting(), 0);
});
