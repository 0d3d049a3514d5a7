import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { CallToolResult } from '@modelcontextprotocol/client';
import { type Connection, createConnection } from '@pawl/agent/extensions/mcp/connection';
import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import {
  anyInput,
  httpServer,
  plainScript,
  serverScript,
  settingsOf,
} from '../../../../test/kit/mcp/test-servers.js';
import { livingWith, processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  expectCode,
  expectValid,
  makeServed,
  type Place,
  readRecords,
  sessionOf,
  startPawl,
  uniqueSleep,
} from './pawl.js';
import { openTerminal } from './pty.js';
import { call, done, last, message, text } from './wire-words.js';

// The bundled program with MCP servers on both transports: without a terminal, from the setup to the model's next request.

/** A secret of a server, as it stands in its settings. */
const TOKEN = 'tok-4fX9qLw2Zr77';

const configure = (place: Place, toml: string): void => {
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.toml'), toml);
};

test('tools of servers on stdio and over HTTP are declared in the first session of a home, allowed by a rule, and called', async (t) => {
  const script = serverScript(
    t,
    `server.registerTool('greet', { inputSchema: schema({ name: { type: 'string' } }) },
       async ({ name }) => ({ content: [{ type: 'text', text: 'hello ' + name + ' ' + process.env.API_TOKEN }] }));
     server.registerPrompt('review', { description: 'Reviews' }, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Look closely.' } }] }));
     server.registerResource('Guide', 'doc://guide', {}, async (uri) => ({ contents: [{ uri: String(uri), text: 'Guidance.' }] }));`,
  );
  const { url } = await httpServer(t, (server) => {
    server.registerTool('count', { inputSchema: anyInput() }, async () => ({
      content: [{ type: 'text', text: 'äöü 42' }],
    }));
  });
  const place = await makeServed(t, [
    message(call('c1', 'mcp__local__greet', { name: 'Ada' }), call('c2', 'mcp__web__count', {})),
    done,
    message(call('c3', 'mcp__local__greet', { name: 'Ada' })),
    done,
  ]);
  const servers = `
[mcp.servers.local]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(script)}]
env = { API_TOKEN = "${TOKEN}" }
required = true
[mcp.servers.web]
url = "${url}"
protocol = "legacy"
required = true
`;
  configure(place, `[rules.mcp]\nallow = ["local", "web/count"]\n${servers}`);
  expectCode(await runInProcess(place, ['-p', 'greet']), 0);
  const [first, second] = place.server.requests.map(({ body }) => body);
  const declared = first?.tools?.map(({ name }) => name) ?? [];
  assert.deepEqual(declared.slice(-2), ['mcp__local__greet', 'mcp__web__count']);
  const results = JSON.stringify(last(second));
  assert.match(results, /hello Ada \[secret:\$local\.env\.API_TOKEN\]/);
  const sessions = join(place.state, 'pawl', 'sessions');
  for (const name of readdirSync(sessions))
    if (name.endsWith('.jsonl'))
      assert.ok(!readFileSync(join(sessions, name), 'utf8').includes(TOKEN), name);
  assert.match(results, /äöü 42/);
  const exported = await runInProcess(place, ['export', sessionOf(place), '--atif', '-']);
  expectCode(exported, 0);
  const { tool_definitions: exportedTools } = JSON.parse(exported.stdout).agent;
  assert.deepEqual(
    exportedTools.map((tool: { function: { name: string } }) => tool.function.name),
    declared,
    'a trajectory has the tools that the model was told of, also those that came late',
  );

  const tested = await runInProcess(place, ['mcp', 'test', 'local']);
  assert.deepEqual(
    [tested.code, tested.stdout],
    [
      0,
      'local: 1 tool\n- greet\n- /mcp__local__review: Reviews\n- 1 resource, such as @local:doc://guide\n',
    ],
  );
  const failed = await runInProcess(place, ['mcp', 'test', 'nobody']);
  assert.deepEqual([failed.code, failed.stdout], [2, '']);
  const loggedIn = await runInProcess(place, ['mcp', 'login', 'a', 'b', 'c']);
  assert.match(loggedIn.stderr, /pawl mcp login NAME 'ADDRESS'/);

  writeFileSync(
    join(place.workspace, '.mcp.json'),
    '{"mcpServers": {"evil": {"command": "touch", "args": ["ran"]}}}',
  );
  configure(place, servers);
  const denied = await runInProcess(place, [
    '-p',
    '/mcp__local__review by @local:doc://guide',
    '--on-ask',
    'deny',
  ]);
  expectCode(denied, 0);
  const typed = JSON.stringify(place.server.requests.at(-2)?.body.messages);
  assert.match(
    typed,
    /\/mcp__local__review by @local:doc:\/\/guide\\n\\nLook closely\.\\n\\nAttached: @local:doc:\/\/guide\\n```\\nGuidance\./,
  );
  assert.match(
    denied.stderr,
    /not run, since you have not allowed it: MCP server evil\. pawl trust/,
  );
  assert.equal(existsSync(join(place.workspace, 'ran')), false);
  assert.match(
    JSON.stringify(last(place.server.requests.at(-1)?.body)),
    /outside the sandbox, and nobody is there/,
  );
});

const serverTable = (name: string, script: string): string =>
  `[mcp.servers.${name}]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(script)}]\n`;

test('in a terminal a tool of a new server works in the first session', async (context) => {
  // It loads no package: a request waits for a server for five seconds only.
  const script = plainScript(
    context,
    `import { createInterface } from 'node:readline';
     const answers = {
       initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'plain', version: '1' } }),
       'tools/list': () => ({ tools: [{ name: 'greet', inputSchema: { type: 'object' } }] }),
       'tools/call': () => ({ content: [{ type: 'text', text: 'hello there' }] }),
     };
     createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       const result = answers[method]?.(params);
       if (result !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
     });`,
  );
  const place = await makeServed(context, [message(call('c1', 'mcp__local__greet', {})), done]);
  configure(place, serverTable('local', script));
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('greet\r');
  await terminal.sees('y s P n');
  terminal.press('y');
  await terminal.sees('Done.');
  assert.match(JSON.stringify(last(place.server.requests.at(-1)?.body)), /hello there/);
  expectValid(place.server);
  terminal.press('\u0004');
  await terminal.ended;
});

test('in a terminal the status names a server that hangs; Escape ends the wait at once and typing is kept', async (context) => {
  const script = plainScript(context, 'process.stdin.resume();');
  const place = await makeServed(context, [done]);
  configure(place, serverTable('mute', script));
  const terminal = openTerminal(context, place);
  await terminal.sees('ready');
  terminal.press('hi\r');
  await terminal.sees('waiting for MCP server mute');
  terminal.press('typed meanwhile');
  await terminal.sees('typed meanwhile');
  terminal.press('\u001b');
  await terminal.sees('stopped ·');
  await terminal.shows('typed meanwhile');
  assert.equal(place.server.requests.length, 0);
  terminal.press('\u0003');
  terminal.press('\u0003');
  terminal.press('\u0004');
  await terminal.ended;
});

test('headless says on stderr alone that it waits; killed meanwhile, the session goes on with the tools', async (context) => {
  let open = (): void => undefined;
  const gate = new Promise<boolean>((resolve) => {
    open = () => resolve(true);
  });
  const { url } = await httpServer(
    context,
    (server) => {
      server.registerTool('count', { inputSchema: anyInput() }, async () => ({
        content: [{ type: 'text', text: 'forty-two' }],
      }));
    },
    () => gate,
  );
  const place = await makeServed(context, [message(call('c1', 'mcp__slow__count', {})), done]);
  configure(
    place,
    `[rules.mcp]\nallow = ["slow/count"]\n[mcp.servers.slow]\nurl = "${url}"\nprotocol = "legacy"\n`,
  );
  const killed = startPawl(place, ['-p', 'count', '--json']);
  await until('the words', () => killed.stderr().includes('waiting at most 5 s'));
  assert.ok(!killed.stdout().includes('waiting at most'));
  killed.child.kill('SIGKILL');
  await killed.ended;
  assert.equal(place.server.requests.length, 0);
  open();
  const resumed = await runInProcess(place, ['--resume', sessionOf(place), '-p', 'go on']);
  expectCode(resumed, 0);
  assert.doesNotMatch(resumed.stderr, /did not answer/);
  const results = JSON.stringify(last(place.server.requests.at(-1)?.body));
  assert.match(results, /forty-two/);
  expectValid(place.server);
  const file = join(place.folder, 'exported.pawl');
  expectCode(await runInProcess(place, ['export', sessionOf(place), file]), 0);
  const state = join(place.folder, 'elsewhere');
  mkdirSync(state);
  const elsewhere = { ...place, environment: { ...place.environment, XDG_STATE_HOME: state } };
  expectCode(await runInProcess(elsewhere, ['import', file]), 0);
  const shown = await runInProcess(elsewhere, ['show', sessionOf(place), '--request']);
  assert.match(shown.stdout, /"name": "mcp__slow__count"/);
});

// `pawl mcp serve`, driven by our own client in both eras.

const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type)).join('\n');

const connect = (t: TestContext, place: Place, protocol: string): Connection => {
  const env = Object.fromEntries(
    Object.entries(place.environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );
  const table = { command: process.execPath, args: [bin, 'mcp', 'serve'], env, protocol };
  const connection = createConnection(settingsOf<McpServer & { kind: 'stdio' }>('pawl', table), {
    environment: process.env,
    workspace: place.workspace,
    stateFolder: place.folder,
  });
  atEnd(t, () => connection.close());
  return connection;
};

test('another agent can not go on with a session in the preset full, and nothing is written', async (t) => {
  const place = await makeServed(t, [done, done]);
  const folder = path.join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'config.toml'), 'preset = "full"\n');
  const own = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(own, 0);
  const record = readRecords(own.stdout)[0];
  assert.ok(record?.type === 'session' && record.preset === 'full');
  const { sessionId, journal } = record;
  const before = readFileSync(journal, 'utf8');
  const connection = connect(t, place, 'legacy');
  const run = (input: Record<string, string>): Promise<CallToolResult> =>
    connection.call('prompt', input, {
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
  const refused = await run({ prompt: 'and now?', sessionId });
  assert.equal(refused.isError, true, textOf(refused));
  assert.match(textOf(refused), /chooses the preset full for it, which no other agent gets\. Name/);
  assert.equal(readFileSync(journal, 'utf8'), before);
  const answered = await run({ prompt: 'and now?', sessionId, preset: 'plan' });
  assert.equal(textOf(answered), `Done.\n[sessionId: ${sessionId}]`);
});

for (const protocol of chooseRows(['legacy', '2026-07-28'] as const))
  test(`another agent gives a task, continues its session and reads it, with the protocol ${protocol}`, async (t) => {
    const place = await makeServed(t, [
      message(text('Looking.'), call('c1', 'write', { path: 'a.txt', content: 'no' })),
      message(text('The preset plan only reads.')),
      done,
    ]);
    const connection = connect(t, place, protocol);
    const progress: string[] = [];
    const run = (tool: string, input: Record<string, string>): Promise<CallToolResult> =>
      connection.call(tool, input, {
        signal: new AbortController().signal,
        onProgress: (line) => void progress.push(line),
      });
    assert.deepEqual(
      (await connection.listTools()).map(({ name }) => name),
      ['prompt', 'sessions', 'show'],
    );
    const first = await run('prompt', { prompt: 'write a file', workspace: place.workspace });
    assert.match(progress.join(''), /the model has replied/);
    const { sessionId = '' } = first.structuredContent as { readonly sessionId?: string }; // as `prompt` gives it
    const name = `[sessionId: ${sessionId}]`;
    assert.equal(textOf(first), `The preset plan only reads.\n${name}`);
    const second = await run('prompt', { prompt: 'and now?', sessionId });
    assert.equal(textOf(second), `Done.\n${name}`);
    assert.match(
      textOf(await run('sessions', {})),
      new RegExp(`^${sessionId}  .*  write a file$`, 'm'),
    );
    assert.match(
      textOf(await run('show', { sessionId })),
      /user: write a file[\s\S]*user: and now\?[\s\S]*Done\./,
    );
    const neither = await run('prompt', { prompt: 'x' });
    assert.deepEqual(
      [neither.isError, textOf(neither)],
      [true, 'Give either workspace, for a new session, or sessionId, to continue one.'],
    );
    assert.equal((await run('show', { sessionId: 'nothing' })).isError, true);
    assert.equal((await run('prompt', { prompt: 'x', workspace: 'relative' })).isError, true);
  });

for (const end of ['the other agent goes', 'SIGTERM comes'])
  test(`when ${end}, a running command ends and its session is closed`, async (t) => {
    const sleep = uniqueSleep(t);
    const place = await makeServed(t, [
      message(call('c1', 'bash', { command: `sleep ${sleep}` })),
      done,
    ]);
    const connection = connect(t, place, 'legacy');
    const called = connection.call(
      'prompt',
      { prompt: 'wait', workspace: place.workspace, preset: 'auto' },
      { signal: new AbortController().signal, onProgress: () => undefined },
    );
    const stop = (): unknown => {
      if (end !== 'SIGTERM comes') return connection.close();
      for (const { pid, line } of livingWith(place.workspace))
        if (line.endsWith('mcp serve')) process.kill(pid, 'SIGTERM');
      return undefined;
    };
    await Promise.all([
      assert.rejects(called),
      until('the command runs', () => processesWith(sleep).length > 0).then(stop),
    ]);
    await until('no process is left', () => livingWith(place.workspace).length === 0);
    const journal = path.join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
    assert.match(readFileSync(journal, 'utf8'), /"type":"ShutdownRequested"/);
  });
