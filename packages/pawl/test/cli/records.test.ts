import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { AssistantMessage } from '@pawl/agent/machine/message';
import { defaultSettings, type Usage } from '@pawl/agent/machine/settings';
import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Stepped } from '@pawl/agent/ports/session';
import { statusRow } from '@pawl/terminal/live-area';
import { parse } from 'valibot';
import { type JsonRecord, recordSchema } from '../../src/headless/record-schema.js';
import { resultRecord, stepRecords } from '../../src/headless/records.js';

/** What a story through the real machine looks like in the JSON stream and in the status line. */

const settings = {
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  hooks: 'never' as const,
  rules: presetRules.careful,
};
const usage: Usage = {
  inputTokens: 1_000,
  outputTokens: 200,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.05,
};
const call: JudgedCall = {
  callId: 'a',
  tool: 'touch',
  input: { path: 'x' },
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 1_000 },
  facts: { argv: [], paths: ['/w/x'], hosts: [], shape: '/w/x' },
};
const asking: AssistantMessage = {
  role: 'assistant',
  model: 'scripted/x',
  cut: false,
  parts: [
    { type: 'text', text: 'I touch it.' },
    { type: 'call', callId: 'a', tool: 'touch', input: { path: 'x' } },
  ],
};
const answering: AssistantMessage = { ...asking, parts: [{ type: 'text', text: 'Done.' }] };
const batch = { batchId: 'batch-1', callId: 'a' };
const overloaded = {
  kind: 'overloaded',
  message: 'busy',
  retryable: true,
  retryAfterMs: null,
} as const;

const reply = (
  requestId: string,
  message: AssistantMessage,
  calls: readonly JudgedCall[],
): Event => ({
  type: 'LlmCompleted',
  at: 4_000,
  requestId,
  message,
  calls,
  stopReason: calls.length > 0 ? 'toolUse' : 'end',
  usage,
});

const story: readonly (readonly [Event, readonly string[], string])[] = [
  [{ type: 'Start', at: 1_000 }, ['state'], 'ready · ? for keys'],
  [
    { type: 'UserInput', at: 2_000, text: 'touch x', mode: 'steer' },
    ['input', 'state', 'request'],
    'thinking · 8.0s · 0 tokens',
  ],
  [
    { type: 'LlmFailed', at: 3_000, requestId: 'req-1', error: overloaded, usage: null, jitter: 0 },
    ['modelFailed', 'state', 'warning', 'retry'],
    'retrying in 0s (Enter: now)',
  ],
  [
    { type: 'TimerFired', at: 4_000, timerId: 'timer-1' },
    ['state', 'request'],
    'thinking (attempt 2) · 8.0s · 0 tokens',
  ],
  [
    { type: 'TextDelta', at: 4_000, requestId: 'req-2', text: 'I touch it.' },
    ['text'],
    'answering (attempt 2) · 8.0s · 0 tokens',
  ],
  [
    reply('req-2', asking, [call]),
    ['reply', 'state', 'approvalRequested'],
    'needs your answer · 8.0s · 1.2k tokens',
  ],
  [
    { type: 'ApprovalAnswered', at: 5_000, ...batch, answer: { kind: 'allow' }, scope: 'once' },
    ['approvalAnswered'],
    'running touch · 8.0s · 1.2k tokens',
  ],
  [
    { type: 'ToolStarted', at: 6_000, ...batch },
    ['toolStarted'],
    'running touch · 8.0s · 1.2k tokens',
  ],
  [
    { type: 'UserInput', at: 6_000, text: 'quickly', mode: 'steer' },
    ['input', 'notice'],
    'running touch · 8.0s · 1.2k tokens',
  ],
  [
    { type: 'ToolProgress', at: 6_000, ...batch, text: 'half' },
    ['toolProgress'],
    'running touch · 8.0s · 1.2k tokens',
  ],
  [
    { type: 'ToolCompleted', at: 7_000, ...batch, outcome: { status: 'ok', text: 'touched' } },
    ['state', 'toolResult', 'request'],
    'thinking · 8.0s · 1.2k tokens',
  ],
  [reply('req-3', answering, []), ['reply', 'state', 'text'], 'ready · ? for keys'],
  [
    { type: 'CompactRequested', at: 8_000 },
    ['state', 'compaction'],
    'summarising the conversation to free',
  ],
  [
    {
      type: 'CompactionFailed',
      at: 9_000,
      compactionId: 'compaction-1',
      message: 'no',
      usage: null,
    },
    ['compaction', 'state', 'warning', 'error'],
    'failed',
  ],
];

const play = (): readonly { stepped: Stepped; records: readonly JsonRecord[] }[] => {
  let state: State = initialState(settings);
  return story.map(([event], index) => {
    const next = step(state, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    state = next.state;
    const stepped = { ...next, seq: index + 1, event };
    return { stepped, records: stepRecords(stepped) };
  });
};

for (const [index, { stepped, records }] of play().entries()) {
  const [event, kinds, status] = story[index] ?? [];
  test(`step ${index + 1}, ${event?.type}, is told as ${kinds?.join(', ')}`, () => {
    assert.deepEqual(
      records.map((record) => record.type),
      kinds,
    );
    for (const record of records)
      assert.deepEqual(parse(recordSchema, JSON.parse(JSON.stringify(record))), record);
    const said = statusRow(stepped.state, 100, 10_000).replace(/^[⠀-⣿] /u, '');
    assert.ok(said.startsWith(status ?? '?'), said);
  });
}

test('a wait for a retry is told once, and again after a resume', () => {
  const waiting = play()[2]?.stepped.state ?? assert.fail('no wait');
  const kindsAfter = (event: Event): readonly string[] => {
    const next = step(waiting, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    return stepRecords({ ...next, seq: 9, event }).map(({ type }) => type);
  };
  assert.deepEqual(
    kindsAfter({ type: 'SettingsChanged', at: 3_500, patch: { effort: 'high' } }).includes('retry'),
    false,
  );
  const resumed = kindsAfter({ type: 'Resumed', at: 3_500, epoch: 1, stoppedAt: 3_200 });
  assert.ok(resumed.includes('retry'), resumed.join());
});

test('a compaction that is cancelled ends in the stream', () => {
  const compacting = play().at(-2)?.stepped.state ?? assert.fail('no compaction');
  const event: Event = { type: 'CancelTurn', at: 8_500 };
  const next = step(compacting, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
  const told = stepRecords({ ...next, seq: 9, event }).filter(({ type }) => type === 'compaction');
  assert.deepEqual(told, [
    { type: 'compaction', compactionId: 'compaction-1', phase: 'cancelled' },
  ]);
});

test('a result says what was spent, and that a price is unknown', () => {
  const { state } = play().at(-1)?.stepped ?? { state: initialState(settings) };
  const ending = { exit: 0, reason: 'answer', message: '' } as const;
  const record = resultRecord(ending, 'Done.', { sessionId: 's', state }, { denied: 2 });
  assert.deepEqual(parse(recordSchema, record), record);
  assert.ok(
    record.type === 'result' &&
      record.ok &&
      record.costUsd === 0.1 &&
      record.denied === 2 &&
      record.usage?.inputTokens === 2_000,
  );
  const unpriced = {
    ...state,
    session: { ...state.session, usage: { ...state.session.usage, unpriced: 1 } },
  };
  assert.equal(knownCostUsd((unpriced as State).session.usage), null); // only the usage was changed
});
