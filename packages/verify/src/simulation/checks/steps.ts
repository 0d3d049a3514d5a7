import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import { requiredRequestFaults } from '@pawl/agent/machine/invariants/must-call-model-invariants';
import { stateFaults } from '@pawl/agent/machine/invariants/state-invariants';
import { stepFaults } from '@pawl/agent/machine/invariants/step-invariants';
import { step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import type { Life } from '../process-life.js';
import type { CallRecord, World } from '../world.js';
import { checkDurable } from './journal.js';

/** Looks at every step of a life, after its event was acknowledged. */

/** Delays of timers may be late by what the disk and the queue take. */
const LATE_MS = 1_000;

const watchTimers = (life: Life, event: Event, actions: readonly Action[]): void => {
  const { world, timers } = life;
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

/** Notes what an event says about tool calls. */
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
  if (event.type === 'ApprovalAnswered') recordAnswer(world.calls.get(event.callId), event.answer.kind);
  if (event.type === 'ToolStarted') markCall(world, event.callId, 'isStarted');
  if (event.type === 'ToolCompleted') {
    markCall(world, event.callId, 'isCompleted');
    const record = world.calls.get(event.callId);
    if (event.outcome.status === 'lost')
      world.meet(record?.tool === 'append' ? 'probeable call found changed' : 'opaque call lost');
    if (event.outcome.text.startsWith('it had taken effect')) world.meet('probeable call found done');
    if (
      event.outcome.status === 'ok' &&
      record !== undefined &&
      record.tool !== 'look' &&
      record.effects === 0
    )
      world.violate('result-is-true', `${event.callId} is said to be done, and has had no effect`);
  }
  if (event.type === 'CompactionCompleted') world.meet('compaction completed');
};

/** The first answer counts. */
const recordAnswer = (record: CallRecord | undefined, kind: 'allow' | 'deny'): void => {
  if (record?.approval === 'asked') record.approval = kind === 'allow' ? 'allowed' : 'denied';
};

const markCall = (world: World, callId: string, mark: 'isStarted' | 'isCompleted'): void => {
  const record = world.calls.get(callId);
  if (record !== undefined) record[mark] = true;
};

const recordActions = (world: World, actions: readonly Action[]): void => {
  for (const action of actions) {
    if (action.type === 'RequestApproval') {
      const record = world.calls.get(action.call.callId);
      if (record?.approval === 'none') {
        record.approval = 'asked';
        record.askedIn = world.lives;
      }
    }
    if (action.type === 'RestoreQueue') for (const text of action.texts) withdraw(world, text);
  }
};

const withdraw = (world: World, text: string): void => {
  for (const input of world.inputs.values()) if (text.includes(input.text)) input.isWithdrawn = true;
};

/** Items of the queue that an edit removes, those included that arrived while the user made it. */
const recordRemoved = (world: World, event: Event, before: State | null): void => {
  if (event.type !== 'EditQueue' || before === null) return;
  const kept = new Set(event.items.map(({ text }) => text));
  for (const { text } of before.session.queue) if (!kept.has(text)) withdraw(world, text);
};

/** Notes events that a crash left in the file, and that nobody was told of. */
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

const meetState = (world: World, state: State): void => {
  if (state.name === 'ExecutingTools' && state.calls.filter(({ status }) => status === 'running').length > 1)
    world.meet('calls at the same time');
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'budget') world.meet('limit reached');
};

/** The watcher of a life's session. `opened` is the state before its first step. */
export const stepWatcher = (life: Life, opened: () => State | null): ((stepped: Stepped) => void) => {
  const { world } = life;
  return (stepped) => {
    if (life.isDead) return;
    const { event, state, actions, seq } = stepped;
    const before = life.state ?? opened();
    life.state = state;
    world.say(`${seq ?? '-'} ${event.type} -> ${state.name}`);
    if (seq !== null) {
      world.acknowledged.set(seq, { event, state });
      checkDurable(world, seq);
    }
    if (event.type === 'Resumed' && before?.name === 'ShuttingDown') world.meet('resume after a clean end');
    if (before !== null)
      for (const fault of [
        ...stateFaults(before, event, stepped),
        ...stepFaults(before, event, stepped),
        ...requiredRequestFaults(before, event, stepped),
      ])
        world.violate('machine-rules', fault);
    if (life.restoreJournal !== null && seq !== null)
      world.violate(
        'own-journal',
        `${event.type} was acknowledged after another program changed the journal`,
      );
    if (life.hasFailedToWrite)
      world.violate('no-effect-after-failed-write', `${event.type} after the journal has failed`);
    recordCalls(world, event);
    recordRemoved(world, event, before);
    recordActions(world, actions);
    watchTimers(life, event, actions);
    meetState(world, state);
    life.point(`the step ${event.type}`);
  };
};
