import type { CallOutcome } from '../call.js';
import type { Event, ModelError, On } from '../event.js';
import { isRunning } from '../moves/batch.js';
import type { In } from '../state.js';
import type { FailureWord, HookWord, OutcomeWord } from './configuration.js';
import { type Label, type Node, type Scenery, world } from './node.js';

/** What the world owes: every answer to what is in flight. */

export const owed = (node: Node, scenery: Scenery): readonly Label[] => {
  const { state, now: at } = node;
  const answers = answersTo(node, scenery);
  const limit = state.session.turn.timeLimit;
  if (limit === null) return answers;
  const dueAt = Math.max(at, limit.dueAt);
  const fires = world({ type: 'TimerFired', at: dueAt, timerId: limit.timerId });
  if (at >= limit.dueAt) return [...answers, fires];
  // Whatever comes may also come when time is up already, before the timer is heard.
  const tardy = answers.map((label) => ({ ...label, event: { ...label.event, at: dueAt } }));
  return [...answers, ...tardy, fires];
};

const answersTo = (node: Node, scenery: Scenery): readonly Label[] => {
  const { state, now: at } = node;
  switch (state.name) {
    case 'CallingLlm':
      return modelAnswers(state, node, scenery);
    case 'Error':
      return [world({ type: 'TimerFired', at, timerId: state.timerId })];
    case 'ExecutingTools':
      return toolAnswers(state, at, scenery);
    case 'PostToolsHook':
      return scenery.configuration.hooks.map((word) => world(hookAnswer(state.hookId, at, word)));
    case 'Compacting':
      return compactionAnswers(state.compactionId, at);
    default:
      return [];
  }
};

// ---- The model ----

/** What is streamed: it begins every reply that has text, so that what follows need not be shown again. */
const streamed = 'y';

const modelAnswers = (
  state: In<'CallingLlm'>,
  node: Node,
  { configuration, replies }: Scenery,
): readonly Label[] => {
  const { requestId, partial } = state;
  const at = node.now;
  const labels = replies
    .filter(({ costly }) => !costly || node.costlyLeft > 0)
    .map(({ costly, ...reply }) => world({ type: 'LlmCompleted', at, requestId, ...reply }, costly));
  for (const word of configuration.failures) labels.push(world(modelFailure(requestId, at, word)));
  if (!configuration.streams) return labels;
  // Once there is text, more text is the same.
  if (partial === '') labels.push(world({ type: 'TextDelta', at, requestId, text: ' ' }));
  if (partial.trim() === '') labels.push(world({ type: 'TextDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ReasoningDelta', at, requestId, text: streamed }));
  labels.push(world({ type: 'ToolCallDelta', at, requestId, tool: 'grep', text: streamed }));
  return labels;
};

const waitTooLongMs = 3_600_000;

const modelErrors: Readonly<Record<Exclude<FailureWord, 'heldBack'>, ModelError>> = {
  passing: { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null },
  final: { kind: 'auth', message: 'no key', retryable: false, retryAfterMs: null },
  tooLong: { kind: 'contextOverflow', message: 'too long', retryable: false, retryAfterMs: null },
  waitTooLong: { kind: 'rateLimited', message: 'later', retryable: true, retryAfterMs: waitTooLongMs },
};

const modelFailure = (requestId: string, at: number, word: FailureWord): Event =>
  word === 'heldBack'
    ? { type: 'PolicyStopped', at, requestId, why: 'enough' }
    : { type: 'LlmFailed', at, requestId, error: modelErrors[word], usage: null, jitter: 0 };

// ---- Tools ----

/** Longer than what results are cut to, see configurations.ts. */
const longText = 'long '.repeat(100).trim();

const outcomes: Readonly<Record<OutcomeWord, CallOutcome>> = {
  ok: { status: 'ok', text: 'done' },
  long: { status: 'ok', text: longText },
  failed: { status: 'failed', text: 'broken' },
};

const toolAnswers = (
  state: In<'ExecutingTools'>,
  at: number,
  { configuration }: Scenery,
): readonly Label[] => {
  const { batchId } = state;
  const labels: Label[] = [];
  for (const call of state.calls) {
    if (!isRunning(call)) continue;
    const { callId } = call.judged;
    if (call.status === 'starting') labels.push(world({ type: 'ToolStarted', at, batchId, callId }));
    for (const word of configuration.outcomes)
      labels.push(world({ type: 'ToolCompleted', at, batchId, callId, outcome: outcomes[word] }));
    if (call.graceTimerId !== null)
      labels.push(world({ type: 'TimerFired', at, timerId: call.graceTimerId }));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    labels.push(world({ type: 'TimerFired', at, timerId: state.phase.graceTimerId }));
  return labels;
};

// ---- Hooks, compactions ----

const found: Readonly<Record<Exclude<HookWord, 'failed'>, Partial<On<'HookCompleted'>>>> = {
  clean: {},
  dirty: { dirty: true },
  changed: { changedFiles: ['a.ts'], dirty: true, note: 'formatted' },
  committed: { commits: [{ hash: 'abcdef0', subject: 'work' }], warning: 'look' },
  veto: { proceed: false },
};

const hookAnswer = (hookId: string, at: number, word: HookWord): Event =>
  word === 'failed'
    ? { type: 'HookFailed', at, hookId, message: 'broken' }
    : {
        ...{ type: 'HookCompleted', at, hookId, commits: [], changedFiles: [], dirty: false },
        ...{ note: '', warning: '', proceed: true, usage: null },
        ...found[word],
      };

const compactionAnswers = (compactionId: string, at: number): readonly Label[] => {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 };
  return [
    world({ type: 'CompactionCompleted', at, compactionId, summary: 'so far', usage }),
    world({ type: 'CompactionFailed', at, compactionId, message: 'no summary', usage: null }),
  ];
};
