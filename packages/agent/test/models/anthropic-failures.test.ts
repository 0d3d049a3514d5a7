import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ServerReply, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import type { ModelPiece } from '../../src/ports/model.js';
import {
  ask,
  call,
  collect,
  converse,
  endingOf,
  type Failed,
  message,
  modelAt,
  text,
  userSays,
} from './conversing.js';

const error = (status: number, errorType: string, words: string, headers = {}): ServerReply => ({
  type: 'error',
  status,
  errorType,
  message: words,
  headers,
});

const failing: readonly {
  readonly title: string;
  readonly given: ServerReply;
  readonly kind: Failed['error']['kind'];
  readonly answered?: 'yes';
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly says: RegExp;
}[] = [
  {
    title: 'a stream cut in the middle is unreachable',
    given: message([text('half a rep')], { end: 'cut' }),
    kind: 'unreachable',
    retryable: true,
    says: /cut/,
  },
  {
    title: 'a stream that ends cleanly without its end is unreachable',
    given: message([text('half a rep')], { end: 'clean' }),
    kind: 'unreachable',
    answered: 'yes',
    retryable: true,
    says: /broke off/,
  },
  {
    title: 'a call in a stream that ends cleanly without its end is not run',
    given: message([call('a', { rawInput: '{"path":"x"}' })], { end: 'clean' }),
    kind: 'unreachable',
    answered: 'yes',
    retryable: true,
    says: /broke off/,
  },
  {
    title: 'a stream that stops without a reason is unreachable',
    given: message([text('half a rep')], { end: 'unexplained' }),
    kind: 'unreachable',
    answered: 'yes',
    retryable: true,
    says: /broke off/,
  },
  {
    title: 'a stream with a reason but without its stop is unreachable',
    given: message([text('half a rep')], { end: 'unstopped' }),
    kind: 'unreachable',
    answered: 'yes',
    retryable: true,
    says: /broke off/,
  },
  {
    title: 'an error event in the middle of a stream is what it says',
    given: message([text('half a rep')], { end: 'error' }),
    kind: 'overloaded',
    retryable: true,
    says: /overloaded/i,
  },
  {
    title: 'an error event at the beginning of a stream is what it says',
    given: message([], { end: 'error' }),
    kind: 'overloaded',
    retryable: true,
    says: /overloaded/i,
  },
  {
    title: 'a block that we know, but not like this, is malformed',
    given: message([
      {
        type: 'events',
        events: [
          {
            type: 'content_block_start',
            index: 0,
            content_block: { type: 'tool_use', name: 'read' },
          },
        ],
      },
    ]),
    kind: 'malformed',
    retryable: false,
    says: /makes no sense/,
  },
  {
    title: '529 is overloaded',
    given: error(529, 'overloaded_error', 'Overloaded'),
    kind: 'overloaded',
    retryable: true,
    says: /529/,
  },
  {
    title: '429 says when to come back',
    given: error(429, 'rate_limit_error', 'Too many tokens', { 'retry-after': '7' }),
    kind: 'rateLimited',
    retryable: true,
    retryAfterMs: 7_000,
    says: /Too many tokens/,
  },
  {
    title: '401 says which variable to set',
    given: error(401, 'authentication_error', 'invalid x-api-key'),
    kind: 'auth',
    retryable: false,
    says: /invalid x-api-key.*ANTHROPIC_API_KEY/,
  },
  {
    title: 'a prompt that is too long is an overflow',
    given: error(
      400,
      'invalid_request_error',
      'prompt is too long: 203142 tokens > 200000 maximum',
    ),
    kind: 'contextOverflow',
    retryable: false,
    says: /203142/,
  },
];

for (const { title, given, says, retryAfterMs = null, ...expected } of failing) {
  test(`failed reply: ${title}`, async () => {
    const ending = await converse(given);
    assert.ok(ending.type === 'failed', JSON.stringify(ending));
    const { message: said, ...rest } = ending.error;
    assert.deepEqual(rest, { ...expected, retryAfterMs });
    assert.match(said, says);
    assert.equal(said.includes('\n'), false);
  });
}

test('a request without a key is refused by the server, not by us', async (context) => {
  const server = await startAnthropicServer({ replies: [] });
  context.after(server.close);
  const pieces = await collect(
    modelAt(server.url, '').stream(ask(userSays('hi')), new AbortController().signal),
  );
  const ending = endingOf(pieces);
  assert.ok(ending.type === 'failed');
  assert.equal(ending.error.kind, 'auth');
});

test('a server that is not there is unreachable, with the code and the address', async (context) => {
  const server = await startAnthropicServer({ replies: [] });
  context.after(server.close);
  await server.close();
  const ending = endingOf(
    await collect(modelAt(server.url).stream(ask(userSays('hi')), new AbortController().signal)),
  );
  assert.ok(ending.type === 'failed');
  assert.equal(ending.error.kind, 'unreachable');
  assert.match(ending.error.message, /127\.0\.0\.1.*ECONNREFUSED/);
});

const aborts: readonly {
  readonly title: string;
  readonly given: ServerReply;
  readonly pieces: number;
}[] = [
  { title: 'before the headers ends without a word', given: { type: 'nothing' }, pieces: 0 },
  {
    title: 'in a silent stream ends with nothing but tokens',
    given: message([text('one')], { end: 'silent' }),
    pieces: 1,
  },
];

for (const { title, given, pieces: expected } of aborts) {
  test(`our own abort ${title}`, async (context) => {
    const server = await startAnthropicServer({ replies: [given] });
    context.after(server.close);
    const abortion = new AbortController();
    const pieces: ModelPiece[] = [];
    const watch = setInterval(() => {
      if (server.requests.length === 1 && pieces.length === expected) abortion.abort();
    }, 5);
    for await (const piece of modelAt(server.url).stream(ask(userSays('hi')), abortion.signal))
      pieces.push(piece);
    clearInterval(watch);
    assert.equal(abortion.signal.aborted, true);
    const last = pieces.at(-1);
    if (expected === 0) return assert.deepEqual(pieces, []);
    assert.ok(last?.type === 'failed');
    assert.equal(last.usage?.inputTokens, 10);
    assert.equal(pieces.length, expected + 1);
  });
}

test('an abort before the first call sends nothing', async (context) => {
  const server = await startAnthropicServer({ replies: [] });
  context.after(server.close);
  const pieces = await collect(
    modelAt(server.url).stream(ask(userSays('hi')), AbortSignal.abort()),
  );
  assert.deepEqual(pieces, []);
  assert.equal(server.requests.length, 0);
});

test('a connection is kept for the next request', async (context) => {
  const server = await startAnthropicServer({ replies: () => message([text('yes')]) });
  context.after(server.close);
  const model = modelAt(server.url);
  for (let round = 0; round < 3; round++) {
    const ending = endingOf(
      await collect(model.stream(ask(userSays('hi')), new AbortController().signal)),
    );
    assert.equal(ending.type, 'completed');
    // The end of the answer may come behind its last event.
    while (server.requests.at(-1)?.answeredAt === null)
      await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.deepEqual(server.connections(), { made: 1, open: 1 });
});

test('a reply that is given up in the middle is closed', async (context) => {
  const server = await startAnthropicServer({
    replies: [message([text('a long reply in pieces')], { end: 'silent' })],
  });
  context.after(server.close);
  for await (const piece of modelAt(server.url).stream(
    ask(userSays('hi')),
    new AbortController().signal,
  )) {
    assert.equal(piece.type, 'text');
    break;
  }
  while (server.connections().open > 0) await new Promise((resolve) => setTimeout(resolve, 10));
});
