import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import {
  type Opened,
  openKnown,
  openSession,
  placeIn,
  run,
} from '../../../../test/kit/mcp/open-servers.js';
import { rawServer, WIRES, type Wire } from '../../../../test/kit/mcp/raw-server.js';
import { settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { testContext } from '../../../../test/kit/mcp/tool-context.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { until } from '../../../../test/until.js';
import { declareTools, offeredTools } from '../../src/extensions/mcp/declare-tools.js';
import type { McpServer } from '../../src/extensions/mcp/server-config.js';

// Lists and results of servers with faults in their form: what is right in them is used, and the rest is named.

const settings = (url: string, wire: Wire): McpServer =>
  settingsOf<McpServer & { kind: 'http' }>('odd', {
    url,
    protocol: wire === 'modern' ? '2026-07-28' : 'legacy',
  });

const OBJECT = { type: 'object' };

/** Tools that can be used, whatever is wrong beside their names. */
const usable: Readonly<Record<string, object>> = {
  fine: { description: 'D', inputSchema: OBJECT },
  noSchema: {},
  nullSchema: { inputSchema: null },
  untypedSchema: { inputSchema: { properties: { a: { type: 'string' } } } },
  alternatives: { inputSchema: { anyOf: [{ type: 'object' }, { type: 'string' }] } },
  typeList: { inputSchema: { type: ['object', 'null'] } },
  textSchema: { inputSchema: { type: 'string' } },
  listSchema: { inputSchema: [] },
  reference: { inputSchema: { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } } },
  lostReference: { inputSchema: { $ref: 'https://example.com/a.json' } },
  nullProperties: { inputSchema: { type: 'object', properties: null, required: null } },
  listProperties: { inputSchema: { type: 'object', properties: [], required: 'a' } },
  nullProperty: { inputSchema: { type: 'object', properties: { a: null }, required: ['a', null] } },
  nullDescription: { inputSchema: OBJECT, description: null, title: null },
  numberDescription: { inputSchema: OBJECT, description: 5, title: [] },
  nullAnnotations: { inputSchema: OBJECT, annotations: null, _meta: null, icons: null },
  textAnnotations: { inputSchema: OBJECT, annotations: { readOnlyHint: 'yes', title: 4 } },
  textMeta: { inputSchema: OBJECT, _meta: 'meta', icons: 'icon.png' },
  outputNull: { inputSchema: OBJECT, outputSchema: null },
  outputList: { inputSchema: OBJECT, outputSchema: { type: 'array', items: {} } },
  outputAlternatives: { inputSchema: OBJECT, outputSchema: { anyOf: [OBJECT] } },
  tasks: { inputSchema: OBJECT, execution: { taskSupport: 'sometimes' } },
  nullExecution: { inputSchema: OBJECT, execution: null },
};

const leftOut: readonly (readonly [member: unknown, line: string])[] = [
  [null, 'the tool number 24 is left out: it is null'],
  ['act', 'the tool number 25 is left out: it is no object'],
  [{ inputSchema: OBJECT }, 'the tool number 26 is left out: it has no name'],
  [{ name: null, inputSchema: OBJECT }, 'the tool number 27 is left out: it has no name'],
  [
    { name: 'fine', inputSchema: OBJECT },
    'the tool fine is left out: another one has the same name',
  ],
];

const LISTS: Readonly<Record<string, object>> = {
  'tools/list': {
    tools: [
      ...Object.entries(usable).map(([name, form]) => ({ name, ...form })),
      ...leftOut.map(([member]) => member),
    ],
    nextCursor: null,
  },
  'prompts/list': {
    prompts: [
      { name: 'ask', title: null, arguments: [{ name: 'what', required: 'yes' }, null, {}] },
      null,
      { title: 'T' },
    ],
  },
  'resources/list': { resources: [{ uri: 'a:1', name: 7 }, { name: 'n' }, { uri: 'a:2' }] },
};

const ofWire = (wire: Wire, result: object): object =>
  wire === 'modern'
    ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result }
    : result;

