import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ElicitRequestParams } from '@modelcontextprotocol/client';
import { openSession, placeIn, run } from '../../../../test/kit/mcp/open-servers.js';
import { serverScript, stdioServer } from '../../../../test/kit/mcp/test-servers.js';
import { testContext } from '../../../../test/kit/mcp/tool-context.js';
import {
  readServerQuestion,
  readTyped,
  type ServerAnswer,
} from '../../src/extensions/mcp/question.js';

const read = (properties: object, message = 'M'): ReturnType<typeof readServerQuestion> =>
  readServerQuestion(
    's',
    { message, requestedSchema: { type: 'object', properties } } as ElicitRequestParams, // also wrong ones
    (text) => text,
  );

test('a form that nobody would fill in, and an address of another kind, are no questions', () => {
  const text = { type: 'string' };
  const many = Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`f${at}`, text]));
  const odd: readonly object[] = [
    many,
    { a: { type: 'object' } },
    { a: { type: 'string', enum: [] } },
    { a: { type: 'string', enum: Array.from({ length: 51 }, String) } },
    { a: { type: 'array', items: 7 } },
    { ['x'.repeat(101)]: text },
  ];
  for (const properties of odd)
    assert.equal(read(properties), null, JSON.stringify(properties).slice(0, 80));
  const long = read({ a: { ...text, title: 'T'.repeat(500) } }, 'M'.repeat(5_000));
  assert.ok(long?.asks.kind === 'form' && long.message.length <= 2_001);
  assert.ok((long.asks.fields[0]?.label.length ?? 999) <= 201);
  for (const url of ['javascript:alert(1)', 'file:///etc/passwd', 'x'.repeat(10)]) {
    const params = { mode: 'url', message: 'M', url, elicitationId: '1' } as ElicitRequestParams; // by its schema
    assert.equal(readServerQuestion('s', params, String), null, url);
  }
});

test('a typed number is that of the list, though it is the value of another choice', () => {
  const oneOf = [
    { const: 'no', title: 'Keep' },
    { const: '1', title: 'Delete all' },
    { const: '20', title: 'Ask' },
  ];
  const question = read({ a: { type: 'string', oneOf } });
  const field = question?.asks.kind === 'form' ? question.asks.fields[0] : undefined;
  assert.ok(field !== undefined);
  const chosen = ['1', '2', '20', 'Keep', 'no'].map((line) => readTyped(line, field));
  assert.deepEqual(
    chosen.map((one) => one.kind === 'value' && one.value),
    ['no', '1', '20', 'no', 'no'],
  );
});

const requestedSchema = JSON.stringify({
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
});
const PACKAGE = JSON.stringify(import.meta.resolve('@modelcontextprotocol/server'));

/** Tools that ask, as each version of the protocol has it. */
const asking: Readonly<Record<string, string>> = {
  legacy: `server.registerTool('ask', { inputSchema: schema() }, async (_input, { mcpReq }) => {
    const answers = [];
    for (let asked = 0; asked < 12; asked++)
      answers.push((await mcpReq.elicitInput({ mode: 'form', message: 'Your name?', requestedSchema: ${requestedSchema} })).action);
    return { content: [{ type: 'text', text: answers.join(' ') }] };
  });`,
  '2026-07-28': `server.registerTool('ask', { inputSchema: schema() }, async (_input, { mcpReq }) => {
    const { inputRequired } = await import(${PACKAGE});
    const names = Array.from({ length: 12 }, (_, at) => 'q' + at);
    const answers = mcpReq.inputResponses;
    if (answers !== undefined) return { content: [{ type: 'text', text: names.map((name) => answers[name].action).join(' ') }] };
    const ask = () => inputRequired.elicit({ message: 'Your name?', requestedSchema: ${requestedSchema} });
    return inputRequired({ inputRequests: Object.fromEntries(names.map((name) => [name, ask()])) });
  });`,
};

for (const [protocol, body] of Object.entries(asking))
  test(`a server asks during its call, at most ten times; the time limit stands still meanwhile, with ${protocol}`, async (t) => {
    const server = stdioServer('odd', serverScript(t, body), { required: true, protocol });
    const { session, tool } = await openSession(t, placeIn(t), [server]);
    let open = 0;
    let most = 0;
    session.answerWith(async (question): Promise<ServerAnswer> => {
      assert.equal(question.server, 'odd');
      open += 1;
      most = Math.max(most, open);
      await new Promise(setImmediate);
      open -= 1;
      return { action: 'accept', content: { name: 'Ann' } };
    });
    let paused = 0;
    const whileAsking = <T>(asked: Promise<T>): Promise<T> => {
      paused += 1;
      return asked;
    };
    const outcome = await run(tool('mcp__odd__ask'), {}, { ...testContext(), whileAsking });
    const answers = [...Array(10).fill('accept'), 'decline', 'decline'];
    assert.deepEqual(outcome, { status: 'ok', text: answers.join(' ') });
    assert.deepEqual([paused, most, session.status()[0]?.declined], [10, 1, 2]);
  });
