/**
 * Writes a path of an exploration as a trace, the text form of a recorded session: the settings
 * (the line with `!`) and one line per event (`>`). Playing the trace gives the same events, as far
 * as explorations make them: calls have a tool and an id, usage has input, output and cost.
 */

import type { CallPreview } from '@pawl/agent/machine/call';
import type { Event, On } from '@pawl/agent/machine/event';
import type { Usage } from '@pawl/agent/machine/settings';
import type { HookVerdicts, JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Configuration } from './configuration.js';

/** A path through a configuration as a trace, beginning with the faults at its end. */
export const writeTrace = (
  { name, preset, patch, bounds }: Configuration,
  faults: readonly string[],
  events: readonly Event[],
): string => {
  const settings = JSON.stringify({ maxRetries: bounds.retries, ...patch });
  const lines = [
    `# Found in the configuration '${name}': ${faults.join('; ').replaceAll('\n', ' ')}.`,
    `! ${preset} ${settings}`,
  ];
  let clock = 0;
  for (const event of events) {
    lines.push(`> ${eventLine(event, clock)}`, '');
    clock = event.at;
  }
  return `${lines.join('\n').trimEnd()}\n`;
};

/** One trace line: `@1200 UserInput "text"`. Without the time if it equals `clock`. */
export const eventLine = (event: Event, clock: number): string =>
  [...(event.at === clock ? [] : [`@${event.at}`]), event.type, ...eventWords(event)].join(' ');

const quote = (text: string): string => JSON.stringify(text);

/** The arguments of an event in a trace line. */
const eventWords = (event: Event): readonly string[] => {
  switch (event.type) {
    case 'CompactRequested':
      return event.instructions === undefined ? [] : [quote(event.instructions)];
    case 'Start':
    case 'RetryLast':
    case 'RetryNow':
    case 'CancelTurn':
    case 'ShutdownRequested':
      return [];
    case 'UserInput':
      return [quote(event.text), ...(event.mode === 'followUp' ? ['followUp'] : [])];
    case 'EditQueue':
      return event.items.flatMap(({ inputId, mode, text }) => [inputId, mode, quote(text)]);
    case 'CancelTool':
    case 'ToolStarted':
      return [event.batchId, event.callId];
    case 'ApproveBudget':
      return [event.dimension, String(event.limit)];
    case 'ApprovalAnswered':
      return answerWords(event);
    case 'SettingsChanged':
      return [JSON.stringify(event.patch)];
    case 'InputFailed':
      return [quote(event.message)];
    case 'Resumed':
      return [String(event.epoch)];
    case 'TimerFired':
      return [event.timerId];
    case 'HookCompleted':
      return hookWords(event);
    case 'HookPrepared':
      return [event.hookId, event.effect.kind === 'file' ? event.effect.path : event.effect.ref];
    case 'HookFailed':
      return [event.hookId, quote(event.message)];
    case 'UsageReported':
      return [event.usageId, ...usageWords(event.usage)];
    case 'RequestMeasured':
      return [
        event.usageId,
        `bytes=${event.bytes}`,
        `out=${event.outputTokensMax}`,
        ...(event.prices === null ? [] : [`price=${event.prices.input}/${event.prices.output}`]),
      ];
    case 'UserHooksRan':
      return [event.moment, event.requestId ?? 'none', ...verdictWords(event.verdicts)];
    case 'CompactionCompleted':
      return [event.compactionId, quote(event.summary), ...usageWords(event.usage)];
    case 'CompactionFailed':
      return [event.compactionId, quote(event.message), ...usageWords(event.usage)];
    case 'CheckpointTaken':
      return [event.checkpoint, ...event.leftOut.map((text) => `left=${quote(text)}`)];
    case 'RewindRequested':
      return rewindWords(event);
    case 'Rewound':
      return [event.rewindId, ...event.left.map(({ path }) => `left=${quote(path)}`)];
    default:
      return workWords(event);
  }
};

/** Notes and objections of hooks. */
const verdictWords = (verdicts: HookVerdicts): readonly string[] =>
  verdicts.flatMap(({ note, decision, reason = '' }) => [
    ...(note === undefined ? [] : [`note=${quote(note)}`]),
    ...(decision === 'allow' ? [] : [`${decision}=${quote(reason)}`]),
  ]);