for (const wire of WIRES)
  test(`of a list with odd members each other one is used, and each left out is named: ${wire}`, async (t) => {
    const { url } = await rawServer(t, wire, (method) => ofWire(wire, LISTS[method] ?? {}));
    const server = settings(url, wire);
    const place = placeIn(t);
    const first = await openSession(t, place, [server]);
    first.session.connect();
    await first.warned('odd is new');
    await until('the prompts are known', () => first.session.offers.resources().length === 2);
    for (const [, line] of leftOut) await first.warned(line);
    const lines = [
      'the prompt number 2 is left out: it is null',
      'the prompt number 3 is left out: it has no name',
      'the resource n is left out: it has no uri',
    ];
    assert.deepEqual(
      first.warnings.filter((line) => /left out/.test(line)).toSorted(),
      [...lines, ...leftOut.map(([, line]) => line)]
        .map((line) => `the MCP server odd: ${line}`)
        .toSorted(),
    );
    const prompts = first.session.offers.prompts();
    assert.deepEqual(
      prompts.map(({ name, arguments: args }) => [name, args]),
      [['ask', [{ name: 'what', required: false }]]],
    );
    const { session } = await openSession(t, place, [server]);
    assert.deepEqual(
      session.tools.map(({ name }) => name),
      Object.keys(usable)
        .map((name) => `mcp__odd__${name}`)
        .toSorted(),
    );
    for (const { name, inputSchema } of session.tools)
      assert.equal(inputSchema.type, 'object', name);
  });

test('a list that is none is no tools, and one that the server refuses leaves the others', async (t) => {
  const { url } = await rawServer(t, 'legacy', (method) =>
    method === 'resources/list' ? LISTS[method] : { tools: 'none', prompts: {} },
  );
  const opened = await openSession(t, placeIn(t), [settings(url, 'legacy')]);
  opened.session.connect();
  await opened.warned('the tools are left out: they are no list');
  await opened.warned('the prompts are left out: they are no list');
  await until('the resources are known', () => opened.session.offers.resources().length === 2);
});

const PNG = makePng(1, 'x'.repeat(300)).toString('base64');
const picture = { type: 'image', data: PNG, mimeType: 'image/png' };
const said = (text: unknown): object => ({ type: 'text', text });

