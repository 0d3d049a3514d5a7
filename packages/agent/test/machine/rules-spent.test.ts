import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';

// rules.md#limit-before-request, rules.md#limit-before-call: nothing is bought at a limit of the session,
// whatever leads to it. Each row has a control below it.

const ONE_DOLLAR = { autoRearm: 'off', limits: { usd: 1 } } as const;
const dear = g.usage(1.5);

const explore = (callId: string): JudgedCall => {
  const call = g.grep(callId);
  return { ...call, tool: 'explore', traits: { ...call.traits, spends: 'yes' } };
};

const longResults = (): Walker => {
  const walker = bring('C[u]', ONE_DOLLAR);
  walker.send(g.wants(g.grep('1')), g.ended('1', 'ok', 'x'.repeat(5_000)));
  return walker;
};

const stops = { state: 'W(budget usd)', does: [], shows: ['DisplayNotice budget: stopped'] };

check([
  {
    rule: 'limit-before-request',
    title: 'a summary for an overflow',
    given: 'C[u] long',
    settings: ONE_DOLLAR,
    send: [g.fails({ kind: 'contextOverflow', retryable: false, usage: dear })],
    ...stops,
  },
  {
    rule: 'limit-before-request',
    title: 'cut results',
    given: () => longResults(),
    send: [g.fails({ kind: 'contextOverflow', retryable: false, usage: dear })],
    ...stops,
  },
]);

check([
  {
    rule: 'limit-before-call',
    title: 'under a limit one call spends at a time',
    given: 'C[u]',
    settings: ONE_DOLLAR,
    send: [g.wants(explore('1'), explore('2'))],
    state: 'X',
    calls: '1 starting, 2 queued',
  },
  {
    rule: 'limit-before-call',
    title: 'nothing is handed out while a call that was given up has not said what it spent',
    given: 'C[u]',
    settings: ONE_DOLLAR,
    send: [g.wants(explore('1'), explore('2'), g.grep('3')), g.cancelTool('1'), g.cancelTool('1')],
    state: 'X',
    calls: '1 cancelled, 2 skipped, 3 starting',
  },
]);
