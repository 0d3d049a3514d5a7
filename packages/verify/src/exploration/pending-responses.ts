import type { CallOutcome, CallPreview } from '@pawl/agent/machine/call';
import type { Event, ModelError, On } from '@pawl/agent/machine/event';
import { isSpending } from '@pawl/agent/machine/moves/tools/admit-call';
import { isRunning } from '@pawl/agent/machine/moves/tools/tool-batch';
import type { In } from '@pawl/agent/machine/state';
import type { FailureChoice, HookChoice, OutcomeChoice } from './configurations/configuration.js';
import { usageFor } from './configurations/model-replies.js';
import {
  type ExplorationContext,
  type ExplorationEvent,
  type ExplorationNode,
  world,
} from './exploration-node.js';

/** Responses to all work in flight. */

export const pendingResponses = (
  node: ExplorationNode,
  scenery: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  const answers = answersTo(node, scenery);
  const limit = state.session.turn.timeLimit;
  if (limit === null) return answers;
  const dueAt = Math.max(at, limit.dueAt);
  const fires = world({ type: 'TimerFired', at: dueAt, timerId: limit.timerId });
  if (at >= limit.dueAt) return [...answers, fires];
  // Every response may also come after the timer is due and before it fires.
  const tardy = answers.map((label) => ({ ...label, event: { ...label.event, at: dueAt } }));
  return [...answers, ...tardy, fires];
};

const answersTo = (node: ExplorationNode, scenery: ExplorationContext): readonly ExplorationEvent[] => {
  const { state, now: at } = node;
  switch (state.name) {
    case 'CallingLlm':
      return modelAnswers(state, node, scenery);
    case 'Error':
      return [world({ type: 'TimerFired', at, timerId: state.timerId })];
    case 'ExecutingTools':
      return toolAnswers(state, node, scenery);
    case 'PostToolsHook':
      return [
        ...(state.prepared === undefined ? [world(preparing(state.hookId, at))] : []),
        ...scenery.configuration.hooks.map((word) => world(hookAnswer(state.hookId, at, word))),
      ];
    case 'Compacting':
      return compactionAnswers(state.compactionId, at);
    default:
      return [];
  }
};

// ---- The model ----

/** The streamed text. It begins every reply with text, so that the reply need not be shown again. */
const streamed = 'y';

const modelAnswers = (
  state: In<'CallingLlm'>,
  node: ExplorationNode,
  { configuration, replies }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { requestId, partial } = state;
  const at = node.now;
  const labels = replies
    .filter(({ costly }) => !costly || node.costlyLeft > 0)
    .map(({ costly, ...reply }) => world({ type: 'LlmCompleted', at, requestId, ...reply }, costly));
  for (const word of configuration.failures) labels.push(world(modelFailure(requestId, at, word)));
  if (!configuration.streams) return labels;
  // More streamed text would lead to the same node.
  if (partial === '') labels.push(world({ type: 'TextDelta', at, requestId, text: ' ' }));
  if (partial.trim() === '') labels.push(world({ type: 'TextDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ReasoningDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ToolCallDelta', at, requestId, tool: 'grep', text: streamed }));
  return labels;
};

const waitTooLongMs = 3_600_000;

const modelErrors: Readonly<Record<Exclude<FailureChoice, 'heldBack'>, ModelError>> = {
  passing: { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null },
  final: { kind: 'auth', message: 'no key', retryable: false, retryAfterMs: null },
  tooLong: { kind: 'contextOverflow', message: 'too long', retryable: false, retryAfterMs: null },
  waitTooLong: { kind: 'rateLimited', message: 'later', retryable: true, retryAfterMs: waitTooLongMs },
};

const modelFailure = (requestId: string, at: number, word: FailureChoice): Event =>
  word === 'heldBack'
    ? { type: 'PolicyStopped', at, requestId, why: 'enough' }
    : { type: 'LlmFailed', at, requestId, error: modelErrors[word], usage: null, jitter: 0 };

// ---- Tools ----

/** Longer than `resultCutBytes`, see configuration-parts.ts. */
const longText = 'long '.repeat(100).trim();

const outcomes: Readonly<Record<Exclude<OutcomeChoice, 'spent'>, CallOutcome>> = {
  ok: { status: 'ok', text: 'done' },
  long: { status: 'ok', text: longText },
  failed: { status: 'failed', text: 'broken' },
  timedOut: { status: 'timedOut', text: '' },
  cancelled: { status: 'cancelled', text: '' },
  lost: { status: 'lost', text: '' },
};

/** The previews of a call. An empty preview leads to the same question as one with a change, so it is left out. */
const previews: readonly CallPreview[] = [
  { kind: 'change', diff: '+y' },
  { kind: 'refused', text: 'it does not fit' },
];

const toolAnswers = (
  state: In<'ExecutingTools'>,
  { now: at, costlyLeft }: ExplorationNode,
  { configuration, settings }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const { batchId } = state;
  const labels: ExplorationEvent[] = [];
  for (const call of state.calls) {
    const { callId } = call.judged;
    if (call.status === 'previewing')
      for (const preview of previews)
        labels.push(world({ type: 'CallPreviewed', at, batchId, callId, preview }));
    if (!isRunning(call)) continue;
    if (call.status === 'starting') labels.push(world({ type: 'ToolStarted', at, batchId, callId }));
    for (const word of configuration.outcomes) {
      const ended = { type: 'ToolCompleted', at, batchId, callId } as const;
      if (word !== 'spent') labels.push(world({ ...ended, outcome: outcomes[word] }));
      else if (isSpending(call.judged) && costlyLeft > 0)
        labels.push(
          world({ ...ended, outcome: { ...outcomes.ok, usage: usageFor('costly', settings.limits) } }, true),
        );
    }
    if (call.graceTimerId !== null)
      labels.push(world({ type: 'TimerFired', at, timerId: call.graceTimerId }));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    labels.push(world({ type: 'TimerFired', at, timerId: state.phase.graceTimerId }));
  return labels;
};

// ---- Hooks, compactions ----

const found: Readonly<Record<Exclude<HookChoice, 'failed'>, Partial<On<'HookCompleted'>>>> = {
  clean: {},
  dirty: { dirty: true },
  changed: { changedFiles: ['a.ts'], dirty: true, note: 'formatted' },
  committed: { commits: [{ hash: 'abcdef0', subject: 'work' }], warning: 'look' },
  veto: { proceed: false },
};

/** Once in a phase: further effects only make the list longer. */
const preparing = (hookId: string, at: number): Event => ({
  type: 'HookPrepared',
  at,
  hookId,
  effect: { kind: 'file', path: 'a.ts', before: 'rough', after: 'smooth' },
});

const hookAnswer = (hookId: string, at: number, word: HookChoice): Event =>
  word === 'failed'
    ? { type: 'HookFailed', at, hookId, message: 'broken' }
    : {
        type: 'HookCompleted',
        at,
        hookId,
        commits: [],
        changedFiles: [],
        dirty: false,
        note: '',
        warning: '',
        proceed: true,
        usage: null,
        ...found[word],
      };

const compactionAnswers = (compactionId: string, at: number): readonly ExplorationEvent[] => {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 };
  return [
    world({ type: 'CompactionCompleted', at, compactionId, summary: 'so far', usage }),
    world({ type: 'CompactionFailed', at, compactionId, message: 'no summary', usage: null }),
  ];
};
