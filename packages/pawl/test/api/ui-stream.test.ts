import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  callTools,
  command,
  completed,
  hang,
  ok,
  pieces,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { until } from '../../../../test/until.js';
import { uiMessageResponse } from '../../src/ui-stream.js';

type Answer = (text: string, id: string, signal: AbortSignal) => Response;

/** A chat of the AI SDK with a server that answers so. */
const chatWith = async (context: TestContext, answer: Answer) => {
  const server = createServer((request, response) => {
    void (async () => {
      const leaving = new AbortController();
      response.once('close', () => leaving.abort());
      const { messages } = (await json(request)) as { readonly messages: readonly UIMessage[] };
      const last = messages.at(-1);
      const text = last?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
      const { headers, body } = answer(text ?? '', last?.id ?? '', leaving.signal);
      response.writeHead(200, Object.fromEntries(headers));
      for await (const chunk of body ?? []) response.write(chunk);
      response.end();
    })();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const transport = new DefaultChatTransport({ api: `http://127.0.0.1:${port}/` });
  const send = (text: string, id: string, abortSignal?: AbortSignal) =>
    transport.sendMessages({
      chatId: 'chat',
      trigger: 'submit-message',
      messageId: undefined,
      messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
      abortSignal,
    });
  return send;
};

type Shown = { readonly message: UIMessage | undefined; readonly errors: readonly string[] };

/** The message that a chat shows in the end. */
const show = async (stream: ReadableStream<UIMessageChunk>): Promise<Shown> => {
  const errors: string[] = [];
  let message: UIMessage | undefined;
  const onError = (error: unknown): void => void errors.push((error as Error).message);
  for await (const next of readUIMessageStream({ stream, onError })) message = next;
  return { message, errors };
};

/** Each part in a line. */
const linesOf = ({ message, errors }: Shown): readonly string[] => [
  ...(message?.parts ?? []).map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return `${part.type}: ${part.text}`;
    if (part.type !== 'dynamic-tool') return part.type;
    const { toolName, input, state, output, errorText } = part;
    return `${toolName} ${JSON.stringify(input)} ${state}: ${output ?? errorText ?? ''}`;
  }),
  ...errors.map((error) => `error: ${error}`),
];

test('a chat of the AI SDK shows text, reasoning, calls, their results and the end of a turn', async (context) => {
  const look = tool('look', ({ at }) =>
    at === 'b' ? { status: 'failed', text: 'no b' } : ok(`saw ${at}`),
  );
  const change = tool('change', () => ok('changed'), command);
  const model = testModel(
    pieces(
      { type: 'reasoning', text: 'I could ' },
      { type: 'reasoning', text: 'look.' },
      { type: 'text', text: 'I ' },
      { type: 'text', text: 'look.' },
      completed(
        [
          { type: 'reasoning', text: 'I could look.' },
          { type: 'text', text: 'I look.' },
          rawCall('1', 'look', { at: 'a' }),
          rawCall('2', 'look', { at: 'b' }),
          rawCall('3', 'change', { to: 'c' }),
        ],
        'toolUse',
      ),
    ),
    callTools(rawCall('1', 'look', { at: 'd' })), // an id that was there before
    say('Done.'),
  );
  const { session } = await openHere(context, model, {
    tools: [look, change],
    preset: 'careful',
    settings: { onAsk: 'deny' },
  });
  const send = await chatWith(context, (text, requestId) =>
    uiMessageResponse(session, text, { requestId }),
  );
  const shown = linesOf(await show(await send('look around', 'm1')));
  assert.deepEqual(shown, [
    'step-start',
    'reasoning: I could look.',
    'text: I look.',
    'look {"at":"a"} output-available: saw a',
    'look {"at":"b"} output-error: failed: no b',
    'change {"to":"c"} output-denied: ',
    'step-start',
    'look {"at":"d"} output-available: saw d',
    'step-start',
    'text: Done.',
  ]);
  // sent again, as a browser does that lost its connection
  assert.deepEqual(linesOf(await show(await send('look around', 'm1'))), ['text: Done.']);
  assert.equal(model.requests.length, 3);
});

test('a reply whose calls are all refused shows them before their results', async (context) => {
  const model = testModel(callTools(rawCall('1', 'nothing')), say('Done.'));
  const { session } = await openHere(context, model);
  const chunks = await chunksOf(uiMessageResponse(session, 'go'));
  const shown = typesOf(chunks, 'tool-input-available', 'tool-output-error', 'text-delta');
  assert.deepEqual(shown, [
    'tool-input-available batch-1.1',
    'tool-output-error batch-1.1',
    'text: Done.',
  ]);
});

