import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { VERSION } from '../../src/platform/environment.js';
import {
  chatModel,
  delta,
  events,
  hello,
  OK,
  openAi,
  serve,
  streamed,
  textOf,
} from './answering.js';

/** Answers that providers, gateways and what stands between really give; each beside one that is in order. */

test('a request says who asks, and asks for an answer that is not compressed', async (context) => {
  const { url, seen } = await serve(context, streamed(OK));
  const { ending } = await hello(chatModel(url));
  assert.equal(ending.type, 'completed');
  assert.equal(seen[0]?.headers['user-agent'], `pawl/${VERSION}`);
  assert.equal(seen[0]?.headers['accept-encoding'], 'identity');
});

test('our version is that of the package', () => {
  const described = JSON.parse(
    readFileSync(new URL('../../../pawl/package.json', import.meta.url), 'utf8'),
  );
  assert.equal(VERSION, described.version);
});

const encodings = {
  gzip: zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
} as const;

for (const [encoding, compress] of Object.entries(encodings)) {
  test(`a reply that came as ${encoding}, which nobody asked for, is read`, async (context) => {
    const { url } = await serve(context, streamed(compress(OK), { 'content-encoding': encoding }));
    const { ending, pieces } = await hello(chatModel(url));
    assert.equal(ending.type, 'completed');
    assert.equal(textOf(pieces), 'ok');
  });
}

