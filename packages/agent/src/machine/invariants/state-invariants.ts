import type { Step } from '@pawl/machine/kernel/step-types';
import type { Action } from '../action.js';
import { brokenRule } from '../broken-rule-text.js';
import { type Conversation, lengthOf } from '../conversation.js';
import type { Event } from '../event.js';
import type { Message, UserMessage } from '../message.js';
import { isAsked, isEnded, isRunning } from '../moves/tools/tool-batch.js';
import type { State } from '../state.js';
import { isReached } from '../values/limit-value.js';

/**
 * Rules of docs/rules.md that hold in every reachable state. `deterministic` is checked elsewhere: it compares two runs.
 */

/** The rules that a step breaks, each as a sentence that begins with the rule's anchor. */
export const stateFaults = (before: State, event: Event, step: Step<State, Action>): readonly string[] => {
  const { state, actions } = step;
  const eventFaults = [
    ...shutdownFaults(event, state),
    ...lostInputs(before, event, step),
    ...silence(before, event, step),
  ];
  // This very state was checked when it was reached.
  if (state === before && actions.length === 0) return eventFaults;
  return [
    ...eventFaults,
    ...conversationFaults(before, step),
    ...livenessFaults(state),
    ...requestFaults(step),
    ...boundFaults(before, state),
    ...editedMessages(before.session.conversation, state.session.conversation, event),
  ];
};

const callIdsOf = (message: Message | undefined): readonly string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'call' ? [part.callId] : []));

const resultIdsOf = ({ parts }: Message): readonly string[] =>
  parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));

/** Faults of a message after `previous`: its results, role and parts. */
const pairFaults = (previous: Message | undefined, message: Message): readonly string[] => {
  const faults: string[] = [];
  if (message.parts.length === 0) faults.push(brokenRule('roles-alternate', 'a message is empty'));
  if (
    message.parts.some((part) => part.type === 'text' && message.role === 'user' && part.text.trim() === '')
  ) {
    faults.push(brokenRule('roles-alternate', 'a user message holds blank text'));
  }
  if (previous === undefined ? message.role !== 'user' : previous.role === message.role) {
    faults.push(
      brokenRule('roles-alternate', `roles do not alternate: ${previous?.role ?? 'start'}, ${message.role}`),
    );
  }
  const calls = callIdsOf(previous);
  const results = resultIdsOf(message);
  if (calls.join() !== results.join())
    faults.push(brokenRule('every-call-answered', `calls [${calls}] are answered by [${results}]`));
  const firstText = message.parts.findIndex((part) => part.type === 'text');
  const lastResult = message.parts.map((part) => part.type).lastIndexOf('result');
  if (firstText >= 0 && firstText < lastResult)
    faults.push(brokenRule('every-call-answered', 'text stands before a result'));
  return faults;
};

/** The messages that are new or may have changed since `before`, and where they begin. */
const newPart = (before: Conversation, after: Conversation) => {
  const from = after.closed.continues(before.closed) ? before.closed.length : 0;
  const closed: readonly Message[] = after.closed.toArray(from);
  return { from, messages: after.open === null ? closed : [...closed, after.open] };
};

/** Faults of the new messages, each checked against the one before it. */
const talkFaults = (before: Conversation, after: Conversation): readonly string[] => {
  if (after === before) return [];
  const { from, messages } = newPart(before, after);
  const front = after.closed.at(from - 1);
  return messages.flatMap((message, index) => pairFaults(index === 0 ? front : messages[index - 1], message));
};

const conversationFaults = (before: State, { state, actions }: Step<State, Action>): readonly string[] => {
  const { conversation } = state.session;
  const faults = [...talkFaults(before.session.conversation, conversation)];
  const last = conversation.open ?? conversation.closed.at(conversation.closed.length - 1);
  const atRest = state.name === 'WaitingForUserInput' || state.name === 'ShuttingDown';
  const sends = actions.find((action) => action.type === 'SendLlmRequest');
  if ((atRest || sends !== undefined) && callIdsOf(last).length > 0)
    faults.push(brokenRule('every-call-answered', 'the last calls are not answered'));
  if (sends !== undefined && conversation.open === null)
    faults.push(brokenRule('roles-alternate', 'a request does not end with the user'));
  if (sends !== undefined && sends.length !== lengthOf(conversation))
    faults.push(brokenRule('roles-alternate', 'a request is not the whole conversation'));
  return faults;
};

const livenessFaults = (state: State): readonly string[] => {
  switch (state.name) {
    case 'ExecutingTools': {
      if (state.calls.every(isEnded))
        return [brokenRule('never-stuck', 'a batch whose calls have all ended rests')];
      const alive = state.calls.some((call) => isRunning(call) || isAsked(call));
      return alive ? [] : [brokenRule('never-stuck', 'a batch waits for nothing')];
    }
    case 'PostToolsHook':
      return state.hookId === ''
        ? [brokenRule('never-stuck', 'a hook rests without having been started')]
        : [];
    case 'Ready':
    case 'WaitingForUserInput':
    case 'CallingLlm':
    case 'Error':
    case 'Compacting':
    case 'ShuttingDown':
      return [];
    default:
      return [brokenRule('never-stuck', `the transient state ${state.name} rests`)];
  }
};

