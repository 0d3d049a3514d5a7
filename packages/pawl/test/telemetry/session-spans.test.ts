import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import test from 'node:test';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { genAi, SessionSpans, type SpanOptions } from '@pawl/inspector/session-spans';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { openHere } from '../../../../test/kit/api/stage.js';
import { hang, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { traceSession } from '../../src/telemetry.js';

/** Spans of sessions that are written as traces, by the real SDK. */

type Options = Partial<Pick<SpanOptions, 'content'>> & {
  readonly from?: number;
  readonly close?: 'no';
};

const spansOf = (
  trace: string,
  { from = 0, close, ...options }: Options = {},
): readonly ReadableSpan[] => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = new SessionSpans({
    tracer: provider.getTracer('test'),
    sessionId: 'session-1',
    ...options,
  });
  const steps = play(trace).steps.map(({ event, step }, index) => ({
    seq: index + 1,
    event,
    ...step,
  }));
  for (const step of steps.slice(from)) spans.see(step);
  if (close !== 'no') spans.close();
  return exporter.getFinishedSpans();
};

const millisecondsOf = ([seconds, nanoseconds]: readonly [number, number]): number =>
  seconds * 1_000 + nanoseconds / 1e6;

const drawn = (spans: readonly ReadableSpan[]): readonly string[] =>
  spans.map(({ name, startTime, endTime, attributes, status }) => {
    const error = attributes['error.type'];
    assert.equal(status.code === SpanStatusCode.ERROR, error !== undefined);
    return [name, `${millisecondsOf(startTime)}-${millisecondsOf(endTime)}`, error]
      .filter(Boolean)
      .join(' ');
  });

const SESSION = `! careful {"hooks":"never"}
> @1000 Start
> @2000 UserInput "rewrite it"
> @5000 LlmFailed req-1 overloaded "busy" tokens=50+0 cost=0.5
> @7000 TimerFired timer-1
> @9000 LlmCompleted req-2 says "I look." calls read(c1) edit(c2) tokens=100+10 cost=1
> @9000 ToolStarted batch-1 c1
> @9500 ToolCompleted batch-1 c1 failed "no token-12345"
> @13000 ApprovalAnswered batch-1 c2 allow
> @13000 ToolStarted batch-1 c2
> @12000 ToolCompleted batch-1 c2 ok "changed"
> @16000 LlmCompleted req-3 says "Done." tokens=200+20 cost=2
> @17000 UserInput "again"
> @18000 CancelTurn
`;

const TAKEN_OVER = `! {"maxRetries":0,"fallback":[{"model":"other/second","windowTokens":9000,"prices":null}]}
> @1000 Start
> @2000 UserInput "hi"
> @5000 LlmFailed req-1 overloaded "busy"
> @9000 LlmCompleted req-2 says "Yes." tokens=100+10 cost=1
`;

test('a model that takes over has a span with its name', () => {
  const spans = spansOf(TAKEN_OVER);
  assert.deepEqual(drawn(spans), [
    'chat model 2000-5000 overloaded',
    'chat second 5000-9000',
    'invoke_agent pawl 2000-9000',
  ]);
  assert.equal(spans[1]?.attributes['gen_ai.provider.name'], 'other');
});

