import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, good, note, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';

// Cancelling: corners that cases-cancel.test.ts leaves out.

const { grep } = g;
const STOPPED = /stopped while running.*effects unknown/i;
const asked = [u('hi'), a(use('1'), use('2'))];
const twoReads = (patch: SettingsPatch = {}) => {
  const walker = bring('C[u]', patch);
  walker.send(g.wants(grep('1'), grep('2')), g.started('1'), g.started('2'));
  return walker;
};

check([
  {
    rule: 'nothing-to-cancel',
    title: 'there is nothing to cancel in Ready',
    given: 'Ready',
    send: [g.cancel],
    state: 'Ready',
    says: true,
    does: [],
  },
  {
    rule: 'nothing-to-cancel',
    title: 'there is nothing to cancel in Z',
    given: 'Z',
    send: [g.cancel],
    state: 'Z',
    says: true,
    does: [],
  },
  {
    rule: 'cancel-request',
    title: 'the model learns with the next message that it was interrupted',
    given: 'C[u]',
    send: [g.delta('half'), g.cancel, g.input('go on')],
    state: 'C[u]',
    talk: [u('hi'), a('half'), u(note(/interrupted by the user/), 'go on')],
  },
  {
    rule: 'cancel-request',
    title: 'blank text that was streamed before a cancel is taken back',
    given: 'C[u]',
    send: [g.delta(' \n'), g.cancel],
    state: 'W(cancelled user)',
    does: ['AbortLlmRequest', 'RetractPartial'],
    talk: [u('hi')],
  },
  {
    rule: 'grace-period',
    title: 'a call that did finish before its cancel keeps its real result',
    given: twoReads,
    send: [g.cancel, g.ended('1'), g.ended('2', 'cancelled', 'the first half')],
    state: 'W(cancelled user)',
    does: ['CancelTimer'],
    talk: [...asked, u(good('1'), bad('2', STOPPED), note(/interrupted|cancelled/))],
  },
  ...(
    [
      ['hold', [], ['do Y']],
      ['restore', ['RestoreQueue do Y'], []],
    ] as const
  ).map(([queueOnCancel, does, queue]) => ({
    rule: 'queue-after-stop' as const,
    title: `with the setting ${queueOnCancel} a cancel leaves ${queue.length} in the queue`,
    given: 'Er' as const,
    settings: { queueOnCancel },
    send: [g.input('do Y'), g.cancel],
    state: 'W(cancelled user)',
    does: ['CancelTimer', ...does],
    talk: [u('hi')],
    queue,
  })),
  {
    rule: 'queue-after-stop',
    title: 'after a failure the queue is held whatever the setting',
    given: 'C[u]',
    settings: { queueOnCancel: 'send' },
    send: [g.input('do Y'), g.refusedRequest],
    state: 'W(error badRequest)',
    does: [],
    queue: ['do Y'],
  },
  {
    rule: 'queue-after-stop',
    title: 'after a budget stop the queue is held whatever the setting',
    given: 'C[u]',
    settings: { queueOnCancel: 'send', limits: { rounds: 1 } },
    send: [g.wants(grep('1')), g.input('do Y'), g.ended('1')],
    state: 'W(budget rounds)',
    does: [],
    queue: ['do Y'],
  },
]);
