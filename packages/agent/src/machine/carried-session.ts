/**
 * A session read from its events alone, without the machine that wrote them.
 *
 * The machine decides by states, and a later machine can come to other states. What the user typed,
 * what the model said, what calls reported and what all of it cost stands in the events themselves.
 * From these a conversation follows that every provider accepts, and the work that was in flight.
 * What only an earlier machine knew is left out: notes, counts of rounds, grants, and why a call
 * did not run.
 *
 * The result is a "carried" session, which speaks of no machine's states. It is needed when an
 * update has changed the table, so that an old journal no longer leads to the same states. The
 * event `Resumed` of the later machine holds it (`upgrade`), and that machine goes on from it.
 *
 * From top to bottom: `SessionFromEvents`, which collects; and `carrySession` and `stateFrom`, with
 * which a later machine goes on. seen-files.ts collects the files that the events tell of.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import {
  hookNotes,
  hookRemarks,
  type JudgedCall,
  verdictsIn,
  withRemarks,
} from '../policy/judged-call.js';
import type { Call, CallOutcome, EndedStatus } from './call.js';
import {
  addParts,
  addReply,
  addResults,
  addTexts,
  type Conversation,
  compactableLength,
  emptyConversation,
  estimateTokens,
  messagesOf,
  replaceBySummary,
} from './conversation.js';
import type {
  CarriedCall,
  CarriedOutcome,
  CarriedSession,
  CarriedWork,
  Event,
  EventType,
  On,
  QueuedInput,
} from './event.js';
import type { AssistantMessage, Message, ResultPart, UserText } from './message.js';
import { addUsage, spendingId, timerFrom } from './moves/budget.js';
import { newCallingLlm } from './moves/request.js';
import { rewoundConversation } from './moves/rewind.js';
import {
  closedText,
  interruptedText,
  invalidText,
  noStreaks,
  noSuchToolText,
  notRunText,
  outcomeText,
  refusedText,
  truncatedText,
} from './moves/tool-batch.js';
import { nothingSpent, type Usage } from './settings.js';
import { jsonShape } from './shapes.js';
import { changeSession, type SessionData, type State } from './state.js';

/** The result of a call that was waiting when nobody knows why it never ran. */
const MISSING = 'not run: the journal does not say why';
/** Stands between two replies, which no provider accepts without a user message between them. */
const CONTINUED = '[The turn went on here.]';

/** The calls of the last reply. No event before a call starts names the batch: its id is null. */
type Batch = { batchId: string | null; readonly calls: CarriedCall[] };
/**
 * How far the turn is. `retries`: a request failed and may be sent again. `stops`: the turn was
 * cancelled, and is not over.
 */
type Turn = 'rests' | 'runs' | 'retries' | 'stops';
type Rewind = Extract<CarriedWork, { readonly kind: 'rewind' }>;

const textPart = ({ text, images }: QueuedInput): UserText => ({
  type: 'text',
  origin: 'user',
  text,
  ...(images === undefined ? {} : { images }),
});

/** The end of a call that the reply itself rules out; absent if it may run. */
const endFromReply = (
  judged: JudgedCall,
  { stopReason, at }: On<'LlmCompleted'>,
): Pick<CarriedCall, 'ended'> => {
  const end = (status: EndedStatus, text: string): Pick<CarriedCall, 'ended'> => ({
    ended: { status, ran: false, at, text },
  });
  if (judged.verdict.kind === 'noSuchTool') return end('noSuchTool', noSuchToolText(judged));
  if (judged.verdict.kind === 'invalid') return end('invalid', invalidText(judged));
  if (stopReason === 'maxTokens') return end('truncated', truncatedText);
  return stopReason === 'end' || stopReason === 'toolUse'
    ? {}
    : end('skipped', `not run: the reply ended with ${stopReason}`);
};

