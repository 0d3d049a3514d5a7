import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, bad, good, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';

// Tools.

const { edit, grep } = g;
const twoGreps = (...more: readonly g.Given[]) => {
  const walker = bring('C[u]');
  walker.send(g.wants(grep('1'), grep('2')), ...more);
  return walker;
};

check([
  {
    rule: 'call-order',
    title: 'two reads start together',
    given: 'C[u]',
    send: [g.wants(grep('1'), grep('2'))],
    state: 'X',
    calls: '1 starting, 2 starting',
    does: ['ExecuteTools 1,2'],
    talk: [u('hi'), a(use('1'), use('2'))],
  },
  {
    rule: 'results-in-one-message',
    title: 'results are appended in call order, failures marked',
    given: twoGreps,
    send: [g.ended('2'), g.ended('1', 'failed')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1'), use('2')), u(bad('1', /output of 1/), good('2'))],
  },
  {
    rule: 'first-outcome-wins',
    title: 'a second completion of a call is ignored',
    given: twoGreps,
    send: [g.ended('1', 'ok', 'first'), g.ended('1', 'failed', 'second')],
    state: 'X',
    calls: '1 ok, 2 starting',
    quiet: true,
  },
  {
    rule: 'results-in-one-message',
    title: 'a late completion adds no second result',
    given: 'C[t]',
    send: [g.ended('1', 'ok', 'late', 'batch-1')],
    state: 'C[t]',
    quiet: true,
    talk: [u('hi'), a(use('1')), u(good('1'))],
  },
  {
    rule: 'call-order',
    title: 'the second of two edits waits',
    given: 'C[u]',
    send: [g.wants(edit('1'), edit('2'))],
    state: 'X',
    calls: '1 starting, 2 queued',
    does: ['ExecuteTools 1'],
  },
  {
    rule: 'call-runs',
    title: 'a call keeps its three times',
    given: 'C[u]',
    send: [
      g.after(5, g.wants(grep('1'), grep('2'))),
      g.after(10, g.started('1')),
      g.after(250, g.ended('1')),
    ],
    state: 'X',
    also: (walker) => {
      const state = walker.state();
      const call = state.name === 'ExecutingTools' ? state.calls[0] : undefined;
      assert.ok(call !== undefined && 'completedAt' in call);
      assert.deepEqual(
        [call.requestedAt, call.startedAt, call.completedAt],
        [g.NOW + 5, g.NOW + 10, g.NOW + 250],
      );
    },
  },
  {
    rule: 'queue-input',
    title: 'input while tools run is queued',
    given: 'X',
    send: [g.input('use tabs')],
    state: 'X',
    calls: '1 running, 2 queued',
    does: [],
    shows: ['DisplayNotice queued'],
    queue: ['use tabs'],
  },
]);
