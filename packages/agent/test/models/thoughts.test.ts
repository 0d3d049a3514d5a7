import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import type { EffortLevel } from '../../src/machine/settings.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import { catalogueFacts } from '../../src/models/catalogue.js';
import { googleModel } from '../../src/models/google.js';
import { openAiModel } from '../../src/models/openai-responses.js';
import {
  chatModel,
  delta,
  events,
  facts,
  hello,
  type Loose,
  OK,
  openAi,
  RESPONSES_OK,
  serve,
  streamed,
} from './answering.js';
import { ask, collect, endingOf, placeless, userSays } from './conversing.js';

/** What models think: asked for, shown, sent back, and as much as the user wants. */

/** github.com/OpenHands/OpenHands/issues/11527 */
const NOT_VERIFIED = JSON.stringify({
  error: {
    message:
      'Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.',
    type: 'invalid_request_error',
    param: 'reasoning.summary',
    code: 'unsupported_value',
  },
});

const summaryIn = ({ body }: { readonly body: Loose }): unknown =>
  (body.reasoning as Loose | undefined)?.summary; // as it was sent

/** An account that may not have summaries. */
const unverified = (context: Parameters<typeof serve>[0]) => {
  const server = serve(context, (out, number) => {
    void server.then(({ seen }) => {
      const asked = seen[number - 1];
      if (asked !== undefined && summaryIn(asked) !== undefined) {
        out.writeHead(400, { 'content-type': 'application/json' }).end(NOT_VERIFIED);
      } else streamed(RESPONSES_OK)(out, number);
    });
  });
  return server;
};

test('summaries that are refused are asked for once, and then never again of this account', async (context) => {
  const { url, seen } = await unverified(context);
  assert.equal((await hello(openAi(url))).ending.type, 'completed');
  assert.deepEqual(seen.map(summaryIn), ['auto', undefined]);
  assert.equal((await hello(openAi(url))).ending.type, 'completed');
  assert.equal(seen.length, 3, 'another model of the same account knows');
  await hello(openAi(url, 'another key'));
  assert.equal(seen.length, 5, 'another account does not');
});

const SUMMARIES = ['I look at the file.', 'Then I change it.'];
const asSummary = (text: string) => ({ type: 'summary_text', text });

/** A Responses stream of one reasoning item with two summaries, then a call. */
const summarized = (): string => {
  const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null };
  const summary = (text: string, index: number): readonly object[] => {
    const place = { item_id: 'rs_1', output_index: 0, summary_index: index };
    return [
      {
        type: 'response.reasoning_summary_part.added',
        ...place,
        part: { type: 'summary_text', text: '' },
      },
      ...[text.slice(0, 4), text.slice(4)].map((piece) => ({
        type: 'response.reasoning_summary_text.delta',
        ...place,
        delta: piece,
      })),
      { type: 'response.reasoning_summary_text.done', ...place, text },
      {
        type: 'response.reasoning_summary_part.done',
        ...place,
        part: { type: 'summary_text', text },
      },
    ];
  };
  const call = { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'read', arguments: '{}' };
  return events(
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    { type: 'response.output_item.added', output_index: 0, item },
    ...SUMMARIES.flatMap(summary),
    {
      type: 'response.output_item.done',
      output_index: 0,
      item: { ...item, summary: SUMMARIES.map(asSummary), encrypted_content: 'ZW5j' },
    },
    { type: 'response.output_item.added', output_index: 1, item: { ...call, arguments: '' } },
    { type: 'response.output_item.done', output_index: 1, item: { ...call, status: 'completed' } },
    {
      type: 'response.completed',
      response: { usage: { input_tokens: 3, output_tokens: 2 }, incomplete_details: null },
    },
  );
};

