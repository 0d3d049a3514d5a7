/**
 * The tool `task`: the model starts a session that only reads, and gets its last message.
 *
 * From top to bottom: the tool; how a call runs, resumes and ends; the sessions of tasks; and the
 * settings and instructions of such a session.
 */

import * as v from 'valibot';
import { messagesOf } from '../machine/conversation.js';
import { toldUsage } from '../machine/moves/request.js';
import {
  asUsage,
  type Limit,
  noLimits,
  type Remaining,
  type Settings,
  type Usage,
} from '../machine/settings.js';
import { reservedUsd, type State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import type { Clock } from '../platform/clock.js';
import { callTitle } from '../policy/judged-call.js';
import { allowedHosts, allowHosts, presetRules } from '../policy/presets.js';
import type { JournalStore, StartedBy } from '../ports/journal.js';
import type { InterruptedCall, Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import { defineTool, filledText } from '../tools/define-tool.js';
import type { LocalRuntime } from './runtime.js';
import type { AgentSession } from './session.js';
import { reasonText } from './turn.js';

const schema = v.strictObject({
  purpose: filledText('What it is for, in a few words.'),
  prompt: filledText('The whole task. Nothing of this conversation is known there.'),
  maxUsd: v.optional(
    v.pipe(
      v.number(),
      v.gtValue(0, 'must be above 0'),
      v.description('Dollars that it may spend.'),
    ),
  ),
});

/** `sessions` are those of the session that gets the tool. */
export const createTaskTool = (sessions: TaskSessions): Tool =>
  defineTool({
    name: 'task',
    description:
      'Gives a task to another agent with a conversation of its own, and returns its last ' +
      'message. It reads and searches the workspace and changes nothing. Use it for what ' +
      'needs much reading and has a short answer; several calls in one reply run side by ' +
      'side. It costs money.',
    schema,
    traits: {
      effect: 'opaque',
      parallelSafe: true,
      mutating: false,
      deadlineMs: TASK_DEADLINE_MS,
      spends: 'yes',
    },
    judge: async ({ prompt }) => ({
      kind: 'ok',
      facts: { argv: [], paths: [], hosts: [], shape: prompt },
    }),
    title: ({ purpose }) => purpose,
    findInterrupted: (input, context) => findTask(sessions, input, context),
    run: (input, context) => runTask(sessions, input, context),
  });

/**
 * Runs a call of the tool `task`.
 *
 * 1. A task is a separate session, and the header of its journal names the call. After a crash the
 *    resumed session finds it there and goes on with it: nothing is paid for twice.
 * 2. A task spends at most what remains of the session's limits. Every outcome carries its usage.
 * 3. It is cancelled with the call, and its session is closed before its outcome is returned.
 */

export type TaskInput = {
  readonly purpose: string;
  readonly prompt: string;
  readonly maxUsd?: number | undefined;
};

/** A recovered task gets at least this long, whatever the clock says. */
const LEFT_MS_MIN = 60_000;

/** What the task has spent. Money set aside for requests of unknown cost counts as spent. */
const taskUsage = (state: State): Usage => {
  const { session } = state;
  const reserved = reservedUsd(session);
  const totals = reserved > 0 ? session.usage : toldUsage(state);
  return asUsage(totals, totals.costUsd + reserved);
};

/** Text of the model's last message; empty if there is none, or if it asks for tools. */
const lastAnswer = ({ session }: State): string => {
  const last = messagesOf(session.conversation).at(-1);
  if (last?.role !== 'assistant' || last.parts.some(({ type }) => type === 'call')) return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Why it has no answer, as sentences; empty if it has one. */
const missingAnswerText = (state: State, answer: string): string => {
  // The reason `resumed` says only that the session was opened again, not how its turn ended.
  if (state.name === 'WaitingForUserInput' && state.reason.kind !== 'resumed')
    return reasonText(state.reason);
  return answer === '' ? 'It ended without an answer.' : '';
};

const taskOutcome = (state: State, sessionId: string, { signal }: ToolContext): ToolOutcome => {
  const usage = taskUsage(state);
  const answer = lastAnswer(state);
  const why = missingAnswerText(state, answer);
  const note = `[task ${sessionId}]`;
  const text = [...(why === '' ? [] : [`the task has no answer: ${why}`]), answer, note]
    .filter((line) => line !== '')
    .join('\n');
  if (signal.aborted)
    return {
      status: signal.reason === 'timedOut' ? 'timedOut' : 'cancelled',
      text,
      usage,
    };
  return { status: why === '' ? 'ok' : 'failed', text, usage };
};

/** Reports each call that the task starts; the returned function stops that. */
const reportCalls = (child: AgentSession, { workspace, progress }: ToolContext): (() => void) =>
  child.watch(({ event, state }) => {
    if (event.type !== 'ToolStarted' || state.name !== 'ExecutingTools') return;
    const call = state.calls.find(({ judged }) => judged.callId === event.callId);
    if (call !== undefined) progress(`${call.judged.tool} ${callTitle(call.judged, workspace)}\n`);
  });

/** Sends the prompt, if any, waits until the task's turn has ended, and closes its session. */
const awaitTask = async (
  child: AgentSession,
  context: ToolContext,
  prompt: string | null,
): Promise<ToolOutcome> => {
  const sessionId = child.id;
  const stopReporting = reportCalls(child, context);
  // If it can't be sent, the session has ended, and there is nothing to cancel.
  const cancel = (): void => void attempt(() => child.send({ type: 'CancelTurn' }));
  const end = (): void => void attempt(() => child.close());
  context.signal.addEventListener('abort', cancel, { once: true });
  context.force.addEventListener('abort', end, { once: true });
  if (context.force.aborted) end();
  const idling = await attempt(async () => {
    if (prompt !== null) await child.send({ type: 'UserInput', text: prompt, mode: 'steer' });
    if (context.signal.aborted) cancel();
    return child.idle();
  });
  stopReporting();
  context.signal.removeEventListener('abort', cancel);
  context.force.removeEventListener('abort', end);
  const state = idling.kind === 'done' ? idling.value : child.current;
  const closed = await attempt(() => child.close());
  const outcome = taskOutcome(state, sessionId, context);
  const fault =
    idling.kind === 'fault' ? idling.fault : closed.kind === 'fault' ? closed.fault : null;
  if (fault === null || outcome.status === 'cancelled') return outcome;
  return {
    ...outcome,
    status: 'failed',
    text: `the task was stopped: ${fault.message}\n${outcome.text}`,
  };
};

/** Starts the task. */
const runTask = async (
  sessions: TaskSessions,
  { prompt, maxUsd }: TaskInput,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const remaining = context.left(); // what remains of the session's limits
  if (isUsedUp(remaining))
    return { status: 'failed', text: 'not run: the limit of the session is used up' };
  const { batchId, callId } = context;
  const settings = readingTaskSettings(sessions.settings(), remaining, maxUsd);
  const child = await sessions.start(settings, { batchId, callId });
  return awaitTask(child, context, prompt);
};

const hasEnded = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'ShuttingDown';

const resumeTask = async (
  sessions: TaskSessions,
  { prompt }: TaskInput,
  { sessionId, state }: StoredTask,
  context: ToolContext,
): Promise<ToolOutcome> => {
  if (hasEnded(state)) {
    // Opening and closing its session removes its leftovers. Its answer is known in any case.
    await attempt(async () => (await sessions.reopen(sessionId)).close());
    return taskOutcome(state, sessionId, context);
  }
  const child = await sessions.reopen(sessionId);
  return awaitTask(child, context, child.current.name === 'Ready' ? prompt : null);
};

/**
 * Finds the task that was running when the session was interrupted, by the call that its header
 * names.
 */
const findTask = async (
  sessions: TaskSessions,
  input: TaskInput,
  context: ToolContext,
): Promise<InterruptedCall> => {
  const task = await sessions.find(context);
  if (task === null) return { kind: 'neverBegan' };
  const remaining = TASK_DEADLINE_MS - (sessions.clock.now() - task.createdAt);
  return {
    kind: 'found',
    leftMs: Math.min(TASK_DEADLINE_MS, Math.max(LEFT_MS_MIN, remaining)),
    finish: () => resumeTask(sessions, input, task, context),
  };
};

/** A task may take that long. */
const TASK_DEADLINE_MS = 30 * 60_000;

/** A task that an earlier process of the session has started. */
export type StoredTask = {
  readonly sessionId: string;
  readonly createdAt: number;
  readonly state: State;
};

/** The sessions of the tasks of one session. */
export type TaskSessions = {
  readonly clock: Clock;
  /** The current settings of the session that starts tasks. */
  settings(): Settings;
  /** Creates the session of a task. It has no input yet. */
  start(settings: Settings, call: Omit<StartedBy, 'sessionId'>): Promise<AgentSession>;
  /** The task of this call, or null. Rejects if the sessions can't be read. */
  find(call: Omit<StartedBy, 'sessionId'>): Promise<StoredTask | null>;
  /** Opens the session of a task again; it goes on with what it was doing. */
  reopen(sessionId: string): Promise<AgentSession>;
};

type TaskDependencies = {
  /** The session that starts tasks. */
  readonly parentId: string;
  readonly clock: Clock;
  readonly journals: JournalStore;
  /** The runtime in which the parent is open, and in which its tasks run. */
  runtime(): LocalRuntime;
  /** The system prompt for the session of a task. */
  instruct(settings: Settings): Promise<string>;
};

export const createTaskSessions = ({
  parentId,
  clock,
  journals,
  runtime,
  instruct,
}: TaskDependencies): TaskSessions => ({
  clock,
  settings: () => runtime().find(parentId).current.session.settings,
  async start(settings, call) {
    const startedBy = { sessionId: parentId, ...call };
    const id = await runtime().create({
      settings,
      instructions: await instruct(settings),
      startedBy,
    });
    return runtime().find(id);
  },
  async find({ batchId, callId }) {
    for await (const { sessionId, startedBy, createdAt } of journals.list()) {
      if (
        startedBy?.sessionId !== parentId ||
        startedBy.batchId !== batchId ||
        startedBy.callId !== callId
      )
        continue;
      const { state } = await journals.peek(sessionId);
      return { sessionId, createdAt, state };
    }
    return null;
  },
  async reopen(sessionId) {
    await runtime().open(sessionId);
    return runtime().find(sessionId);
  },
});

/** Rounds after which the model is asked for its findings. */
const ROUNDS_MAX = 50;

type Remainders = { readonly usd: Remaining; readonly tokens: Remaining };

const taskLimit = (remaining: Remaining, wished: number | undefined): Limit => {
  if (remaining.type === 'unlimited') return wished ?? 'unlimited';
  return wished === undefined ? remaining.amount : Math.min(remaining.amount, wished);
};

/** Whether a limit of the session is used up. */
const isUsedUp = ({ usd, tokens }: Remainders): boolean =>
  [usd, tokens].some((remaining) => remaining.type === 'left' && remaining.amount <= 0);

/**
 * The settings of a task that only reads. It gets the model that answers its parent now, the
 * fallback, the written rules and the allowed hosts of its parent, and at most what remains of the
 * parent's limits. Whatever would be asked is denied, since no user can be asked.
 */
const readingTaskSettings = (
  { tools: _, primary: __, ...parent }: Settings,
  remaining: Remainders,
  maxUsd: number | undefined,
): Settings => ({
  ...parent,
  preset: 'plan',
  rules: allowHosts(presetRules.plan, allowedHosts(parent.rules)),
  ...(parent.sandbox === undefined || parent.sandbox === 'off' || parent.sandbox === 'missing'
    ? {}
    : { sandbox: 'read-only' }),
  onAsk: 'deny',
  hooks: 'never',
  formatter: 'off',
  autoCommit: 'off',
  userPolicy: 'none',
  queueOnCancel: 'hold',
  atLimit: 'finish',
  limits: {
    ...noLimits,
    usd: taskLimit(remaining.usd, maxUsd),
    tokens: taskLimit(remaining.tokens, undefined),
    rounds: ROUNDS_MAX,
    truncation: parent.limits.truncation,
    repeats: 5,
    errors: 5,
  },
});

/** What the instructions of a task's session say in addition to those of every session. */
export const taskInstructions = `# This is a task
Another agent gave you this task and waits for it. Nobody else reads along, and nobody can be asked. It sees your last message and nothing else: say there what you found, with paths and line numbers, what you are not sure of, and what you could not find. You can look at everything in the workspace and change nothing.`;
