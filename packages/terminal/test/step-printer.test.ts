import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndedStatus } from '@pawl/agent/machine/call';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import { createStepPrinter, withDetail } from '../src/step-lines.js';

/** What a reader sees of calls that did not end well. */

const state = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
const call: JudgedCall = {
  callId: 'a',
  tool: 'write',
  input: { path: 'x.txt' },
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 1_000 },
  facts: { argv: [], paths: ['/w/x.txt'], hosts: [], shape: '/w/x.txt' },
};

type Told = { readonly whole: string; readonly urgent: boolean };

const tell = (status: EndedStatus, text: string, started: boolean): Told => {
  const story = createStepPrinter({ colour: 'no', columns: 80 }, '/w');
  const see = (event: object, actions: Stepped['actions'] = []) =>
    story({ seq: 1, event: event as Event, state, actions, path: [], diagnostics: [] }); // only what a story reads
  see({ type: 'LlmCompleted', at: 0, calls: [call] });
  if (started) see({ type: 'ToolStarted', at: 0, batchId: 'b', callId: 'a' });
  const result = { batchId: 'b', callId: 'a', tool: 'write', status, text, diff: null };
  const [piece] = see({ type: 'ToolCompleted', at: 1_250 }, [
    { type: 'DisplayToolResult', ...result },
  ]);
  assert.ok(piece?.kind === 'lines');
  return { whole: withDetail(piece), urgent: piece.urgent };
};

const rows: readonly (readonly [EndedStatus, boolean, string, string, boolean])[] = [
  [
    'denied',
    false,
    'denied by policy: only reads',
    '✗ write x.txt · denied by policy: only reads',
    true,
  ],
  ['noSuchTool', false, 'no such tool: write', '✗ write x.txt · no such tool: write', false],
  [
    'invalid',
    false,
    'not valid: path\nWhat: {',
    '✗ write x.txt · not valid: path\n    What: {',
    false,
  ],
  ['skipped', false, 'skipped: used up', '✗ write x.txt · skipped: used up', false],
  [
    'cancelled',
    false,
    'not run: cancelled by user',
    '✗ write x.txt · not run: cancelled by user',
    false,
  ],
  [
    'cancelled',
    true,
    'stopped while running',
    '✗ write x.txt cancelled 1.3s\n    stopped while running',
    false,
  ],
  ['lost', false, 'outcome unknown\nlook', '✗ write x.txt · outcome unknown\n    look', true],
  ['ok', true, 'written', '✓ write x.txt 1.3s\n    written', false],
];

for (const [status, started, text, whole, urgent] of rows) {
  test(`a call that is ${status}${started ? ' and ran' : ''} is told as ${JSON.stringify(whole)}`, () => {
    assert.deepEqual(tell(status, text, started), { whole, urgent });
  });
}

test('texts that wait at rest are told also in quiet mode', () => {
  const print = createStepPrinter({ colour: 'no', columns: 80 }, '/w');
  const input = { type: 'UserInput', mode: 'steer' } as const;
  const error = { kind: 'auth', message: 'no', retryable: false, retryAfterMs: null } as const;
  const events: readonly Event[] = [
    { ...input, at: 1, text: 'go' },
    { ...input, at: 2, text: 'be brief' },
    { ...input, at: 3, text: 'and kind' },
    { type: 'LlmFailed', at: 4, requestId: 'req-1', error, usage: null, jitter: 0 },
  ];
  let before: State = state;
  const urgent = events.flatMap((event) => {
    const next = step(before, event);
    before = next.state;
    const pieces = print({ seq: 1, event, ...next } as Stepped); // the machine's own step
    return pieces.flatMap((piece) => (piece.kind === 'lines' && piece.urgent ? [piece.text] : []));
  });
  assert.equal(urgent.at(-1), '· 2 of your texts wait; your next message sends them too');
  assert.equal(urgent.length, 2, urgent.join('\n'));
});