test('the reasoning summary of the OpenAI wire is shown, and goes back whole with what is encrypted', async (context) => {
  const { url, seen } = await serve(context, (out, number) =>
    streamed(number === 1 ? summarized() : RESPONSES_OK)(out, number),
  );
  const model = openAi(url);
  const { pieces, ending } = await hello(model);
  assert.ok(ending.type === 'completed', JSON.stringify(ending));
  assert.equal(
    pieces.map((piece) => (piece.type === 'reasoning' ? piece.text : '')).join(''),
    SUMMARIES.join(''),
  );
  assert.deepEqual(
    ending.parts.flatMap((part) => (part.type === 'reasoning' ? part.text : [])),
    SUMMARIES,
  );
  const parts = ending.parts.map((part) =>
    part.type === 'call' ? { ...part, input: {}, rawInput: undefined } : part,
  );
  const messages = (id: string) => [
    userSays('hello'),
    { role: 'assistant', model: id, cut: false, parts } as never, // a call as it is stored
    {
      role: 'user',
      parts: [{ type: 'result', callId: 'a', tool: 'read', failed: false, text: 'x' }],
    } as never, // likewise
  ];
  for (const id of [model.id, 'openai/another'])
    await collect(model.stream(ask(...messages(id)), new AbortController().signal));
  const [, own, other] = seen.map(({ body }) => body.input as readonly Loose[]); // as it was sent
  const thoughts = own?.filter(({ type }) => type === 'reasoning');
  assert.deepEqual(
    thoughts?.map(({ summary, encrypted_content }) => ({ summary, encrypted_content })),
    [{ summary: SUMMARIES.map(asSummary), encrypted_content: 'ZW5j' }],
    'one item, both summaries in order',
  );
  const types = own?.map(({ type, role }) => type ?? role) ?? [];
  assert.equal(
    types.indexOf('function_call') - types.indexOf('reasoning'),
    1,
    'before the call they led to',
  );
  assert.equal(JSON.stringify(other).includes('ZW5j'), false, 'not to another model');
  assert.equal(
    other?.some(({ type }) => type === 'reasoning'),
    false,
  );
});

test('summaries can be switched off', async (context) => {
  const { url, seen } = await serve(context, streamed(RESPONSES_OK));
  await hello(openAi(url, 'key', { summaries: 'off' }));
  await hello(openAi(url, 'key'));
  assert.deepEqual(seen.map(summaryIn), [undefined, 'auto']);
});

test('another refusal is none of summaries', async (context) => {
  const { url, seen } = await serve(context, (out) => {
    out.writeHead(400).end(JSON.stringify({ error: { message: 'no', param: 'input', type: 'x' } }));
  });
  assert.equal((await hello(openAi(url))).ending.type, 'failed');
  assert.equal(seen.length, 1);
});

test('what another Responses server streams of its thoughts is shown, and goes back as it came', async (context) => {
  const body = `${events(
    { type: 'response.reasoning_text.delta', item_id: 'x', content_index: 0, delta: 'Let me ' },
    { type: 'response.reasoning_text.delta', item_id: 'x', content_index: 0, delta: 'see.' },
  )}${RESPONSES_OK}`;
  const { url, seen } = await serve(context, streamed(body));
  const model = openAi(url);
  const { pieces, ending } = await hello(model);
  const thought = pieces.map((piece) => (piece.type === 'reasoning' ? piece.text : '')).join('');
  assert.equal(thought, 'Let me see.');
  assert.ok(ending.type === 'completed');
  const said = { role: 'assistant', model: model.id, cut: false, parts: ending.parts } as never; // without calls
  await hello(model, { messages: [userSays('hello'), said, userSays('go on')] });
  const [, second = assert.fail()] = seen;
  assert.deepEqual((second.body.input as readonly object[])[2], {
    type: 'reasoning',
    id: 'x',
    summary: [],
    content: [{ type: 'reasoning_text', text: 'Let me see.' }],
  });
});