type WorkEvent = Extract<
  Event,
  {
    readonly type:
      | (
          | 'TextDelta'
          | 'ReasoningDelta'
          | 'ToolCallDelta'
          | 'LlmCompleted'
          | 'LlmFailed'
          | 'PolicyStopped'
        )
      | ('CallPreviewed' | 'ToolProgress' | 'ToolCompleted' | 'ToolsFailed');
  }
>;

/** The arguments of events from model calls and tools. */
const workWords = (event: WorkEvent): readonly string[] => {
  switch (event.type) {
    case 'TextDelta':
    case 'ReasoningDelta':
      return [event.requestId, quote(event.text)];
    case 'ToolCallDelta':
      return [event.requestId, event.tool, quote(event.text)];
    case 'LlmCompleted':
      return replyWords(event);
    case 'LlmFailed': {
      const { kind, message, about, retryAfterMs } = event.error;
      const options = [
        ...(about === undefined ? [] : [`about=${about}`]),
        ...(retryAfterMs === null ? [] : [`retryAfter=${retryAfterMs}`]),
      ];
      return [event.requestId, kind, quote(message), ...options, ...usageWords(event.usage)];
    }
    case 'PolicyStopped':
      return [event.requestId, quote(event.why)];
    case 'CallPreviewed':
      return [event.batchId, event.callId, ...previewWords(event.preview)];
    case 'ToolProgress':
      return [event.batchId, event.callId, quote(event.text)];
    case 'ToolCompleted':
      return [
        event.batchId,
        event.callId,
        event.outcome.status,
        quote(event.outcome.text),
        ...(event.outcome.images ?? []).map(({ sha256 }) => `picture=${sha256}`),
        ...usageWords(event.outcome.usage ?? null),
      ];
    case 'ToolsFailed':
      return [event.batchId, quote(event.message)];
    default:
      return event satisfies never;
  }
};

/** `tokens=10+0 cost=0` */
const usageWords = (usage: Usage | null): readonly string[] =>
  usage === null
    ? []
    : [`tokens=${usage.inputTokens}+${usage.outputTokens}`, `cost=${usage.costUsd ?? '?'}`];

/** `grep(c1)`; `edit!(c1)` has a bad argument. */
const callWord = ({ tool, callId, verdict }: JudgedCall): string =>
  `${tool}${verdict.kind === 'invalid' ? '!' : ''}(${callId})`;

const replyWords = ({
  requestId,
  message,
  calls,
  stopReason,
  usage,
}: On<'LlmCompleted'>): readonly string[] => {
  if (message === null) return [requestId, 'unreadable', ...usageWords(usage)];
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const usual = calls.length > 0 ? 'toolUse' : 'end';
  return [
    requestId,
    ...(text === '' ? [] : ['says', quote(text)]),
    ...(calls.length === 0 ? [] : ['calls', ...calls.map(callWord)]),
    ...(stopReason === usual ? [] : [`stop=${stopReason}`]),
    ...usageWords(usage),
  ];
};

const hookWords = (event: On<'HookCompleted'>): readonly string[] => [
  event.hookId,
  ...event.commits.map(({ subject }) => `commit=${quote(subject)}`),
  ...event.changedFiles.map((file) => `file=${file}`),
  ...(event.dirty ? ['dirty'] : []),
  ...(event.note === '' ? [] : [`note=${quote(event.note)}`]),
  ...(event.warning === '' ? [] : [`warning=${quote(event.warning)}`]),
  ...(event.proceed ? [] : ['veto']),
  ...usageWords(event.usage),
];

const answerWords = ({
  batchId,
  callId,
  answer,
  scope,
}: On<'ApprovalAnswered'>): readonly string[] => {
  if (answer.kind === 'deny') return [batchId, callId, 'deny', quote(answer.reason)];
  if (answer.kind === 'reply') return [batchId, callId, 'reply', quote(answer.text)];
  return [batchId, callId, 'allow', ...(scope === 'once' ? [] : [scope])];
};

const previewWords = (preview: CallPreview): readonly string[] => {
  switch (preview.kind) {
    case 'change':
      return ['change', quote(preview.diff)];
    case 'refused':
      return ['refused', quote(preview.text)];
    case 'none':
      return ['none'];
    default:
      return preview satisfies never;
  }
};

const rewindWords = ({
  rewindId,
  to,
  conversation,
  files,
}: On<'RewindRequested'>): readonly string[] => [
  rewindId,
  String(to),
  ...(conversation === undefined ? [] : [`kept=${conversation.kept}`]),
  ...(files === undefined ? [] : [`plan=${files.plan}`]),
];
