import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords } from './pawl.js';
import { message, overloaded, text } from './wire-words.js';

/** What a provider's failures and half answers lead to. */

test('529 once more than is tried again is a transient failure', async (context) => {
  const place = await makeServed(context, [overloaded, overloaded, overloaded], {
    PAWL_MAX_RETRIES: '2',
  });
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 75);
  assert.equal(ended.stdout, '');
  assert.match(ended.stderr, /Overloaded|overloaded/);
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

test('an empty reply ends the turn with exit 1', async (context) => {
  const place = await makeServed(context, [{ type: 'message', parts: [] }]);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 1);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.reason === 'empty');
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
