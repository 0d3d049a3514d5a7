import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ServerReply } from '../../../../test/servers/anthropic.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, readRecords, runPawl } from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/** `--json-schema`: the answer is JSON that satisfies the schema, or the turn has failed. */

const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { count: { type: 'integer' }, colour: { enum: ['red', 'blue'] } },
  required: ['count'],
  additionalProperties: false,
};

const says = (words: string): ServerReply => message(text(words));

const makePlaceWith = async (
  context: TestContext,
  replies: readonly ServerReply[],
  schema: string = JSON.stringify(SCHEMA),
) => {
  const place = await makeServed(context, replies);
  writeFileSync(path.join(place.workspace, 'schema.json'), schema);
  return place;
};

const RUN = ['-p', 'how many?', '--json-schema', 'schema.json'];

test('JSON in a fence between words is the answer, and stdout is that JSON alone', async (context) => {
  const answer = 'So:\n\n```json\r\n{"count": 3}\r\n```\nDone.';
  const place = await makePlaceWith(context, [says(answer)]);
  const ended = await runInProcess(place, RUN);
  expectCode(ended, 0);
  assert.equal(ended.stdout, '{"count": 3}\n');
  assert.equal(place.server.requests.length, 1);
  expectValid(place.server);
});

test('the model is told at the beginning of the prompt, and the session keeps its title', async (context) => {
  const place = await makePlaceWith(context, [says('{"count": 3}')]);
  expectCode(await runInProcess(place, RUN), 0);
  const sent = JSON.stringify(last(place.server.requests[0]?.body));
  assert.match(sent, /"text":"<answer-format>\\nYour last message must be JSON alone/);
  assert.ok(sent.includes(JSON.stringify(JSON.stringify(SCHEMA)).slice(1, -1)));
  assert.match(sent, /<\/answer-format>\\n\\nhow many\?"/);
  const listed = await runInProcess(place, ['sessions']);
  assert.match(listed.stdout, / how many\?$/m);
  assert.doesNotMatch(listed.stdout, /answer-format/);
});

test('an answer that does not fit is asked for once more, with its faults', async (context) => {
  const replies = [says('{"count": "3"}'), says('{"count": 4}')];
  const place = await makePlaceWith(context, replies);
  const ended = await runInProcess(place, RUN);
  expectCode(ended, 0);
  assert.equal(ended.stdout, '{"count": 4}\n');
  assert.match(ended.stderr, /data\/count must be integer/);
  assert.equal(place.server.requests.length, 2);
  const [first, second] = place.server.requests;
  assert.match(JSON.stringify(last(second?.body)), /does not satisfy the JSON Schema/);
  assert.equal(
    JSON.stringify(second?.body.messages.slice(0, 1)).replace(/,"cache_control":\{[^}]*\}/g, ''),
    JSON.stringify(first?.body.messages).replace(/,"cache_control":\{[^}]*\}/g, ''),
  );
  expectValid(place.server);
});

test('an answer that does not fit twice ends with 1: the faults on stderr, nothing on stdout', async (context) => {
  const replies = [says('Three.'), says('{"count": "four"}')];
  const ended = await runInProcess(await makePlaceWith(context, replies), RUN);
  expectCode(ended, 1);
  assert.equal(ended.stdout, '');
  assert.match(ended.stderr, /^pawl: The answer .*second question: data\/count must be integer$/m);
  assert.match(ended.stderr, /pawl show \d+/);
  const place = await makePlaceWith(context, replies);
  const records = await runInProcess(place, [...RUN, '--json']);
  expectCode(records, 1);
  const result = readRecords(records.stdout).at(-1);
  assert.ok(result?.type === 'result');
  assert.deepEqual([result.reason, result.text], ['jsonSchema', '{"count": "four"}']);
  assert.ok(!('structuredOutput' in result));
  assert.match(result.message, /must be integer/);
  assert.match(records.stderr, /must be integer/);
});

test('with --json the last record has the value', async (context) => {
  const place = await makePlaceWith(context, [says('Here:\n```json\n{"count": 3}\n```')]);
  const ended = await runInProcess(place, [...RUN, '--json']);
  expectCode(ended, 0);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result');
  assert.deepEqual(result.structuredOutput, { count: 3 });
});

