import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { check, type Row, spentBy } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, note, u, use } from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import type { CallOutcome } from '../../src/machine/call.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { Event } from '../../src/machine/event.js';
import { defaultSettings } from '../../src/machine/settings.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';

// Shutdown and reopening: corners that cases-shutdown.test.ts leaves out.

const { edit, grep } = g;
const TIMED: SettingsPatch = { limits: { timeMs: 60_000 } };
const shutdownWith = (
  ends: readonly (readonly [callId: string, outcome: CallOutcome, batchId?: string])[],
): Event => ({
  type: 'ShutdownRequested',
  at: g.NOW,
  outcomes: ends.map(([callId, outcome, batchId = 'batch-1']) => ({ batchId, callId, outcome })),
});
const STOPPED = /stopped while running.*effects unknown/i;
const asked = [u('hi'), a(use('1'), use('2'))];
const draining = (patch: SettingsPatch = {}) => {
  const walker = bring('C[u]', { ...patch, cancelMode: 'drain' });
  walker.send(g.delta('so'), g.cancel);
  return walker;
};

check([
  {
    rule: 'after-shutdown',
    title: 'usage that comes after the end counts',
    given: 'C[u]',
    send: [g.shutdown, g.completed({ text: 'late', requestId: 'req-1', usage: g.usage(0.5) })],
    state: 'Z',
    quiet: true,
    also: (walker) => assert.equal(spentBy(walker), 0.5),
  },
  {
    rule: 'open-again',
    title: 'a session that is opened again waits and holds its queue',
    given: 'C[u]',
    send: [g.input('later'), g.shutdown, g.resumed],
    state: 'W(resumed)',
    does: [],
    shows: ['PromptForInput'],
    path: 'Z W',
    talk: [u('hi')],
    queue: ['later'],
  },
  {
    rule: 'resume-request',
    title: 'a cancel that waited for a reply is over when the session is opened again',
    given: draining,
    send: [g.resumed],
    state: 'W(cancelled user)',
    does: [],
    path: 'C Cancelled W',
    talk: [u('hi'), a('so')],
  },
  {
    rule: 'resume-calls',
    title: 'calls that had not started are started again, approvals are asked for again',
    given: 'C[u]',
    settings: { rules: presetRules.careful },
    send: [g.wants(grep('1'), grep('2'), edit('3')), g.started('1'), g.resumed],
    state: 'X',
    calls: '1 running, 2 starting, 3 awaitingApproval',
    does: ['ExecuteTools 2', 'RequestApproval 3'],
  },
  {
    rule: 'resume-calls',
    title: 'a batch that was being cancelled is over when the session is opened again',
    given: 'X',
    send: [g.cancel, g.resumed],
    state: 'W(cancelled user)',
    path: 'X Cancelled W',
    talk: [...asked, u(bad('1', STOPPED), bad('2', /not run/), note(/./))],
  },
  ...[-86_400_000, 86_400_000].flatMap((jump): readonly Row[] => {
    const resumed = {
      type: 'Resumed',
      at: g.NOW + jump,
      epoch: 2,
      stoppedAt: g.NOW + 20_000,
    } as const;
    return [
      {
        rule: 'time-while-stopped',
        title: `with a clock set by ${jump}: the time in which nobody ran is not taken from the time limit`,
        given: 'C[u]',
        settings: TIMED,
        send: [resumed],
        state: 'C[u]',
        shows: [`ScheduleTimer ${jump + 40_000}`],
        also: (walker) =>
          assert.equal(walker.state().session.turn.startedAt, g.NOW + jump - 20_000),
      },
      {
        rule: 'time-while-stopped',
        title: `with a clock set by ${jump}: the time in which nobody ran is not taken from a time limit that is given with the resume`,
        given: 'C[u]',
        settings: TIMED,
        send: [
          {
            type: 'SettingsChanged',
            at: g.NOW + jump,
            patch: { limits: { ...defaultSettings.limits, timeMs: 90_000 } },
            stoppedAt: g.NOW + 20_000,
          },
          resumed,
        ],
        state: 'C[u]',
        shows: [`ScheduleTimer ${jump + 70_000}`],
      },
      {
        rule: 'time-while-stopped',
        title: `with a clock set by ${jump}: the time in which nobody ran is not taken from the wait before a retry`,
        given: 'Er',
        send: [{ ...resumed, stoppedAt: g.NOW + 400 }],
        state: 'Er',
        shows: [`ScheduleTimer ${jump + 600}`],
      },
    ];
  }),
  ...(['W', 'C[u]', 'X', 'H[c]'] as const).map((given) => ({
    rule: 'open-again' as const,
    title: `a Resumed of an older epoch in ${given} starts nothing again`,
    given: () => {
      const walker = bring(given);
      walker.send(g.resumed, { type: 'Resumed', at: g.NOW, epoch: 1 });
      return walker;
    },
    state: { W: 'W(start)', 'C[u]': 'C[u]', X: 'X', 'H[c]': 'H[c]' }[given],
    quiet: true as const,
  })),
  {
    rule: 'open-again',
    title: 'a Resumed of an older epoch does not open a session that is over',
    given: () => {
      const walker = bring('W');
      walker.send(g.resumed, g.shutdown, { type: 'Resumed', at: g.NOW, epoch: 2 });
      return walker;
    },
    state: 'Z',
    quiet: true,
  },
]);

// ---- Calls that are judged anew when the session is resumed ----

