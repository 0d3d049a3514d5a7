import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf } from '../../../../test/kit/agent/rows.js';
import { a, bad, u, use } from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';

// Replies that are empty, unlike what was streamed, or come too late: corners that the cases leave out.

const { edit, grep } = g;
const RETRYING = { emptyRetries: 1 };
const draining = (): Walker => {
  const walker = bring('C[u]', { cancelMode: 'drain' });
  walker.send(g.delta('yo'), g.cancel);
  return walker;
};
const cut = g.completed({ calls: [edit('1')], stopReason: 'maxTokens' });
const truncations = (count: number) => (walker: Walker) =>
  assert.equal(walker.state().session.turn.truncations, count);

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
    rule: 'streamed-text',
    title: 'the rest of a reply is shown if it begins as it was streamed',
    given: 'C[u]',
    send: [g.delta('first I'), g.says('first I, then you')],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: [/^DisplayText , then you$/],
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
  {
    rule: 'empty-reply',
    title: 'a reply that could not be understood is not asked for again as an empty one is',
    given: 'C[u]',
    settings: RETRYING,
    send: [g.completed({ message: null })],
    state: 'W(error malformed)',
    does: [],
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
    title: 'the user is told how long it takes until an empty reply is asked for again',
    given: 'C[u]',
    settings: { ...RETRYING, retrySchedule: { kind: 'linear', stepMs: 3_000 } },
    send: [g.empty],
    state: 'Er',
    does: ['ScheduleTimer 3000'],
    shows: ['DisplayWarning empty: the model sent an empty reply; asking again in 3 s'],
  },
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
    rule: 'cut-reply',
    title: 'an answer ends the series of cut replies',
    given: 'C[u]',
    send: [cut, g.says('yo')],
    state: 'W(endOfTurn answer)',
    also: truncations(0),
  },
  {
    rule: 'cut-reply',
    title: 'an answer that is cut off itself does not end the series of cut replies',
    given: 'C[u]',
    send: [cut, g.completed({ text: 'and th', stopReason: 'maxTokens' })],
    state: 'W(endOfTurn truncated)',
    also: truncations(1),
  },
  {
    rule: 'draining',
    title: 'streamed text is retracted if the reply comes malformed after a cancel',
    given: draining,
    send: [g.completed({ text: 'yo and more', calls: [grep('1'), grep('1')] })],
    state: 'W(cancelled user)',
    does: ['RetractPartial'],
    hides: ['DisplayText'],
    talk: [u('hi')],
  },
  {
    rule: 'cancelled-reply-runs-no-call',
    title:
      'calls of a refusal that comes after a cancel are answered, and the turn ends as cancelled',
    given: draining,
    send: [g.completed({ text: 'yo', calls: [edit('1')], stopReason: 'refusal' })],
    state: 'W(cancelled user)',
    does: [],
    talk: [u('hi'), a('yo', use('1')), u(bad('1', /cancelled by user/))],
  },
  {
    rule: 'stopping-policy',
    title: 'a call that the policy stops is no longer waited for, one that failed before it is',
    given: 'Er',
    send: [g.rings(), g.policyStops()],
    state: 'W(cancelled policy)',
    also: (walker) => assert.deepEqual(walker.state().session.unaccounted, ['req-1']),
  },
  {
    rule: 'answer-ends-turn',
    title: 'an answer is shown without a warning, and leaves no diagnostic',
    given: 'C[u]',
    send: [g.says('yo')],
    state: 'W(endOfTurn answer)',
    hides: ['DisplayWarning'],
    also: (walker) => assert.deepEqual(walker.last().diagnostics, []),
  },
  {
    rule: 'malformed-reply',
    title: 'a reply that could not be understood is told as that',
    given: 'C[u]',
    send: [g.completed({ message: null })],
    state: 'W(error malformed)',
    shows: ['DisplayError the reply could not be understood'],
  },
  {
    rule: 'malformed-reply',
    title: 'two calls of one id are told as that',
    given: 'C[u]',
    send: [g.wants(grep('1'), grep('1'))],
    state: 'W(error malformed)',
    shows: ['DisplayError the reply has two calls of the same id'],
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
]);
