import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import type { AssistantPart, Message, UserMessage } from '../../src/machine/message.js';
import { type Script, type ScriptedReply, scriptedModel } from '../../src/models/scripted-model.js';
import { ask, called, collect, endingOf, results, said, user, wordFor } from './scripting.js';

const hi = user('hi');
const overloaded: ScriptedReply = { fail: { kind: 'overloaded', retryAfterMs: 5 } };
const call = { tool: 'read' };

test('a reply streams in pieces and ends with its parts in order', async () => {
  const script: Script = {
    replies: [
      {
        reasoning: 'Hm.',
        text: 'I shall read the file for you 😀.',
        calls: [
          { tool: 'read', input: { path: 'a' } },
          { tool: 'read', callId: 'second', rawInput: '{"path":' },
        ],
        usage: { inputTokens: 3 },
      },
    ],
  };
  const pieces = await collect(scriptedModel(script), ask([user('hi')]));
  const joined = (type: string) =>
    pieces.map((piece) => (piece.type === type && 'text' in piece ? piece.text : '')).join('');
  assert.ok(pieces.filter(({ type }) => type === 'text').length > 1);
  assert.equal(joined('text'), 'I shall read the file for you 😀.');
  assert.equal(joined('reasoning'), 'Hm.');
  assert.equal(joined('toolCall'), '{"path":"a"}{"path":');
  assert.deepEqual(pieces.at(-1), {
    type: 'completed',
    parts: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'I shall read the file for you 😀.' },
      { type: 'call', callId: 'call-1-1', tool: 'read', rawInput: '{"path":"a"}' },
      { type: 'call', callId: 'second', tool: 'read', rawInput: '{"path":' },
    ],
    stopReason: 'toolUse',
    usage: { inputTokens: 3, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
  });
});

test('a script at its end says so', async () => {
  const ending = await endingOf(
    scriptedModel({ replies: [] }, { id: 'scripted/x.json' }),
    ask([hi]),
  );
  assert.ok(ending.type === 'failed');
  assert.equal(ending.error.retryable, false);
  assert.match(
    ending.error.message,
    /^scripted\/x\.json: the script is at its end: it has 0 replies/,
  );
});

test('a failure is the one that was asked for', async () => {
  const ending = await endingOf(scriptedModel({ replies: [overloaded] }), ask([hi]));
  assert.ok(ending.type === 'failed');
  const { message, ...rest } = ending.error;
  assert.deepEqual(rest, { kind: 'overloaded', retryable: true, retryAfterMs: 5 });
  assert.match(message, /overloaded/);
  const auth = await endingOf(
    scriptedModel({ replies: [{ fail: { kind: 'auth', message: 'No.' } }] }),
    ask([hi]),
  );
  assert.deepEqual(auth.type === 'failed' && auth.error, {
    kind: 'auth',
    message: 'No.',
    retryable: false,
    retryAfterMs: null,
  });
});

const failedResult: UserMessage = {
  role: 'user',
  parts: [
    { type: 'result', callId: 'a', tool: 'read', failed: true, text: 'no such file' },
    { type: 'text', origin: 'note', text: 'look elsewhere' },
  ],
};
const talk: readonly Message[] = [hi, called('a'), failedResult];

const met: readonly NonNullable<ScriptedReply['expect']>[] = [
  {},
  { messages: 3 },
  { last: { contains: ['no such', 'elsewhere'], matches: '^no .*file', lacks: 'hi' } },
  { results: [{ callId: 'a', failed: true, contains: 'such' }] },
  { tools: ['read'] },
  { instructions: { contains: 'brief' } },
];

for (const expect of met) {
  test(`a request meets ${JSON.stringify(expect)}`, async () => {
    assert.equal(
      wordFor(await endingOf(scriptedModel({ replies: [{ expect, text: 'ok' }] }), ask(talk))),
      'ok',
    );
  });
}

const unmet: readonly (readonly [NonNullable<ScriptedReply['expect']>, RegExp])[] = [
  [{ messages: 2 }, /should have 2 messages, but has 3/],
  [
    { last: { contains: 'hi' } },
    /last message should contain "hi", but is "no such file\\nlook elsewhere"/,
  ],
  [{ last: { matches: '^x' } }, /should match \/\^x\/u, but is/],
  [{ last: { lacks: ['y', 'such'] } }, /should not contain "such"/],
  [{ results: [{ callId: 'b' }] }, /result of b, but there are results of: a/],
  [
    { results: [{ callId: 'a', failed: false }] },
    /a should have succeeded, but its result is "no such file"/,
  ],
  [{ results: [{ callId: 'a', contains: 'x' }] }, /the result of a should contain "x"/],
  [{ tools: ['read', 'bash'] }, /tool bash should be there, but there are: read/],
  [{ instructions: { matches: 'long' } }, /the instructions should match/],
];

for (const [expect, says] of unmet) {
  test(`a request that does not meet ${JSON.stringify(expect)} fails with what was expected and what came`, async () => {
    const ending = await endingOf(scriptedModel({ replies: [{ expect, text: 'ok' }] }), ask(talk));
    assert.ok(ending.type === 'failed');
    assert.equal(ending.error.kind, 'badRequest');
    assert.match(ending.error.message, /^scripted\/script, reply 1: /);
    assert.match(ending.error.message, says);
  });
}

test('a stall streams what it has, then is silent until it is aborted', async () => {
  const abortion = new AbortController();
  const stream = scriptedModel({ replies: [{ text: 'Let me th', stall: true }] }).stream(
    ask([hi]),
    abortion.signal,
  );
  const iterator = stream[Symbol.asyncIterator]();
  assert.deepEqual(await iterator.next(), {
    done: false,
    value: { type: 'text', text: 'Let me th' },
  });
  let ended = false;
  const rest = iterator.next().then((step) => {
    ended = true;
    return step;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(ended, false);
  abortion.abort();
  assert.deepEqual(await rest, { done: true, value: undefined });
});

test('each piece waits for its delay, and an abort ends the wait', async () => {
  const clock = fakeClock();
  const abortion = new AbortController();
  const model = scriptedModel({ replies: [{ text: 'x'.repeat(60), delayMs: 100 }] }, { clock });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const piece of model.stream(ask([hi]), abortion.signal)) seen.push(piece.type);
  })();
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  assert.deepEqual(seen, []);
  clock.advance(99);
  await settle();
  assert.deepEqual(seen, []);
  clock.advance(1);
  await settle();
  assert.deepEqual(seen, ['text']);
  abortion.abort();
  await reading;
  assert.deepEqual(seen, ['text']);
  assert.equal(clock.waiting(), 0);
});

test('a script can say what its model holds and costs', () => {
  const prices = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
  const { facts } = scriptedModel({ replies: [], facts: { windowTokens: 500, prices } });
  assert.deepEqual([facts.windowTokens, facts.prices, facts.outputTokensMax], [500, prices, 8_192]);
});

test('what is kept of a reply is what leads on from it', async () => {
  const replies: readonly ScriptedReply[] = [
    { reasoning: 'Hm.', text: 'I look.', calls: [call, call] },
    { text: 'end' },
  ];
  const model = scriptedModel({ replies });
  const first = await endingOf(model, ask([hi]));
  assert.ok(first.type === 'completed');
  const parts: readonly AssistantPart[] = first.parts.map((part) =>
    part.type === 'call' ? { type: 'call', callId: part.callId, tool: part.tool, input: {} } : part,
  );
  const next = await endingOf(
    model,
    ask([hi, said('', { parts }), results('call-1-1', 'call-1-2')]),
  );
  assert.equal(wordFor(next), 'end');
});
