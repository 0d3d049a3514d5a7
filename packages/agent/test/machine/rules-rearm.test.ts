import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';
import type { Limits } from '../../src/machine/settings.js';

// rules.md#limit-raises-itself: a limit in dollars or tokens raises itself when it stops the turn; by what it was
// set to.

const { grep } = g;
const dear = (callId: string, costUsd: number, inputTokens = 10): g.Given =>
  g.completed({ calls: [grep(callId)], usage: g.usage(costUsd, inputTokens) });
/** The limits at the end, and the notices of the last step. */
const left =
  (limits: Partial<Limits>, ...notices: readonly string[]) =>
  (walker: Walker): void => {
    const { state, actions } = walker.last();
    assert.deepEqual(
      { ...state.session.settings.limits, ...limits },
      state.session.settings.limits,
    );
    assert.deepEqual(
      actions.flatMap((action) => (action.type === 'DisplayNotice' ? [action.text] : [])),
      notices,
    );
  };

check([
  {
    rule: 'limit-raises-itself',
    title: 'dollars',
    given: 'C[u]',
    settings: { limits: { usd: 1, tokens: 1_000 } },
    send: [dear('1', 2)],
    state: 'W(budget usd)',
    also: left(
      { usd: 3, tokens: 1_000 },
      'stopped: $2.00 of $1.00 used',
      'the limit was raised to $3.00 by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'tokens',
    given: 'C[u]',
    settings: { limits: { tokens: 50 } },
    send: [dear('1', 0, 60)],
    state: 'W(budget tokens)',
    also: left(
      { tokens: 111 },
      'stopped: 61 of 50 tokens used',
      'the limit was raised to 111 tokens by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'not rounds',
    given: 'C[u]',
    settings: { limits: { rounds: 1 } },
    send: [g.wants(grep('1')), g.ended('1')],
    state: 'W(budget rounds)',
    also: left({ rounds: 1 }, 'stopped: 1 of 1 round used'),
  },
  {
    rule: 'limit-raises-itself',
    title: 'not by itself where it is off',
    given: 'C[u]',
    settings: { autoRearm: 'off', limits: { usd: 1 } },
    send: [dear('1', 2)],
    state: 'W(budget usd)',
    also: left({ usd: 1 }, 'stopped: $2.00 of $1.00 used'),
  },
  {
    rule: 'limit-raises-itself',
    title: 'by what was set, not by what the user raised it to',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [g.approve('usd', 5), dear('1', 6)],
    state: 'W(budget usd)',
    also: left(
      { usd: 7 },
      'stopped: $6.00 of $5.00 used',
      'the limit was raised to $7.00 by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'by what the settings say meanwhile',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [
      (state) => ({
        type: 'SettingsChanged',
        at: g.NOW,
        patch: { limits: { ...state.session.settings.limits, usd: 3 } },
      }),
      g.change({ maxRetries: 1 }),
      dear('1', 4),
    ],
    state: 'W(budget usd)',
    also: left(
      { usd: 7 },
      'stopped: $4.00 of $3.00 used',
      'the limit was raised to $7.00 by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'at the end of a turn, too',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [g.says('yo', g.usage(2))],
    state: 'W(endOfTurn answer)',
    also: left(
      { usd: 3 },
      '$2.00 of $1.00 used',
      'the limit was raised to $3.00 by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'and where it holds back what was typed, which waits for the user all the same',
    given: 'W',
    settings: { limits: { usd: 1 }, autoRearm: 'off' },
    send: [g.input('hi'), g.says('yo', g.usage(2)), g.change({ autoRearm: 'on' }), g.input('more')],
    state: 'W(budget usd)',
    queue: ['more'],
    also: left(
      { usd: 3 },
      'not sent: $2.00 of $1.00 used; it goes with your next message',
      'the limit was raised to $3.00 by itself (autoRearm)',
    ),
  },
  {
    rule: 'limit-raises-itself',
    title: 'a change of other settings leaves what is added as it was set',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [g.approve('usd', 5), g.change({ maxRetries: 1 }), dear('1', 6)],
    state: 'W(budget usd)',
    also: left(
      { usd: 7 },
      'stopped: $6.00 of $5.00 used',
      'the limit was raised to $7.00 by itself (autoRearm)',
    ),
  },
]);
