import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '../../../packages/agent/src/machine/action.js';
import type { Call } from '../../../packages/agent/src/machine/call.js';
import {
  type Conversation,
  emptyConversation,
} from '../../../packages/agent/src/machine/conversation.js';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import type { Message, UserMessage } from '../../../packages/agent/src/machine/message.js';
import type { In, SessionData, State } from '../../../packages/agent/src/machine/state.js';
import type { Stepped } from '../../../packages/agent/src/ports/session.js';
import type { AppendList } from '../../../packages/machine/src/kernel/append-list.js';
import { stateFaults } from '../../../packages/verify/src/invariants.js';
import * as g from './given.js';
import { begun } from './random.js';
import type { SettingsPatch } from './settings.js';

/** States and steps made by hand, for promises that the machine itself does not break. */

export const text = (origin: 'user' | 'note', words: string) =>
  ({ type: 'text', origin, text: words }) as const;
export const user = (...parts: UserMessage['parts']): UserMessage => ({ role: 'user', parts });
export const asked = (words = 'hello'): UserMessage => user(text('user', words));
export const reply = (words = 'yes'): Message => ({
  role: 'assistant',
  model: 'test/model',
  cut: false,
  parts: [{ type: 'text', text: words }],
});
export const calling = (...callIds: readonly string[]): Message => ({
  role: 'assistant',
  model: 'test/model',
  cut: false,
  parts: callIds.map((callId) => ({ type: 'call', callId, tool: 'grep', input: {} })),
});
export const result = (callId: string) =>
  ({ type: 'result', callId, tool: 'grep', failed: false, text: 'found' }) as const;

const conversation = (
  closed: readonly Message[],
  open: UserMessage | null = null,
): Conversation => ({
  closed: closed.reduce(
    (log: AppendList<Message>, message) => log.append(message),
    emptyConversation.closed,
  ),
  open,
});

export const session = (
  change: Partial<SessionData> = {},
  settings: SettingsPatch = {},
): SessionData => ({
  ...begun(settings).session,
  ...change,
});

export const waiting = (own: SessionData = session()): In<'WaitingForUserInput'> => ({
  name: 'WaitingForUserInput',
  session: own,
  reason: { kind: 'start' },
  next: 'rest',
});
export const llm = (
  own: SessionData = session(),
  attempt = 1,
  requestId = 'req-1',
): In<'CallingLlm'> => ({
  name: 'CallingLlm',
  session: own,
  purpose: 'user',
  requestId,
  attempt,
  partial: '',
  call: { mode: 'open' },
});
export const failed = (own: SessionData, attempt: number): In<'Error'> => ({
  name: 'Error',
  session: own,
  purpose: 'user',
  attempt,
  error: { kind: 'overloaded', message: 'busy' },
  timerId: 'timer-1',
  dueAt: 1,
  delayMs: 1_000,
});
export const batch = (
  calls: readonly Call[],
  own: SessionData = session(),
): In<'ExecutingTools'> => ({
  name: 'ExecutingTools',
  session: own,
  batchId: 'batch-1',
  calls,
  phase: { mode: 'running' },
});
export const running = (callId: string, mutating = false): Call => ({
  judged: mutating ? g.edit(callId) : g.grep(callId),
  requestedAt: 1,
  status: 'running',
  allowed: 'byPolicy',
  startedAt: 1,
  graceTimerId: null,
});
export const queued = (callId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'queued',
  allowed: 'byPolicy',
});
export const endedCall = (callId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'ok',
  ran: true,
  startedAt: 1,
  completedAt: 2,
  outcome: { failed: false, text: 'found' },
});
export const send = (length: number, requestId = 'req-1'): Action => ({
  type: 'SendLlmRequest',
  requestId,
  purpose: 'user',
  length,
});
export const PROMPT: Action = { type: 'PromptForInput' };

export type Row = {
  readonly title: string;
  readonly before?: State;
  readonly event?: Event;
  readonly after: State;
  readonly actions?: readonly Action[];
  readonly says?: string | readonly string[];
};

export const event: Event = { type: 'CancelTurn', at: g.NOW };
export const typed = (words: string): Event => ({
  type: 'UserInput',
  at: g.NOW,
  text: words,
  mode: 'steer',
});

export const check = ({
  title,
  before = waiting(),
  event: given = event,
  after,
  actions = [PROMPT],
  says,
}: Row) => {
  const expected = says === undefined ? [] : [says].flat();
  test(`${title}: ${expected.length === 0 ? 'nothing is wrong' : expected.join(', ')}`, () => {
    const found = stateFaults(before, given, { state: after, actions, path: [], diagnostics: [] });
    assert.deepEqual(found, expected);
  });
};

/** That no step of a run breaks a promise of its state. */
export const assertStates = (steps: readonly Stepped[]): void => {
  let before: State | null = null;
  for (const { event: taken, state, actions, path, diagnostics } of steps) {
    const step = { state, actions, path, diagnostics };
    assert.deepEqual(before === null ? [] : stateFaults(before, taken, step), [], taken.type);
    before = state;
  }
};

export const withTalk = (
  closed: readonly Message[],
  open: UserMessage | null = null,
  settings: SettingsPatch = {},
) => session({ conversation: conversation(closed, open) }, settings);
