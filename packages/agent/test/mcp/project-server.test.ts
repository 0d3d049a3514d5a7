import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { openKnown } from '../../../../test/kit/mcp/open-servers.js';
import { settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { createConnection } from '../../src/extensions/mcp/connection.js';
import type { StdioServer } from '../../src/extensions/mcp/server-config.js';
import { readTools, storeTools } from '../../src/extensions/mcp/tool.js';
import type { CommandLevel } from '../../src/policy/decide.js';

/** Servers of a project run with the sandbox level that the user granted, and have nothing else. */

/** A server without any package, since the sandbox shows only the workspace. Its one tool tries to reach things. */
const SCRIPT = `
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
const outcome = (work) => { try { return String(work()); } catch (error) { return error.code ?? String(error); } };
const reach = (port) => new Promise((resolve) => {
  const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve('connected'); });
  socket.on('error', ({ code }) => resolve(code));
});
const attempt = async ({ reads, writes, port }) => ({
  read: reads.map((file) => outcome(() => readFileSync(file, 'utf8'))),
  written: writes.map((file) => outcome(() => { writeFileSync(file, 'x'); return 'written'; })),
  network: await reach(port),
  folder: process.cwd(),
  secret: process.env.PAWL_TEST_SECRET ?? 'none',
  own: process.env.OWN ?? 'none',
});
const answers = {
  initialize: ({ protocolVersion }) =>
    ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'probe', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'attempt', inputSchema: { type: 'object' } }] }),
  'tools/call': async (params) =>
    ({ content: [{ type: 'text', text: JSON.stringify(await attempt(params.arguments)) }] }),
};
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result: await answers[method](params) }));
});
`;

type Tried = {
  readonly read: readonly string[];
  readonly written: readonly string[];
  readonly network: string;
  readonly folder: string;
  readonly secret: string;
  readonly own: string;
};

const listen = async (context: TestContext): Promise<number> => {
  const http = createServer((_incoming, outgoing) => void outgoing.end());
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(context, () => {
    http.closeAllConnections();
    http.close();
  });
  return (http.address() as AddressInfo).port; // it listens on a port
};

const makeStage = async (context: TestContext, searchPath = process.env.PATH) => {
  const top = temporaryFolder(context, 'project-server');
  const [workspace, home, stateFolder] = ['work', 'home', 'state'].map((name) =>
    path.join(top, name),
  ) as [string, string, string]; // three names
  mkdirSync(path.join(workspace, 'tools'), { recursive: true });
  mkdirSync(path.join(home, '.ssh'), { recursive: true });
  writeFileSync(path.join(home, '.ssh', 'id_rsa'), 'private');
  writeFileSync(path.join(top, 'beside'), 'beside');
  writeFileSync(path.join(workspace, 'a.txt'), 'a');
  writeFileSync(path.join(workspace, 'server.mjs'), SCRIPT);
  const port = await listen(context);
  const environment = {
    PATH: searchPath,
    HOME: home,
    XDG_STATE_HOME: stateFolder,
    PAWL_TEST_SECRET: 'token',
  };
  const files = {
    reads: [
      path.join(workspace, 'a.txt'),
      path.join(home, '.ssh', 'id_rsa'),
      path.join(top, 'beside'),
    ],
    writes: [path.join(workspace, 'new.txt'), path.join(home, 'new.txt')],
  };
  const connect = (level: CommandLevel, more: object = {}) => {
    const settings = {
      command: 'node',
      args: ['../server.mjs'],
      cwd: 'tools',
      env: { OWN: 'own' },
      ...more,
    };
    const server: StdioServer = {
      ...settingsOf<StdioServer>('probe', settings),
      project: { folder: workspace, level },
    };
    const connection = createConnection(server, { environment, workspace, stateFolder });
    atEnd(context, () => connection.close());
    return connection;
  };
  const attempt = async (level: CommandLevel): Promise<Tried> => {
    const connection = connect(level);
    const { signal } = new AbortController();
    const { content } = await connection.call(
      'attempt',
      { ...files, port },
      { signal, onProgress: () => undefined },
    );
    await connection.close();
    const [first] = content;
    assert.ok(first?.type === 'text');
    return JSON.parse(first.text) as Tried; // as the script above writes it
  };
  return { top, workspace, home, stateFolder, connect, attempt };
};

test('a server of a project has what was granted, and nothing else', async (context) => {
  const { workspace, home, stateFolder, attempt } = await makeStage(context);
  const fenced = await attempt('read-only');
  assert.deepEqual(fenced.read, ['a', 'ENOENT', 'ENOENT']);
  assert.deepEqual(fenced.written, ['EROFS', 'ENOENT']);
  assert.notEqual(fenced.network, 'connected');
  assert.equal(fenced.folder, path.join(workspace, 'tools'));
  assert.deepEqual([fenced.secret, fenced.own], ['none', 'own']);

  const online = await attempt('read-only+net');
  assert.deepEqual(
    [online.read[1], online.written[0], online.network],
    ['ENOENT', 'EROFS', 'connected'],
  );
  const writing = await attempt('workspace');
  assert.deepEqual([writing.read[1], writing.written], ['ENOENT', ['written', 'ENOENT']]);
  assert.notEqual(writing.network, 'connected');
  assert.ok(!existsSync(path.join(home, 'new.txt')));
  const left = path.join(stateFolder, 'pawl', 'sandbox');
  assert.deepEqual(
    existsSync(left) ? readdirSync(left) : [],
    [],
    'its private folders are removed',
  );

  // control: as the user, the same server reaches all of it
  const open = await attempt('off');
  assert.deepEqual(open.read, ['a', 'private', 'beside']);
  assert.deepEqual([open.written, open.network], [['written', 'written'], 'connected']);
});

test('variables that a project chose do not reach the sandbox program itself', async (context) => {
  const { top, connect } = await makeStage(context);
  // The system's loader heeds them in each program that it loads, and writes where only bubblewrap could.
  const env = {
    LD_DEBUG: 'libs',
    LD_DEBUG_OUTPUT: path.join(top, 'loaded'),
    OWN: 'a\'b "c" $HOME\nd',
  };
  const connection = connect('read-only', { env });
  const { signal } = new AbortController();
  const asked = { reads: [], writes: [], port: 1 };
  const { content } = await connection.call('attempt', asked, {
    signal,
    onProgress: () => undefined,
  });
  assert.ok(content[0]?.type === 'text');
  assert.equal((JSON.parse(content[0].text) as Tried).own, env.OWN); // as the script above writes it
  await connection.close();
  assert.deepEqual(
    readdirSync(top).filter((name) => name.startsWith('loaded')),
    [],
  );
});

test('where the sandbox does not work, a server of a project is not started', async (context) => {
  const bare = temporaryFolder(context, 'without-bwrap');
  symlinkSync(process.execPath, path.join(bare, 'node'));
  const { connect, workspace } = await makeStage(context, bare);
  const mark = path.join(workspace, 'started');
  const script = `require('fs').writeFileSync(${JSON.stringify(mark)}, '')`;
  const connection = connect('workspace', { args: ['-e', script] });
  await assert.rejects(
    connection.listTools(),
    /the MCP server probe can't be used: it can't run in the sandbox \(to run it as you: pawl trust allow mcp-server probe --sandbox off\): bubblewrap/,
  );
  assert.ok(!existsSync(mark));
});

test('a closed connection starts nothing afterwards', async (context) => {
  const { connect, workspace } = await makeStage(context);
  const mark = path.join(workspace, 'started');
  const script = `require('fs').writeFileSync(${JSON.stringify(mark)}, ''); setInterval(() => {}, 1000)`;
  const connection = connect('workspace', { args: ['-e', script] });
  const listing = assert.rejects(connection.listTools(), /the session has ended/);
  await connection.close();
  await listing;
  assert.ok(!existsSync(mark));
});

test('the known tools of a server belong to its project', async (context) => {
  const stateFolder = temporaryFolder(context, 'mcp-state');
  const own = settingsOf<StdioServer>('github', { command: 'npx', args: ['github'] });
  const inProject = (folder: string): StdioServer => ({
    ...own,
    project: { folder, level: 'read-only' },
  });
  await storeTools(stateFolder, inProject('/one'), [
    { name: 'bait', description: 'D', inputSchema: { type: 'object' } },
  ]);
  assert.equal(readTools(stateFolder, inProject('/one'))?.length, 1);
  assert.equal(readTools(stateFolder, inProject('/two')), null);
  assert.equal(readTools(stateFolder, own), null);
});

test('a call tells whether a project or the user names its server', async (context) => {
  const own = settingsOf<StdioServer>('github', { command: 'npx' });
  const project = { folder: '/one', level: 'read-only' } as const;
  const factsOf = async (server: StdioServer) => {
    const { tool } = await openKnown(context, [server], ['look']);
    const judged = await tool('mcp__github__look').judge({}, { workspace: '/' } as never); // it is not looked at
    assert.equal(judged.kind, 'ok');
    return judged.facts.mcp;
  };
  assert.deepEqual(await factsOf(own), { server: 'github', tool: 'look' });
  assert.deepEqual(await factsOf({ ...own, project }), {
    server: 'github',
    tool: 'look',
    from: 'project',
  });
});
