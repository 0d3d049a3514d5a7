import { messagesOf } from '../../machine/conversation.js';
import type { State, UsageTotals } from '../../machine/state.js';
import { titleOf } from '../../machine/values/call-title.js';
import type { Usage } from '../../machine/values/usage.js';
import type { InterruptedCall, ToolContext, ToolOutcome } from '../../ports/tool.js';
import type { AgentSession } from '../../session/agent-session.js';
import { attempt } from '../../session/attempt.js';
import { reasonText } from '../turn-reason-text.js';
import type { StoredTask, TaskSessions } from './task-sessions.js';
import { TASK_DEADLINE_MS } from './task-sessions.js';
import { isUsedUp, readingTaskSettings } from './task-settings.js';

/**
 * Runs a call of the tool `task`.
 *
 * 1. A task is a session with a journal of its own, whose header names the call. After a crash the resumed session finds
 *    it there and goes on with it: nothing is paid for twice.
 * 2. A task spends at most what is left of the session's limits. Every outcome carries its usage.
 * 3. It is cancelled with the call, and its session is closed before the outcome is given.
 */

export type TaskInput = {
  readonly purpose: string;
  readonly prompt: string;
  readonly maxUsd?: number | undefined;
};

/** A recovered task gets at least this long, whatever the clock says. */
const LEFT_MS_MIN = 60_000;

const usageOf = ({ unpriced, costUsd, ...tokens }: UsageTotals): Usage => ({
  inputTokens: tokens.inputTokens,
  outputTokens: tokens.outputTokens,
  cacheReadTokens: tokens.cacheReadTokens,
  cacheWriteTokens: tokens.cacheWriteTokens,
  costUsd: unpriced > 0 && costUsd === 0 ? null : costUsd,
});

/** Text of the model's last message; empty if there is none, or if it asks for tools. */
const lastAnswer = ({ session }: State): string => {
  const last = messagesOf(session.conversation).at(-1);
  if (last?.role !== 'assistant' || last.parts.some(({ type }) => type === 'call')) return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Why it has no answer, as sentences; empty if it has one. */
const whyWithout = (state: State, answer: string): string => {
  if (state.name === 'WaitingForUserInput' && state.reason.kind !== 'resumed')
    return reasonText(state.reason);
  return answer === '' ? 'It ended without an answer.' : '';
};

const outcomeOf = (state: State, sessionId: string, { signal }: ToolContext): ToolOutcome => {
  const { usage } = state.session;
  const answer = lastAnswer(state);
  const why = whyWithout(state, answer);
  const note = `[task ${sessionId}]`;
  const text = [...(why === '' ? [] : [`the task has no answer: ${why}`]), answer, note]
    .filter((line) => line !== '')
    .join('\n');
  if (signal.aborted)
    return { status: signal.reason === 'timedOut' ? 'timedOut' : 'cancelled', text, usage: usageOf(usage) };
  return { status: why === '' ? 'ok' : 'failed', text, usage: usageOf(usage) };
};

/** Reports each call that the task starts; the returned function stops that. */
const tell = (child: AgentSession, { workspace, progress }: ToolContext): (() => void) =>
  child.watch(({ event, state }) => {
    if (event.type !== 'ToolStarted' || state.name !== 'ExecutingTools') return;
    const call = state.calls.find(({ judged }) => judged.callId === event.callId);
    if (call !== undefined) progress(`${call.judged.tool} ${titleOf(call.judged, workspace)}\n`);
  });

/** Waits until the task's turn has ended, closes its session, and gives the outcome. */
const follow = async (child: AgentSession, context: ToolContext): Promise<ToolOutcome> => {
  const { sessionId } = child.header;
  const untell = tell(child, context);
  // If it can't be sent, the session has ended, and there is nothing to cancel.
  const cancel = (): void => void attempt(() => child.send({ type: 'CancelTurn' }));
  const end = (): void => void attempt(() => child.close());
  context.signal.addEventListener('abort', cancel, { once: true });
  context.force.addEventListener('abort', end, { once: true });
  if (context.signal.aborted) cancel();
  const rested = await attempt(() => child.idle());
  untell();
  context.signal.removeEventListener('abort', cancel);
  context.force.removeEventListener('abort', end);
  const state = rested.kind === 'done' ? rested.value : child.state;
  const closed = await attempt(() => child.close());
  const outcome = outcomeOf(state, sessionId, context);
  const fault = rested.kind === 'fault' ? rested.fault : closed.kind === 'fault' ? closed.fault : null;
  if (fault === null || outcome.status === 'cancelled') return outcome;
  return { ...outcome, status: 'failed', text: `the task was stopped: ${fault.message}\n${outcome.text}` };
};

/** Starts the task. */
export const runTask = async (
  sessions: TaskSessions,
  { prompt, maxUsd }: TaskInput,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const left = context.left();
  if (isUsedUp(left)) return { status: 'failed', text: 'not run: the limit of the session is used up' };
  const { batchId, callId } = context;
  const settings = readingTaskSettings(sessions.settings(), left, maxUsd);
  const child = await sessions.start(settings, { batchId, callId });
  await child.send({ type: 'UserInput', text: prompt, mode: 'steer' });
  return follow(child, context);
};

const hasEnded = ({ name }: State): boolean => name === 'WaitingForUserInput' || name === 'ShuttingDown';

const goOn = async (
  sessions: TaskSessions,
  { prompt }: TaskInput,
  { sessionId, state }: StoredTask,
  context: ToolContext,
): Promise<ToolOutcome> => {
  if (hasEnded(state)) {
    // What it has left behind is taken away as its session is opened and closed. Its answer is known whatever happens.
    await attempt(async () => (await sessions.reopen(sessionId)).close());
    return outcomeOf(state, sessionId, context);
  }
  const child = await sessions.reopen(sessionId);
  if (child.state.name === 'Ready') await child.send({ type: 'UserInput', text: prompt, mode: 'steer' });
  return follow(child, context);
};

/** Finds the task that was running when the session was interrupted (rule 1). */
export const findTask = async (
  sessions: TaskSessions,
  input: TaskInput,
  context: ToolContext,
): Promise<InterruptedCall> => {
  const task = await sessions.find(context);
  if (task === null) return { kind: 'neverBegan' };
  const left = TASK_DEADLINE_MS - (sessions.clock.now() - task.createdAt);
  return {
    kind: 'found',
    leftMs: Math.min(TASK_DEADLINE_MS, Math.max(LEFT_MS_MIN, left)),
    finish: () => goOn(sessions, input, task, context),
  };
};
