import assert from 'node:assert/strict';
import type { JudgedCall } from '../../src/agent/call.js';
import { presetRules } from '../../src/agent/settings.js';
import * as g from './given.js';
import { check } from './rows.js';
import type { SettingsPatch } from './settings.js';
import { a, bad, good, u, use } from './shown.js';

// Rules R31-R31b where no case shows them.

const { edit, grep } = g;
const careful: SettingsPatch = { rules: presetRules.careful };
const WAY_IN = 'C Processing ToolUseRequested CheckingForCancellation X';
const elsewhere = (call: JudgedCall): JudgedCall => ({
  ...call,
  facts: { ...call.facts, shape: 'edit b.ts' },
});
const asked = [u('hi'), a(use('1'), use('2'))];

check([
  {
    case: 'R31',
    title: 'a call that the policy denies is answered with the reason',
    given: 'C[u]',
    settings: { rules: presetRules.plan },
    send: [g.wants(edit('1'))],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1')), u(bad('1', /the preset plan only reads/))],
  },
  {
    case: 'R31',
    title: 'what no rule fits is denied',
    given: 'C[u]',
    settings: { rules: [] },
    send: [g.wants(grep('1'))],
    state: 'C[t]',
    talk: [u('hi'), a(use('1')), u(bad('1', /den|not allowed/i))],
  },
  {
    case: 'R31',
    title: 'a call outside the workspace is denied beside one that runs',
    given: 'C[u]',
    send: [
      g.wants(grep('1'), { ...grep('2'), facts: { argv: [], paths: ['/etc/passwd'], hosts: [], shape: '' } }),
    ],
    state: 'X',
    calls: '1 starting, 2 denied',
    does: ['ExecuteTools 1'],
  },
  {
    case: 'R31',
    title: 'an unknown tool does not hold up the calls beside it',
    given: 'C[u]',
    send: [g.wants(g.unknownTool('1'), edit('2'))],
    state: 'X',
    calls: '1 noSuchTool, 2 starting',
    does: ['ExecuteTools 2'],
  },
  {
    case: 'R31a',
    title: 'calls that the policy asks about wait for their approvals and hold back what comes after',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(grep('1'), edit('2'), edit('3'), grep('4'))],
    state: 'X',
    calls: '1 starting, 2 awaitingApproval, 3 awaitingApproval, 4 queued',
    does: ['ExecuteTools 1', 'RequestApproval 2', 'RequestApproval 3'],
  },
  {
    case: 'R31a',
    title: 'with nobody to ask the call is denied and the turn goes on',
    given: 'C[u]',
    settings: { ...careful, onAsk: 'deny' },
    send: [g.wants(edit('1'))],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1')), u(bad('1'))],
  },
  {
    case: 'R31a',
    title: 'headless a call that would be asked about stops the turn',
    given: 'C[u]',
    settings: { ...careful, onAsk: 'stop' },
    send: [g.wants(edit('1'))],
    state: 'W(cancelled approval)',
    does: [],
    path: `${WAY_IN} Cancelled W`,
    talk: [u('hi'), a(use('1')), u(bad('1'))],
  },
  {
    case: 'R31a',
    title: 'before it stops, headless, the calls beside it end; then neither hook nor request',
    given: 'C[u]',
    settings: { ...careful, onAsk: 'stop', hooks: 'always' },
    send: [g.wants(grep('1'), edit('2')), g.ended('1')],
    state: 'W(cancelled approval)',
    does: [],
    shows: ['DisplayNotice', 'PromptForInput'],
    path: 'X Cancelled W',
    talk: [...asked, u(good('1'), bad('2'))],
  },
  {
    case: 'R31a',
    title: 'headless, a rule that is tightened while a call waits for another one stops the turn',
    given: 'X',
    settings: { hooks: 'always' },
    send: [g.change({ rules: presetRules.careful, onAsk: 'stop' }), g.ended('1')],
    state: 'W(cancelled approval)',
    does: [],
    path: 'X Cancelled W',
    talk: [...asked, u(good('1'), bad('2', /nobody is there to ask/))],
  },
  {
    case: 'R31a',
    title: 'headless, calls that are still allowed run before the turn stops',
    given: 'C[u]',
    settings: { hooks: 'always' },
    send: [
      g.wants(edit('1'), edit('2'), grep('3')),
      g.change({ rules: presetRules.careful, onAsk: 'stop' }),
      g.ended('1'),
      g.started('3'),
    ],
    state: 'X stopping',
    calls: '1 ok, 2 denied, 3 running',
  },
  {
    case: 'R31b',
    title: 'a call that the user allows starts',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1')), g.allows('1')],
    state: 'X',
    calls: '1 starting',
    does: ['ExecuteTools 1'],
    also: (walker) => assert.deepEqual(walker.state().session.grants, []),
  },
  {
    case: 'R31b',
    title: 'a call that the user refuses is answered with the reason',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1')), g.denies('1', 'not this file')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1')), u(bad('1', /refused by user[\s\S]*not this file/i))],
  },
  {
    case: 'R31b',
    title: 'allowing once does not cover the next call',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1'), edit('2')), g.allows('1')],
    state: 'X',
    calls: '1 starting, 2 awaitingApproval',
    does: ['ExecuteTools 1'],
  },
  {
    case: 'R31b',
    title: 'allowing a shape covers awaiting calls of this shape only',
    given: 'C[u]',
    settings: careful,
    send: [g.wants(edit('1'), edit('2'), elsewhere(edit('3'))), g.allows('1', 'shape')],
    state: 'X',
    calls: '1 starting, 2 queued, 3 awaitingApproval',
    does: ['ExecuteTools 1', 'WithdrawApproval 2'],
    also: (walker) =>
      assert.deepEqual(walker.state().session.grants, [{ scope: 'shape', tool: 'edit', shape: 'edit a.ts' }]),
  },
  {
    case: 'R31b',
    title: 'allowing for the session covers all calls of the tool, in later batches, too',
    given: 'C[u]',
    settings: { ...careful, hooks: 'never' },
    send: [
      g.wants(edit('1')),
      g.allows('1', 'session'),
      g.started('1'),
      g.ended('1'),
      g.wants(elsewhere(edit('2'))),
    ],
    state: 'X',
    calls: '2 starting',
    does: ['ExecuteTools 2'],
  },
  {
    case: 'R31b',
    title: 'an answer for a call that does not wait changes nothing',
    given: 'X',
    send: [g.allows('2', 'session')],
    state: 'X',
    quiet: true,
  },
]);
