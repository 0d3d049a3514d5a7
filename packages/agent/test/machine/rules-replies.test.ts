import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf } from '../../../../test/kit/agent/rows.js';
import { a, u } from '../../../../test/kit/agent/shown.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';

// Replies that are empty, unlike what was streamed, or come too late: corners that the cases leave out.

const { edit } = g;
const RETRYING = { emptyRetries: 1 };

/** As templates of Qwen, GLM, Mistral, Kimi, DeepSeek, Llama, Claude and Gemini write calls. */
const CALLS_AS_TEXT = [
  '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
  'I look.\n<tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\n</tool_call>',
  '<tool_call>bash\n<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>',
  '[TOOL_CALLS][{"name": "bash", "arguments": {}}]',
  '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0{}<|tool_calls_section_end|>',
  '<\uff5ctool\u2581calls\u2581begin\uff5c>bash<\uff5ctool\u2581calls\u2581end\uff5c>',
  '<|python_tag|>{"name": "bash", "parameters": {}}',
  '{"name": "bash", "parameters": {"command": "ls"}}',
  '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
  '<function_calls>\n<invoke name="bash">\n</invoke>\n</function_calls>',
  '```tool_code\nbash(command="ls")\n```',
  'functions.bash({"command": "ls"})',
  '[TOOL_REQUEST]\n{"name": "bash", "arguments": {}}\n[END_TOOL_REQUEST]',
  '<minimax:tool_call>\n<invoke name="bash">\n</invoke>\n</minimax:tool_call>',
  '<start_function_call>call:bash{command:ls}<end_function_call>',
  'functools[{"name": "bash", "arguments": {}}]',
];
const ONLY_ABOUT_CALLS = [
  'A model writes <tool_call>{"name": "bash"}</tool_call>, and its server reads it.',
  'The template begins a call so:\n<tool_call>\nand then comes JSON. That is all.',
  '{"name": "pawl", "version": "1.0.0"}',
  'Done: I ran `ls`.',
];

check([
  {
    rule: 'malformed-reply',
    title: 'a reply whose message has fewer calls than were checked starts none of them',
    given: 'C[u]',
    send: [(state) => ({ ...g.completed({ text: 'I look.' })(state), calls: [edit('1')] })],
    state: 'W(error malformed)',
    does: [],
  },
  {
    rule: 'streamed-text',
    title: 'a reply that is not what was streamed takes its place',
    given: 'C[u]',
    send: [g.delta('first I'), g.says('no, second')],
    state: 'W(endOfTurn answer)',
    does: ['RetractPartial'],
    shows: [/^DisplayText no, second$/],
    talk: [u('hi'), a('no, second')],
  },
  {
    rule: 'context-size',
    title:
      'the size of the conversation is all that the provider counted, read from its cache or not',
    given: 'C[u]',
    send: [
      g.says('yo', {
        inputTokens: 1,
        cacheReadTokens: 20,
        cacheWriteTokens: 300,
        outputTokens: 4_000,
        costUsd: 0,
      }),
    ],
    state: 'W(endOfTurn answer)',
    also: (walker) => assert.equal(walker.state().session.contextTokens, 4_321),
  },
  {
    rule: 'context-size',
    title: 'where the provider counted nothing the estimate stays',
    given: 'C[u]',
    send: [
      g.says('yo', {
        inputTokens: 0,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        outputTokens: 0,
        costUsd: 0,
      }),
    ],
    state: 'W(endOfTurn answer)',
    also: (walker) => assert.equal(walker.state().session.contextTokens, 1),
  },
  ...(['refusal', 'contentFilter'] as const).map((stopReason) => ({
    rule: 'empty-reply' as const,
    title: `an empty reply that ends with ${stopReason} is not asked for again`,
    given: 'C[u]' as const,
    settings: RETRYING,
    send: [g.completed({ stopReason })],
    state: 'W(endOfTurn refused)',
    does: [],
    shows: ['DisplayWarning refused'],
  })),
  {
    rule: 'empty-reply',
    title: 'an empty reply that ends the turn is counted, too',
    given: 'C[u]',
    send: [g.empty],
    state: 'W(endOfTurn empty)',
    also: (walker) => assert.equal(walker.state().session.emptyReplies, 1),
  },
  ...CALLS_AS_TEXT.map((text) => ({
    rule: 'calls-decide' as const,
    title: `a call that came as text is named: ${text.replace(/\s+/g, ' ').slice(0, 24)}`,
    given: 'C[u]' as const,
    send: [g.says(text)],
    state: 'W(endOfTurn answer)',
    shows: ['DisplayWarning callAsText'],
  })),
  ...ONLY_ABOUT_CALLS.map((text) => ({
    rule: 'calls-decide' as const,
    title: `words about a call are none: ${text.replace(/\s+/g, ' ').slice(0, 24)}`,
    given: 'C[u]' as const,
    send: [g.says(text)],
    state: 'W(endOfTurn answer)',
    also: (walker: Walker) => assert.equal(countOf(walker, 'DisplayWarning'), 0),
  })),
  {
    rule: 'stopping-policy',
    title: 'a call that the policy stops is no longer waited for, nor one that was refused before',
    given: 'Er',
    send: [g.rings(), g.policyStops()],
    state: 'W(cancelled policy)',
    also: (walker) => assert.deepEqual(walker.state().session.unaccounted, []),
  },
  ...(
    [
      ['refusal', 'the model refused to go on'],
      ['contentFilter', "the provider's content filter stopped the reply"],
    ] as const
  ).map(([stopReason, words]) => ({
    rule: 'refused-reply' as const,
    title: `the user is told of a ${stopReason} in words of its own`,
    given: 'C[u]' as const,
    send: [g.completed({ text: 'no', stopReason })],
    state: 'W(endOfTurn refused)',
    shows: [`DisplayWarning refused: ${words}`],
  })),
  {
    rule: 'cut-reply',
    title: 'an answer ends the series of cut replies',
    given: 'C[u]',
    send: [g.completed({ calls: [edit('1')], stopReason: 'maxTokens' }), g.says('yo')],
    state: 'W(endOfTurn answer)',
    also: (walker) => assert.equal(walker.state().session.turn.truncations, 0),
  },
]);