test('why a turn has no answer is an error or an abort of the chat; the session goes on', async (context) => {
  const error = { kind: 'auth', message: 'no such key', retryable: false, retryAfterMs: null };
  const model = testModel(
    pieces({ type: 'failed', error: { ...error, kind: 'auth' }, usage: null }),
    hang({ type: 'text', text: 'I th' }),
    say('three'),
  );
  const { session } = await openHere(context, model);
  const send = await chatWith(context, (text, requestId, signal) =>
    uiMessageResponse(session, text, { requestId, signal }),
  );
  assert.match(linesOf(await show(await send('one', 'm1'))).join('\n'), /error: .*no such key/);
  // whoever leaves cancels the turn, since the server handed the signal on
  const leaving = new AbortController();
  const left = await send('two', 'm2', leaving.signal);
  await until('the request', () => model.requests.length === 2);
  leaving.abort();
  await assert.rejects(async () => {
    for await (const _ of left);
  });
  await session.idle();
  assert.deepEqual(linesOf(await show(await send('three', 'm3'))), ['step-start', 'text: three']);
  // the same id with another text
  assert.match(linesOf(await show(await send('four', 'm3'))).join('\n'), /error: .*another one/);
});

test('a turn without its reader goes on, and is read again by its id', async (context) => {
  let answer = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const slow = tool('slow', async () => {
    await waiting;
    return ok('at last');
  });
  const model = testModel(callTools(rawCall('1', 'slow')), say('Done.'));
  const { session } = await openHere(context, model, { tools: [slow] });
  const send = await chatWith(context, (text, requestId) =>
    uiMessageResponse(session, text, { requestId }),
  );
  const leaving = new AbortController();
  await send('wait', 'm1', leaving.signal);
  leaving.abort();
  const again = send('wait', 'm1');
  answer();
  assert.match(linesOf(await show(await again)).join('\n'), /text: Done\.$/);
  assert.equal(model.requests.length, 2);
});

/** The chunks of a response, without the closing `[DONE]`. */
const chunksOf = async (response: Response): Promise<readonly UIMessageChunk[]> =>
  (await response.text())
    .split('\n\n')
    .flatMap((event) => (event.startsWith('data: {') ? [JSON.parse(event.slice(6))] : []));

const typesOf = (chunks: readonly UIMessageChunk[], ...types: readonly string[]) =>
  chunks.flatMap((chunk) => {
    if (!types.includes(chunk.type)) return [];
    if (chunk.type === 'text-delta') return [`text: ${chunk.delta}`];
    if (chunk.type === 'error') return [`error: ${chunk.errorText}`];
    const id = 'toolCallId' in chunk ? ` ${chunk.toolCallId}` : '';
    return [`${chunk.type}${id}`];
  });

test('all text of a request that is sent again is retracted, also that before its reasoning', async (context) => {
  const error = { kind: 'unreachable', message: 'cut', retryable: true, retryAfterMs: 0 } as const;
  const model = testModel(
    pieces(
      { type: 'text', text: 'Before.' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'After.' },
      { type: 'failed', error, usage: null },
    ),
    say('Done.'),
  );
  const { session } = await openHere(context, model);
  const chunks = await chunksOf(uiMessageResponse(session, 'go'));
  const texts = chunks.flatMap((chunk) => (chunk.type === 'text-start' ? [chunk.id] : []));
  const retracted = chunks.flatMap((chunk) =>
    chunk.type === 'data-retracted' ? [(chunk.data as { readonly id: string }).id] : [],
  );
  assert.deepEqual([texts.length, retracted], [3, texts.slice(0, 2)]);
});

test('a fault of the session, or of closing it, stands before `finish`; the answer stays', async (context) => {
  const { session } = await openHere(context, testModel(say('Done.')));
  const close = () => Promise.reject(new Error('the disk is full'));
  const shown = ['text-delta', 'finish-step', 'error', 'finish'];
  for (const prompt of [session.prompt, () => Promise.reject(new Error('the disk is full'))]) {
    const options = { close: true, requestId: 'm1' };
    for (const step of [['finish-step'], []]) {
      const chunks = await chunksOf(
        uiMessageResponse({ ...session, prompt, close }, 'go', options),
      );
      const answer = prompt === session.prompt ? ['text: Done.', ...step] : [];
      assert.deepEqual(typesOf(chunks, ...shown), [...answer, 'error: the disk is full', 'finish']);
    }
  }
});