/** Results, and what the model reads. `pictures`: how many it sees. */
const results: readonly (readonly [
  given: string,
  result: unknown,
  text: RegExp,
  pictures?: 1 | 2,
])[] = [
  ['a result of the right form', { content: [said('done')] }, /^done$/],
  ['a text', 'done', /^done$/],
  ['a list of blocks', [said('done')], /^done$/],
  ['a number', 7, /^7$/],
  ['content as a text', { content: 'done' }, /^done$/],
  ['content as one block', { content: said('done') }, /^done$/],
  ['members of other forms', { content: [null, 'do', said('ne'), 5, said(null)] }, /^do\nne\n5\n/],
  ['a block of an unknown type', { content: [{ type: 'table', rows: [1] }] }, /"rows": \[\s+1/],
  ['a block without a type', { content: [{ text: 'done' }] }, /^done$/],
  ['the form of an old version', { toolResult: { done: 'yes' } }, /"done": "yes"/],
  [
    'nulls',
    { content: [said('done')], structuredContent: null, isError: null, _meta: null },
    /^done$/,
  ],
  ['structured content as a list', { content: [], structuredContent: [1, 'two'] }, /"two"/],
  [
    'structured content and an empty text',
    { content: [said('')], structuredContent: { n: 3 } },
    /"n": 3/,
  ],
  ['nothing', {}, /^\[no output\]$/],
  [
    'a link without a name',
    { content: [{ type: 'resource_link', uri: 'a:1' }] },
    /^\[resource a:1 \]$/,
  ],
  [
    'a resource without an address',
    { content: [{ type: 'resource', resource: { text: 'done' } }] },
    /done/,
  ],
  [
    'a picture without a type',
    { content: [{ type: 'image', data: PNG }] },
    /^\[picture .*1 x 1\]$/,
    1,
  ],
  [
    'a picture as a data URL',
    { content: [{ ...picture, data: `data:image/png;base64,${PNG}` }] },
    /^\[picture image\/png, 1 x 1\]$/,
    1,
  ],
  [
    'a picture that is no base64',
    { content: [{ ...picture, data: '<svg>' }] },
    /^\[bytes that are not shown/,
  ],
  [
    'a picture twice',
    { content: [picture, picture] },
    /^\[picture image\/png, 1 x 1\]\n\[.*, as above\]$/,
    1,
  ],
  [
    'two pictures',
    { content: [picture, { ...picture, data: makePng(2).toString('base64') }] },
    /^\[.*\]\n\[.*1 x 1\]$/,
    2,
  ],
  [
    'a picture again as structured content',
    { content: [picture], structuredContent: { image: PNG } },
    /^\[picture image\/png, 1 x 1\]\n\{\n {2}"image": "\[picture image\/png, 1 x 1, as above\]"\n\}$/,
    1,
  ],
  [
    'a picture as structured content alone',
    { content: [], structuredContent: { png: PNG } },
    /"\[picture, 1 x 1\]"/,
    1,
  ],
  [
    'a picture in a text',
    { content: [said(`See data:image/png;base64,${PNG} there`)] },
    /^See \[picture, 1 x 1\] there$/,
    1,
  ],
  [
    'a picture in the text of JSON',
    { content: [said(JSON.stringify({ png: PNG.replaceAll('/', '\\/') }))] },
    /^\{"png":"\[picture, 1 x 1\]"\}$/,
    1,
  ],
  [
    'a picture in lines',
    { content: [said(`${PNG.replace(/.{76}/g, '$&\n')} end`)] },
    /^\[picture, 1 x 1\] end$/,
    1,
  ],
  [
    'a picture in a block of an unknown type',
    { content: [{ type: 'screenshot', png: PNG }] },
    /"\[picture, 1 x 1\]"/,
    1,
  ],
  [
    'the beginning of a picture',
    { content: [said('iVBORw0KGgo= begins a PNG')] },
    /^iVBORw0KGgo= begins a PNG$/,
  ],
];

const open = async (
  t: TestContext,
  wire: Wire,
  answer: () => unknown,
): Promise<Pick<Opened, 'tool'>> => {
  const list = { tools: [{ name: 'act', inputSchema: OBJECT, outputSchema: OBJECT }] };
  const { url } = await rawServer(t, wire, (method) =>
    method === 'tools/call' ? answer() : ofWire(wire, list),
  );
  return openKnown(t, [settings(url, wire)], ['act']);
};

for (const wire of WIRES)
  test(`a result that has come is given to the model, whatever its form: ${wire}`, async (t) => {
    let result: unknown;
    const { tool } = await open(t, wire, () => result);
    for (const [given, answered, expected, pictures = 0] of results) {
      result = answered;
      const { status, text, images = [] } = await run(tool('mcp__odd__act'));
      const shown = text.replace(/\n?\[the server announces structured content.*\]$/, '');
      assert.equal(status, 'ok', `${given}: ${text}`);
      assert.match(shown || '[no output]', expected, given);
      assert.equal(images.length, pictures, given);
      const isTold = /structuredContent":\s*[[{]/.test(JSON.stringify(answered)) === false;
      assert.equal(/announces structured content/.test(text), isTold, given);
    }
  });

test('beginnings of pictures without end, and padding without end, take no time', async (t) => {
  let result: unknown;
  const { tool } = await open(t, 'legacy', () => result);
  const spentMs = watchCpu();
  for (const block of [
    said('UklGR'.repeat(20_000)),
    { type: 'image', mimeType: 'image/png', data: `${'='.repeat(200_000)}x` },
  ]) {
    result = { content: [block] };
    assert.equal((await run(tool('mcp__odd__act'))).status, 'ok');
  }
  assert.ok(spentMs() < 4_000, `${spentMs()} ms`);
});

test('a failed call has no pictures, and says so; an error of any form is told', async (t) => {
  let result: object = { content: [picture, said('failed')], isError: 'true' };
  const { tool } = await open(t, 'legacy', () => result);
  const context = testContext();
  assert.deepEqual(await run(tool('mcp__odd__act'), {}, context), {
    status: 'failed',
    text: '[picture image/png, 1 x 1, is not shown]\nfailed',
  });
  result = { content: [], isError: true, structuredContent: {} };
  assert.equal((await run(tool('mcp__odd__act'))).status, 'failed');
});

test('a tool that does not fit takes no room from those behind it', () => {
  const offered = (name: string, length: number) => ({
    name,
    description: 'x'.repeat(length),
    inputSchema: OBJECT,
  });
  const tools = [offered('a', 200_000), offered('b', 10), offered('c', 10)];
  const declared = declareTools([{ server: 's', tools }]);
  assert.deepEqual(
    declared.tools.map(({ name }) => name),
    ['b', 'c'],
  );
  assert.match(declared.faults.join(), /^1 of 3 MCP tools are left out/);
});

test('a line for the user shows no control characters of a name', () => {
  const name = `a\u001b[2J${'x'.repeat(300)}`;
  const task = {
    name,
    inputSchema: { type: 'object' as const },
    execution: { taskSupport: 'required' as const },
  };
  const { notes } = offeredTools([task]);
  assert.match(notes.join(), /^a\?\[2Jx+: left out/);
  assert.ok((notes[0] ?? '').length < 200);
});
