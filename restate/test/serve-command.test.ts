import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, test } from 'node:test';
import type { EnginePackage } from '../../packages/pawl/src/commands/serve-engine-package.js';
import {
  bin,
  expectCode,
  makePlace,
  makeServed,
  type Place,
  start,
} from '../../packages/pawl/test/e2e/pawl.js';
import { call, message, text } from '../../packages/pawl/test/e2e/wire-words.js';
import { plainScript } from '../../test/kit/mcp/test-servers.js';
import { isEntry, NodeClient } from '../../test/kit/serve/node-client.js';
import { atEnd, temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import * as ownPackage from '../src/index.js';
import { freePorts } from '../src/start-engine.js';
import { startTestEngine } from './engine-under-test.js';
import { freeFirstPort } from './free-first-port.js';
import { installPawl, mainFolder, restateFolder, versionIn } from './installed-pawl.js';

/** `pawl serve --engine`, as operators start it: the real program, the real engine, a strict provider. */

const scope = { after: (hook: () => void) => after(hook) };
const TOKEN = 'the-token-of-this-test';
const { engine } = await startTestEngine(scope);
const program = installPawl(temporaryFolder(scope, 'installed'));

const engineWords = (): readonly string[] => [
  '--engine',
  engine.ingressUrl.replace('http:', 'restate:'),
  '--engine-admin',
  engine.adminUrl,
];

const serve = async (place: Place, firstPort: number) => {
  const words = [
    'serve',
    ...engineWords(),
    '--node',
    'n1',
    '--node-ports',
    String(firstPort),
    '--port',
    '0',
  ];
  const running = start(
    place,
    process.execPath,
    [program, ...words, '--folder', place.workspace],
    null,
  );
  atEnd(scope, () => void running.child.kill('SIGKILL'));
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  return { running, client: new NodeClient(address, TOKEN) };
};

test('a node on the engine drains with nothing lost, and after a crash its sessions go on without a word of their user', async (t) => {
  const command = (id: string, script: string) => message(call(id, 'bash', { command: script }));
  const place = await makeServed(
    t,
    [
      message(text('Hello.')),
      command('c1', 'touch begun; until test -e go; do sleep 0.05; done; echo over > over'),
      message(text('Drained.')),
      command('c2', 'touch begun-2; until test -e go-2; do sleep 0.05; done; echo over > over-2'),
      command('c3', 'touch begun; sleep 5'),
      message(text('The command is found.')),
      message(text('The engine is back.')),
    ],
    { PAWL_SERVE_TOKEN: TOKEN },
  );
  const fileOf = (name: string): string => path.join(place.workspace, name);
  const firstPort = await freeFirstPort();
  const first = await serve(place, firstPort);
  const id = await first.client.create(place.workspace);
  const reader = await first.client.events(id);
  await reader.untilRestAfter(await first.client.send(id, { text: 'hello' }));
  const { seq: before = 0 } = await first.client.describe(id);
  await first.client.send(id, { text: 'run' });
  await until('the command runs', () => existsSync(fileOf('begun')));
  first.running.child.kill('SIGTERM');
  await until('it drains', () => first.running.stderr().includes('takes no new work'));
  const refused = await first.client.ask('POST', `/v1/sessions/${id}/inputs`, { text: 'more' });
  assert.deepEqual([refused.status, refused.body.error?.code], [503, 'draining']);
  writeFileSync(fileOf('go'), '');
  assert.equal((await first.running.ended).code, 0, first.running.stderr());
  assert.equal(reader.messages.at(-1)?.content.reason, 'draining');
  const last = reader.entries.at(-1)?.seq ?? 0;
  assert.deepEqual(
    reader.entries.map(({ seq }) => seq),
    Array.from({ length: last }, (_, index) => index + 1),
  );
  assert.match(JSON.stringify(reader.entries.slice(before)), /"ToolCompleted".*Drained\./);
  assert.equal(existsSync(fileOf('over')), true);

  const second = await serve(place, firstPort);
  await second.client.send(id, { text: 'run again' });
  await until('the command runs', () => existsSync(fileOf('begun-2')));
  // the folder of another session goes while its command runs
  const lostFolder = fileOf('lost');
  mkdirSync(lostFolder);
  const lostId = await second.client.create(lostFolder);
  await second.client.send(lostId, { text: 'run here' });
  await until('the command runs', () => existsSync(path.join(lostFolder, 'begun')));
  second.running.child.kill('SIGKILL');
  await second.running.ended;
  // The command outlives its node, and ends while nobody is there.
  writeFileSync(fileOf('go-2'), '');
  await until('the command ends', () => existsSync(fileOf('over-2')));
  rmSync(lostFolder, { recursive: true });
  const third = await serve(place, firstPort);
  const lost = await third.client.events(lostId);
  await lost.until('the fault', (one) =>
    /The workspace \S+ can't be opened: .*Put the folder/.test(JSON.stringify(one)),
  );
  const going = await third.client.events(id, last);
  await going.until(
    'the answer',
    (one) => isEntry('LlmCompleted')(one) && JSON.stringify(one).includes('is found'),
  );
  const outcomes = going.entries.flatMap(({ event }) =>
    event.type === 'ToolCompleted' ? [event.outcome.status] : [],
  );
  assert.deepEqual(outcomes, ['ok']);

  await engine.kill();
  const sending = third.client.send(id, { text: 'while the engine is away' });
  await engine.restart();
  const again = await third.client.events(id, (await sending) - 1);
  await again.until('the answer', isEntry('LlmCompleted'));
  assert.equal(again.entries.filter(({ event }) => event.type === 'UserInput').length, 1);
  assert.deepEqual(
    place.server.requests.map(({ fault }) => fault),
    [null, null, null, null, null, null, null],
  );
  third.running.child.kill('SIGTERM');
  assert.equal((await third.running.ended).code, 0, third.running.stderr());
});

/** An MCP server with the tools `note`, which writes a line, and `hang`, which writes one and never answers. */
const NOTING_SERVER = `
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
appendFileSync('servers', 'started\\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const about = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } };
  const tools = ['note', 'hang'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  if (method === 'initialize') say({ id, result: about });
  if (method === 'tools/list') say({ id, result: { tools } });
  if (method !== 'tools/call') return;
  appendFileSync('calls', params.name + '\\n');
  if (params.name === 'note') say({ id, result: { content: [{ type: 'text', text: 'noted' }] } });
}).on('close', () => process.exit(0));`;

/** Hooks that say something at each moment, and one that hangs after the tool `bash` until there is the file `go`. */
const configWith = (server: string): string => `[rules.mcp]
allow = ["notes"]
[mcp.servers.notes]
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify([server])}
required = true
[hook.start]
on = "session-start"
command = "echo start >> hooks; echo '{\\"note\\":\\"staging is down\\"}'"
[hook.after]
on = "after-tool"
tools = ["mcp__*"]
command = "echo after >> hooks; echo '{\\"note\\":\\"the note is long\\"}'"
[hook.slow]
on = "before-request"
command = "echo request >> hooks; if test -e hold; then touch held; sleep 600; fi"
`;

test('hooks and MCP servers run on the node, and a kill while one of them works repeats nothing in silence', async (t) => {
  const place = await makeServed(
    t,
    [
      message(call('c1', 'mcp__notes__note', {})),
      message(text('Noted.')),
      message(call('c2', 'mcp__notes__hang', {})),
      message(text('It is lost.')),
      message(text('Still here.')),
    ],
    { PAWL_SERVE_TOKEN: TOKEN },
  );
  const file = plainScript(t, NOTING_SERVER);
  const config = path.join(place.home, '.config', 'pawl');
  mkdirSync(config, { recursive: true });
  writeFileSync(path.join(config, 'config.toml'), configWith(file));
  const fileOf = (name: string): string => path.join(place.workspace, name);
  const linesOf = (name: string): readonly string[] =>
    existsSync(fileOf(name)) ? readFileSync(fileOf(name), 'utf8').trim().split('\n') : [];
  const firstPort = await freeFirstPort();
  const first = await serve(place, firstPort);
  const id = await first.client.create(place.workspace);
  const reader = await first.client.events(id);
  await reader.untilRestAfter(await first.client.send(id, { text: 'note it' }));
  assert.match(
    JSON.stringify(reader.entries),
    /session-start.*staging is down.*noted.*the note is long/,
  );

  await first.client.send(id, { text: 'hang' });
  await until('the server works', () => linesOf('calls').includes('hang'));
  first.running.child.kill('SIGKILL');
  await first.running.ended;
  const second = await serve(place, firstPort);
  const going = await second.client.events(id, reader.entries.at(-1)?.seq ?? 0);
  const answer = await going.until(
    'the answer',
    (one) => isEntry('LlmCompleted')(one) && JSON.stringify(one).includes('It is lost.'),
  );
  await going.untilRestAfter(Number(answer.content.seq));
  assert.match(JSON.stringify(going.entries), /"callId":"c2","outcome":\{"status":"lost"/);
  assert.deepEqual(linesOf('calls'), ['note', 'hang']);

  const before = linesOf('hooks').length;
  writeFileSync(fileOf('hold'), '');
  await second.client.send(id, { text: 'are you there?' });
  await until('the hook hangs', () => existsSync(fileOf('held')));
  second.running.child.kill('SIGKILL');
  await second.running.ended;
  rmSync(fileOf('hold'));
  const third = await serve(place, firstPort);
  const last = await third.client.events(id, going.entries.at(-1)?.seq ?? 0);
  await last.until(
    'the answer',
    (one) => isEntry('LlmCompleted')(one) && JSON.stringify(one).includes('Still here.'),
  );
  assert.match(
    JSON.stringify(last.entries),
    /"LlmFailed".*has stopped, and its reply is lost.*Still here/,
  );
  assert.deepEqual(linesOf('hooks').slice(before), ['request', 'request']);
  assert.deepEqual(
    place.server.requests.map(({ fault }) => fault),
    [null, null, null, null, null],
  );
  third.running.child.kill('SIGTERM');
  assert.equal((await third.running.ended).code, 0, third.running.stderr());
});

test('the package fits the command, and has the version of Pawl', () => {
  const fitting: EnginePackage = ownPackage;
  assert.deepEqual(
    [fitting.version, versionIn(restateFolder)],
    [versionIn(mainFolder), versionIn(mainFolder)],
  );
});

/** An HTTP server that answers everything with one text. */
const answering = async (body: string, port = 0): Promise<string> => {
  const server = createServer((_incoming, outgoing) => outgoing.end(body)).listen(
    port,
    '127.0.0.1',
  );
  atEnd(scope, () => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
};

test('a node waits for an engine that does not answer yet, and says so', async (t) => {
  const place = makePlace(t, { ANTHROPIC_API_KEY: 'key', PAWL_SERVE_TOKEN: TOKEN });
  const [port = 0] = await freePorts(1);
  const words = ['serve', '--folder', place.workspace, '--port', '0'];
  const engineWord = ['--engine', `restate://127.0.0.1:${port}`];
  const running = start(place, process.execPath, [program, ...words, ...engineWord]);
  await until(
    () => `the word that it waits: ${running.stderr()}`,
    () => /does not answer at \S+health.*waits for it/.test(running.stderr()),
  );
  await answering('Welcome.', port);
  const ended = await running.ended;
  expectCode(ended, 78);
  assert.match(ended.stderr, /is not the port for calls of a Restate server/);
});

test('what is missing or wrong is refused in words', async (t) => {
  const place = makePlace(t, { ANTHROPIC_API_KEY: 'key', PAWL_SERVE_TOKEN: TOKEN });
  const [closed = 0] = await freePorts(1);
  const old = await answering('{"version":"1.5.2","services":[]}');
  const other = await answering('Welcome.');
  const older = path.join(place.folder, 'packages', '@pawl', 'restate');
  mkdirSync(older, { recursive: true });
  writeFileSync(path.join(older, 'index.js'), "exports.version = '0.0.9';\n");
  const withOlder = {
    ...place,
    environment: { ...place.environment, NODE_PATH: path.join(place.folder, 'packages') },
  };
  const cases: readonly (readonly [Place, string, readonly string[], number, RegExp])[] = [
    [
      place,
      bin,
      engineWords(),
      78,
      /needs the package @pawl\/restate, which is not installed beside Pawl: npm install -g pawl@\S+ @pawl\/restate@/,
    ],
    [
      withOlder,
      bin,
      engineWords(),
      78,
      /version 0\.0\.9, and this is Pawl .*Install the same of both/,
    ],
    [
      place,
      program,
      ['--engine', `restate://${other}`],
      78,
      /is not the port for calls of a Restate server/,
    ],
    [
      place,
      program,
      ['--engine', `restate://${old}`, '--engine-admin', `http://${old}`],
      78,
      /is Restate 1\.5\.2; a node needs 1\.7/,
    ],
    [
      place,
      program,
      [...engineWords(), '--node-ports', String(new URL(engine.adminUrl).port)],
      78,
      /The port \d+ of the node.*is taken/,
    ],
    [
      place,
      program,
      [...engineWords(), '--node-address', '192.0.2.1'],
      2,
      /--engine-key publickeyv1_/,
    ],
    [place, program, [...engineWords(), '--peer', 'http://n2:9412'], 2, /PAWL_NODE_TOKEN/],
    [
      place,
      program,
      [...engineWords(), '--blobs', `s3://blobs?endpoint=http://127.0.0.1:${closed}`],
      69,
      /The store for blobs can't be used: There are no credentials for bucket blobs/,
    ],
    [
      place,
      program,
      [...engineWords(), '--blobs', 's3://id:word@blobs'],
      2,
      /has credentials in it/,
    ],
    [place, program, ['--blobs', '.'], 2, /--blobs is for nodes on an engine/],
  ];
  for (const [where, path_, words, code, said] of cases) {
    const ended = await start(where, process.execPath, [
      path_,
      'serve',
      '--folder',
      where.workspace,
      '--port',
      '0',
      ...words,
    ]).ended;
    expectCode(ended, code);
    assert.match(ended.stderr, said);
  }
});
