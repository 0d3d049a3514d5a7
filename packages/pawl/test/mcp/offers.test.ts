import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  offeredPrompts,
  offeredResources,
  parseArguments,
} from '@pawl/agent/extensions/mcp/offers';
import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import { readOffers } from '@pawl/agent/extensions/mcp/tool';
import { type Opened, openSession, placeIn, run } from '../../../../test/kit/mcp/open-servers.js';
import {
  plainScript,
  serverScript,
  settingsOf,
  stdioServer,
} from '../../../../test/kit/mcp/test-servers.js';
import type { TestScope } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import {
  NO_PROMPTS,
  type SessionPrompts,
  withServerPrompts,
} from '../../src/sessions/typed-input.js';

// Prompts and resources of servers in the user's messages, and questions of servers to the user.

const TOKEN = 'tok-4fX9qLw2Zr77';

/** A server with two prompts and a few resources, which can die, hang or say too much. */
const offering = (scope: TestScope, more: object = {}): McpServer =>
  stdioServer(
    'docs',
    serverScript(
      scope,
      `const text = (words) => ({ type: 'text', text: words });
       server.registerPrompt('review', { description: 'Reviews', argsSchema: fromJsonSchema({ type: 'object', properties: { file: { type: 'string' }, how: { type: 'string' } }, required: ['file', 'how'] }) },
         ({ file, how }) => ({ messages: [
           { role: 'user', content: text('Review ' + file + ' ' + how + ' ' + process.env.A_TOKEN) },
           { role: 'assistant', content: text('Gladly.') } ] }));
       server.registerPrompt('hello world', {}, () => ({ messages: [{ role: 'user', content: text('Hi') }] }));
       const offer = (name, uri, read) => server.registerResource(name, uri, { description: 'D' }, async () => read(uri));
       offer('Guide', 'doc://guide', (uri) => ({ contents: [{ uri, text: 'Read \`\`\` me' }] }));
       offer('Picture', 'doc://picture', (uri) => ({ contents: [{ uri, mimeType: 'image/png', blob: 'AAAA' }] }));
       offer('Large', 'doc://large', (uri) => ({ contents: [{ uri, text: 'y'.repeat(300_000) }] }));
       offer('Mute', 'doc://mute', () => new Promise(() => undefined));
       offer('Fatal', 'doc://fatal', () => process.exit(3));`,
    ),
    { env: { A_TOKEN: TOKEN }, ...more },
  );

const promptsOf = ({ session }: Opened): SessionPrompts =>
  withServerPrompts(NO_PROMPTS, session.offers);

/** A session that knows what the server offers, and has not connected to it. */
const openKnowing = async (
  scope: TestScope,
  server: McpServer,
  answerMs = 60_000,
): Promise<SessionPrompts> => {
  const place = placeIn(scope);
  const first = await openSession(scope, place, [server]);
  first.session.connect();
  await until(
    'the offers are stored',
    () => readOffers(place.stateFolder, server).resources.length > 0,
  );
  await first.session.close();
  return promptsOf(await openSession(scope, place, [server], { answerMs }));
};

for (const protocol of chooseRows(['legacy', '2026-07-28'] as const))
  test(`prompts and resources are listed from the cache and asked for when sent, with ${protocol}`, async (t) => {
    const prompts = await openKnowing(t, offering(t, { protocol }));
    assert.equal(prompts.choices[0]?.text, 'mcp__docs__review');
    assert.match(prompts.choices[1]?.text ?? '', /^mcp__docs__hello_world_[0-9a-f]{8}$/);
    assert.equal(prompts.mentions()[0]?.text, 'docs:doc://guide');
    const filled = await prompts.expand('/mcp__docs__review "my file.ts" very carefully, please');
    assert.deepEqual(filled, {
      text: '/mcp__docs__review "my file.ts" very carefully, please\n\nReview my file.ts very carefully, please [secret:$docs.env.A_TOKEN]\n\nAssistant: Gladly.',
      fault: null,
    });
    const mentioned = await prompts.expand('See (@nobody:x) and @docs:doc://guide, then a@docs:b.');
    assert.deepEqual(mentioned, {
      text: 'See (@nobody:x) and @docs:doc://guide, then a@docs:b.\n\nAttached: @docs:doc://guide\n````\nRead ``` me\n````',
      fault: null,
    });
  });

