import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { openKnown, openSession, placeIn, run } from '../../../../test/kit/mcp/open-servers.js';
import { plainScript, settingsOf, stdioServer } from '../../../../test/kit/mcp/test-servers.js';
import { testContext } from '../../../../test/kit/mcp/tool-context.js';
import type { TestScope } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import type { McpServer } from '../../src/extensions/mcp/server-config.js';
import { StdioTransport } from '../../src/extensions/mcp/stdio-server.js';
import { readTools } from '../../src/extensions/mcp/tool.js';
import { SYSTEM_SHELL } from '../../src/platform/start-program.js';

// Servers that hang, flood, die, change or go wrong in another way: the session goes on, with words.

/** A server of a few lines. `answer` is the code that answers the message `m`. */
const handWritten = (scope: TestScope, answer: string): string =>
  plainScript(
    scope,
    `import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
let count = 0;
createInterface({ input: process.stdin }).on('line', async (line) => {
  const m = JSON.parse(line);
  if (m.method === 'initialize')
    return say({ id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'odd', version: '1' } } });
  const tool = (name, inputSchema = { type: 'object' }) => ({ name, inputSchema, description: 'D' });
  ${answer}
});
`,
  );

const LISTS = `if (m.method === 'tools/list') return say({ id: m.id, result: { tools: [tool('act')] } });`;
const text = (words: string): string =>
  `say({ id: m.id, result: { content: [{ type: 'text', text: ${words} }] } })`;

/** A session with one server, which answers calls in this way. */
const openOdd = (scope: TestScope, answer: string, names: readonly string[] = ['act']) =>
  openKnown(scope, [stdioServer('odd', handWritten(scope, `${LISTS} ${answer}`))], names);

const MUTE = 'process.stdin.resume(); process.on("SIGTERM", () => undefined);';

test('servers that never answer: the tools are declared at once, and each server is one line', async (t) => {
  const script = plainScript(t, MUTE);
  const servers = ['one', 'three', 'two'].map((name) => stdioServer(name, script));
  const { session, warned } = await openKnown(t, servers, ['act'], { startMs: 400 });
  assert.deepEqual(
    session.tools.map(({ name }) => name),
    ['mcp__one__act', 'mcp__three__act', 'mcp__two__act'],
  );
  assert.deepEqual(
    session.status().map(({ connection }) => connection.kind),
    ['off', 'off', 'off'],
  );
  session.connect();
  assert.equal(
    await warned('one'),
    "the MCP server one can't be used: it did not answer within 0.4 s",
  );
  assert.equal(session.status()[0]?.connection.kind, 'failed');
});

test('a call waits for its server, and ends with its own deadline', async (t) => {
  const { tool } = await openKnown(t, [stdioServer('mute', plainScript(t, MUTE))], ['act']);
  const deadline = new AbortController();
  const called = run(tool('mcp__mute__act'), {}, testContext(deadline.signal));
  deadline.abort('timedOut');
  assert.deepEqual(await called, {
    status: 'timedOut',
    text: 'the MCP server mute was not connected in time. The call was not sent',
  });
  const cancelled = run(tool('mcp__mute__act'), {}, testContext(AbortSignal.abort('cancelled')));
  assert.equal((await cancelled).text, 'cancelled; the call was not sent');
});

test('a call that is cancelled: the server is told, and answers the next one', async (t) => {
  const { tool, stateFolder } = await openOdd(
    t,
    `if (m.method === 'notifications/cancelled') console.error('told', process.pid);
     if (m.method === 'tools/call' && m.params.arguments.wait) return console.error('waits', process.pid);
     if (m.method === 'tools/call') ${text("'here ' + process.pid")};`,
  );
  const log = path.join(stateFolder, 'mcp', 'logs', 'odd.log');
  const logged = (words: RegExp): boolean =>
    existsSync(log) && words.test(readFileSync(log, 'utf8'));
  const cancel = new AbortController();
  const called = run(tool('mcp__odd__act'), { wait: true }, testContext(cancel.signal));
  await until('the server has the call', () => logged(/waits \d+/));
  cancel.abort('cancelled');
  assert.deepEqual(await called, {
    status: 'cancelled',
    text: 'cancelled; the server was told, and may have done a part of it',
  });
  await until('the server is told', () => logged(/told \d+/));
  const [, pid] = /told (\d+)/.exec(readFileSync(log, 'utf8')) ?? [];
  assert.deepEqual(await run(tool('mcp__odd__act')), { status: 'ok', text: `here ${pid}` });
});

test('a server that dies in a call: the call fails with words, and the next one starts the server again', async (t) => {
  const { tool } = await openOdd(
    t,
    `if (m.method !== 'tools/call') return;
     if (m.params.arguments.die) { console.error('no memory'); process.exit(3); }
     ${text("'alive'")};`,
  );
  assert.deepEqual(await run(tool('mcp__odd__act'), { die: true }), {
    status: 'failed',
    text: 'the MCP server odd is gone: it ended with exit code 3. Whether the call took effect is not known; look before you repeat it',
  });
  assert.deepEqual(await run(tool('mcp__odd__act')), { status: 'ok', text: 'alive' });
});