test('a turn, its calls of the model with their retries, and its tools are spans with the names of GenAI', () => {
  const spans = spansOf(SESSION);
  assert.deepEqual(drawn(spans), [
    'chat model 2000-9000',
    'execute_tool read 9000-9500 failed',
    'execute_tool edit 13000-13000',
    'chat model 13000-16000',
    'invoke_agent pawl 2000-16000',
    'chat model 17000-18000 cancelled',
    'invoke_agent pawl 17000-18000 cancelled:user',
  ]);
  const [chat, tool, , , turn] = spans;
  assert.ok(chat && tool && turn);
  assert.deepEqual(
    [turn.kind, chat.kind, tool.kind],
    [SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL],
  );
  for (const inner of [chat, tool])
    assert.equal(
      inner.parentSpanContext?.spanId,
      turn.spanContext().spanId,
      'they are in the turn',
    );
  assert.equal(turn.parentSpanContext, undefined);
  assert.deepEqual(
    chat.events.map(({ name, attributes }) => [name, attributes?.['error.type']]),
    [['pawl.attempt_failed', 'overloaded']],
  );
  assert.deepEqual(chat.attributes, {
    'gen_ai.conversation.id': 'session-1',
    'gen_ai.agent.name': 'pawl',
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'test',
    'gen_ai.request.model': 'model',
    'gen_ai.request.stream': true,
    'gen_ai.response.finish_reasons': ['tool_calls'],
    'gen_ai.response.model': 'model',
    'gen_ai.usage.input_tokens': 150,
    'gen_ai.usage.output_tokens': 10,
    'gen_ai.usage.cache_read.input_tokens': 0,
    'gen_ai.usage.cache_creation.input_tokens': 0,
    'pawl.cost_usd': 1.5,
    'pawl.request.attempts': 2,
  });
  assert.deepEqual(
    [turn.attributes['gen_ai.usage.input_tokens'], turn.attributes['pawl.cost_usd']],
    [350, 3.5],
  );
});

test('what was said is in the spans only if it is wanted, and then without secrets', () => {
  const textOf = (spans: readonly ReadableSpan[]): string =>
    JSON.stringify(spans.map(({ name, attributes, events }) => [name, attributes, events]));
  const said = /rewrite it|I look|Done\.|token-12345|a\.ts/;
  assert.doesNotMatch(textOf(spansOf(SESSION)), said);
  const told = textOf(
    spansOf(SESSION, { content: (text) => text.replaceAll('token-12345', '[hidden]') }),
  );
  for (const words of ['rewrite it', 'I look', 'Done.', '[hidden]', 'gen_ai.tool.call.arguments'])
    assert.ok(told.includes(words), words);
  assert.doesNotMatch(told, /token-12345/);
});

const CRASH = `! {"hooks":"never"}
> @0 Start
> @100 UserInput "run it"
> @1000 LlmCompleted req-1 calls bash(c1)
> @1000 ToolStarted batch-1 c1
> @9000 Resumed 2
> @9500 ToolCompleted batch-1 c1 ok "found again"
> @9900 LlmCompleted req-2 says "Done."
> @9900 ShutdownRequested
`;

test('a session that is opened again has no spans for its past; what is open at the end, ends there', () => {
  assert.deepEqual(drawn(spansOf(CRASH, { from: 4 })), [
    'execute_tool bash 9000-9500',
    'chat model 9500-9900',
    'invoke_agent pawl 9000-9900',
  ]);
  const cut = CRASH.split('\n').slice(0, 5).join('\n');
  assert.deepEqual(drawn(spansOf(cut, { close: 'no' })), ['chat model 100-1000']);
  assert.deepEqual(drawn(spansOf(cut)), [
    'chat model 100-1000',
    'execute_tool bash 1000-1000 interrupted',
    'invoke_agent pawl 100-1000 interrupted',
  ]);
});

test('a session of the library has spans at the provider of its user, until it ends', async (context) => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const { session } = await openHere(context, testModel(say('Done.'), hang()));
  traceSession(session, { tracer: provider.getTracer('user') });
  await session.prompt('hi');
  await session.send({ type: 'UserInput', text: 'and now?', mode: 'steer' });
  await session.close();
  const names = exporter
    .getFinishedSpans()
    .map(({ name, attributes }) => [name, attributes['error.type']]);
  assert.deepEqual(names, [
    ['chat one', undefined],
    ['invoke_agent pawl', undefined],
    ['chat one', 'cancelled'],
    ['invoke_agent pawl', 'interrupted'],
  ]);
});

test('each name of the conventions is one that their package publishes', async () => {
  const published = new Set<unknown>(
    Object.values(await import('@opentelemetry/semantic-conventions/incubating')),
  );
  assert.deepEqual(
    Object.values(genAi).filter((name) => !published.has(name)),
    [],
  );
});