test('what a server does wrong is said in the message, and nothing that was typed is lost', async (t) => {
  const prompts = await openKnowing(t, offering(t));
  const typed =
    'Use @docs:doc://none @docs:doc://picture @docs:doc://large and @"docs:doc://guide"';
  const { text, fault } = await prompts.expand(typed);
  assert.ok(
    text.startsWith(`${typed}\n\n(@docs:doc://none can't be read: the MCP server docs answered: `),
  );
  assert.match(text, /\[image\/png, 3 bytes, is not shown\]/);
  assert.match(text, /y{100000}\n\[cut: the first 100000 of 300000 characters\]/);
  assert.match(text, /Attached: @docs:doc:\/\/guide\n/);
  assert.match(String(fault), /^@docs:doc:\/\/none can't be read: [^\n]*$/);
  const wrong = await prompts.expand('/mcp__docs__review x');
  assert.match(
    String(wrong.fault),
    /can't be used: it is written as \/mcp__docs__review <file> <how>/,
  );
  const many = Array.from({ length: 13 }, (_, index) => `@docs:doc://none${index}`).join(' ');
  assert.match(
    String((await prompts.expand(many)).fault),
    /3 more resources are not attached: a message takes 10/,
  );
  const dead = await prompts.expand('@docs:doc://fatal');
  assert.match(
    String(dead.fault),
    /the MCP server docs is gone: it ended with exit code 3\. Try again/,
  );
  assert.equal((await prompts.expand('@docs:doc://guide')).fault, null);
});

test('a server that does not answer in time is named, and the text is sent without it', async (t) => {
  const prompts = await openKnowing(t, offering(t), 1_000);
  const { text, fault } = await prompts.expand('See @docs:doc://mute');
  assert.match(text, /^See @docs:doc:\/\/mute\n/);
  assert.match(String(fault), /the MCP server docs did not answer within 1 s/);
});

test('without the words for them, prompts and resources change nothing', async (t) => {
  const prompts = await openKnowing(t, offering(t));
  for (const typed of [
    'hello',
    'mail me@docs:x',
    '@src/a.ts:10',
    '@nobody:doc://guide',
    'docs:doc://guide',
  ])
    assert.deepEqual([prompts.expands(typed), (await prompts.expand(typed)).text], [false, typed]);
  assert.equal(prompts.expands('say @docs:doc://guide'), true);
});

test('floods of names are cut, and addresses that no mention can hold are left out', () => {
  const many = Array.from({ length: 5_000 }, (_, index) => index);
  const prompts = offeredPrompts([
    { name: 'x'.repeat(300) },
    ...many.map((index) => ({ name: `p${index % 400}`, description: 'line\nline '.repeat(1_000) })),
  ]);
  assert.deepEqual(
    [prompts.length, prompts[0]?.name, prompts[0]?.description.length],
    [100, 'p0', 300],
  );
  const odd = ['doc://a b', 'doc://a\u001b[2J', 'doc://"', `doc://${'x'.repeat(2_000)}`];
  const uris = [...odd, ...many.map((index) => `doc://${index}`), 'doc://0'];
  const resources = offeredResources(uris.map((uri) => ({ uri, name: 'N' })));
  assert.deepEqual([resources.length, resources[0]?.uri], [1_000, 'doc://0']);
});

const twoArguments = {
  server: 's',
  name: 'p',
  declaredName: 'mcp__s__p',
  description: '',
  arguments: [
    { name: 'a', required: true },
    { name: 'b', required: false },
  ],
};
const argumentRows: readonly (readonly [words: string, given: object | RegExp])[] = [
  ['', /mcp__s__p <a> \[b\]/],
  ['one', { a: 'one' }],
  ['one two', { a: 'one', b: 'two' }],
  ['one two  three "four"', { a: 'one', b: 'two  three "four"' }],
  [`"one two" 'three'`, { a: 'one two', b: 'three' }],
  ['b=2 one', { a: 'one', b: '2' }],
  [`"a=one two"`, { a: 'one two' }],
  ['a=1 b=2 three', { a: '1', b: '2' }],
];

test('the arguments of a prompt from the words behind its name', () => {
  for (const [words, given] of argumentRows)
    if (given instanceof RegExp)
      assert.throws(() => parseArguments(twoArguments, words), given, words);
    else assert.deepEqual(parseArguments(twoArguments, words), given, words);
  assert.deepEqual(parseArguments({ ...twoArguments, arguments: [] }, 'x'), {});
});

test('a question of a server is declined with one line, and counted', async (t) => {
  const script = plainScript(
    t,
    `import { createInterface } from 'node:readline';
     const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
     let call = null, asked = 0;
     createInterface({ input: process.stdin }).on('line', (line) => {
       const m = JSON.parse(line);
       const tools = [{ name: 'ask', inputSchema: { type: 'object' } }];
       if (m.method === 'initialize') say({ id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } } });
       if (m.method === 'tools/list') say({ id: m.id, result: { tools } });
       if (m.method === 'tools/call') { call = m.id; asked += 1;
         say({ id: 'q' + asked, method: 'elicitation/create', params: { message: 'Your name? (' + process.env.A_TOKEN + ')', requestedSchema: { type: 'object', properties: {} } } }); }
       if (String(m.id).startsWith('q')) say({ id: call, result: { content: [{ type: 'text', text: m.result.action }] } });
     });`,
  );
  const server = settingsOf<McpServer & { kind: 'stdio' }>('odd', {
    command: process.execPath,
    args: [script],
    env: { A_TOKEN: TOKEN },
    required: true,
  });
  const { session, tool, warnings } = await openSession(t, placeIn(t), [server]);
  for (let calls = 0; calls < 3; calls++)
    assert.deepEqual(await run(tool('mcp__odd__ask')), { status: 'ok', text: 'decline' });
  assert.deepEqual(warnings, [
    "the MCP server odd asks: Your name? ([secret:$odd.env.A_TOKEN]) Pawl can't ask you for it, and has declined",
  ]);
  assert.equal(session.status()[0]?.declined, 3);
});
