import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { fakeClock } from '../../../../test/fake-clock.js';
import {
  type Answer,
  completed,
  hang,
  pieces,
  say,
  settle,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import type { Usage, UsageCoverage } from '../../src/machine/settings.js';
import { markOwn } from '../../src/platform/untrusted-input.js';
import type { ModelPiece } from '../../src/ports/model.js';
import { type ReplyEnding, readStream } from '../../src/session/model-call.js';

const hear = (answer: Answer, model = testModel(answer)) => {
  const clock = fakeClock();
  const shown: string[] = [];
  const late: (readonly [Usage, UsageCoverage])[] = [];
  const listening = readStream({
    model,
    request: { instructions: '', tools: [], messages: [] },
    clock,
    firstByteMs: 120_000,
    silenceMs: 90_000,
    onPiece: (piece) => shown.push(piece.text),
    onLateUsage: (...reported) => late.push(reported),
    estimates: false,
  });
  return { clock, shown, late, listening };
};

const HUGE = { inputTokens: 1e15, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
const ENDLESS = {
  kind: 'rateLimited',
  message: 'later',
  retryable: true,
  retryAfterMs: Number.POSITIVE_INFINITY,
} as const;
const answered = (metadata: JsonObject): ModelPiece =>
  completed([{ type: 'text', text: 'a', metadata }]);

const kindOf = (ending: ReplyEnding): string =>
  ending.type === 'failed' ? ending.error.kind : ending.type;

test('pieces are shown in order and the completion ends the call, with no timer left', async () => {
  const { clock, shown, listening } = hear(
    pieces({ type: 'text', text: 'a' }, { type: 'text', text: 'b' }, completed([])),
  );
  assert.equal((await listening.ended).type, 'completed');
  assert.deepEqual(shown, ['a', 'b']);
  assert.equal(clock.waiting(), 0);
});

test('no first byte within its deadline is a timeout that may be tried again', async () => {
  const { clock, listening } = hear(hang());
  clock.advance(119_999);
  await settle();
  clock.advance(1);
  const ending = await listening.ended;
  assert.ok(ending.type === 'failed' && ending.error.kind === 'timeout' && ending.error.retryable);
  assert.match(ending.error.message, /sent nothing for 120 s/);
});

test('a reply without an end is cut off at a bound', async () => {
  const text = 'x'.repeat(1024 * 1024);
  let count = 0;
  const { listening } = hear(async function* () {
    for (;;) {
      count += 1;
      yield { type: 'text', text };
    }
  });
  const ending = await listening.ended;
  assert.ok(
    ending.type === 'failed' && ending.error.kind === 'malformed' && !ending.error.retryable,
  );
  assert.match(ending.error.message, /more than 32 million characters in one reply/);
  await listening.silent;
  assert.equal(count, 33);
});

test('silence after the first byte has a deadline of its own, counted from the last piece', async () => {
  let more: () => void = () => undefined;
  const { clock, shown, listening } = hear(async function* () {
    yield { type: 'text', text: 'a' };
    await new Promise<void>((resolve) => {
      more = resolve;
    });
    yield { type: 'text', text: 'b' };
    await new Promise(() => undefined);
  });
  let over = false;
  void listening.ended.then(() => {
    over = true;
  });
  await settle();
  clock.advance(80_000);
  more();
  await settle();
  clock.advance(89_999);
  await settle();
  assert.deepEqual([shown.join(''), over], ['ab', false]);
  clock.advance(1);
  const ending = await listening.ended;
  assert.equal(kindOf(ending), 'timeout');
  assert.match(ending.type === 'failed' ? ending.error.message : '', /fell silent/);
});

test('a deadline aborts the request, even if the model does not care', async () => {
  let signal: AbortSignal | undefined;
  const { clock, listening } = hear(async function* (_request, given) {
    signal = given;
    await new Promise(() => undefined);
    yield completed([]);
  });
  await settle();
  clock.advance(120_000);
  await listening.ended;
  assert.equal(signal?.aborted, true);
});

test('usage that comes after an abort is a part of what was used, unless the reply was whole', async () => {
  const usage = { inputTokens: 100, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const error = { kind: 'unreachable', message: '', retryable: true, retryAfterMs: null } as const;
  const rows: readonly (readonly [ModelPiece, UsageCoverage])[] = [
    [completed([]), 'whole'],
    [{ type: 'failed', error, usage }, 'partial'],
  ];
  for (const [last, coverage] of rows) {
    const { late, listening } = hear(async function* (_request, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      yield last;
    });
    await settle();
    listening.abort();
    await listening.silent;
    assert.deepEqual(
      late.map(([, covered]) => covered),
      [coverage],
    );
  }
});

test('an abort ends the call at once; usage that comes later is still counted', async () => {
  const { late, listening, shown } = hear(async function* (_request, signal) {
    yield { type: 'text', text: 'a' };
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    yield { type: 'text', text: 'b' };
    yield completed([]);
  });
  await settle();
  listening.abort();
  assert.equal((await listening.ended).type, 'aborted');
  await settle();
  assert.equal(late.length, 1);
  assert.deepEqual(shown, ['a']);
});

test('a model that rejects is a failed call, not a failed program', async () => {
  const { listening } = hear(() => {
    throw new Error('wires crossed');
  });
  const ending = await listening.ended;
  assert.ok(
    ending.type === 'failed' && ending.error.kind === 'malformed' && !ending.error.retryable,
  );
  assert.match(ending.error.message, /wires crossed/);
});

test('a stream that ends without an end is unreachable, whatever it had said', async () => {
  const { listening } = hear(pieces({ type: 'text', text: 'half a' }));
  const ending = await listening.ended;
  assert.ok(
    ending.type === 'failed' && ending.error.kind === 'unreachable' && ending.error.retryable,
  );
});

test('what a model says after its completion is not heard', async () => {
  const { shown, listening } = hear(
    pieces(completed([]), { type: 'text', text: 'and another thing' }),
  );
  await listening.ended;
  await settle();
  assert.deepEqual(shown, []);
  assert.equal(kindOf(await hear(say('x')).listening.ended), 'completed');
});

/** What comes from a server, and how the call ends then: also of our own models. */
const FROM_SERVERS: readonly (readonly [string, ModelPiece, string])[] = [
  ['metadata that JSON can hold', answered({ place: { signature: 'x' } }), 'completed'],
  [
    'metadata that JSON has not',
    answered({ place: { score: Number.POSITIVE_INFINITY } }),
    'malformed',
  ],
  ['usage that is no usage', { ...completed([]), usage: HUGE } as ModelPiece, 'completed, unknown'],
  ['a delay without an end', { type: 'failed', error: ENDLESS, usage: null }, 'malformed'],
];

for (const [what, piece, expected] of FROM_SERVERS)
  test(`${what}: ${expected}, whoever made the model`, async () => {
    for (const model of [testModel(pieces(piece)), markOwn(testModel(pieces(piece)))]) {
      const ending = await hear(pieces(piece), model).listening.ended;
      const isUnknown = ending.type === 'completed' && ending.usage?.costUsd === null;
      assert.equal(isUnknown ? 'completed, unknown' : kindOf(ending), expected);
    }
  });
