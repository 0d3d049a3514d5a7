import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { array, looseObject, optional, parse, string, unknown } from 'valibot';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, readRecords, runPawl } from './pawl.js';
import { call, message, text } from './wire-words.js';

/** Spans of the real program at a collector of OpenTelemetry (OTLP over HTTP, JSON). */

const spanShape = looseObject({
  name: string(),
  traceId: string(),
  parentSpanId: optional(string()),
  attributes: array(unknown()),
});
const exportShape = looseObject({
  resourceSpans: array(
    looseObject({ scopeSpans: array(looseObject({ spans: array(spanShape) })) }),
  ),
});

type Collector = {
  readonly url: string;
  readonly bodies: string[];
  readonly paths: string[];
  /** When the first export came; NaN before. */
  readonly firstAt: () => number;
};

/** `silent`: it takes what comes and never answers. */
const startCollector = async (
  context: TestContext,
  manner: 'answers' | 'silent',
): Promise<Collector> => {
  const bodies: string[] = [];
  const paths: string[] = [];
  let firstAt = Number.NaN;
  const server = http.createServer((incoming, answer) => {
    if (Number.isNaN(firstAt)) firstAt = performance.now();
    paths.push(incoming.url ?? '');
    let body = '';
    incoming.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    incoming.on('end', () => {
      bodies.push(body);
      if (manner === 'answers')
        answer.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  return { url: `http://127.0.0.1:${port}`, bodies, paths, firstAt: () => firstAt };
};

const spansIn = (bodies: readonly string[]) =>
  bodies
    .flatMap((body) => parse(exportShape, JSON.parse(body)).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));

const SECRET = 'a-token-that-nobody-may-see-7431';
const REPLIES = [
  { type: 'error', status: 529, errorType: 'overloaded_error', message: 'busy' },
  message(text('I look.'), call('c1', 'read', { path: 'a.txt' })),
  message(text('It says hello.')),
] as const;

test('a turn of the program arrives at a collector, in the names of GenAI, without what was said', async (context) => {
  const collector = await startCollector(context, 'answers');
  const place = await makeServed(context, [...REPLIES], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const ended = await runPawl(place, ['-p', 'the question of all questions', '--json']);
  expectCode(ended, 0);
  assert.deepEqual(new Set(collector.paths), new Set(['/v1/traces']));
  const spans = spansIn(collector.bodies);
  assert.deepEqual(spans.map(({ name }) => name).toSorted(), [
    'chat claude-sonnet-5-5',
    'chat claude-sonnet-5-5',
    'execute_tool read',
    'invoke_agent pawl',
  ]);
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1, 'one turn is one trace');
  const sent = collector.bodies.join('\n');
  const session = readRecords(ended.stdout).find((record) => record.type === 'session');
  for (const words of [
    '"gen_ai.conversation.id"',
    String(session?.sessionId),
    '"anthropic"',
    'pawl.request.attempts',
  ])
    assert.ok(sent.includes(words), words);
  assert.doesNotMatch(sent, /question of all|I look|It says hello|a\.txt/);
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test('with TRACEPARENT the turns are children of the span that it names', async (context) => {
  const collector = await startCollector(context, 'answers');
  const run = async (TRACEPARENT: string) => {
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, TRACEPARENT };
    const place = await makeServed(context, [message(text('Fine.'))], environment);
    expectCode(await runPawl(place, ['-p', 'hi']), 0);
    return spansIn(collector.bodies.splice(0)).map(({ name, traceId, parentSpanId }) => ({
      name,
      isIn: traceId === TRACE,
      isChild: parentSpanId === SPAN,
    }));
  };
  assert.deepEqual(await run(`00-${TRACE}-${SPAN}-01`), [
    { name: 'chat claude-sonnet-5-5', isIn: true, isChild: false },
    { name: 'invoke_agent pawl', isIn: true, isChild: true },
  ]);
  assert.deepEqual(await run(`00-${TRACE}-${SPAN}-00`), [], 'a trace that is not sampled');
  for (const broken of chooseRows([
    '',
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `ff-${TRACE}-${SPAN}-01`,
  ]))
    assert.deepEqual(
      (await run(broken)).map(({ isIn }) => isIn),
      [false, false],
      broken,
    );
});

test('grpc is refused in words; http/protobuf gets JSON', async (context) => {
  const collector = await startCollector(context, 'answers');
  const run = async (OTEL_EXPORTER_OTLP_PROTOCOL: string) => {
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL };
    const place = await makeServed(context, [message(text('Fine.'))], environment);
    const ended = await runPawl(place, ['-p', 'hi']);
    expectCode(ended, 0);
    return { stderr: ended.stderr, spans: spansIn(collector.bodies.splice(0)).length };
  };
  const refused = await run('grpc');
  assert.equal(refused.spans, 0);
  assert.match(
    refused.stderr,
    /nothing is sent, since OTEL_EXPORTER_OTLP_PROTOCOL is grpc .*http\/json/,
  );
  assert.deepEqual(await run('http/protobuf'), { stderr: '', spans: 2 });
});

test('what was said is sent if the user says so, with secrets replaced', async (context) => {
  const collector = await startCollector(context, 'answers');
  const place = await makeServed(context, [message(text(`It is ${SECRET}.`))], {
    PAWL_TELEMETRY: 'content',
    PAWL_TELEMETRY_ENDPOINT: collector.url,
    DEPLOY_TOKEN: SECRET,
  });
  expectCode(await runPawl(place, ['-p', 'the question of all questions']), 0);
  const sent = collector.bodies.join('\n');
  assert.match(sent, /question of all questions/);
  assert.ok(!sent.includes(SECRET), 'the secret is replaced');
});

test('a collector that never answers delays the exit by no more than its deadline, and changes no exit code', async (context) => {
  const collector = await startCollector(context, 'silent');
  const place = await makeServed(context, [message(text('Fine.'))], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const ended = await runPawl(place, ['-p', 'hi']);
  expectCode(ended, 0);
  assert.equal(ended.stdout.trim(), 'Fine.');
  assert.ok(performance.now() - collector.firstAt() < 30_000, 'it would wait for ever');
  assert.match(ended.stderr, /telemetry: spans can't be sent to/);
});

test("a project's file can turn no telemetry on", async (context) => {
  const collector = await startCollector(context, 'answers');
  const place = await makeServed(context, [message(text('Fine.'))]);
  mkdirSync(join(place.workspace, '.pawl'));
  const written = `telemetry = "content"\ntelemetry_endpoint = "${collector.url}"\n`;
  writeFileSync(join(place.workspace, '.pawl', 'config.toml'), written);
  const ended = await runInProcess(place, ['-p', 'hi']);
  expectCode(ended, 0);
  assert.match(ended.stderr, /telemetry_endpoint/, 'it is told that the setting is ignored');
  assert.deepEqual(collector.bodies, []);
});
