import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type FakeClock, fakeClock } from '../../../../test/fake-clock.js';
import { openSession, placeIn } from '../../../../test/kit/mcp/open-servers.js';
import {
  anyInput,
  httpServer,
  plainScript,
  serverScript,
  settingsOf,
  stdioServer,
} from '../../../../test/kit/mcp/test-servers.js';
import {
  callTools,
  rawCall,
  say,
  type TestModel,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { atEnd, type TestScope } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import type { McpServer } from '../../src/extensions/mcp/server-config.js';
import { openServers, type SessionServers } from '../../src/extensions/mcp/session-servers.js';
import { readTools } from '../../src/extensions/mcp/tool.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { JournalStore } from '../../src/ports/journal.js';
import { createRedactor } from '../../src/secrets/redactor.js';
import { createAgent, type Session } from '../../src/session/create-agent.js';

// Tools of servers that nobody has seen so far: in the first session, by real servers and a clock
// that stands still.

type Place = ReturnType<typeof placeIn>;

type Started = {
  readonly session: Session;
  readonly clock: FakeClock;
  readonly warnings: readonly string[];
  readonly waitsFor: () => readonly string[];
  readonly servers: SessionServers;
  readonly fork: (seq: number) => Promise<string>;
};

const RULES = ['local', 'web', 'slow'].map(
  (pattern) => ({ kind: 'mcp', decision: 'allow', pattern, origin: 'config.toml:1' }) as const,
);

/** Opens a session as `pawl` does, with these servers. */
const start = async (
  scope: TestScope,
  place: Place,
  servers: readonly McpServer[],
  model: TestModel,
  more: {
    journals?: JournalStore;
    resume?: string;
    keepsTools?: true;
    stoppingPolicy?: () => null;
  } = {},
): Promise<Started> => {
  const { journals = memoryJournals(), resume, keepsTools, stoppingPolicy } = more;
  const opened = await openSession(
    scope,
    place,
    servers,
    keepsTools === true ? {} : { joining: 'wait' },
  );
  const clock = fakeClock();
  const agent = createAgent({
    model,
    journals,
    clock,
    tools: opened.session.tools,
    lateTools: opened.session.lateTools,
    report: (fault) => assert.fail(fault),
  });
  const session = await agent.open({
    workspace: place.workspace,
    settings: { writtenRules: RULES, onAsk: 'deny' },
    sandbox: 'off',
    ...(resume === undefined ? {} : { resume }),
    ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
  });
  atEnd(scope, () => session.close().catch(() => undefined)); // it may have ended already
  return {
    session,
    clock,
    warnings: opened.warnings,
    waitsFor: opened.session.waitsFor,
    servers: opened.session,
    fork: (seq) => agent.runtime.fork(session.id, seq),
  };
};

const declaredIn = ({ requests }: TestModel): readonly (readonly string[])[] =>
  requests.map(({ tools }) => tools.map(({ name }) => name));

const greeter = (scope: TestScope, name = 'local'): McpServer =>
  stdioServer(
    name,
    serverScript(
      scope,
      `server.registerTool('greet', { inputSchema: schema({ name: { type: 'string' } }) },
         async ({ name }) => ({ content: [{ type: 'text', text: 'hello ' + name }] }));`,
    ),
  );

const muteServer = (scope: TestScope, name: string): McpServer =>
  stdioServer(name, plainScript(scope, 'process.stdin.resume();'));

/** A server over HTTP that answers nothing before it is opened. */
const gatedServer = async (
  scope: TestScope,
  name: string,
): Promise<{ readonly server: McpServer; open(): void }> => {
  let open = (): void => undefined;
  const gate = new Promise<boolean>((resolve) => {
    open = () => resolve(true);
  });
  const { url } = await httpServer(
    scope,
    (server) => {
      server.registerTool('count', { inputSchema: anyInput() }, async () => ({
        content: [{ type: 'text', text: 'forty-two' }],
      }));
    },
    () => gate,
  );
  return { server: settingsOf(name, { url, protocol: 'legacy' }), open };
};

/** Whether no server is being connected any more. */
const hasConnected = ({ servers }: Started): boolean =>
  servers.status().every(({ connection }) => connection.kind === 'connected');

/** Resolves once the request waits for servers: its timers are those of the wait. */
const untilWaiting = ({ waitsFor }: Started): Promise<true> =>
  until('a wait for servers', () => waitsFor().length > 0);

test('tools of new servers on stdio and over HTTP are declared with the first request and run', async (t) => {
  const web = await gatedServer(t, 'web');
  web.open();
  const model = testModel(
    callTools(
      rawCall('c1', 'mcp__local__greet', { name: 'Ada' }),
      rawCall('c2', 'mcp__web__count'),
    ),
    say('done'),
    say('again'),
    say('in the fork'),
  );
  const place = placeIn(t);
  const journals = memoryJournals();
  const servers = [greeter(t), web.server];
  const started = await start(t, place, servers, model, { journals });
  const turn = await started.session.prompt('go');
  assert.equal(turn.text, 'done');
  const both = ['mcp__local__greet', 'mcp__web__count'];
  assert.deepEqual(declaredIn(model), [both, both]);
  const results = JSON.stringify(model.requests[1]?.messages.at(-1));
  assert.match(results, /hello Ada/);
  assert.match(results, /forty-two/);
  assert.deepEqual(started.warnings, []);
  assert.equal(started.clock.now(), fakeClock().now(), 'nothing has waited by the clock');
  const { seq } = await started.session.send({
    type: 'SettingsChanged',
    patch: { maxParallel: 2 },
  });
  const fork = await started.fork(seq);
  await started.session.close();

  // what it declared stays as it was, byte for byte, also if the server is new to the other home
  for (const resume of [started.session.id, fork]) {
    const next = await start(t, placeIn(t), servers, model, { journals, resume, keepsTools: true });
    await next.session.prompt('more');
    const [before, after] = [model.requests[1], model.requests.at(-1)];
    assert.equal(JSON.stringify(after?.tools), JSON.stringify(before?.tools));
    await next.session.close();
  }
});

test('a server that hangs delays the first request by 5 s, once, and its tools join one later request', async (t) => {
  const [slow, other] = [await gatedServer(t, 'slow'), await gatedServer(t, 'slower')];
  const model = testModel(
    callTools(rawCall('c1', 'mcp__local__greet', { name: 'Ada' })),
    say('one'),
    say('not yet'),
    say('two'),
    callTools(rawCall('c2', 'mcp__slow__count')),
    say('three'),
  );
  const servers = [slow.server, greeter(t), other.server];
  const started = await start(t, placeIn(t), servers, model);
  const { session, clock, warnings, waitsFor } = started;
  const first = session.prompt('go');
  await until('the answer of the third', () => waitsFor().length === 2); // the third has answered
  clock.advance(999);
  assert.deepEqual(warnings, []);
  clock.advance(1);
  assert.deepEqual(warnings, [
    'waiting at most 5 s for the MCP servers slow, slower, whose tools are not known yet',
  ]);
  clock.advance(3_999);
  assert.equal(model.requests.length, 0);
  clock.advance(1);
  assert.equal((await first).text, 'one');
  assert.deepEqual(warnings.slice(1), [
    'the MCP servers slow, slower did not answer within 5 s: the model works without the tools, ' +
      'and gets them with a later request',
  ]);
  slow.open();
  const isConnected = (name: string): boolean =>
    started.servers
      .status()
      .some((one) => one.name === name && one.connection.kind === 'connected');
  await until('one of the two', () => isConnected('slow'));
  assert.equal((await session.prompt('and?')).text, 'not yet');
  other.open();
  const known = Array.from({ length: 3 }, () => ['mcp__local__greet']);
  assert.deepEqual(declaredIn(model), known);
  await until('the connections', () => hasConnected(started));
  assert.equal((await session.prompt('and now?')).text, 'two');
  const all = ['mcp__local__greet', 'mcp__slow__count', 'mcp__slower__count'];
  assert.deepEqual(declaredIn(model), [...known, all]);
  assert.deepEqual(warnings.slice(2), [
    'the MCP servers slow, slower answered: 2 tools for the model from this request on',
  ]);
  assert.equal((await session.prompt('count')).text, 'three');
  assert.match(JSON.stringify(model.requests.at(-1)?.messages.at(-1)), /forty-two/);
  assert.equal(declaredIn(model).filter((names) => names.length === 3).length, 3);
  assert.equal(clock.now() - fakeClock().now(), 5_000);
  const { signal } = new AbortController();
  const undeclared = { isFirst: false, declared: new Set(known[0]), clock, signal };
  const again = await started.servers.lateTools?.before(undeclared);
  assert.deepEqual(
    again?.map(({ name }) => name),
    all.slice(1),
    'where a cancel came before they were declared',
  );
});

test('a request that is cancelled already waits for no server', async (t) => {
  const servers = [muteServer(t, 'mute')];
  const { session } = await openSession(t, placeIn(t), servers, { joining: 'wait' });
  const clock = fakeClock();
  const signal = AbortSignal.abort();
  const request = { isFirst: true, declared: new Set<string>(), clock, signal };
  const joined = session.lateTools?.before(request);
  assert.deepEqual(session.waitsFor(), []);
  assert.deepEqual(await joined, []);
});

test('a server that fails at once is not waited for, and one line says why', async (t) => {
  const script = plainScript(t, 'console.error("no luck"); process.exit(3);');
  const model = testModel(say('hello'));
  const started = await start(t, placeIn(t), [stdioServer('bad', script)], model);
  assert.equal((await started.session.prompt('hi')).text, 'hello');
  assert.equal(started.warnings.length, 1);
  assert.match(started.warnings[0] ?? '', /^the MCP server bad can't be used: .*no luck/);
  assert.deepEqual(declaredIn(model), [[]]);
});

test('a cancel and the end of the session during the wait work at once; the rest of it is for the next prompt', async (t) => {
  const model = testModel(say('hello'));
  let asked = 0;
  const stoppingPolicy = (): null => {
    asked += 1;
    return null;
  };
  const servers = [muteServer(t, 'mute')];
  const started = await start(t, placeIn(t), servers, model, { stoppingPolicy });
  const { session, clock, warnings, waitsFor } = started;
  const first = session.prompt('hi');
  await untilWaiting(started);
  clock.advance(2_000);
  await session.cancel();
  assert.equal((await first).reason.kind, 'cancelled');
  await until('the end of the wait', () => waitsFor().length === 0);
  const second = session.prompt('hi again');
  await untilWaiting(started);
  clock.advance(2_999);
  assert.deepEqual(started.waitsFor(), ['mute']);
  clock.advance(1);
  assert.equal((await second).text, 'hello');
  assert.equal(asked, 1, 'nobody is asked about a request that was cancelled');
  assert.equal(warnings.filter((line) => line.startsWith('waiting')).length, 1);
  assert.equal(warnings.filter((line) => line.includes('did not answer')).length, 1);

  const other = await start(t, placeIn(t), [muteServer(t, 'mute')], testModel());
  await other.session.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
  await untilWaiting(other);
  await other.session.close();
  assert.deepEqual(other.warnings, []);
});

test('a session that ended during the wait loses nothing: resumed, it declares the tools', async (t) => {
  const slow = await gatedServer(t, 'slow');
  const journals = memoryJournals();
  const place = placeIn(t);
  const started = await start(t, place, [slow.server], testModel(), { journals });
  await started.session.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
  await untilWaiting(started);
  await started.session.close();
  slow.open();
  const model = testModel(say('hello'), say('hello'));
  const resumed = await start(t, place, [slow.server], model, {
    journals,
    resume: started.session.id,
  });
  await resumed.session.prompt('go on');
  assert.deepEqual(declaredIn(model), [['mcp__slow__count']]);
  assert.match(JSON.stringify(model.requests[0]?.messages), /"hi"/);
});

test('a session with a reply waits for no new server when it is resumed, also after a compaction', async (t) => {
  const journals = memoryJournals();
  const model = testModel(say('one'), say('a summary'), say('two'));
  const started = await start(t, placeIn(t), [], model, { journals });
  await started.session.prompt('hi');
  await started.session.send({ type: 'CompactRequested' });
  await started.session.idle();
  await started.session.close();
  const resumed = await start(t, placeIn(t), [muteServer(t, 'mute')], model, {
    journals,
    resume: started.session.id,
  });
  assert.equal((await resumed.session.prompt('more')).text, 'two');
  assert.deepEqual(resumed.warnings, [], 'it has not waited until the server failed');
  assert.equal(model.requests.length, 3);
});

test('a server that is known costs nothing; other settings make it an unknown one', async (t) => {
  const place = placeIn(t);
  const server = greeter(t);
  const first = await start(t, place, [server], testModel(say('one')));
  await first.session.prompt('hi');
  await first.session.close();
  const model = testModel(say('two'), say('three'));
  const known = await start(t, place, [server], model);
  await known.session.prompt('hi');
  assert.equal(known.servers.status()[0]?.connection.kind, 'off', 'nothing has started it');
  assert.equal(known.servers.tools.length, 1);
  const other = { ...server, env: { CHANGED: 'yes' } } as McpServer; // as the one on stdio that it is
  const changed = await start(t, place, [other], model);
  assert.equal(changed.servers.tools.length, 0);
  await changed.session.prompt('hi');
  assert.deepEqual(declaredIn(model), [['mcp__local__greet'], ['mcp__local__greet']]);
});

test('a list of tools cannot be chosen from outside', async (t) => {
  const { session } = await start(t, placeIn(t), [], testModel());
  await session.send({
    type: 'SettingsChanged',
    patch: { tools: '0'.repeat(64), maxParallel: 2 },
  });
  const { settings } = (await session.state()).session;
  assert.deepEqual([settings.tools, settings.maxParallel], [undefined, 2]);
});

/** A server of a few lines that answers `tools/list` with this code. */
const listing = (scope: TestScope, code: string): McpServer =>
  stdioServer(
    'odd',
    plainScript(
      scope,
      `import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const changed = () => say({ method: 'notifications/tools/list_changed' });
const tool = (name) => ({ name, inputSchema: { type: 'object' }, description: 'D\\u001b[2J' });
let count = 0;
createInterface({ input: process.stdin }).on('line', (line) => {
  const m = JSON.parse(line);
  if (m.method === 'initialize')
    say({ id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'odd', version: '1' } } });
  const answer = (tools) => say({ id: m.id, result: { tools } });
  if (m.method === 'tools/list') { count += 1; ${code} }
});
`,
    ),
  );

test('a list that changes during the wait: the newest is declared, and a change after it is told', async (t) => {
  const place = placeIn(t);
  const go = path.join(place.workspace, 'go');
  const odd = listing(
    t,
    `const { existsSync } = process.getBuiltinModule('node:fs');
     answer([tool(existsSync(${JSON.stringify(go)}) ? 'other' : 'act' + count)]);
     if (count < 3) changed();
     if (count === 3) {
       const timer = setInterval(() => {
         if (!existsSync(${JSON.stringify(go)})) return;
         clearInterval(timer);
         changed();
       }, 20);
     }`,
  );
  const model = testModel(say('one'), say('two'));
  const started = await start(t, place, [odd, muteServer(t, 'mute')], model);
  const { session, clock, warnings } = started;
  const first = session.prompt('hi');
  await until('the third list', () => readTools(place.stateFolder, odd)?.[0]?.name === 'act3');
  clock.advance(5_000);
  await first;
  assert.deepEqual(declaredIn(model), [['mcp__odd__act3']]);
  writeFileSync(go, '');
  await until('the words', () => warnings.some((line) => line.includes('other tools than before')));
  await session.prompt('hi');
  assert.deepEqual(declaredIn(model).at(-1), ['mcp__odd__act3'], 'a declared list stays');
  await session.close();
  rmSync(go);
  const later = testModel(say('three'));
  const next = await start(t, place, [odd], later);
  next.servers.connect();
  await until('the words', () => next.warnings.some((line) => line.includes('the next session')));
  await next.session.prompt('hi');
  assert.deepEqual(declaredIn(later), [['mcp__odd__other']], 'as the words say');
});

test('no request waits for a server that answered with a list that can not be taken in', async (t) => {
  const warnings: string[] = [];
  const place = placeIn(t);
  const servers = await openServers({
    servers: [listing(t, "answer([tool('x'.repeat(241))]);"), muteServer(t, 'mute')],
    environment: { PATH: process.env.PATH },
    whyNot: async () => null,
    ...place,
    joining: 'wait',
    redactor: createRedactor([]),
    warn(text) {
      warnings.push(text);
      if (text.includes('241 characters')) throw new Error('the output is closed');
    },
  });
  atEnd(t, () => servers.close());
  const clock = fakeClock();
  const { signal } = new AbortController();
  const request = { isFirst: true, declared: new Set<string>(), clock, signal };
  const joined = servers.lateTools?.before(request);
  await until('the answer', () => warnings.some((line) => line.includes("can't be read")));
  await until('a wait for the other alone', () => servers.waitsFor().join() === 'mute');
  clock.advance(5_000);
  assert.deepEqual(await joined, []);
  assert.match(warnings.at(-1) ?? '', /^the MCP server mute did not answer/);
});

test('of two requests that wait at once, one tells that a server did not answer', async (t) => {
  const servers = [muteServer(t, 'mute')];
  const { session, warnings } = await openSession(t, placeIn(t), servers, { joining: 'wait' });
  const clock = fakeClock();
  const { signal } = new AbortController();
  const request = { isFirst: true, declared: new Set<string>(), clock, signal };
  const joined = [session.lateTools?.before(request), session.lateTools?.before(request)];
  clock.advance(5_000);
  assert.deepEqual(await Promise.all(joined), [[], []]);
  assert.equal(warnings.filter((line) => line.includes('did not answer')).length, 1);
});

test('a huge list with odd names, and thousands of changes: a hundred tools with safe names, and few lines', async (t) => {
  const odd = listing(
    t,
    `answer(Array.from({ length: 3_000 }, (_, i) => tool(i % 2 ? 'bash\\u001b[2J' + i : 'read'.repeat(60) + i)));
     if (count === 1) for (let i = 0; i < 5_000; i++) changed();`,
  );
  const model = testModel(say('one'));
  const started = await start(t, placeIn(t), [odd], model);
  await started.session.prompt('hi');
  const [names = []] = declaredIn(model);
  assert.equal(names.length, 100);
  assert.ok(names.every((name) => /^mcp__odd__[\w-]+$/.test(name) && name.length <= 64));
  assert.equal(new Set(names).size, 100);
  assert.ok(started.warnings.length <= 8, started.warnings.join('\n'));
  const words = started.warnings.join('\n');
  assert.match(
    words,
    /its name has 241 characters\n.*: 1995 more are left out\. pawl mcp test odd/,
  );
  assert.match(words, /MCP tools are left out: a session declares at most 100/);
});