const anew = (call: JudgedCall, part: Partial<JudgedCall> = {}): JudgedCall => ({
  ...call,
  title: 'judged anew',
  ...part,
});
const resumedWith = (...judged: readonly JudgedCall[]): Event => ({
  type: 'Resumed',
  at: g.NOW,
  epoch: 2,
  judged,
});
/** Each call with its status; a mark stands at those whose judgement is new. */
const callsAfter = (walker: Walker, ...judged: readonly JudgedCall[]): string => {
  const { state } = walker.send(resumedWith(...judged));
  const calls = state.name === 'ExecutingTools' ? state.calls : [];
  return calls
    .map((call) => `${call.status}${call.judged.title === undefined ? '' : '*'}`)
    .join(' ');
};
const batchOf = (patch: SettingsPatch, ...given: readonly g.Given[]): Walker => {
  const walker = bring('C[u]', patch);
  walker.send(...given);
  return walker;
};
const careful: SettingsPatch = { rules: presetRules.careful };

test('resume-calls: a call that has not run is judged as its tool judges it now', () => {
  const starts = () => batchOf({}, g.wants(edit('1'), edit('2')));
  assert.equal(callsAfter(starts()), 'starting queued');
  assert.equal(callsAfter(starts(), anew(edit('1')), anew(edit('2'))), 'starting* queued*');
  const asks = () => batchOf(careful, g.wants(edit('1'), edit('2')));
  assert.equal(callsAfter(asks(), anew(edit('2'))), 'awaitingApproval awaitingApproval*');
  const previews = (callId: string): JudgedCall => {
    const call = edit(callId);
    return { ...call, traits: { ...call.traits, previews: 'yes' } };
  };
  const previewing = batchOf(careful, g.wants(previews('1')));
  assert.equal(callsAfter(previewing, anew(previews('1'))), 'previewing*');
});

test('resume-calls: a yes of the user ends with the process that asked for it', () => {
  const allowed = () => batchOf(careful, g.wants(edit('1')), g.allows('1'));
  assert.equal(callsAfter(allowed()), 'starting');
  assert.equal(callsAfter(allowed(), anew(edit('1'))), 'awaitingApproval*');
});

test('resume-calls: a judgement of another tool, of no call or of a call that runs is not taken', () => {
  const walker = () => batchOf({}, g.wants(grep('1'), edit('2')), g.started('1'));
  assert.equal(callsAfter(walker(), anew(grep('1'))), 'running queued');
  assert.equal(callsAfter(walker(), anew(edit('2'), { tool: 'write' })), 'running queued');
  assert.equal(callsAfter(walker(), anew(edit('3'))), 'running queued');
  const ended = batchOf({}, g.wants(grep('1'), edit('2')), g.started('1'), g.ended('1'));
  assert.equal(callsAfter(ended, anew(grep('1')), anew(edit('2'))), 'ok starting*');
});

test('resume-calls: a call that was being cancelled ends, however it is judged now', () => {
  const walker = batchOf({}, g.wants(grep('1'), grep('2')), g.cancelTool('1'));
  assert.equal(callsAfter(walker, anew(grep('1')), anew(grep('2'))), 'cancelled starting*');
  const state = walker.state();
  const [first] = state.name === 'ExecutingTools' ? state.calls : [];
  assert.ok(first?.status === 'cancelled');
  assert.deepEqual([first.ran, first.outcome.text], [false, 'not run: cancelled by user']);
});

test('resume-calls: a call that is no valid one any more ends with the reason, and is shown', () => {
  const walker = batchOf({}, g.wants(edit('1'), edit('2')));
  const gone = anew(edit('2'), { verdict: { kind: 'noSuchTool', known: ['grep'] } });
  assert.equal(callsAfter(walker, gone), 'starting noSuchTool*');
  const shown = walker.last().actions.filter(({ type }) => type === 'DisplayToolResult');
  assert.equal(shown.length, 1);
});

test('shutdown: pictures of a call that ended in time stay with its result', () => {
  const images = [{ mediaType: 'image/png', sha256: 'a'.repeat(64) }] as const;
  const pictures = (outcome: CallOutcome): number => {
    const walker = batchOf({}, g.wants(grep('1')), g.started('1'), shutdownWith([['1', outcome]]));
    const [last] = messagesOf(walker.state().session.conversation).slice(-1);
    const result = last?.role === 'user' ? last.parts.find(({ type }) => type === 'result') : last;
    return result !== undefined && 'images' in result ? (result.images?.length ?? 0) : 0;
  };
  assert.equal(pictures({ status: 'ok', text: 'a picture', images }), 1);
  assert.equal(pictures({ status: 'ok', text: 'none' }), 0);
  assert.equal(pictures({ status: 'failed', text: 'no picture', images }), 0);
});

test('shutdown: an outcome of another batch ends no call of this one', () => {
  const outcome: CallOutcome = { status: 'ok', text: 'done', diff: '+x' };
  const shown = (batchId: string): unknown => {
    const walker = batchOf({}, g.wants(grep('1')), g.started('1'));
    const { actions } = walker.send(shutdownWith([['1', outcome, batchId]]));
    const result = actions.find(({ type }) => type === 'DisplayToolResult');
    return result?.type === 'DisplayToolResult' ? [result.status, result.diff] : null;
  };
  assert.deepEqual(shown('batch-1'), ['ok', '+x']);
  assert.deepEqual(shown('batch-9'), ['interrupted', null]);
});
