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
    title: 'not by itself where it is off',
    given: 'C[u]',
    settings: { autoRearm: 'off', limits: { usd: 1 } },
    send: [dear('1', 2)],
    state: 'W(budget usd)',
    also: left({ usd: 1 }, 'stopped: $2.00 of $1.00 used'),
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
]);
