import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, good, note, u, use } from '../../../../test/kit/agent/shown.js';
import type { Walker } from '../../../../test/kit/agent/walker.js';

// rules.md#answer-at-limit: at a limit of rounds or of a stopping policy the model is asked once for its answer.

const { grep } = g;
const FINISH = { atLimit: 'finish', limits: { rounds: 1 } } as const;
const asked = [u('hi'), a(use('1'))];
const finishing = (wanted: string) => (walker: Walker) =>
  assert.equal(walker.state().session.turn.finishing, wanted);

check([
  {
    rule: 'answer-at-limit',
    title: 'at the limit of rounds the model is asked for its answer',
    given: 'C[u]',
    settings: FINISH,
    send: [g.wants(grep('1')), g.ended('1')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    shows: ['DisplayNotice budget: 1 of 1 round used: the model is asked for its answer'],
    talk: [...asked, u(good('1'), note(/no tool runs any more. Give your final answer now/))],
    also: finishing('rounds'),
  },
  ...(
    [
      ['repeats', 1, 'batch with the same calls'],
      ['repeats', 2, 'batches with the same calls'],
      ['errors', 1, 'batch without success'],
      ['errors', 2, 'batches without success'],
      ['sameResults', 1, 'batch with the same results'],
      ['sameResults', 2, 'batches with the same results'],
    ] as const
  ).map(([dimension, limit, words]) => ({
    rule: 'answer-at-limit' as const,
    title: `at the limit of ${limit} ${words} the model is asked for its answer`,
    given: 'C[u]' as const,
    settings: { ...FINISH, limits: { [dimension]: limit } },
    send: Array.from({ length: limit }, () => [g.wants(grep('1')), g.ended('1', 'failed')]).flat(),
    state: 'C[t]',
    does: ['SendLlmRequest'],
    shows: [`DisplayNotice budget: ${limit} of ${limit} ${words} used`],
    also: finishing(dimension),
  })),
  {
    rule: 'answer-at-limit',
    title: 'no answer is bought with money that is not there',
    given: 'C[u]',
    settings: { ...FINISH, limits: { usd: 1 } },
    send: [g.completed({ calls: [grep('1')], usage: g.usage(2) })],
    state: 'W(budget usd)',
    does: [],
  },
]);
