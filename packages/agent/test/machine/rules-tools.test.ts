import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, good, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { presetRules } from '../../src/policy/presets.js';

// Order, ends and cancels of calls: corners that cases-tools.test.ts leaves out.

const { edit, grep } = g;
const careful: SettingsPatch = { rules: presetRules.careful };
const asked = [u('hi'), a(use('1'), use('2'))];
/** 1 and 2 run, 1 was asked to stop. */
const stopping = () => {
  const walker = bring('C[u]');
  walker.send(g.wants(grep('1'), grep('2')), g.started('1'), g.started('2'), g.cancelTool('1'));
  return walker;
};

check([
  {
    rule: 'decide-again-at-start',
    title: 'a rule that denies holds for a call that the user has allowed but that has not started',
    given: 'C[u]',
    settings: careful,
    send: [
      g.wants(edit('1'), edit('2')),
      g.allows('1'),
      g.allows('2'),
      g.change({ rules: presetRules.plan }),
      g.ended('1'),
    ],
    state: 'H[c]',
    talk: [...asked, u(good('1'), bad('2', /the preset plan only reads/))],
  },
  {
    rule: 'decide-again-at-start',
    title: 'the policy is asked again when a queued call would start',
    given: 'X',
    send: [g.change({ rules: presetRules.careful }), g.ended('1')],
    state: 'X',
    calls: '1 ok, 2 awaitingApproval',
    does: ['RequestApproval 2'],
  },
  {
    rule: 'call-runs',
    title: 'ToolStarted makes a call run',
    given: 'X',
    state: 'X',
    calls: '1 running, 2 queued',
    does: [],
  },
  {
    rule: 'call-runs',
    title: 'a second ToolStarted changes nothing',
    given: 'X',
    send: [g.started('1')],
    state: 'X',
    quiet: true,
  },
  {
    rule: 'display-only',
    title: 'progress is for display',
    given: 'X',
    send: [g.progress('1')],
    state: 'X',
    does: [],
  },
  {
    rule: 'first-outcome-wins',
    title: 'an unknown call cannot have ended',
    given: 'X',
    send: [g.ended('9')],
    state: 'X',
    quiet: true,
  },
  {
    rule: 'cancel-one-call',
    title: 'a second CancelTool kills at once',
    given: stopping,
    send: [g.cancelTool('1')],
    state: 'X',
    does: ['CancelTools 1 force', 'CancelTimer'],
  },
  {
    rule: 'cancel-one-call',
    title: 'killing an exclusive call lets the next one start',
    given: 'X',
    send: [g.cancelTool('1'), g.cancelTool('1')],
    state: 'X',
    does: ['CancelTools 1 force', 'CancelTimer', 'ExecuteTools 2'],
  },
  {
    rule: 'tools-failed',
    title: 'results that had come before the tools failed are kept',
    given: stopping,
    send: [g.ended('2'), g.toolsFail],
    state: 'W(error tools)',
    does: ['CancelTools 1 force', 'CancelTimer'],
    talk: [...asked, u(bad('1'), good('2'))],
  },
  {
    rule: 'tools-failed',
    title: 'approvals are withdrawn when the tools fail',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1')), g.toolsFail],
    state: 'W(error tools)',
    does: ['WithdrawApproval 1'],
    talk: [u('hi'), a(use('1')), u(bad('1'))],
  },
]);
