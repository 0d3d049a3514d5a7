/** Checks every step of a process after its event was acknowledged, and the session at its end. */

import type { Action } from '@pawl/agent/machine/action';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { ApprovalAnswer, Event } from '@pawl/agent/machine/event';
import { step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import { requiredRequestFaults, stateFaults, stepFaults } from '../invariants.js';
import { checkDurable } from './journal-checks.js';
import { INPUT_NAME } from './model.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { CallRecord, World } from './world.js';

/** Delays of timers may be late by what the disk and the queue take. */
const LATE_MS = 1_000;

/** A timer fires after its delay, and a resume never makes the delay longer. */
const checkTimers = (process: SimulatedProcess, event: Event, actions: readonly Action[]): void => {
  const { world, timers } = process;
  for (const action of actions) {
    if (action.type !== 'ScheduleTimer') continue;
    const { timerId, delayMs } = action;
    const longest = world.delays.get(timerId);
    if (longest !== undefined && delayMs > longest)
      world.violate(
        'timers-keep-their-delay',
        `${timerId} of ${longest} ms is to wait for ${delayMs} ms after a resume`,
      );
    world.delays.set(timerId, longest ?? delayMs);
    timers.set(timerId, { at: world.timeline.now, delayMs });
  }
  const timer = event.type === 'TimerFired' ? timers.get(event.timerId) : undefined;
  if (event.type !== 'TimerFired' || timer === undefined) return;
  timers.delete(event.timerId);
  const waited = world.timeline.now - timer.at;
  if (waited < timer.delayMs - 1 || waited > timer.delayMs + LATE_MS)
    world.violate(
      'timers-keep-their-delay',
      `${event.timerId} of ${timer.delayMs} ms fired after ${waited} ms`,
    );
};

/** Updates the records of tool calls. */
const recordCalls = (world: World, event: Event): void => {
  if (event.type === 'LlmCompleted')
    for (const { callId, tool, input } of event.calls)
      world.calls.set(callId, {
        tool,
        input: JSON.stringify(input),
        approval: 'none',
        askedIn: 0,
        ranIn: 0,
        isStarted: false,
        effects: 0,
        result: null,
        isCompleted: false,
      });
  if (event.type === 'ApprovalAnswered')
    recordAnswer(world.calls.get(event.callId), event.answer.kind);
  if (event.type === 'ToolStarted') markCall(world, event.callId, 'isStarted');
  if (event.type === 'ToolCompleted') {
    markCall(world, event.callId, 'isCompleted');
    const record = world.calls.get(event.callId);
    if (event.outcome.status === 'lost')
      world.noteSituation(
        record?.tool === 'append' ? 'probeable call found changed' : 'opaque call lost',
      );
    if (event.outcome.text.startsWith('it had taken effect'))
      world.noteSituation('probeable call found done');
    if (
      event.outcome.status === 'ok' &&
      record !== undefined &&
      record.tool !== 'look' &&
      record.effects === 0
    )
      world.violate('result-is-true', `${event.callId} is said to be done, and has had no effect`);
  }
  if (event.type === 'CompactionCompleted') world.noteSituation('compaction completed');
};

/** The first answer counts. */
const recordAnswer = (record: CallRecord | undefined, kind: ApprovalAnswer['kind']): void => {
  if (record?.approval === 'asked') record.approval = kind === 'deny' ? 'denied' : 'allowed';
};

const markCall = (world: World, callId: string, mark: 'isStarted' | 'isCompleted'): void => {
  const record = world.calls.get(callId);
  if (record !== undefined) record[mark] = true;
};

/** Records approvals that are asked for, and inputs that go back to the user. */
const recordActions = (world: World, actions: readonly Action[]): void => {
  for (const action of actions) {
    if (action.type === 'RequestApproval') {
      const record = world.calls.get(action.call.callId);
      if (record?.approval === 'none') {
        record.approval = 'asked';
        record.askedIn = world.processes;
      }
    }
    if (action.type === 'RestoreQueue') for (const text of action.texts) withdrawInput(world, text);
  }
};

const withdrawInput = (world: World, text: string): void => {
  for (const input of world.inputs.values())
    if (text.includes(input.text)) input.isWithdrawn = true;
};

/** Records inputs that an edit of the queue removes, also those that arrived during the edit. */
const recordRemoved = (world: World, event: Event, before: State | null): void => {
  if (event.type !== 'EditQueue' || before === null) return;
  const remaining = new Set(event.items.map(({ text }) => text));
  for (const { text } of before.session.queue) if (!remaining.has(text)) withdrawInput(world, text);
};

/** Records events that a crashed process wrote but did not acknowledge. */
export const recordUnacknowledged = (world: World, events: readonly Event[]): void => {
  let before = world.acknowledged.get(Math.max(0, ...world.acknowledged.keys()))?.state ?? null;
  for (const event of events) {
    recordCalls(world, event);
    recordRemoved(world, event, before);
    if (before === null) continue;
    const stepped = step(before, event);
    recordActions(world, stepped.actions);
    before = stepped.state;
  }
};

const noteStateSituations = (world: World, state: State): void => {
  if (
    state.name === 'ExecutingTools' &&
    state.calls.filter(({ status }) => status === 'running').length > 1
  )
    world.noteSituation('calls at the same time');
  const isStopped = state.name === 'WaitingForUserInput' && state.reason.kind === 'budget';
  if (isStopped) world.noteSituation('limit reached');
  if (isStopped && state.session.settings.primary !== undefined)
    world.noteSituation('limit reached by another model');
};

/** Notices and warnings about other models. */
const noteFallback = (world: World, actions: readonly Action[]): void => {
  for (const action of actions) {
    if (!('kind' in action) || action.kind !== 'fallback') continue;
    if (action.type === 'DisplayNotice') world.noteSituation('first model asked again');
    else if (action.text.includes('takes over')) world.noteSituation('another model took over');
    if (action.text.includes('passed over')) world.noteSituation('model passed over');
  }
};

/** Creates the watcher of a session. `opened` returns the state before its first step. */
export const stepWatcher = (
  process: SimulatedProcess,
  opened: () => State | null,
): ((stepped: Stepped) => void) => {
  const { world } = process;
  return (stepped) => {
    if (process.isDead) return;
    const { event, state, actions, seq } = stepped;
    const before = process.state ?? opened();
    process.state = state;
    world.log(`${seq ?? '-'} ${event.type} -> ${state.name}`);
    // Without a number it is not in the journal: a piece of a reply that streams.
    if (seq !== null) {
      world.acknowledged.set(seq, { event, state });
      checkDurable(world, seq);
    }
    if (event.type === 'Resumed' && before?.name === 'ShuttingDown')
      world.noteSituation('resume after a clean end');
    if (before !== null)
      for (const fault of [
        ...stateFaults(before, event, stepped),
        ...stepFaults(before, event, stepped),
        ...requiredRequestFaults(before, event, stepped),
      ])
        world.violate('machine-rules', fault);
    // There is something to restore once another program has changed the journal.
    if (process.restoreJournal !== null && seq !== null)
      world.violate(
        'own-journal',
        `${event.type} was acknowledged after another program changed the journal`,
      );
    if (process.hasFailedToWrite)
      world.violate('no-effect-after-failed-write', `${event.type} after the journal has failed`);
    recordCalls(world, event);
    recordRemoved(world, event, before);
    recordActions(world, actions);
    checkTimers(process, event, actions);
    noteStateSituations(world, state);
    noteFallback(world, actions);
    process.crashPoint(`the step ${event.type}`);
  };
};

// ---- Checks at the end of a session ----

const countNames = (names: Map<string, number>, text: string): void => {
  for (const name of text.match(INPUT_NAME) ?? []) names.set(name, (names.get(name) ?? 0) + 1);
};

/** Counts the input names in the user's texts, and those in summaries. */
const countInputs = ({ session }: State) => {
  const direct = new Map<string, number>();
  const summarised = new Map<string, number>();
  for (const { role, parts } of messagesOf(session.conversation)) {
    if (role !== 'user') continue;
    for (const part of parts)
      if (part.type === 'text')
        countNames(part.origin === 'summary' ? summarised : direct, part.text);
  }
  for (const { text } of session.queue) countNames(direct, text);
  return { direct, summarised };
};

const checkInputs = (world: World, state: State): void => {
  const { direct, summarised } = countInputs(state);
  for (const { text, isAcknowledged, isWithdrawn } of world.inputs.values()) {
    const times = direct.get(text) ?? 0;
    const isThere = times > 0 || summarised.has(text);
    if (times > 1)
      world.violate('input-exactly-once', `${text} is in the conversation ${times} times`);
    if (isAcknowledged && !isWithdrawn && !isThere)
      world.violate('input-exactly-once', `${text} is lost`);
  }
};

/** The worst case of each request is set aside before it is sent. */
const checkSpending = (world: World, { session }: State): void => {
  const { usd } = world.plan.settings.limits;
  if (usd === 'unlimited' || world.isLimitRaised) return;
  if (session.usage.costUsd > usd)
    world.violate('spend-within-limit', `$${session.usage.costUsd} were spent of $${usd}`);
};

/** Each line of a file was added by one call, once. */
const checkFiles = (world: World): void => {
  for (const [path, content] of world.files) {
    const lines = content.split('\n').filter((line) => line !== '');
    if (new Set(lines).size < lines.length)
      world.violate('no-second-effect', `${path} holds a line twice`);
  }
};

export const checkEnd = (world: World, state: State): void => {
  checkInputs(world, state);
  checkSpending(world, state);
  checkFiles(world);
};

/** Records the tool calls that a crash interrupted. */
const noteCallSituations = ({ world, state }: SimulatedProcess): void => {
  if (
    state?.name === 'ExecutingTools' &&
    state.calls.some(({ status }) => status === 'awaitingApproval')
  )
    world.noteSituation('crash while an approval is open');
  for (const { isStarted, isCompleted, effects } of world.calls.values()) {
    if (!isStarted || isCompleted) continue;
    world.noteSituation(
      effects === 0 ? 'crash between intent and effect' : 'crash between effect and result',
    );
  }
};

export const noteCrashSituations = (process: SimulatedProcess): void => {
  const { world, state, doing } = process;
  if (doing === 'creating') world.noteSituation('crash while the session is created');
  if (doing === 'opening') world.noteSituation('crash while the session is opened');
  noteCallSituations(process);
  switch (state?.name) {
    case 'CallingLlm':
      world.noteSituation('crash while the model is called');
      if (state.session.settings.primary !== undefined)
        world.noteSituation('crash while another model is called');
      break;
    case 'Error':
      world.noteSituation('crash while waiting to retry');
      break;
    case 'Compacting':
      world.noteSituation('crash while compacting');
      break;
    case 'PostToolsHook':
      world.noteSituation(
        state.phase === 'AutoCommitting' ? 'crash while committing' : 'crash while a hook runs',
      );
      break;
    case 'WaitingForUserInput':
      world.noteSituation('crash at rest');
      break;
    default:
      break;
  }
};
