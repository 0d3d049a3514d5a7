import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import type { Given } from './given.js';
import * as g from './given.js';

/** Events by weight: what answers the state, and what is late, duplicate, stale or misplaced. */
type Label = { readonly weight: number; readonly name: string; readonly given: Given };

const label = (weight: number, name: string, given: Given): Label => ({ weight, name, given });
const calls = [g.grep('1'), g.edit('2'), g.edit('3'), g.unknownTool('4'), g.notJson('5')];
const [one, two, three, four, five] = calls;
const some = (...list: readonly (typeof one)[]): Given =>
  g.wants(...list.flatMap((call) => call ?? []));
const hurt = { changedFiles: ['a.ts'], dirty: true };

export const labels: readonly Label[] = [
  label(1, 'Start', g.begin),
  label(6, 'UserInput', g.input('steer')),
  label(2, 'UserInput followUp', g.followUp('later')),
  label(1, 'UserInput blank', g.input(' ')),
  label(2, 'RetryLast', g.retryLast),
  label(2, 'RetryNow', g.retryNow),
  label(3, 'CancelTurn', g.cancel),
  label(2, 'CancelTool 1', g.cancelTool('1')),
  label(2, 'CancelTool 2', g.cancelTool('2')),
  label(1, 'CancelTool unknown', g.cancelTool('9')),
  label(1, 'EditQueue none', (state) => ({
    type: 'EditQueue',
    at: g.NOW,
    items: state.session.queue.slice(1),
  })),
  label(1, 'EditQueue turned', (state) => ({
    type: 'EditQueue',
    at: g.NOW,
    items: state.session.queue.toReversed(),
  })),
  label(1, 'CompactRequested', g.compact),
  label(1, 'ApproveBudget', g.approve('usd', 50)),
  label(1, 'ApproveBudget rounds', g.approve('rounds', 9)),
  label(3, 'ApprovalAnswered allow', g.allows('2')),
  label(1, 'ApprovalAnswered session', g.allows('2', 'session')),
  label(2, 'ApprovalAnswered deny', g.denies('3')),
  label(1, 'ApprovalAnswered unknown', g.allows('9')),
  label(1, 'SettingsChanged', g.change({ maxRetries: 5, maxParallel: 6 })),
  label(1, 'SettingsChanged rules', g.change({ rules: presetRules.careful })),
  label(1, 'ShutdownRequested', g.shutdown),
  label(1, 'InputFailed', g.inputFails),
  label(4, 'TextDelta', g.delta('y')),
  label(1, 'PolicyStopped', g.policyStops()),
  label(1, 'PolicyStopped stale', g.policyStops('req-1')),
  label(1, 'TextDelta stale', g.delta('y', 'req-1')),
  label(1, 'ReasoningDelta', g.thought),
  label(1, 'ToolCallDelta', g.halfCall),
  label(5, 'LlmCompleted text', g.says('yo', g.usage(0.1))),
  label(6, 'LlmCompleted calls', some(one, two, three)),
  label(4, 'LlmCompleted reads', g.wants(g.grep('1'), g.grep('2'))),
  label(2, 'LlmCompleted bad calls', some(four, five, one)),
  label(1, 'LlmCompleted full', g.completed({ calls: [g.grep('1')], usage: g.usage(0.1, 9_300) })),
  label(1, 'LlmCompleted text full', g.says('yo', g.usage(0, 9_300))),
  label(1, 'LlmCompleted dear', g.completed({ calls: [g.grep('1')], usage: g.usage(3) })),
  label(
    1,
    'LlmCompleted cut calls',
    g.completed({ calls: [g.edit('2'), g.notJson('5')], stopReason: 'maxTokens' }),
  ),
  label(1, 'LlmCompleted cut text', g.completed({ text: 'and th', stopReason: 'maxTokens' })),
  label(
    1,
    'LlmCompleted refusal',
    g.completed({ text: 'no', calls: [g.edit('2')], stopReason: 'refusal' }),
  ),
  label(2, 'LlmCompleted empty', g.empty),
  label(1, 'LlmCompleted null', g.completed({ message: null })),
  label(1, 'LlmCompleted twice the id', g.wants(g.grep('1'), g.grep('1'))),
  label(
    1,
    'LlmCompleted stale',
    g.completed({ text: 'old', requestId: 'req-1', usage: g.usage(0.1) }),
  ),
  label(3, 'LlmFailed', g.fails()),
  label(1, 'LlmFailed overflow', g.overflows),
  label(1, 'LlmFailed badRequest', g.refusedRequest),
  label(1, 'LlmFailed stale', g.fails({ requestId: 'req-1', usage: g.usage(0.1) })),
  label(4, 'ToolStarted 1', g.started('1')),
  label(4, 'ToolStarted 2', g.started('2')),
  label(1, 'ToolProgress', g.progress('1')),
  label(5, 'ToolCompleted 1', g.ended('1')),
  label(5, 'ToolCompleted 2', g.ended('2')),
  label(4, 'ToolCompleted 3', g.ended('3')),
  label(2, 'ToolCompleted 1 failed', g.ended('1', 'failed')),
  label(2, 'ToolCompleted 2 cancelled', g.ended('2', 'cancelled')),
  label(1, 'ToolCompleted 1 lost', g.ended('1', 'lost')),
  label(1, 'ToolCompleted unknown', g.ended('9')),
  label(1, 'ToolCompleted stale', g.ended('1', 'ok', 'old', 'batch-0')),
  label(1, 'ToolsFailed', g.toolsFail),
  label(3, 'HookCompleted', g.hookDone()),
  label(3, 'HookCompleted changes', g.hookDone({ ...hurt, note: 'formatted', warning: 'look' })),
  label(1, 'HookCompleted veto', g.hookDone({ proceed: false })),
  label(1, 'HookCompleted stale', g.hookDone({ hookId: 'hook-0', usage: g.usage(0.1) })),
  label(1, 'HookFailed', g.hookFails()),
  label(1, 'HookPrepared', g.prepares()),
  label(5, 'TimerFired', g.rings()),
  label(1, 'TimerFired stale', g.rings('timer-0')),
  label(1, 'TimerFired time limit', g.timeIsUp),
  label(4, 'CompactionCompleted', g.compacts(g.usage(0.1))),
  label(2, 'CompactionFailed', g.compactionFails),
  label(1, 'CompactionCompleted stale', g.compacts(g.usage(0.1), 'compaction-0')),
  label(1, 'UsageReported', g.reports('req-1', g.usage(0.1))),
  label(1, 'Resumed', (state) => ({ type: 'Resumed', at: g.NOW, epoch: state.session.epoch + 1 })),
];