/** The end of a call by its outcome, with what hooks said after it. */
const endFromOutcome = (outcome: CallOutcome, at: number): CarriedOutcome => {
  const { status, images, ran } = outcome;
  return {
    status,
    ran: ran !== 'no',
    at,
    text: withRemarks(outcomeText(outcome, 'user'), hookRemarks(verdictsIn(outcome.hooks))),
    ...(status === 'ok' && images !== undefined ? { images } : {}),
  };
};

/** Whether an outcome may still come: the call has none, or was cancelled before it started. */
const isOpen = ({ startedAt, ended }: CarriedCall): boolean =>
  ended === undefined || (ended.status === 'cancelled' && startedAt === null);

/** The first start counts. A call that starts was not cancelled in time. */
const startedCall = (call: CarriedCall, startedAt: number): CarriedCall =>
  call.startedAt === null && isOpen(call)
    ? { judged: call.judged, requestedAt: call.requestedAt, startedAt }
    : call;

/** Ends a call before its start: it never runs. */
const endBeforeStart = (
  call: CarriedCall,
  status: EndedStatus,
  at: number,
  text: string,
): CarriedCall =>
  call.startedAt === null && call.ended === undefined
    ? { ...call, ended: { status, ran: false, at, text } }
    : call;

/** The user's first answer counts. The words for a call that asks are kept with it. */
const answeredCall = (call: CarriedCall, { answer, at }: On<'ApprovalAnswered'>): CarriedCall => {
  const { judged, startedAt } = call;
  const { asks } = judged.traits;
  if (answer.kind === 'deny')
    return endBeforeStart(call, 'denied', at, refusedText(answer.reason, asks));
  if (asks === undefined || startedAt !== null || judged.reply !== undefined) return call;
  return { ...call, judged: { ...judged, reply: answer.kind === 'reply' ? answer.text : '' } };
};

/**
 * The result of a call, with the notes of hooks that saw the call before it ran. `open`: its text
 * if the call has not ended.
 */
const carriedResult = ({ judged, ended }: CarriedCall, open: string): ResultPart => ({
  type: 'result',
  callId: judged.callId,
  tool: judged.tool,
  failed: ended?.status !== 'ok',
  text: withRemarks(ended?.text ?? open, hookNotes(verdictsIn(judged.hooks))),
  ...(ended?.images === undefined ? {} : { images: ended.images }),
});

/**
 * Drops input that is nested too deep: journals of the first version hold it, no event may today.
 */
const withoutDeepInput = <T extends { readonly input: JsonObject }>(call: T): T =>
  jsonShape.check(call.input) === null ? call : { ...call, input: {} };

/** No provider accepts such a message, so that it is never stored. */
const saysNothing = ({ parts }: AssistantMessage): boolean =>
  parts.every(
    (part) => part.type === 'reasoning' || (part.type === 'text' && part.text.trim() === ''),
  );

/** Whether each call of the message was checked, once. The machine refuses any other reply. */
const namesItsCalls = (message: AssistantMessage, calls: readonly JudgedCall[]): boolean => {
  const callIds = message.parts.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
  return (
    callIds.join('\n') === calls.map(({ callId }) => callId).join('\n') &&
    new Set(callIds).size === callIds.length
  );
};

/** Collects from the events, in order, all that a later machine needs to go on. */
class SessionFromEvents {
  #conversation: Conversation = emptyConversation;
  #queue: readonly QueuedInput[] = [];
  /** Number of inputs so far, from which they get their ids. */
  #inputs = 0;
  #batch: Batch | null = null;
  #turn: Turn = 'rests';
  /** The session was shut down, and not resumed since. */
  #isClosed = false;
  /** Streamed text of the reply that is under way. */
  #partial = '';
  #model: string;
  #usage: CarriedSession['usage'] = nothingSpent;
  /** Time of the last event. */
  #at = 0;
  /** Ids whose usage was counted. */
  readonly #counted = new Set<string>();
  /** The rewind whose files are being taken back. */
  #rewind: Rewind | null = null;
  /** Something was taken back, and no turn has begun since. */
  #isRewound = false;

  constructor(model: string) {
    this.#model = model;
  }

