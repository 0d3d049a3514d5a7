import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';

// rules.md#limit-warning: which limits the user is warned about, and how often.

const { grep } = g;
/** A call whose reply costs so much, and its result. */
const round = (callId: string, costUsd: number, inputTokens = 10): readonly g.Given[] => [
  g.completed({ calls: [grep(callId)], usage: g.usage(costUsd, inputTokens) }),
  g.ended(callId),
];
/** What the last step warns of. */
const warns =
  (...texts: readonly string[]) =>
  (walker: Walker): void => {
    const { actions } = walker.last();
    assert.deepEqual(
      actions.flatMap((action) => (action.type === 'DisplayWarning' ? [action.text] : [])),
      texts,
    );
  };

check([
  {
    rule: 'limit-warning',
    title: 'the user is warned again about a limit that was raised',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [...round('1', 0.85), g.approve('usd', 2), ...round('2', 0.85)],
    state: 'C[t]',
    also: warns('$1.70 of $2.00 used'),
  },
  {
    rule: 'limit-warning',
    title:
      'in the next turn the user is warned again of what is counted per turn, not of what is counted per session',
    given: 'C[u]',
    settings: { budgetWarnRatio: 0.5, limits: { usd: 1, tokens: 100, rounds: 2 } },
    send: [
      ...round('1', 0.6, 60),
      g.says('yo', g.usage(0, 1)),
      g.input('more'),
      ...round('2', 0.01, 4),
    ],
    state: 'C[t]',
    also: warns('1 of 2 rounds used'),
  },
]);