test('a failure that came as gzip is read', async (context) => {
  const body = zlib.gzipSync(JSON.stringify({ error: { message: 'no such parameter' } }));
  const { url } = await serve(context, (out) => {
    out
      .writeHead(400, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      .end(body);
  });
  const { ending } = await hello(chatModel(url));
  assert.match(ending.type === 'failed' ? ending.error.message : '', /\(400\): no such parameter/);
});

test('a compression that nobody can undo is named', async (context) => {
  const { url } = await serve(context, streamed('x', { 'content-encoding': 'zstd' }));
  const { ending } = await hello(chatModel(url));
  assert.match(ending.type === 'failed' ? ending.error.message : '', /compression zstd/);
});

const odd = async (
  context: Parameters<typeof serve>[0],
  body: string,
  type: string,
): Promise<{ readonly kind: string; readonly retryable: boolean; readonly message: string }> => {
  const { url } = await serve(context, streamed(body, { 'content-type': type }));
  const { ending } = await hello(chatModel(url));
  assert.equal(ending.type, 'failed');
  return ending.error;
};

test('a login page with status 200 is shown shortened, and not asked for again', async (context) => {
  const page = `<!DOCTYPE html>\n<html><head><title>Sign in to Example Net</title></head><body>${'x'.repeat(9_000)}</body></html>`;
  const error = await odd(context, page, 'text/html');
  assert.equal(error.kind, 'malformed');
  assert.equal(error.retryable, false);
  assert.match(error.message, /at the proxy\. The page: Sign in to Example Net$/);
  assert.ok(error.message.length < 400, error.message);
});

test('an error as JSON with status 200 is read like that of a failed request', async (context) => {
  const body = JSON.stringify({
    error: { message: 'You have no credits', code: 'insufficient_quota' },
  });
  assert.equal((await odd(context, body, 'application/json')).kind, 'quotaExhausted');
});

test('a whole reply as JSON where a stream was asked for is shown shortened', async (context) => {
  const body = JSON.stringify({ id: 'c', choices: [{ message: { content: 'y'.repeat(5_000) } }] });
  const error = await odd(context, body, 'application/json');
  assert.match(error.message, /no stream of events: \{"id":"c"/);
  assert.ok(error.message.length < 400);
});

test('plain words where a stream was asked for are shown', async (context) => {
  const error = await odd(context, 'upstream connect error or disconnect', 'text/plain');
  assert.match(error.message, /upstream connect error/);
  for (const text of ['OK', 'error\r\n'])
    assert.match((await odd(context, text, 'text/plain')).message, /no stream of events: \w+$/);
});

test('a stream is a stream, whatever its content type says', async (context) => {
  for (const body of [OK, `\uFEFF${OK}`, `\n\n: hi\n\n${OK}`, `event: message\n${OK}`]) {
    const { url } = await serve(context, streamed(body, { 'content-type': 'application/json' }));
    const { pieces, ending } = await hello(chatModel(url));
    assert.deepEqual([ending.type, textOf(pieces)], ['completed', 'ok'], body);
  }
});

test('a redirect is not followed: the key goes nowhere else', async (context) => {
  const other = await serve(context, streamed(OK));
  const { url } = await serve(context, (out) => out.writeHead(307, { location: other.url }).end());
  const { ending } = await hello(chatModel(url));
  assert.equal(ending.type, 'failed');
  assert.deepEqual([ending.error.kind, ending.error.retryable], ['badRequest', false]);
  assert.ok(ending.error.message.includes(other.url), ending.error.message);
  assert.equal(other.seen.length, 0);
});

test('a comment is a sign of life', async (context) => {
  let finish = (): void => undefined;
  const { url } = await serve(context, (out) => {
    out.writeHead(200, { 'content-type': 'text/event-stream' });
    out.write(': OPENROUTER PROCESSING\n\n');
    finish = () => void out.end(OK);
  });
  const reading = chatModel(url).stream(
    { instructions: '', tools: [], messages: [] },
    AbortSignal.timeout(600_000),
  );
  const reader = reading[Symbol.asyncIterator]();
  // Nothing but the comment has come.
  assert.deepEqual(await reader.next(), { done: false, value: { type: 'reasoning', text: '' } });
  finish();
  assert.deepEqual(await reader.next(), { done: false, value: { type: 'text', text: 'ok' } });
});

const end = async (context: Parameters<typeof serve>[0], body: string) => {
  const { url } = await serve(context, streamed(body));
  return (await hello(chatModel(url))).ending;
};

const call = (text: string): object =>
  delta({
    tool_calls: [
      { index: 0, id: 'a', type: 'function', function: { name: 'read', arguments: text } },
    ],
  });

test('[DONE] ends a reply that has no finish reason', async (context) => {
  const said = await end(context, events(delta({ content: 'ok' }), '[DONE]'));
  assert.deepEqual([said.type, said.type === 'completed' && said.stopReason], ['completed', 'end']);
  const called = await end(context, events(call('{"path":"a"}'), '[DONE]'));
  assert.deepEqual(
    [called.type, called.type === 'completed' && called.stopReason],
    ['completed', 'toolUse'],
  );
});

test('[DONE] ends no reply that is half, empty or failed', async (context) => {
  const bodies = {
    'half a call': events(call('{"path":'), '[DONE]'),
    'nothing at all': events(delta({}), '[DONE]'),
    'lost its provider': events(delta({ content: 'ok' }), delta({}, 'error'), '[DONE]'),
    'no [DONE]': events(delta({ content: 'ok' })),
  };
  for (const [title, body] of Object.entries(bodies)) {
    const ending = await end(context, body);
    assert.deepEqual(
      [ending.type, ending.type === 'failed' && ending.error.kind],
      ['failed', 'unreachable'],
      title,
    );
  }
});

test('an `error:` line is what failed', async (context) => {
  const line = `error: ${JSON.stringify({ code: 500, message: 'slot is unavailable ♥', type: 'server_error' })}\n\n`;
  const ending = await end(context, events(delta({ content: 'o' })) + line);
  assert.match(ending.type === 'failed' ? ending.error.message : '', /slot is unavailable ♥/);
  const words = await end(context, 'error: out of memory\n\n');
  assert.match(words.type === 'failed' ? words.error.message : '', /out of memory/);
});

test('output tokens are the total without the prompt, where that is more', async (context) => {
  const of = async (usage: object) => {
    const ending = await end(
      context,
      events(
        delta({ content: 'ok' }),
        delta({}, 'stop'),
        { id: 'c', choices: [], usage },
        '[DONE]',
      ),
    );
    return ending.type === 'completed' ? (ending.usage?.outputTokens ?? null) : null;
  };
  // xAI: 300 tokens of thoughts are in the total only.
  assert.equal(await of({ prompt_tokens: 100, completion_tokens: 20, total_tokens: 420 }), 320);
  assert.equal(await of({ prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }), 20);
  assert.equal(await of({ prompt_tokens: 100, completion_tokens: 20, total_tokens: 90 }), 20);
  assert.equal(await of({ prompt_tokens: 100, completion_tokens: 20 }), 20);
});

test("a package's fault over ids that change is no TypeError for the user", async (context) => {
  const body = events(
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'one' } },
    { type: 'response.reasoning_summary_part.added', item_id: 'two', summary_index: 1 },
    {
      type: 'response.reasoning_summary_text.delta',
      item_id: 'three',
      summary_index: 1,
      delta: 'x',
    },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'reasoning', id: 'four' } },
  );
  const { url } = await serve(context, streamed(body));
  const { ending } = await hello(openAi(url));
  assert.equal(ending.type, 'failed');
  assert.doesNotMatch(ending.error.message, /undefined|TypeError/);
});