  /** Takes the next event. */
  see(event: Event): void {
    this.#at = event.at;
    switch (event.type) {
      case 'UserInput':
        this.#addInput(event);
        return;
      case 'EditQueue':
        this.#editQueue(event);
        return;
      case 'RetryLast':
        this.#sendAgain();
        return;
      case 'RetryNow':
      case 'TimerFired':
        if (this.#turn === 'retries') this.#turn = 'runs';
        return;
      case 'CancelTurn':
        if (this.#turn !== 'rests') this.#turn = 'stops';
        return;
      case 'TextDelta':
        this.#partial += event.text;
        return;
      case 'SettingsChanged':
        this.#model = event.patch.model ?? this.#model;
        return;
      case 'ShutdownRequested':
        this.#shutDown(event);
        return;
      case 'PolicyStopped':
        this.#interrupt('rests');
        return;
      case 'Resumed':
        this.#resume(event);
        return;
      default:
        this.#seeResult(event);
        return;
    }
  }

  /** Events that answer something the machine asked for. */
  #seeResult(event: Event): void {
    switch (event.type) {
      case 'LlmCompleted':
        if (!this.#counted.has(event.requestId)) this.#reply(event);
        this.#countUsage(event.requestId, event.usage);
        return;
      case 'LlmFailed':
        this.#countUsage(event.requestId, event.usage);
        // what came before a cancel stays
        if (this.#turn !== 'stops') this.#partial = '';
        // A conversation that is too long is summarised or cut, and sent again.
        if (event.error.kind !== 'contextOverflow')
          this.#interrupt(event.error.retryable ? 'retries' : 'rests');
        return;
      case 'ToolStarted':
        this.#changeCall(event, (call) => startedCall(call, event.at));
        return;
      case 'CancelTool':
        this.#changeCall(event, (call) =>
          endBeforeStart(call, 'cancelled', event.at, notRunText('user')),
        );
        return;
      case 'ToolCompleted':
        this.#countUsage(spendingId(event.batchId, event.callId), event.outcome.usage ?? null);
        this.#endCall(event, endFromOutcome(event.outcome, event.at));
        return;
      case 'ApprovalAnswered':
        this.#changeCall(event, (call) => answeredCall(call, event));
        this.#closeIfEnded();
        return;
      case 'CallPreviewed':
        this.#refuse(event);
        return;
      case 'ToolsFailed':
        if (this.#findBatch(event.batchId) === null) return;
        this.#closeBatch(interruptedText(''), `not run: ${event.message}`);
        this.#turn = 'rests';
        return;
      case 'HookCompleted':
        this.#countUsage(event.hookId, event.usage);
        if (event.note.trim() !== '' && this.#conversation.open !== null) this.#note(event.note);
        return;
      case 'CompactionCompleted':
        this.#countUsage(event.compactionId, event.usage);
        this.#summarise(event.summary);
        return;
      case 'CompactionFailed':
        this.#countUsage(event.compactionId, event.usage);
        return;
      case 'UsageReported':
        this.#countUsage(event.usageId, event.usage);
        return;
      case 'RewindRequested':
        this.#beginRewind(event);
        return;
      case 'Rewound':
        if (this.#rewind?.rewindId === event.rewindId) this.#goBack(this.#rewind);
        return;
      // Stryker disable next-line ConditionalExpression: nothing comes after the last case
      default:
        return;
    }
  }

  /** The session so far. `seq`: number of the last entry. */
  carried(seq: number): CarriedSession {
    const { work, conversation } = this.#inFlight(seq);
    return {
      messages: messagesOf(conversation),
      queue: this.#queue,
      usage: this.#usage,
      idsFrom: Math.max(seq, this.#inputs), // no later id may be one that stands in an event
      at: this.#at,
      work,
    };
  }

  /** The work that a later machine takes up, and the conversation that fits it. */
  #inFlight(seq: number): { readonly work: CarriedWork; readonly conversation: Conversation } {
    const batch = this.#batch;
    if (batch !== null && this.#turn === 'runs') {
      const work = {
        kind: 'calls',
        batchId: batch.batchId ?? `batch-${seq}`,
        calls: batch.calls,
      } as const;
      return { work, conversation: this.#conversation };
    }
    if (this.#rewind !== null) return { work: this.#rewind, conversation: this.#conversation };
    if (this.#turn === 'runs')
      return { work: { kind: 'request' }, conversation: this.#conversation };
    const conversation = this.#settledConversation();
    return { work: { kind: this.#isClosed ? 'closed' : 'nothing' }, conversation };
  }

  /**
   * The conversation of a turn that is over: open calls are answered, and text of a reply that
   * broke off is stored. `open` is the result of a call that ran, `waiting` of one that did not.
   */
  #settledConversation(open = interruptedText(''), waiting = MISSING): Conversation {
    const answered = this.#answeredConversation(open, waiting);
    if (this.#partial.trim() === '' || answered.open === null) return answered;
    const parts = [{ type: 'text', text: this.#partial } as const];
    return addReply(answered, { role: 'assistant', model: this.#model, cut: true, parts });
  }

  #answeredConversation(open: string, waiting: string): Conversation {
    const batch = this.#batch;
    if (batch === null) return this.#conversation;
    const results = batch.calls.map((call) =>
      carriedResult(call, call.startedAt === null ? waiting : open),
    );
    return addResults(this.#conversation, results);
  }

  /** Answers the open calls of the batch; the texts are those of `#settledConversation`. */
  #closeBatch(open: string, waiting: string): void {
    this.#conversation = this.#answeredConversation(open, waiting);
    this.#batch = null;
  }

  #endTurn(): void {
    this.#conversation = this.#settledConversation();
    this.#batch = null;
    this.#partial = '';
    this.#turn = 'rests';
  }

  #sendQueue(): void {
    this.#conversation = addParts(this.#conversation, this.#queue.map(textPart));
    this.#queue = [];
    this.#beginTurn();
  }

  #sendAgain(): void {
    if (!this.#mayBeginTurn()) return;
    this.#endTurn();
    if (this.#conversation.open !== null) this.#beginTurn();
  }

  /** A stopped turn ends when its last running call has ended. */
  #mayBeginTurn(): boolean {
    const rests = this.#turn !== 'runs' && !this.#hasRunningCalls();
    return rests && !this.#isClosed && this.#rewind === null;
  }

  /** A request ends without a reply. While a call runs no request is open, so the event is late. */
  #interrupt(turn: 'rests' | 'retries'): void {
    if (this.#turn === 'runs' && !this.#hasRunningCalls()) this.#turn = turn;
  }

  #hasRunningCalls(): boolean {
    const calls = this.#batch?.calls ?? [];
    return calls.some(({ startedAt, ended }) => startedAt !== null && ended === undefined);
  }

  #beginTurn(): void {
    this.#turn = 'runs';
    this.#isRewound = false;
  }

  #addInput({ text, mode, images }: On<'UserInput'>): void {
    if (text.trim() === '') return;
    this.#inputs += 1;
    const input = {
      inputId: `input-${this.#inputs}`,
      text,
      mode,
      ...(images === undefined ? {} : { images }),
    };
    this.#queue = [...this.#queue, input];
    if (!this.#mayBeginTurn()) return; // until then the text waits
    this.#endTurn();
    this.#sendQueue();
  }

  #editQueue({ items }: On<'EditQueue'>): void {
    if (this.#isClosed) return;
    const known = new Map(this.#queue.map((item) => [item.inputId, item]));
    this.#queue = items.map(({ inputId, text, mode }) => {
      const images = known.get(inputId)?.images;
      return { inputId, text, mode, ...(images === undefined ? {} : { images }) };
    });
  }

  #reply(event: On<'LlmCompleted'>): void {
    const { message, calls } = event;
    if (this.#isClosed || this.#isRewound) return; // it belongs to what is over or taken back
    const isAborted = this.#acceptLateReply();
    this.#partial = '';
    if (message === null || saysNothing(message)) {
      // the model is perhaps asked again, as after a failure
      this.#interrupt('retries');
      return;
    }
    if (!namesItsCalls(message, calls)) {
      this.#interrupt('rests');
      return;
    }
    this.#storeReply(event, message, isAborted);
  }

  /** Settles what a late reply shows to be over. Returns whether it is of a cancelled turn. */
  #acceptLateReply(): boolean {
    // A reply after a cancel belongs to the cancelled turn. If the user has typed since, that turn
    // is over and the text has gone out: the reply answers it.
    const isAborted = this.#turn === 'stops' && this.#queue.length === 0;
    if (this.#turn === 'stops' && !isAborted) this.#endTurn();
    // A reply that nothing here asked for: the earlier machine had sent the queue with a request,
    // as in UserInput, UserInput, LlmCompleted, LlmCompleted.
    if (this.#queue.length > 0 && (this.#turn === 'rests' || this.#batch !== null)) {
      this.#closeBatch(interruptedText(''), MISSING);
      this.#sendQueue();
    }
    return isAborted;
  }

  #storeReply(event: On<'LlmCompleted'>, message: AssistantMessage, isAborted: boolean): void {
    const { calls, stopReason } = event;
    this.#closeBatch(interruptedText(''), MISSING);
    if (this.#conversation.open === null) this.#note(CONTINUED);
    const parts = message.parts.map((part) =>
      part.type === 'call' ? withoutDeepInput(part) : part,
    );
    this.#conversation = addReply(this.#conversation, { ...message, parts });
    this.#turn = 'runs';
    if (calls.length > 0) {
      this.#batch = {
        batchId: null,
        calls: calls.map((judged) => ({
          judged: withoutDeepInput(judged),
          requestedAt: event.at,
          startedAt: null,
          ...endFromReply(judged, event),
        })),
      };
      if (isAborted) this.#closeBatch(interruptedText(''), notRunText('user'));
    }
    const isOver =
      isAborted ||
      calls.length === 0 ||
      (stopReason !== 'end' && stopReason !== 'toolUse' && stopReason !== 'maxTokens');
    if (!isOver) {
      this.#closeIfEnded();
      return;
    }
    this.#endTurn();
    if (!isAborted && this.#queue.length > 0) this.#sendQueue();
  }

  #note(text: string): void {
    this.#conversation = addTexts(this.#conversation, 'note', [text]);
  }

  /** The open batch, if it may be this one: before its first call starts nobody names it. */
  #findBatch(batchId: string): Batch | null {
    return (this.#batch?.batchId ?? batchId) === batchId ? this.#batch : null;
  }

  #changeCall(
    { batchId, callId }: { readonly batchId: string; readonly callId: string },
    change: (call: CarriedCall) => CarriedCall,
  ): void {
    const batch = this.#findBatch(batchId);
    if (batch === null) return;
    const index = batch.calls.findIndex(({ judged }) => judged.callId === callId);
    const call = batch.calls[index];
    if (call === undefined) return;
    batch.batchId = batchId;
    batch.calls[index] = change(call);
  }

  /** The first outcome counts. */
  #endCall(
    event: { readonly batchId: string; readonly callId: string },
    ended: CarriedOutcome,
  ): void {
    this.#changeCall(event, (call) => (isOpen(call) ? { ...call, ended } : call));
    this.#closeIfEnded();
  }

  /** A preview may show that the call can't be done. */
  #refuse(event: On<'CallPreviewed'>): void {
    const { preview, at } = event;
    if (preview.kind !== 'refused') return;
    const text = outcomeText({ status: 'failed', text: preview.text }, 'user');
    this.#changeCall(event, (call) => endBeforeStart(call, 'failed', at, text));
    this.#closeIfEnded();
  }

  /** Texts that the user typed meanwhile go with the results. */
  #closeIfEnded(): void {
    if (this.#batch === null || this.#batch.calls.some(({ ended }) => ended === undefined)) return;
    this.#closeBatch('', ''); // every call has a text of its own
    if (this.#turn === 'stops') {
      this.#endTurn();
      return;
    }
    const steers = this.#queue.filter(({ mode }) => mode === 'steer');
    this.#conversation = addParts(this.#conversation, steers.map(textPart));
    this.#queue = this.#queue.filter(({ mode }) => mode !== 'steer');
  }

  /**
   * Begins a rewind, unless calls run. A turn may seem to run: no event says that a limit has ended
   * it.
   */
  #beginRewind(event: On<'RewindRequested'>): void {
    if (this.#hasRunningCalls() || this.#isClosed || this.#rewind !== null) return;
    const conversation = this.#settledConversation();
    const isPossible =
      event.conversation === undefined
        ? event.files !== undefined
        : rewoundConversation(conversation, event.conversation) !== null;
    if (!isPossible) return;
    this.#endTurn();
    this.#isRewound = true;
    const { rewindId, to, files, conversation: rewound } = event;
    if (files === undefined) this.#goBack(event);
    else {
      const { plan } = files;
      const back = rewound === undefined ? {} : { conversation: rewound };
      this.#rewind = { kind: 'rewind', rewindId, to, plan, ...back };
    }
  }

  #goBack({ conversation }: Pick<Rewind, 'conversation'>): void {
    this.#rewind = null;
    if (conversation === undefined) return;
    this.#conversation =
      rewoundConversation(this.#conversation, conversation) ?? this.#conversation;
  }

  #summarise(summary: string): void {
    if (this.#isClosed || this.#rewind !== null || this.#hasRunningCalls()) return; // too late
    this.#closeBatch(interruptedText(''), MISSING);
    const length = compactableLength(this.#conversation);
    this.#conversation = replaceBySummary(this.#conversation, length, summary);
  }

  #shutDown({ outcomes = [], at }: On<'ShutdownRequested'>): void {
    for (const { batchId, callId, outcome } of outcomes)
      if (outcome.status !== 'cancelled')
        this.#endCall({ batchId, callId }, endFromOutcome(outcome, at));
    this.#closeBatch(interruptedText(''), closedText);
    this.#endTurn();
    this.#rewind = null;
    this.#isClosed = true;
  }

  /** A resumed session goes on by itself, or from the session that an upgrade carries. */
  #resume({ upgrade }: On<'Resumed'>): void {
    this.#isClosed = false;
    if (this.#turn === 'stops') this.#endTurn();
    this.#partial = '';
    const session = upgrade?.session;
    if (session === undefined) return;
    const { messages, queue, usage, work, idsFrom } = session;
    this.#conversation = conversationFrom(messages);
    this.#queue = queue;
    this.#usage = usage;
    this.#inputs = idsFrom;
    this.#rewind = work.kind === 'rewind' ? work : null;
    this.#isRewound = this.#rewind !== null;
    this.#batch = work.kind === 'calls' ? { batchId: work.batchId, calls: [...work.calls] } : null;
    this.#turn = work.kind === 'calls' || work.kind === 'request' ? 'runs' : 'rests';
  }

  /** Counts usage once per id. */
  #countUsage(id: string, usage: Usage | null): void {
    if (usage === null || this.#counted.has(id)) return;
    this.#counted.add(id);
    this.#usage = addUsage(this.#usage, usage);
  }
}

/**
 * The conversation with these messages. The trailing user message is open: it waits for a reply.
 */
const conversationFrom = (messages: readonly Message[]): Conversation => {
  let conversation = emptyConversation;
  for (const message of messages)
    conversation =
      message.role === 'assistant'
        ? addReply(conversation, message)
        : { ...conversation, open: message };
  return conversation;
};

type SessionCarrier = {
  /**
   * Sees all events of a session in order. `taken`: whether the present machine found the event in
   * its place.
   */
  see(event: Event, taken: boolean): void;
  /** What the present machine has missed, after entry `seq`; null if it has missed nothing. */
  missed(seq: number): CarriedSession | null;
};

const NEEDED: ReadonlySet<EventType> = new Set([
  'ToolStarted',
  'ToolCompleted',
  'CompactionCompleted',
  'RewindRequested',
  'Rewound',
]);
/** Whether the conversation or a running call lacks something if the machine refuses this event. */
const isNeeded = (event: Event): boolean =>
  event.type === 'LlmCompleted' ? event.message !== null : NEEDED.has(event.type);

/** Reads a session of an earlier machine beside the present one. */
export const carrySession = (model: string): SessionCarrier => {
  const session = new SessionFromEvents(model);
  let hasMissed = false;
  return {
    see(event, taken) {
      session.see(event);
      // The session that an upgrade carries holds all that was missed before.
      // Stryker disable next-line ConditionalExpression: asked for the compiler
      if (event.type === 'Resumed' && event.upgrade?.session !== undefined) hasMissed = false;
      else hasMissed ||= !taken && isNeeded(event);
    },
    missed: (seq) => (hasMissed ? session.carried(seq) : null),
  };
};

const carriedCall = ({ judged, requestedAt, startedAt, ended }: CarriedCall): Call => {
  if (ended !== undefined) {
    const { status, ran, at, text, images } = ended;
    const outcome = { failed: status !== 'ok', text, ...(images === undefined ? {} : { images }) };
    return { judged, requestedAt, status, ran, startedAt, completedAt: at, outcome };
  }
  // `byUser`: a call that has started is not decided again, so this value has no effect.
  return startedAt === null
    ? { judged, requestedAt, status: 'queued', allowed: 'notYet' }
    : { judged, requestedAt, status: 'running', allowed: 'byUser', startedAt, graceTimerId: null };
};

/** `before` with all that the carried session knows; counters go on above its ids. */
const sessionFrom = (before: SessionData, carried: CarriedSession): SessionData => {
  const { messages, queue, usage, work, idsFrom, at } = carried;
  const { timeMs } = before.settings.limits;
  const isRunning = work.kind === 'request' || work.kind === 'calls';
  return changeSession(before, {
    conversation: conversationFrom(messages),
    queue,
    usage,
    unaccounted: [],
    contextTokens: estimateTokens(messages),
    emptyReplies: 0,
    mayCompact: 'yes',
    notes: [],
    turn: {
      turnId: `turn-${idsFrom}`,
      rounds: 0,
      truncations: 0,
      streaks: noStreaks,
      finishing: 'no',
      startedAt: at,
      // A running turn gets its whole time again, since its events don't tell how much is left.
      timeLimit:
        isRunning && timeMs !== 'unlimited' ? timerFrom(`timer-${idsFrom}`, at, timeMs) : null,
      warned: [],
    },
    counters: {
      request: idsFrom,
      batch: idsFrom,
      timer: idsFrom,
      hook: idsFrom,
      compaction: idsFrom,
      input: idsFrom,
      turn: idsFrom,
    },
  });
};

/**
 * The state that goes on from a carried session. Settings, grants and the number of openings are
 * those of `before`.
 */
export const stateFrom = (before: State, carried: CarriedSession): State => {
  const session = sessionFrom(before.session, carried);
  const { work } = carried;
  switch (work.kind) {
    case 'nothing':
      return { name: 'WaitingForUserInput', session, reason: { kind: 'resumed' }, next: 'rest' };
    case 'closed':
      return { name: 'ShuttingDown', session };
    case 'request':
      return newCallingLlm(session, 'user', 1);
    case 'calls':
      return {
        name: 'ExecutingTools',
        session,
        batchId: work.batchId,
        calls: work.calls.map(carriedCall),
        phase: { mode: 'running' },
      };
    case 'rewind': {
      const { rewindId, to, plan, conversation } = work;
      const rewound = conversation === undefined ? {} : { conversation };
      return { name: 'Rewinding', session, rewindId, to, plan, ...rewound };
    }
    default:
      return work satisfies never;
  }
};