test('a reader who joins by the id sees the calls that run, have ended or ask', async (context) => {
  let end = (): void => undefined;
  const slow = tool(
    'slow',
    () =>
      new Promise((resolve) => {
        end = () => resolve(ok('at last'));
      }),
  );
  const quick = tool('quick', () => ok('done'));
  const change = tool('change', () => ok('changed'), command);
  const calls = callTools(rawCall('1', 'quick'), rawCall('2', 'slow'), rawCall('3', 'change'));
  const { session } = await openHere(context, testModel(calls, say('Done.')), {
    tools: [slow, quick, change],
    preset: 'careful',
    settings: { onAsk: 'ask' },
  });
  const shown = ['tool-input-available', 'tool-approval-request', 'tool-output-available'];
  const input = ['1', '2', '3'].map((id) => `tool-input-available batch-1.${id}`);
  const ended = (id: string) => `tool-output-available batch-1.${id}`;
  const first = chunksOf(uiMessageResponse(session, 'go', { requestId: 'm1' }));
  let now = '';
  const reach = (expected: string) =>
    until(
      () => `${expected}: ${now}`,
      async () => {
        const state = await session.state();
        if (state.name === 'ExecutingTools')
          now = state.calls.map(({ status }) => status).join(' ');
        return now === expected;
      },
    );
  await reach('ok running awaitingApproval');
  const asking = chunksOf(uiMessageResponse(session, 'go', { requestId: 'm1' }));
  await session.send({
    type: 'ApprovalAnswered',
    batchId: 'batch-1',
    callId: '3',
    answer: { kind: 'allow' },
    scope: 'once',
  });
  await reach('ok running queued');
  const last = chunksOf(uiMessageResponse(session, 'go', { requestId: 'm1' }));
  end();
  const ask = 'tool-approval-request batch-1.3';
  assert.deepEqual(typesOf(await asking, ...shown), [
    ...input,
    ended('1'),
    ask,
    ended('2'),
    ended('3'),
  ]);
  assert.deepEqual(typesOf(await last, ...shown), [...input, ended('1'), ended('2'), ended('3')]);
  assert.equal(typesOf(await first, 'tool-output-available').length, 3); // control
});

test('prompts that began one turn together are each read again by their id', async (context) => {
  const go: (() => void)[] = [];
  const wait = async function* (text: string) {
    await new Promise<void>((resolve) => void go.push(resolve));
    yield { type: 'reasoning', text: 'Hm.' } as const;
    yield completed([{ type: 'text', text }]);
  };
  const model = testModel(
    () => wait('One.'),
    () => wait('Both.'),
  );
  const { session } = await openHere(context, model);
  const one = session.prompt('one');
  await until('the first request', () => go.length === 1);
  const send = (text: string) =>
    chunksOf(uiMessageResponse(session, text, { mode: 'followUp', requestId: text }));
  const sent = [send('two'), send('three')];
  await until('the queue', async () => (await session.state()).session.queue.length === 2);
  go[0]?.();
  await until('the second request', () => go.length === 2);
  const again = ['two', 'three'].map(send);
  await new Promise(setImmediate); // they watch
  go[1]?.();
  for (const chunks of await Promise.all([...sent, ...again]))
    assert.deepEqual(typesOf(chunks, 'reasoning-delta', 'text-delta'), [
      'reasoning-delta',
      'text: Both.',
    ]);
  await one;
});

test('the stream of a prompt that waits for a running turn has nothing of that turn', async (context) => {
  let end = (): void => undefined;
  const model = testModel(async function* () {
    yield { type: 'text', text: 'One' };
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    yield { type: 'text', text: ' and more.' };
    yield completed([{ type: 'text', text: 'One and more.' }]);
  }, say('Two.'));
  const { session } = await openHere(context, model);
  const one = chunksOf(uiMessageResponse(session, 'one'));
  await until('the request', () => model.requests.length === 1);
  const follow = { mode: 'followUp', requestId: 'm2' } as const;
  const two = chunksOf(uiMessageResponse(session, 'two', follow));
  await until('the queue', async () => (await session.state()).session.queue.length === 1);
  end();
  const texts = typesOf(await two, 'text-delta', 'start-step');
  assert.deepEqual(texts, ['start-step', 'text: Two.']);
  assert.match(typesOf(await one, 'text-delta').join(), /One.*and more.*Two/); // control: it goes on
});