const requestFaults = ({ state, actions }: Step<State, Action>): readonly string[] => {
  const sends = actions.filter((action) => action.type === 'SendLlmRequest');
  if (sends.length > 1) return [brokenRule('one-request', 'a step sends two requests')];
  const [sent] = sends;
  if (sent === undefined) return [];
  return state.name === 'CallingLlm' && state.requestId === sent.requestId
    ? []
    : [brokenRule('one-request', 'a request is not the current one')];
};

/** A scheduled retry takes place. A call that waited for a compaction keeps its attempt number. */
const promisedAttempt = (before: State): number => {
  if (before.name === 'Error') return before.attempt + 1;
  if (before.name === 'CallingLlm') return before.attempt;
  return before.name === 'Compacting' && before.mode.kind === 'overflow' ? before.mode.attempt : 0;
};

/** Counters that grew beyond their bounds. A lowered bound takes effect from the next decision. */
const boundFaults = (before: State, state: State): readonly string[] => {
  const { settings, turn } = state.session;
  const faults: string[] = [];
  if (
    (state.name === 'CallingLlm' || state.name === 'Error') &&
    state.attempt > Math.max(promisedAttempt(before), settings.maxRetries + 1)
  ) {
    faults.push(brokenRule('bounded-work', `attempt ${state.attempt} of at most ${settings.maxRetries + 1}`));
  }
  if (state.name === 'Error' && before.name !== 'Error' && state.error.kind !== 'empty') {
    if (state.attempt > settings.maxRetries)
      faults.push(
        brokenRule('bounded-work', `retry ${state.attempt} of at most ${settings.maxRetries} is promised`),
      );
  }
  // The call that asks for the answer at a limit runs no tools.
  const busy = state.name === 'CallingLlm' && before.name !== 'CallingLlm' && turn.finishing === 'no';
  const { rounds, truncation } = settings.limits;
  if (busy && isReached(rounds, turn.rounds))
    faults.push(brokenRule('bounded-work', 'a call beyond the limit of rounds'));
  if (busy && isReached(truncation, turn.truncations))
    faults.push(brokenRule('bounded-work', 'a call beyond the limit of cut replies'));
  if (state.name === 'ExecutingTools') {
    const running = state.calls.filter(isRunning);
    const ranBefore = before.name === 'ExecutingTools' ? before.calls.filter(isRunning).length : 0;
    if (running.length > Math.max(ranBefore, settings.maxParallel))
      faults.push(brokenRule('bounded-work', 'more calls run than may run at once'));
    if (running.length > 1 && running.some(({ judged }) => judged.traits.mutating))
      faults.push(brokenRule('bounded-work', 'a mutating call has company'));
  }
  return faults;
};

const shutdownFaults = (event: Event, state: State): readonly string[] =>
  event.type === 'ShutdownRequested' && state.name !== 'ShuttingDown'
    ? [brokenRule('shutdown', 'shutdown did not end the session')]
    : [];

const textsOf = (message: UserMessage | null): readonly string[] =>
  message?.parts.flatMap((part) => (part.type === 'text' && part.origin === 'user' ? [part.text] : [])) ?? [];

/** All inputs that still exist: queued, unanswered, or answered in this step. */
const lostInputs = (
  before: State,
  event: Event,
  { state, actions }: Step<State, Action>,
): readonly string[] => {
  const typed = event.type === 'UserInput' && event.text.trim() !== '' ? [event.text] : [];
  const { queue, conversation } = state.session;
  const isSame = queue === before.session.queue && conversation === before.session.conversation;
  if (event.type === 'EditQueue' || (isSame && typed.length === 0)) return [];
  const had = [
    ...before.session.queue.map((item) => item.text),
    ...textsOf(before.session.conversation.open),
    ...typed,
  ];
  const restored = actions.flatMap((action) => (action.type === 'RestoreQueue' ? action.texts : []));
  const { messages } = newPart(before.session.conversation, conversation);
  const told = messages.flatMap((message) => (message.role === 'user' ? textsOf(message) : []));
  const has = [...queue.map((item) => item.text), ...told, ...restored];
  for (const text of has) {
    const index = had.indexOf(text);
    if (index >= 0) had.splice(index, 1);
  }
  return had.map((text) => brokenRule('nothing-typed-is-lost', `"${text.slice(0, 40)}" is lost`));
};

const displayOnly = new Set<Event['type']>(['ReasoningDelta', 'ToolCallDelta', 'ToolProgress']);

const silence = (
  before: State,
  event: Event,
  { state, actions, diagnostics }: Step<State, Action>,
): readonly string[] => {
  if (state !== before || actions.length > 0 || diagnostics.length > 0 || displayOnly.has(event.type))
    return [];
  return [brokenRule('no-silent-event', `${event.type} in ${before.name} changed nothing and said nothing`)];
};

/** Only compaction replaces what was answered: docs/rules.md#append-only. */
const editedMessages = (before: Conversation, after: Conversation, event: Event): readonly string[] =>
  after.closed.continues(before.closed) || event.type === 'CompactionCompleted'
    ? []
    : [brokenRule('append-only', 'a message that was answered has been changed')];
