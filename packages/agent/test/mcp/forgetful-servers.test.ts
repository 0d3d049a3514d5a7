import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKnown, run } from '../../../../test/kit/mcp/open-servers.js';
import { type Refusal, rawServer } from '../../../../test/kit/mcp/raw-server.js';
import { settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { until } from '../../../../test/until.js';
import type { McpServer } from '../../src/extensions/mcp/server-config.js';

// Servers over HTTP that forget their sessions or are started again: no call is lost, and none is made twice.

const settings = (url: string): McpServer =>
  settingsOf<McpServer & { kind: 'http' }>('web', { url, protocol: 'legacy' });

const error = (code: number, message: string, id: unknown = null): string =>
  JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id });

/** How servers refuse a session that they do not know. */
const refusals: readonly Refusal[] = [
  { status: 404, body: () => error(-32_001, 'Session not found') },
  { status: 404, body: () => 'Not Found' },
  { status: 404, body: (id) => error(-32_603, 'Internal error', id) },
  { status: 404, body: () => '' },
  { status: 400, body: () => error(-32_000, 'Bad Request: No valid session ID provided') },
  { status: 400, body: (id) => error(-32_000, 'Unknown session', id) },
  { status: 400, body: () => error(-32_000, 'Bad Request: Server not initialized') },
  { status: 400, body: () => error(-32_600, 'Bad Request', 'server-error') },
  { status: 410, body: () => 'Gone' },
  { status: 422, body: () => 'Unprocessable Entity: expected initialize request' },
];

const answer = (method: string, params: { readonly name?: string }): object =>
  method === 'tools/call'
    ? { content: [{ type: 'text', text: `did ${params.name}` }] }
    : { tools: [{ name: 'act', inputSchema: { type: 'object' } }] };

test('twenty restarts of a server in a session: each call is made once', async (t) => {
  const server = await rawServer(t, 'legacy', answer);
  const { tool, session } = await openKnown(t, [settings(server.url)], ['act']);
  assert.equal((await run(tool('mcp__web__act'))).text, 'did act');
  for (let restart = 0; restart < 20; restart++) {
    const before = server.calls.length;
    const forgets = restart % 4 !== 0;
    if (forgets) server.forget(refusals[restart % refusals.length] as Refusal);
    if (restart % 2 === 0) await server.stop();
    const called = [run(tool('mcp__web__act')), run(tool('mcp__web__act'))];
    if (restart % 2 === 0) {
      // It comes back when the calls have found that it is gone.
      await until('it is missed', () => session.status()[0]?.connection.kind !== 'connected');
      await server.start();
    }
    for (const { status, text } of await Promise.all(called))
      assert.deepEqual([status, text], ['ok', 'did act'], `restart ${restart}`);
    assert.equal(server.calls.length, before + 2, `restart ${restart}`);
  }
});

test('a refused session, in each form, is begun anew, and an answer of the method itself is no such refusal', async (t) => {
  const server = await rawServer(t, 'legacy', answer);
  const { tool } = await openKnown(t, [settings(server.url)], ['act']);
  for (const refusal of refusals) {
    server.forget(refusal);
    assert.equal((await run(tool('mcp__web__act'))).text, 'did act', refusal.body(1));
  }
  server.forget({ status: 400, body: (id) => error(-32_602, 'act has no argument', id) });
  assert.match((await run(tool('mcp__web__act'))).text, /answered: .*act has no argument/);
});

test('a call that runs on another node goes on while the session is begun anew', async (t) => {
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const server = await rawServer(t, 'events', async (method, params) => {
    if (params.name === 'slow') await finished;
    return answer(method, params);
  });
  const { tool } = await openKnown(t, [settings(server.url)], ['act', 'slow']);
  const slow = run(tool('mcp__web__slow'));
  await until('the slow call runs', () => server.calls.includes('slow'));
  server.forget(refusals[0] as Refusal);
  assert.equal((await run(tool('mcp__web__act'))).text, 'did act');
  finish();
  assert.equal((await slow).text, 'did slow');
  assert.deepEqual(server.calls, ['slow', 'act']);
});

test('a call that the server may have begun is not made again', async (t) => {
  const server = await rawServer(t, 'legacy', async (method, params) => {
    if (params.name !== 'die') return answer(method, params);
    await server.stop();
    return {};
  });
  const { tool } = await openKnown(t, [settings(server.url)], ['act', 'die']);
  const { status, text } = await run(tool('mcp__web__die'));
  assert.equal(status, 'failed');
  assert.match(text, /the MCP server web is gone: .*Whether the call took effect is not known/);
  assert.deepEqual(server.calls, ['die']);
  await server.start();
  assert.equal((await run(tool('mcp__web__act'))).text, 'did act');
});

test('a server that forgets each session at once is given up, and the call is said not to have begun', async (t) => {
  const server = await rawServer(t, 'legacy', (method, params) => {
    if (method === 'tools/list') server.forget(refusals[0] as Refusal);
    return answer(method, params);
  });
  const { tool } = await openKnown(t, [settings(server.url)], ['act']);
  assert.equal(
    (await run(tool('mcp__web__act'))).text,
    'the MCP server web is gone: it has forgotten the session. It has not begun',
  );
  assert.deepEqual(server.calls, []);
});
