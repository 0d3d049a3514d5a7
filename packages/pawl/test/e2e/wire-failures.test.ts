import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplyPart, ServerReply } from '../../../../test/servers/anthropic.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords } from './pawl.js';
import { done, last, message, overloaded, text } from './wire-words.js';

/** What a provider's failures and half answers lead to. */

test('529 eight times in a row is waited out', async (context) => {
  const place = await makeServed(context, [...Array.from({ length: 8 }, () => overloaded), done]);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 0);
  assert.equal(place.server.requests.length, 9);
  const retries = readRecords(ended.stdout).filter((record) => record.type === 'retry');
  assert.deepEqual(
    retries.map(({ retry, of, kind }) => [retry, of, kind]),
    Array.from({ length: 8 }, (_, index) => [index + 1, 8, 'overloaded']),
  );
  for (const [index, { delayMs }] of retries.entries()) {
    const leastMs = 5 * 2 ** index;
    assert.ok(delayMs >= leastMs && delayMs <= Math.ceil(1.25 * leastMs), `${index}: ${delayMs}`);
  }
});

test('529 once more than is tried again is a transient failure', async (context) => {
  const place = await makeServed(context, [overloaded, overloaded, overloaded], {
    PAWL_MAX_RETRIES: '2',
  });
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 75);
  assert.equal(ended.stdout, '');
  assert.match(ended.stderr, /Overloaded|overloaded/);
});

test('retry-after is kept to', async (context) => {
  const limited: ServerReply = {
    type: 'error',
    status: 429,
    errorType: 'rate_limit_error',
    message: 'slow down',
    headers: { 'retry-after': '2' },
  };
  const place = await makeServed(context, [limited, done]);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 0);
  const records = readRecords(ended.stdout);
  const failed = records.find((record) => record.type === 'modelFailed');
  const retry = records.find((record) => record.type === 'retry');
  assert.ok(failed?.type === 'modelFailed' && retry?.type === 'retry');
  assert.equal(failed.kind, 'rateLimited');
  assert.equal(failed.retryAfterMs, 2_000);
  assert.ok(retry.dueAt - failed.at >= 2_000);
});

for (const end of ['cut', 'clean', 'unstopped', 'silent'] as const) {
  test(`a stream that is ${end} in the middle is asked for again`, async (context) => {
    const place = await makeServed(
      context,
      [{ type: 'message', parts: [text('Half a rep')], end }, message(text('The whole reply.'))],
      { PAWL_SILENCE_MS: '400' },
    );
    const ended = await runInProcess(place, ['-p', 'go']);
    expectCode(ended, 0);
    assert.equal(ended.stdout, 'The whole reply.\n');
    assert.equal(place.server.requests.length, 2);
    expectValid(place.server);
  });
}

test('a call in a stream that breaks off is never run', async (context) => {
  const half: ReplyPart = {
    type: 'call',
    id: 'a',
    name: 'write',
    input: { path: 'x', content: 'x' },
    half: true,
  };
  const place = await makeServed(context, [{ type: 'message', parts: [half], end: 'clean' }, done]);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 0);
  assert.ok(!readRecords(ended.stdout).some((record) => record.type === 'toolStarted'));
});

test('no first byte is a failure, too', async (context) => {
  const place = await makeServed(context, [{ type: 'nothing' }, done], {
    PAWL_FIRST_BYTE_MS: '400',
  });
  expectCode(await runInProcess(place, ['-p', 'go']), 0);
  assert.equal(place.server.requests.length, 2);
});

test('an empty reply is asked for once more, and a second one ends the turn with exit 1', async (context) => {
  const empty = { type: 'message', parts: [] } as const;
  const place = await makeServed(context, [empty, done, empty, empty]);
  expectCode(await runInProcess(place, ['-p', 'go']), 0);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 1);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.reason === 'empty');
});

test('a call cut off by max_tokens is answered and not run', async (context) => {
  const half: ReplyPart = {
    type: 'call',
    id: 'a',
    name: 'write',
    rawInput: '{"path":"x.txt","con',
  };
  const place = await makeServed(context, [
    { type: 'message', parts: [text('I write.'), half], stopReason: 'max_tokens' },
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /"is_error":true/);
  assert.ok(!readRecords(ended.stdout).some((record) => record.type === 'toolStarted'));
});

test('a refusal is the model giving up', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [text('I will not do that.')], stopReason: 'refusal' },
  ]);
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 1);
  assert.equal(place.server.requests.length, 1);
});

test('a context that is too long fails with exit 1 and a sentence', async (context) => {
  const place = await makeServed(context, [
    {
      type: 'error',
      status: 400,
      errorType: 'invalid_request_error',
      message: 'prompt is too long: 250000 tokens > 200000 maximum',
    },
  ]);
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 1);
  assert.match(ended.stderr, /too long|window/);
});

test('a key that is wrong is a wrong set-up', async (context) => {
  const place = await makeServed(context, [
    { type: 'error', status: 401, errorType: 'authentication_error', message: 'invalid x-api-key' },
  ]);
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 78);
  assert.match(ended.stderr, /ANTHROPIC_API_KEY/);
});

test('a server that is not there is unavailable', async (context) => {
  const place = await makeServed(context, []);
  const ended = await runInProcess(place, ['-p', 'go', '--base-url', 'http://127.0.0.1:9']);
  expectCode(ended, 69);
});