test('a server that dies right after its list is not called connected, and a call starts it again', async (t) => {
  const place = placeIn(t);
  const count = path.join(place.workspace, 'starts');
  const script = handWritten(
    t,
    `const { appendFileSync, readFileSync } = process.getBuiltinModule('node:fs');
     if (m.method === 'tools/list') {
       appendFileSync(${JSON.stringify(count)}, 'x');
       const starts = readFileSync(${JSON.stringify(count)}, 'utf8').length;
       const list = JSON.stringify({ jsonrpc: '2.0', id: m.id, result: { tools: [tool('act')] } });
       process.stdout.write(list + '\\n', () => starts === 1 && process.exit(3));
     }
     if (m.method === 'tools/call') ${text("'fine'")};`,
  );
  const { session, tool } = await openKnown(t, [stdioServer('odd', script)], ['act']);
  await session.reconnect();
  await until('its end is known', () => session.status()[0]?.connection.kind === 'failed');
  assert.deepEqual(await run(tool('mcp__odd__act')), { status: 'ok', text: 'fine' });
});

test('a server that died is not started again if it must not be', async (t) => {
  const answer = `${LISTS} if (m.method === 'tools/call') process.exit(3);`;
  let reason: string | null = null;
  const { tool } = await openKnown(t, [stdioServer('odd', handWritten(t, answer))], ['act'], {
    whyNot: async () => reason,
  });
  const act = async (): Promise<string> => (await run(tool('mcp__odd__act'))).text;
  assert.match(await act(), /is gone: it ended with exit code 3/);
  reason = 'its files have changed';
  assert.equal(await act(), "the MCP server odd can't be used: its files have changed");
  reason = null;
  assert.match(await act(), /is gone: it ended with exit code 3/);
});

test('a server that changes its tools all the time is one line', async (t) => {
  const place = placeIn(t);
  const script = handWritten(
    t,
    `if (m.method === 'tools/list') {
       count += 1;
       say({ id: m.id, result: { tools: [tool('act' + count)] } });
       if (count < 4) say({ method: 'notifications/tools/list_changed' });
     }`,
  );
  const server = stdioServer('odd', script);
  const { session, warnings } = await openSession(t, place, [server]);
  session.connect();
  await until(
    'the last tools are stored',
    () => readTools(place.stateFolder, server)?.[0]?.name === 'act4',
  );
  assert.deepEqual(warnings, [
    'the MCP server odd is new: 1 tool from the next session on',
    'the MCP server odd has other tools than before: the next session declares them',
  ]);
});

