import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import { statusRow } from '@pawl/terminal/live-area';
import { createStepPrinter } from '@pawl/terminal/step-lines';
import { parse } from 'valibot';
import { recordSchema } from '../../src/headless/record-schema.js';
import { stepRecords } from '../../src/headless/records.js';

/** What happens after tools, as the JSON stream, the status line and a reader have it. */

const settings = {
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  formatter: 'onChanges',
  autoCommit: 'on',
} as const;
const usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
};
const call: JudgedCall = {
  callId: 'a',
  tool: 'touch',
  input: {},
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  facts: { argv: [], paths: ['/w/x.ts'], hosts: [], shape: '' },
};
const message = {
  role: 'assistant',
  model: 'scripted/x',
  cut: false,
  parts: [{ type: 'call', callId: 'a', tool: 'touch', input: {} }],
} as const;
const batch = { batchId: 'batch-1', callId: 'a' };
const ended = {
  commits: [],
  changedFiles: [],
  dirty: true,
  note: '',
  warning: '',
  proceed: true,
  usage: null,
};

type Seen = {
  readonly records: readonly string[];
  readonly status: string;
  readonly told: readonly string[];
};

const rows: readonly (readonly [Event, Seen])[] = [
  [
    { type: 'ToolCompleted', at: 1_000, ...batch, outcome: { status: 'ok', text: '' } },
    {
      records: ['state', 'toolResult', 'hookStarted'],
      status: 'checking commits',
      told: ['✓ touch x.ts 1.0s'],
    },
  ],
  [
    {
      type: 'HookCompleted',
      at: 1_000,
      hookId: 'hook-1',
      ...ended,
      commits: [{ hash: '0123456789abcdef', subject: 'Add \u001b[2Jx (1 file, +1 -0)' }],
      changedFiles: ['/w/x.ts'],
    },
    {
      records: ['hookCompleted', 'state', 'notice', 'hookStarted'],
      status: 'formatting',
      told: ['· new commit 01234567 Add ␛[2Jx (1 file, +1 -0)'],
    },
  ],
  [
    {
      type: 'HookCompleted',
      at: 1_000,
      hookId: 'hook-2',
      ...ended,
      changedFiles: ['/w/x.ts', '/elsewhere/y.ts'],
      warning: 'Prettier is not well',
    },
    {
      records: ['hookCompleted', 'state', 'notice', 'warning', 'hookStarted'],
      status: 'committing',
      told: ['· formatted x.ts\n· formatted /elsewhere/y.ts', '! Prettier is not well'],
    },
  ],
  [
    { type: 'HookFailed', at: 1_000, hookId: 'hook-3', message: 'the disk is full' },
    {
      records: ['hookFailed', 'state', 'warning', 'request'],
      status: 'thinking',
      told: ['! committing the changes failed: the disk is full'],
    },
  ],
];

const begin: readonly Event[] = [
  { type: 'Start', at: 0 },
  { type: 'UserInput', at: 0, text: 'touch x', mode: 'steer' },
  {
    type: 'LlmCompleted',
    at: 0,
    requestId: 'req-1',
    message,
    calls: [call],
    stopReason: 'toolUse',
    usage,
  },
  { type: 'ToolStarted', at: 0, ...batch },
];

test('each phase is a record, a word in the status line and a line for the reader', () => {
  const story = createStepPrinter({ colour: 'no', columns: 80 }, '/w');
  let state: State = initialState(settings);
  const see = (event: Event): Stepped => {
    const next = step(state, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    state = next.state;
    return { ...next, seq: 1, event };
  };
  for (const event of begin) story(see(event));
  for (const [event, then] of rows) {
    const stepped = see(event);
    const records = stepRecords(stepped);
    for (const record of records) parse(recordSchema, record);
    const pieces = story(stepped).flatMap((piece) => (piece.kind === 'lines' ? [piece] : []));
    assert.deepEqual(
      {
        records: records.map(({ type }) => type),
        status: statusRow(state, 100, 1_000)
          .replace(/^[⠀-⣿] /u, '')
          .split(' · ')[0],
        told: pieces.map(({ text }) => text),
      },
      then,
    );
    assert.ok(pieces.every(({ urgent }, index) => urgent || index === 0));
  }
});
