import type { Action } from '@pawl/agent/machine/action';
import type { SessionData } from '@pawl/agent/machine/state';
import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { checkSteps } from '../../../../test/kit/agent/step-rows.js';

// Changes of the model that the machine does not make: each has to be found.

const other = { windowTokens: 100, prices: null };
const fallback = [
  { ...other, model: 'b/a' },
  { ...other, model: 'b/b' },
  { ...other, model: 'b/mute', tools: 'no' as const },
];
const primary = { model: 'test/model', windowTokens: 128_000, cancelMode: 'abort' as const };
const session = (patch: SettingsPatch, more: Partial<SessionData> = {}): SessionData =>
  hand.session(more, { maxRetries: 1, fallback, ...patch });
const sent: Action = { type: 'SendLlmRequest', requestId: 'req-2', purpose: 'user', length: 1 };
const told = (model: string): readonly Action[] => [
  { type: 'DisplayWarning', kind: 'fallback', text: `${model} takes over` },
  sent,
];
const calling = (patch: SettingsPatch = {}, attempt = 2, more: Partial<SessionData> = {}) =>
  hand.llm(session(patch, more), attempt);
/** After the step: its request is another one. */
const after = (patch: SettingsPatch = {}, more: Partial<SessionData> = {}) =>
  hand.llm(session(patch, more), 1, 'req-2');
const taken = (model: string, more: Partial<SessionData> = {}) => after({ model, primary }, more);
const busy = g.fails({ requestId: 'req-1' });
const says = (why: string): readonly string[] => [`fallback: ${why}`];
const row = { before: calling(), event: busy, after: taken('b/a'), actions: told('b/a') };

checkSteps('fallback', [
  { ...row, title: 'after the last retry' },
  { ...row, title: 'untold', actions: [sent], says: says('nobody is told that b/a is asked') },
  {
    ...row,
    title: 'before the last retry',
    before: calling({}, 1),
    says: says('b/a takes over, and attempt 1 is not the last'),
  },
  {
    ...row,
    title: 'after a wrong key',
    event: g.fails({ requestId: 'req-1', kind: 'auth', retryable: false }),
    says: says('b/a takes over, and the error is auth'),
  },
  {
    ...row,
    title: 'without a failure',
    event: g.delta('x', 'req-1'),
    after: calling({ model: 'b/a', primary }, 1),
    actions: told('b/a').slice(0, 1),
    says: says('b/a takes over, and TextDelta is no failure'),
  },
  {
    ...row,
    title: 'to a model of no list',
    after: taken('c/any'),
    actions: told('c/any'),
    says: says('c/any takes over, and it is in no list'),
  },
  {
    ...row,
    title: 'to one that calls no tools',
    after: taken('b/mute'),
    actions: told('b/mute'),
    says: says('b/mute takes over, and it calls no tools'),
  },
  {
    ...row,
    title: 'to too small a window',
    before: calling({}, 2, { contextTokens: 101 }),
    after: taken('b/a', { contextTokens: 101 }),
    says: says('b/a takes over, and its window is too small'),
  },
  {
    ...row,
    title: 'to an unknown price under a limit',
    before: calling({ limits: { usd: 1 } }),
    after: after({ model: 'b/a', primary, limits: { usd: 1 } }),
    says: says('b/a takes over, and its price is unknown'),
  },
  {
    ...row,
    title: 'to one that was asked before',
    before: calling({ model: 'b/b', primary }),
    says: says('b/a takes over, and it was asked before'),
  },
  {
    ...row,
    title: 'to the one that was asked last',
    before: calling({ model: 'b/a', primary }),
    says: says('b/a takes over from itself'),
  },
  {
    ...row,
    title: 'which forgets the first model',
    after: after({ model: 'b/a' }),
    says: says('b/a takes over, and the first model is lost'),
  },
  {
    title: 'a turn that begins with another model',
    before: hand.waiting(session({ model: 'b/a', primary })),
    event: g.retryLast,
    after: taken('b/a', { turn: { ...session({}).turn, turnId: 'turn-9' } }),
    actions: [sent],
    says: says('a turn begins with b/a'),
  },
  {
    ...row,
    title: 'told of another matter',
    actions: [{ type: 'DisplayWarning', kind: 'retry', text: 'b/a is busy' }, sent],
    says: says('nobody is told that b/a is asked'),
  },
  {
    ...row,
    title: 'told of another model',
    actions: told('b/b'),
    says: says('nobody is told that b/a is asked'),
  },
  {
    ...row,
    title: 'before a wait that is not too long',
    before: calling({}, 1),
    event: g.fails({ requestId: 'req-1', retryAfterMs: 60_000 }),
    says: says('b/a takes over, and attempt 1 is not the last'),
  },
  {
    ...row,
    title: 'to a window that is just filled',
    before: calling({}, 2, { contextTokens: 100 }),
    after: taken('b/a', { contextTokens: 100 }),
  },
  {
    ...row,
    title: 'without a list',
    before: hand.llm(hand.session({}, { maxRetries: 1 }), 2),
    says: says('b/a takes over, and it is in no list'),
  },
  {
    ...row,
    title: 'while nothing is asked',
    before: hand.waiting(session({})),
    event: g.fails({ requestId: 'req-9' }),
    actions: told('b/a'),
    says: [
      'stale-events: a stale LlmFailed left no diagnostic',
      'stale-events: a stale LlmFailed changed WaitingForUserInput',
      ...says('b/a takes over, and LlmFailed is no failure'),
    ],
  },
  {
    title: 'a model that the user has not chosen',
    before: calling(),
    event: g.change({ model: 'c/mine' }),
    after: calling({ model: 'b/a' }),
    says: says('nobody is told that b/a is asked'),
  },
  {
    title: 'the model of the user, in place of another',
    before: calling({ model: 'b/a', primary }),
    event: g.change({ model: 'c/mine' }),
    after: calling({ model: 'c/mine', primary }),
    says: says('nobody is told that c/mine is asked'),
  },
  {
    title: 'the first model, in place of itself',
    before: hand.waiting(session({ model: 'b/a', primary })),
    event: g.retryLast,
    after: after({ primary }),
    actions: told('test/model'),
    says: says('test/model takes over, and RetryLast is no failure'),
  },
  {
    title: 'the model of the user',
    before: calling({ model: 'b/a', primary }),
    event: g.change({ model: 'c/mine' }),
    after: calling({ model: 'c/mine' }),
  },
  {
    title: 'the first model, told',
    before: hand.waiting(session({ model: 'b/a', primary })),
    event: g.retryLast,
    after: after(),
    actions: told('test/model'),
  },
]);