for (const schema of ['', null])
  test(`a schema that is ${schema === null ? 'not there' : 'no JSON'} is wrong usage, and nothing is sent`, async (context) => {
    const place = await makePlaceWith(context, [done], schema ?? '');
    if (schema === null) execFileSync('rm', [path.join(place.workspace, 'schema.json')]);
    const ended = await runInProcess(place, RUN);
    expectCode(ended, 2);
    assert.match(
      ended.stderr,
      schema === null ? /schema\.json can't be used: it does not exist/ : /it is not JSON/,
    );
    assert.equal(ended.stdout, '');
    assert.equal(place.server.requests.length, 0);
    assert.match((await runInProcess(place, ['sessions'])).stderr, /No sessions yet/);
  });

test('--json-schema without -p is wrong usage', async (context) => {
  const ended = await runInProcess(await makePlaceWith(context, []), [
    '--json-schema',
    'schema.json',
  ]);
  expectCode(ended, 2);
  assert.match(ended.stderr, /--json-schema FILE needs -p/);
});

test('a reached token limit holds for the second question: it is not asked', async (context) => {
  const place = await makePlaceWith(context, [says('Three.'), says('{"count": 3}')]);
  const ended = await runInProcess(place, [...RUN, '--max-tokens', '10']);
  expectCode(ended, 125);
  assert.equal(ended.stdout, '');
  assert.equal(place.server.requests.length, 1);
  assert.match(ended.stderr, /it is not JSON/);
});

const look = (id: string) => message(call(id, 'list', { path: '.' }));

test('rounds that the turn has used count for the second question, and are given back', async (context) => {
  const replies = [look('a'), says('Three.'), look('b'), look('c'), look('d'), done];
  const place = await makePlaceWith(context, replies);
  const ended = await runInProcess(place, [...RUN, '--max-rounds', '3']);
  expectCode(ended, 126);
  assert.equal(ended.stdout, '');
  assert.equal(place.server.requests.length, 3);
  const again = await runInProcess(place, ['-p', 'and?', '--continue']);
  expectCode(again, 0);
  assert.equal(place.server.requests.length, 6);
});

test('with no round left, the second question is not asked', async (context) => {
  const place = await makePlaceWith(context, [says('Three.'), says('{"count": 3}')]);
  const ended = await runInProcess(place, [...RUN, '--max-rounds', '1']);
  expectCode(ended, 126);
  assert.match(ended.stderr, /does not satisfy schema\.json: it is not JSON/);
  assert.match(ended.stderr, /^pawl: .*--max-rounds N/m);
  assert.equal(place.server.requests.length, 1);
});

test('a turn that is denied or stopped is not asked again, and a denial goes before the answer', async (context) => {
  const write = message(call('a', 'write', { path: '../x', content: 'x' }));
  const place = await makePlaceWith(context, [write, says('{"count": 0}')]);
  const ended = await runInProcess(place, RUN);
  expectCode(ended, 77);
  assert.equal(ended.stdout, '{"count": 0}\n');
});

test('the program itself checks with the schema of a pipe', async (context) => {
  const place = await makePlaceWith(context, [says('3'), says('{"count": 3}')]);
  execFileSync('mkfifo', [path.join(place.workspace, 'pipe')]);
  const filling = execFileSync.bind(null, 'sh', ['-c', `cat schema.json > pipe &`]);
  filling({ cwd: place.workspace, stdio: 'ignore' });
  const ended = await runPawl(place, ['-p', 'how many?', '--json-schema', 'pipe']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, '{"count": 3}\n');
  const long = ['-c', `head -c 300000 /dev/zero | tr '\\0' ' ' > pipe &`];
  execFileSync('sh', long, { cwd: place.workspace, stdio: 'ignore' });
  const refused = await runPawl(place, ['-p', 'how many?', '--json-schema', 'pipe']);
  expectCode(refused, 2);
  assert.match(refused.stderr, /it has more than 200000 bytes/);
});
