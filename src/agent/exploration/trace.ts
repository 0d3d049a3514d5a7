import type { JudgedCall } from '../call.js';
import type { Event, On } from '../event.js';
import type { Usage } from '../usage.js';
import type { Configuration } from './configuration.js';

/**
 * Writes a path as a trace: the settings, and a line for each event. Whoever plays it gets the same events back, as far
 * as an exploration makes them: calls are known by tool and id, usage by what was read, written and paid.
 */

const quoted = (text: string): string => JSON.stringify(text);

/** `tokens=10+0 cost=0` */
const usageWords = (usage: Usage | null): readonly string[] =>
  usage === null ? [] : [`tokens=${usage.inputTokens}+${usage.outputTokens}`, `cost=${usage.costUsd ?? '?'}`];

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
    ...(text === '' ? [] : ['says', quoted(text)]),
    ...(calls.length === 0 ? [] : ['calls', ...calls.map(callWord)]),
    ...(stopReason === usual ? [] : [`stop=${stopReason}`]),
    ...usageWords(usage),
  ];
};

const hookWords = (event: On<'HookCompleted'>): readonly string[] => [
  event.hookId,
  ...event.commits.map(({ subject }) => `commit=${quoted(subject)}`),
  ...event.changedFiles.map((file) => `file=${file}`),
  ...(event.dirty ? ['dirty'] : []),
  ...(event.note === '' ? [] : [`note=${quoted(event.note)}`]),
  ...(event.warning === '' ? [] : [`warning=${quoted(event.warning)}`]),
  ...(event.proceed ? [] : ['veto']),
  ...usageWords(event.usage),
];

const answerWords = ({ batchId, callId, answer, scope }: On<'ApprovalAnswered'>): readonly string[] => {
  if (answer.kind === 'deny') return [batchId, callId, 'deny', quoted(answer.reason)];
  return [batchId, callId, 'allow', ...(scope === 'once' ? [] : [scope])];
};

/** What stands behind the name of an event. */
const wordsOf = (event: Event): readonly string[] => {
  switch (event.type) {
    case 'CompactRequested':
      return event.instructions === undefined ? [] : [quoted(event.instructions)];
    case 'Start':
    case 'RetryLast':
    case 'RetryNow':
    case 'CancelTurn':
    case 'ShutdownRequested':
      return [];
    case 'UserInput':
      return [quoted(event.text), ...(event.mode === 'followUp' ? ['followUp'] : [])];
    case 'EditQueue':
      return event.items.flatMap(({ inputId, mode, text }) => [inputId, mode, quoted(text)]);
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
      return [quoted(event.message)];
    case 'Resumed':
      return [String(event.epoch)];
    case 'TimerFired':
      return [event.timerId];
    case 'HookCompleted':
      return hookWords(event);
    case 'HookFailed':
      return [event.hookId, quoted(event.message)];
    case 'UsageReported':
      return [event.usageId, ...usageWords(event.usage)];
    case 'CompactionCompleted':
      return [event.compactionId, quoted(event.summary), ...usageWords(event.usage)];
    case 'CompactionFailed':
      return [event.compactionId, quoted(event.message), ...usageWords(event.usage)];
    default:
      return workWords(event);
  }
};

type WorkEvent = Extract<
  Event,
  {
    readonly type:
      | ('TextDelta' | 'ReasoningDelta' | 'ToolCallDelta' | 'LlmCompleted' | 'LlmFailed' | 'PolicyStopped')
      | ('ToolProgress' | 'ToolCompleted' | 'ToolsFailed');
  }
>;

/** The events of model calls and tools. */
const workWords = (event: WorkEvent): readonly string[] => {
  switch (event.type) {
    case 'TextDelta':
    case 'ReasoningDelta':
      return [event.requestId, quoted(event.text)];
    case 'ToolCallDelta':
      return [event.requestId, event.tool, quoted(event.text)];
    case 'LlmCompleted':
      return replyWords(event);
    case 'LlmFailed': {
      const { kind, message, retryAfterMs } = event.error;
      const wait = retryAfterMs === null ? [] : [`retryAfter=${retryAfterMs}`];
      return [event.requestId, kind, quoted(message), ...wait, ...usageWords(event.usage)];
    }
    case 'PolicyStopped':
      return [event.requestId, quoted(event.why)];
    case 'ToolProgress':
      return [event.batchId, event.callId, quoted(event.text)];
    case 'ToolCompleted':
      return [event.batchId, event.callId, event.outcome.status, quoted(event.outcome.text)];
    case 'ToolsFailed':
      return [event.batchId, quoted(event.message)];
    default:
      return event satisfies never;
  }
};

/** `@1200 UserInput "text"`: the time stands there if it is not `clock`. */
export const eventLine = (event: Event, clock: number): string =>
  [...(event.at === clock ? [] : [`@${event.at}`]), event.type, ...wordsOf(event)].join(' ');

/** A path through a configuration as a trace that begins with what is wrong in the end. */
export const traceOf = (
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