test('a server that refuses with a whole page is one short line', async (t) => {
  const page = `say({ id: m.id, error: { code: -32000, message: 'Not here.\\n' + '<p>no</p>\\n'.repeat(100_000) } });`;
  const script = plainScript(
    t,
    `process.stdin.on('data', (line) => {
       const m = JSON.parse(String(line).split('\\n')[0]);
       const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
       ${page}
     });`,
  );
  const { session, warned } = await openKnown(t, [stdioServer('odd', script)], ['act']);
  session.connect();
  const said = await warned('odd');
  assert.match(said, /^the MCP server odd can't be used: .*Not here\. <p>no<\/p> /);
  assert.ok(said.length < 400, String(said.length));
});

test('lines that are no messages are logged and ignored', async (t) => {
  const { tool, stateFolder } = await openOdd(
    t,
    `process.stdout.write('Welcome!\\n{"no": "message"}\\n\\n');
     if (m.method === 'tools/call') ${text("'fine'")};`,
  );
  assert.deepEqual(await run(tool('mcp__odd__act')), { status: 'ok', text: 'fine' });
  assert.match(readFileSync(path.join(stateFolder, 'mcp', 'logs', 'odd.log'), 'utf8'), /Welcome!/);
});

test('a server that floods its stdout is ended', async (t) => {
  const { tool } = await openOdd(
    t,
    `if (m.method === 'tools/call') setInterval(() => process.stdout.write((('x'.repeat(9_999) + '\\n').repeat(100))), 0);`,
  );
  const { status, text: words } = await run(tool('mcp__odd__act'));
  assert.equal(status, 'failed');
  assert.match(words, /is gone: it writes something else than messages to its stdout/);
});

test('a result of 10 MB arrives whole', async (t) => {
  const { tool } = await openOdd(
    t,
    `if (m.method === 'tools/call') ${text("'y'.repeat(10_000_000)")};`,
  );
  const { status, text: words } = await run(tool('mcp__odd__act'));
  assert.deepEqual([status, words.length], ['ok', 10_000_000]);
});

test('a server with other tools than before: the session keeps its declarations, the next one has the new ones', async (t) => {
  const opened = await openOdd(
    t,
    `if (m.method === 'tools/call') say({ id: m.id, error: { code: -32602, message: 'Tool gone not found' } });`,
    ['gone'],
  );
  opened.session.connect();
  assert.equal(
    await opened.warned('odd'),
    'the MCP server odd has other tools than before: the next session declares them',
  );
  assert.deepEqual(await run(opened.tool('mcp__odd__gone')), {
    status: 'failed',
    text: 'the MCP server odd answered: Tool gone not found',
  });
});

test('tools that change while the session runs are stored for the next one', async (t) => {
  const place = placeIn(t);
  const script = handWritten(
    t,
    `if (m.method === 'tools/list') {
       say({ id: m.id, result: { tools: [tool('act' + (count += 1))] } });
       if (count === 1) say({ method: 'notifications/tools/list_changed' });
     }`,
  );
  const server = stdioServer('odd', script);
  const first = await openSession(t, place, [server]);
  first.session.connect();
  await first.warned('has other tools than before');
  const next = await openSession(t, place, [server]);
  assert.deepEqual(
    next.session.tools.map(({ name }) => name),
    ['mcp__odd__act2'],
  );
});

test('a required server is waited for if its tools are not known', async (t) => {
  const script = handWritten(t, LISTS);
  const { session, warnings } = await openSession(t, placeIn(t), [
    stdioServer('odd', script, { required: true }),
  ]);
  assert.deepEqual(
    session.tools.map(({ name }) => name),
    ['mcp__odd__act'],
  );
  assert.deepEqual(warnings, []);
});

test('the end of a session ends its servers with all that they have started, also in other groups', async (t) => {
  const { tool, session } = await openOdd(
    t,
    `const { spawn } = await import('node:child_process');
     if (m.method !== 'tools/call') return;
     const pids = [{}, { detached: true }].map((more) => spawn('sleep', ['600'], { stdio: 'ignore', ...more }).pid);
     ${text("pids.join(' ')")};`,
  );
  const { text: pids } = await run(tool('mcp__odd__act'));
  await session.close();
  const lives = (pid: string): boolean => {
    const stat = `/proc/${pid}/stat`;
    return existsSync(stat) && !/ Z /.test(readFileSync(stat, 'utf8'));
  };
  assert.equal(pids.split(' ').length, 2);
  await until('its processes are gone', () => !pids.split(' ').some(lives));
});

test('a server whose answer is refused: that is the reason, and not that it was ended since', async (t) => {
  const script = plainScript(
    t,
    `process.stdin.on('data', (line) => {
       const { id } = JSON.parse(String(line));
       process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: 'Hello' }) + '\\n');
     });`,
  );
  const { session, warned } = await openSession(t, placeIn(t), [stdioServer('odd', script)]);
  session.connect();
  const said = await warned('odd');
  assert.equal(said, "the MCP server odd can't be used: its answer to initialize is no object");
});

const unusable: readonly (readonly [given: string, table: object, says: RegExp])[] = [
  ['a program that is not there', { command: 'no-such-program' }, /no-such-program/],
  [
    'a path that is not there',
    { command: '/no/such/program' },
    /there is no program \/no\/such\/program/,
  ],
  ['a relative path', { command: './server' }, /is a relative path/],
  [
    'a variable that is not set',
    { command: 'sh', env: { A: `\${NOT_SET}` } },
    /NOT_SET is not set in the environment/,
  ],
  [
    'a program that ends at once',
    { command: 'sh', args: ['-c', 'echo no licence >&2; exit 4'] },
    /exit code 4\. Its last words: no licence/,
  ],
  ['an address where nothing listens', { url: 'http://127.0.0.1:9/mcp' }, /ECONNREFUSED|refused/],
];

test('a server that has ended gets no signal, since its number may be used again', async (t) => {
  let isFinishing = false;
  const server = new StdioTransport({
    prepare: async () => ({
      program: SYSTEM_SHELL,
      words: ['-c', 'exit 0'],
      environment: {},
      folder: '/',
      descriptors: [],
      isGuarded: false,
      started: () => undefined,
      async finish() {
        isFinishing = true;
        await delay(1_000);
      },
    }),
    log: { file: '', add: () => undefined, last: () => '' },
    signal: new AbortController().signal,
    sent: () => undefined,
    parse: JSON.parse,
  });
  const kill = t.mock.method(process, 'kill');
  await server.start();
  await until('its end', () => isFinishing);
  kill.mock.resetCalls();
  await server.close();
  assert.deepEqual(kill.mock.calls, []);
});

test('servers that can not be started are one line each', async (t) => {
  const servers = unusable.map(([, table], index) =>
    settingsOf<McpServer & { kind: 'http' }>(`bad${index}`, table),
  );
  const { session, warned } = await openSession(t, placeIn(t), servers);
  session.connect();
  for (const [index, [given, , says]] of unusable.entries())
    assert.match(await warned(`bad${index} can't be used`), says, given);
});

test('a damaged entry of the cache means that the tools are not known', async (t) => {
  const server = stdioServer('odd', handWritten(t, LISTS));
  const { stateFolder, workspace } = await openKnown(t, [server], ['act']);
  const folder = path.join(stateFolder, 'mcp', 'tools');
  for (const name of readdirSync(folder))
    writeFileSync(path.join(folder, name), '{"tools": [{"name": 1}]}');
  const { session } = await openSession(t, { stateFolder, workspace }, [server]);
  assert.deepEqual(session.tools, []);
});