test('a message goes back without its id if its thought does not go back', async (context) => {
  const place = { output_index: 0, item_id: 'x', summary_index: 0 };
  const body = `${events({
    type: 'response.reasoning_summary_text.delta',
    ...place,
    delta: 'Hm.',
  })}${RESPONSES_OK}`;
  const { url, seen } = await serve(context, streamed(body));
  const model = openAi(url);
  const { ending } = await hello(model);
  assert.ok(ending.type === 'completed');
  const said = { role: 'assistant', model: model.id, cut: false, parts: ending.parts } as never; // without calls
  await hello(model, { messages: [userSays('hello'), said, userSays('go on')] });
  const items = seen[1]?.body.input as readonly Loose[];
  assert.deepEqual(items[2], { role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] });
});

test('a model that thinks according to its facts is asked as one, whatever its name', async (context) => {
  const { url, seen } = await serve(context, streamed(RESPONSES_OK));
  for (const thinking of ['yes', 'no'] as const)
    await hello(
      openAiModel(adapterOptions('openai/azure-gpt', url, { facts: { ...facts, thinking } })),
    );
  assert.deepEqual(
    seen.map(({ body }) => [body.include, (body.input as readonly Loose[])[0]?.role]),
    [
      [['reasoning.encrypted_content'], 'developer'],
      [undefined, 'system'],
    ],
  );
});

test("OpenRouter's reasoning_details go back whole, in order, and to the same model only", async (context) => {
  const signed = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
  const body = events(
    delta({ reasoning: 'I ', reasoning_details: [{ ...signed, text: 'I ' }] }),
    delta({ reasoning: 'look.', reasoning_details: [{ ...signed, text: 'look.' }] }),
    delta({ reasoning_details: [{ ...signed, signature: 'c2ln' }] }),
    delta({
      reasoning_details: [{ type: 'reasoning.encrypted', data: 'ZW5j', id: 'e1', index: 1 }],
    }),
    delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'read', arguments: '{}' } }] }),
    delta({}, 'tool_calls'),
    '[DONE]',
  );
  const { url, seen } = await serve(context, (out, number) =>
    streamed(number === 1 ? body : OK)(out, number),
  );
  const model = chatModel(url);
  const { ending } = await hello(model);
  assert.ok(ending.type === 'completed');
  const parts = ending.parts.map((part) =>
    part.type === 'call' ? { ...part, input: {}, rawInput: undefined } : part,
  );
  const messages = (modelId: string) => [
    userSays('hello'),
    { role: 'assistant', model: modelId, cut: false, parts } as never, // a call as it is stored
    {
      role: 'user',
      parts: [{ type: 'result', callId: 'a', tool: 'read', failed: false, text: 'x' }],
    } as never, // likewise
  ];
  for (const id of [model.id, 'openai-compatible/other']) {
    await collect(model.stream(ask(...messages(id)), new AbortController().signal));
  }
  const sent = seen.slice(1).map(({ body: { messages: all } }) => (all as Loose[])[2]); // behind system and user
  assert.deepEqual(sent[0]?.reasoning_details, [
    { ...signed, text: 'I look.', signature: 'c2ln' },
    { type: 'reasoning.encrypted', data: 'ZW5j', id: 'e1', index: 1 },
  ]);
  assert.equal('reasoning_content' in (sent[0] ?? {}), false, 'nothing is said twice');
  assert.equal('reasoning_details' in (sent[1] ?? {}), false);
});

test('details without a word of thought go back too', async (context) => {
  const body = events(
    delta({
      content: 'ok',
      reasoning_details: [{ type: 'reasoning.encrypted', data: 'ZW5j', index: 0 }],
    }),
    delta({}, 'stop'),
  );
  const { url } = await serve(context, streamed(body));
  const { ending } = await hello(chatModel(url));
  assert.deepEqual(ending.type === 'completed' && placeless(ending)[0], {
    type: 'reasoning',
    text: '',
    metadata: {
      openaiCompatible: {
        reasoning_details: [{ type: 'reasoning.encrypted', data: 'ZW5j', index: 0 }],
      },
    },
  });
});

