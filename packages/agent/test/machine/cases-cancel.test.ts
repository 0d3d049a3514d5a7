import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, spentBy } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, good, note, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { presetRules } from '../../src/policy/presets.js';

// Cancel.

const { edit, grep } = g;
const STOPPED = /stopped while running.*effects unknown/i;
const NOT_RUN = /not run|never started|before it started/i;
/** 1 runs, 2 will never start. */
const cancelling = (settings: SettingsPatch = {}) => {
  const walker = bring('X', settings);
  walker.send(g.cancel);
  return walker;
};
const cancelled = () => {
  const walker = bring('C[u]');
  walker.send(g.cancel);
  return walker;
};
const asked = [u('hi'), a(use('1'), use('2'))];

check([
  {
    rule: 'usage-counts-once',
    title: 'calls of a cancelled request are not executed, its usage counts',
    given: cancelled,
    send: [g.completed({ calls: [edit('1')], requestId: 'req-1', usage: g.usage(0.5) })],
    state: 'W(cancelled user)',
    quiet: true,
    talk: [u('hi')],
    also: (walker) => assert.equal(spentBy(walker), 0.5),
  },
  {
    rule: 'cancel-batch',
    title: 'cancelling a batch stops what runs and what waits',
    given: 'X',
    send: [g.cancel],
    state: 'X cancelling',
    calls: '1 running, 2 cancelled',
    does: ['CancelTools 1', 'ScheduleTimer 5000'],
    talk: asked,
  },
  {
    rule: 'grace-period',
    title: 'a second cancel does not wait for the grace',
    given: cancelling,
    send: [g.cancel],
    state: 'W(cancelled user)',
    does: ['CancelTools 1 force', 'CancelTimer'],
    talk: [...asked, u(bad('1', STOPPED), bad('2', NOT_RUN), note(/interrupted|cancelled/))],
  },
  {
    rule: 'cancel-batch',
    title: 'cancelling a batch that waits for approval needs no grace',
    given: 'C[u]',
    settings: { rules: presetRules.careful },
    send: [g.wants(edit('1'), grep('2')), g.cancel],
    state: 'W(cancelled user)',
    does: ['WithdrawApproval 1'],
    path: 'X Cancelled W',
    talk: [...asked, u(bad('1', NOT_RUN), bad('2', NOT_RUN), note(/interrupted|cancelled/))],
  },
  {
    rule: 'cancel-hook',
    title: 'cancelling a hook keeps the results',
    given: 'H[f]',
    send: [g.cancel],
    state: 'W(cancelled user)',
    does: ['AbortHook'],
    path: 'H Cancelled W',
    talk: [
      u('hi'),
      a(use('1')),
      u(good('1'), note(/may have been changed by an interrupted hook/)),
    ],
  },
  {
    rule: 'cancel-compaction',
    title: 'cancelling a compaction leaves the conversation and the waiting input alone',
    given: 'K[i]',
    send: [g.cancel],
    state: 'W(cancelled user)',
    does: ['AbortCompaction'],
    queue: ['x'],
    also: (walker) => {
      const [before, last] = walker.steps().slice(-2);
      assert.ok(before !== undefined && last !== undefined);
      assert.deepEqual(
        last.state.session.conversation.closed.toArray(),
        before.state.session.conversation.closed.toArray(),
      );
    },
  },
]);