test("Google gets a tool's JSON Schema as it is", async (context) => {
  const { url, seen } = await serve(context, (out) => out.writeHead(503).end());
  const inputSchema = {
    type: 'object',
    properties: {
      level: { enum: [1, 2, 3] },
      what: { oneOf: [{ type: 'string' }, { type: 'number' }] },
      list: { type: 'array' },
    },
  };
  const tools = [{ name: 'custom', description: 'Does.', inputSchema }];
  const model = googleModel(adapterOptions('google/gemini-3.8-flash', url, { facts }));
  await hello(model, { tools });
  await hello(model, { tools, toolChoice: 'none' });
  await hello(model, { tools: [] });
  const declared = [
    {
      functionDeclarations: [
        { name: 'custom', description: 'Does.', parametersJsonSchema: inputSchema },
      ],
    },
  ];
  assert.deepEqual(
    seen.map(({ body }) => body.tools),
    [declared, declared, undefined],
  );
  assert.deepEqual(seen[1]?.body.toolConfig, { functionCallingConfig: { mode: 'NONE' } });
});

test('an effort is told to each wire in its own words', async (context) => {
  const { url, seen } = await serve(context, (out) => out.writeHead(503).end());
  const anthropic = (name: string) =>
    anthropicModel(
      adapterOptions(`anthropic/${name}`, url, { facts: catalogueFacts(`anthropic/${name}`) }),
    );
  const google = (name: string) =>
    googleModel(
      adapterOptions(`google/${name}`, url, { facts: { ...facts, outputTokensMax: 65_536 } }),
    );
  const sent = async (model: ReturnType<typeof chatModel>, effort?: EffortLevel) => {
    await endingOf((await hello(model, effort === undefined ? {} : { effort })).pieces);
    return seen.at(-1)?.body ?? {};
  };
  const adaptive = await sent(anthropic('claude-sonnet-5-5'), 'low');
  assert.deepEqual(adaptive.output_config, { effort: 'low' });
  assert.deepEqual(adaptive.thinking, { type: 'adaptive', display: 'summarized' });
  const budget = await sent(anthropic('claude-haiku-4-5'), 'high');
  assert.deepEqual(budget.thinking, { type: 'enabled', budget_tokens: 20_000 });
  assert.equal('output_config' in budget, false);
  assert.equal('output_config' in (await sent(anthropic('claude-sonnet-5-5'))), false);
  assert.deepEqual((await sent(openAi(url), 'medium')).reasoning, {
    effort: 'medium',
    summary: 'auto',
  });
  const level = (await sent(google('gemini-3.8-flash'), 'high')).generationConfig as Loose; // as it was sent
  assert.deepEqual(level.thinkingConfig, { includeThoughts: true, thinkingLevel: 'high' });
  for (const folder of ['', 'publishers/google/models/']) {
    const body = await sent(google(`${folder}gemini-2.5-pro`), 'low');
    const tokens = body.generationConfig as Loose; // likewise
    assert.deepEqual(tokens.thinkingConfig, { includeThoughts: true, thinkingBudget: 1_024 });
    assert.ok('systemInstruction' in body);
    // Gemma has no field for instructions
    assert.ok(!('systemInstruction' in (await sent(google(`${folder}gemma-3-27b-it`)))));
  }
  assert.equal((await sent(chatModel(url), 'high')).reasoning_effort, 'high');
  assert.deepEqual((await sent(anthropic('claude-opus-5-5'), 'xhigh')).output_config, {
    effort: 'xhigh',
  });
  assert.deepEqual((await sent(anthropic('claude-sonnet-4-6'), 'xhigh')).output_config, {
    effort: 'high',
  });
  assert.equal((await sent(chatModel(url), 'max')).reasoning_effort, 'max');
  assert.equal('reasoning_effort' in (await sent(chatModel(url))), false);
  assert.equal(
    'reasoning_effort' in (await sent(chatModel(url, { effort: 'none' }), 'high')),
    false,
  );
});
