/**
 * A session read from its events alone, without the machine that wrote them.
 *
 * The machine decides by states, and a later machine can come to other states. What the user typed,
 * what the model said, what calls reported and what all of it cost stands in the events themselves.
 * From these follow a conversation that every provider accepts, the queue and the usage. A turn
 * that was in flight ends: a request, a retry, a summary and a hook are not repeated, and a call
 * that has not started never runs. Only a call that runs is carried, since recovery finds its real
 * outcome. (Journals of earlier versions also carry a request or a rewind; a later machine still
 * reads them.) What only an earlier machine knew is left out: notes that wait for the next message,
 * counts of rounds, grants, and why a call did not run.
 *
 * The trailing user message of a conversation is "open": it waits for a reply.
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
  holdsResults,
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
  StopReason,
} from './event.js';
import type { AssistantMessage, Message, ResultPart, UserText } from './message.js';
import {
  closedText,
  interruptedText,
  invalidText,
  noSuchToolText,
  notRunText,
  outcomeText,
  refusedText,
  truncatedText,
} from './moves/batch-calls.js';
import { noStreaks } from './moves/budget.js';
import { addUsage, costsNothing, newCallingLlm, spendingId } from './moves/request.js';
import { rewoundConversation } from './moves/rewind.js';
import { isSpending } from './moves/tool-batch.js';
import { nothingSpent, type Usage, type UsageCoverage } from './settings.js';
import { jsonObjectShape } from './shapes.js';
import {
  changeSession,
  NOTHING_COUNTED,
  type SessionData,
  type State,
  timerFrom,
} from './state.js';

/** The result of a call that was waiting when nobody knows why it never ran. */
const MISSING = 'not run: the journal does not say why';
/** Stands between two replies, which no provider accepts without a user message between them. */
const CONTINUED = '[The turn went on here.]';

/** The calls of the last reply. No event before a call starts names the batch: its id is null. */
type Batch = { batchId: string | null; readonly calls: CarriedCall[] };

const textPart = ({ text, images }: QueuedInput): UserText => ({
  type: 'text',
  origin: 'user',
  text,
  ...(images === undefined ? {} : { images }),
});

/** Sends the queue. In a turn its texts stand behind the results, and follow-ups stay queued. */
const sendQueue = (conversation: Conversation, queue: readonly QueuedInput[]) => {
  const inTurn = holdsResults(conversation);
  const waits = ({ mode }: QueuedInput): boolean => inTurn && mode === 'followUp';
  const sent = queue.filter((input) => !waits(input)).map(textPart);
  return { conversation: addParts(conversation, sent), queue: queue.filter(waits) };
};

/** The end of a call that the reply itself rules out; absent if it may run. */
const endFromReply = (
  judged: JudgedCall,
  stopReason: StopReason,
  at: number,
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

/**
 * Whether an outcome may still come: the call has none, or was cancelled before it started, when a
 * start may have been under way.
 */
const mayStillEnd = ({ startedAt, ended }: CarriedCall): boolean =>
  ended === undefined || (ended.status === 'cancelled' && startedAt === null);

const isRunning = ({ startedAt, ended }: CarriedCall): boolean =>
  startedAt !== null && ended === undefined;

/** The usage ids of carried calls that run and spend. */
const spendingIds = (work: CarriedWork): readonly string[] =>
  work.kind === 'calls'
    ? work.calls
        .filter((call) => isRunning(call) && isSpending(call.judged))
        .map(({ judged }) => spendingId(work.batchId, judged.callId))
    : [];

/** The first start counts. A call that starts was not cancelled in time. */
const startedCall = (call: CarriedCall, startedAt: number): CarriedCall =>
  call.startedAt === null && mayStillEnd(call)
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

/** The first outcome counts. */
const endedCall = (call: CarriedCall, outcome: CallOutcome, at: number): CarriedCall =>
  mayStillEnd(call) ? { ...call, ended: endFromOutcome(outcome, at) } : call;

const answeredCall = (call: CarriedCall, { answer, at }: On<'ApprovalAnswered'>): CarriedCall =>
  answer.kind === 'deny'
    ? endBeforeStart(call, 'denied', at, refusedText(answer.reason, call.judged.traits.asks))
    : call;

/** A preview may show that the call can't be done. */
const previewedCall = (call: CarriedCall, { preview, at }: On<'CallPreviewed'>): CarriedCall =>
  preview.kind === 'refused'
    ? endBeforeStart(call, 'failed', at, outcomeText({ ...preview, status: 'failed' }, 'user'))
    : call;

/** The result of a call, with the notes of hooks that saw the call before it ran. */
const carriedResult = ({ judged, startedAt, ended }: CarriedCall, waiting: string): ResultPart => ({
  type: 'result',
  callId: judged.callId,
  tool: judged.tool,
  failed: ended?.status !== 'ok',
  text: withRemarks(
    ended?.text ?? (startedAt === null ? waiting : interruptedText('')),
    hookNotes(verdictsIn(judged.hooks)),
  ),
  ...(ended?.images === undefined ? {} : { images: ended.images }),
});

/**
 * Drops input that is nested too deep: journals of the first version hold it, no event may today.
 */
const withoutDeepInput = <T extends { readonly input: JsonObject }>(call: T): T =>
  jsonObjectShape.check(call.input) === null ? call : { ...call, input: {} };

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

/**
 * Collects from the events, in order, what a later machine needs to go on. It has no states, so it
 * does not see when the machine sends the queue. A text that was sent stays in `#queue`, among the
 * first `#sent`, until something settles the turn: a reply, input after a cancel, the end. Then it
 * goes into the conversation.
 */
class SessionFromEvents {
  #conversation: Conversation = emptyConversation;
  #queue: readonly QueuedInput[] = [];
  /**
   * How many of the queue, from its first, the machine has sent already. It sends the whole queue
   * when it is idle, or its turn was just cancelled; while it works, the queue stays.
   */
  #sent = 0;
  /** Number of inputs so far, from which they get their ids. */
  #inputs = 0;
  #batch: Batch | null = null;
  /** The turn was cancelled, and is not settled yet. */
  #isCancelled = false;
  /** The session was shut down, and not resumed since. */
  #isClosed = false;
  /** Streamed text of the reply that is under way. */
  #partial = '';
  #model: string;
  #usage: CarriedSession['usage'] = nothingSpent;
  /** Time of the last event. */
  #at = 0;
  /** Ids whose usage was counted. A second reply with such an id is a duplicate. */
  readonly #counted = new Set<string>();
  /**
   * Ids of work that may have cost something, without usage so far. No event tells that a request
   * is sent: it stands here from its measure or its first piece.
   */
  readonly #unaccounted = new Set<string>();
  /** The rewind whose files are being taken back. */
  #rewind: Pick<On<'RewindRequested'>, 'rewindId' | 'conversation'> | null = null;

  constructor(model: string) {
    this.#model = model;
  }

  /** Takes the next event. */
  see(event: Event): void {
    this.#at = event.at;
    this.#seeSession(event); // first: a reply is a duplicate if its usage was counted before
    this.#seeUsage(event);
  }

  #seeSession(event: Event): void {
    switch (event.type) {
      case 'UserInput':
        this.#addInput(event);
        return;
      case 'EditQueue':
        this.#editQueue(event);
        return;
      case 'CancelTurn':
        this.#isCancelled = true;
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
      case 'Resumed':
        this.#resume(event);
        return;
      case 'RewindRequested':
        this.#rewind = event;
        if (event.files === undefined) this.#goBack(event.rewindId);
        return;
      case 'Rewound':
        this.#goBack(event.rewindId);
        return;
      case 'LlmCompleted':
        if (!this.#counted.has(event.requestId)) this.#reply(event);
        return;
      case 'LlmFailed':
        if (!this.#isCancelled) this.#partial = ''; // what came before a cancel stays
        return;
      case 'HookCompleted':
        if (event.note.trim() !== '' && this.#conversation.open !== null)
          this.#conversation = addTexts(this.#conversation, 'note', [event.note]);
        return;
      case 'CompactionCompleted':
        this.#summarise(event.summary);
        return;
      default:
        this.#seeCall(event);
        return;
    }
  }

  /** Events of the calls of the last reply. */
  #seeCall(event: Event): void {
    switch (event.type) {
      case 'ToolStarted':
        this.#changeCall(event, (call) => this.#start(call, event));
        return;
      case 'CancelTool':
        this.#changeCall(event, (call) =>
          endBeforeStart(call, 'cancelled', event.at, notRunText('user')),
        );
        return;
      case 'ToolCompleted':
        this.#changeCall(event, (call) => endedCall(call, event.outcome, event.at));
        return;
      case 'ApprovalAnswered':
        this.#changeCall(event, (call) => answeredCall(call, event));
        return;
      case 'CallPreviewed':
        this.#changeCall(event, (call) => previewedCall(call, event));
        return;
      case 'ToolsFailed':
        if (this.#findBatch(event.batchId) !== null) this.#closeBatch(`not run: ${event.message}`);
        return;
      // Stryker disable next-line ConditionalExpression: nothing comes after the last case
      default:
        return;
    }
  }

  /**
   * Counts what an event tells of usage, nearly by the rules of request.ts: it knows no
   * reservations, so each part of a usage makes the sum a lower bound.
   */
  #seeUsage(event: Event): void {
    switch (event.type) {
      case 'RequestMeasured':
        this.#addUnaccounted(event.usageId);
        return;
      case 'TextDelta':
      case 'ReasoningDelta':
      case 'ToolCallDelta':
        this.#addUnaccounted(event.requestId);
        return;
      case 'LlmCompleted':
        this.#countUsage(event.requestId, event.usage);
        return;
      case 'LlmFailed':
        this.#countUsage(
          event.requestId,
          event.usage,
          event.coverage ?? (event.usage === null && costsNothing(event) ? 'whole' : 'partial'),
        );
        return;
      case 'HookCompleted':
        this.#countUsage(event.hookId, event.usage, event.coverage);
        return;
      case 'CompactionCompleted':
        this.#countUsage(event.compactionId, event.usage);
        return;
      case 'CompactionFailed':
        this.#countUsage(event.compactionId, event.usage, event.coverage ?? 'partial');
        return;
      case 'UsageReported':
        this.#countUsage(event.usageId, event.usage, event.coverage ?? 'partial');
        return;
      case 'ToolCompleted': {
        const { usage = null, status, ran } = event.outcome;
        // a call that has ended by itself reports what it spent
        const isWhole = usage !== null || ran === 'no' || status === 'ok' || status === 'failed';
        if (isWhole) this.#countUsage(spendingId(event.batchId, event.callId), usage);
        return;
      }
      // Stryker disable next-line ConditionalExpression: nothing comes after the last case
      default:
        return;
    }
  }

  /** The session so far, its turn ended. `seq`: number of the last entry. */
  carried(seq: number): CarriedSession {
    const work = this.#work();
    const { conversation, queue } =
      work.kind === 'calls'
        ? { conversation: this.#conversation, queue: this.#queue }
        : this.#settled();
    const running = spendingIds(work);
    const unaccounted = [...this.#unaccounted].filter((id) => !running.includes(id));
    return {
      messages: messagesOf(conversation),
      queue,
      usage: this.#usage,
      idsFrom: Math.max(seq, this.#inputs), // no later id may be one that stands in an event
      at: this.#at,
      work,
      ...(unaccounted.length === 0 ? {} : { unaccounted }),
    };
  }

  /** Calls that run are recovered by the later machine. Those beside them that wait never run. */
  #work(): CarriedWork {
    const { batchId = null, calls = [] } = this.#batch ?? {};
    if (batchId === null || this.#isCancelled || !this.#hasRunningCalls())
      return { kind: this.#isClosed ? 'closed' : 'nothing' };
    const ended = calls.map((call) => endBeforeStart(call, 'cancelled', this.#at, MISSING));
    return { kind: 'calls', batchId, calls: ended };
  }

  #addInput({ text, mode, images }: On<'UserInput'>): void {
    if (text.trim() === '') return;
    const wasCancelled = this.#isCancelled && !this.#hasRunningCalls();
    if (wasCancelled) this.#settle();
    const isIdle = this.#queue.length === 0 && this.#batch === null;
    this.#inputs += 1;
    const input = {
      inputId: `input-${this.#inputs}`,
      text,
      mode,
      ...(images === undefined ? {} : { images }),
    };
    this.#queue = [...this.#queue, input];
    if (wasCancelled || (isIdle && this.#conversation.open === null))
      this.#sent = this.#queue.length;
  }

  /**
   * Texts that were sent stay. An item with an id that is unknown here is added: the machine's
   * queue had it, where it held back what counts as sent here.
   */
  #editQueue({ items }: On<'EditQueue'>): void {
    const known = new Map(this.#queue.map((item) => [item.inputId, item]));
    const edited = new Map(this.#queue.slice(0, this.#sent).map((item) => [item.inputId, item]));
    for (const { inputId, text, mode } of items) {
      if (text.trim() === '' || edited.has(inputId)) continue;
      const images = known.get(inputId)?.images;
      edited.set(inputId, { inputId, text, mode, ...(images === undefined ? {} : { images }) });
    }
    this.#queue = [...edited.values()];
  }

  #reply({ message, calls, stopReason, at }: On<'LlmCompleted'>): void {
    this.#partial = '';
    // The machine refuses a reply that does not name its calls, and stores none without words.
    if (this.#isClosed || message === null || saysNothing(message)) return;
    if (!namesItsCalls(message, calls)) return;
    const parts = message.parts.map((part) =>
      part.type === 'call' ? withoutDeepInput(part) : part,
    );
    this.#settle();
    if (this.#conversation.open === null)
      this.#conversation = addTexts(this.#conversation, 'note', [CONTINUED]);
    this.#conversation = addReply(this.#conversation, { ...message, parts });
    if (calls.length === 0) return;
    const batched = calls.map((judged) => ({
      judged: withoutDeepInput(judged),
      requestedAt: at,
      startedAt: null,
      ...endFromReply(judged, stopReason, at),
    }));
    this.#batch = { batchId: null, calls: batched };
    this.#closeIfEnded();
  }

  /**
   * The turn ended: calls are answered, and texts have gone out. `keepsPartial`: what came of a
   * reply is stored, too.
   */
  #settled(keepsPartial = this.#isCancelled): {
    readonly conversation: Conversation;
    readonly queue: readonly QueuedInput[];
  } {
    const sent = sendQueue(this.#answered(MISSING), this.#queue);
    const isCut = keepsPartial && this.#partial.trim() !== '';
    if (!isCut || sent.conversation.open === null) return sent;
    const parts = [{ type: 'text', text: this.#partial } as const];
    const reply = { role: 'assistant', model: this.#model, cut: true, parts } as const;
    return { ...sent, conversation: addReply(sent.conversation, reply) };
  }

  #settle(keepsPartial?: boolean): void {
    const { conversation, queue } = this.#settled(keepsPartial);
    this.#conversation = conversation;
    this.#queue = queue;
    this.#sent = 0;
    this.#batch = null;
    this.#partial = '';
    this.#isCancelled = false;
  }

  /** The current batch, if it may be this one: before its first call starts nobody names it. */
  #findBatch(batchId: string): Batch | null {
    return (this.#batch?.batchId ?? batchId) === batchId ? this.#batch : null;
  }

  #changeCall(
    { batchId, callId }: { readonly batchId: string; readonly callId: string },
    change: (call: CarriedCall) => CarriedCall,
  ): void {
    const batch = this.#findBatch(batchId);
    const index = batch?.calls.findIndex(({ judged }) => judged.callId === callId) ?? -1;
    const call = batch?.calls[index];
    if (batch === null || call === undefined) return;
    batch.batchId = batchId;
    batch.calls[index] = change(call);
    this.#closeIfEnded();
  }

  #closeIfEnded(): void {
    if (this.#batch?.calls.some(mayStillEnd) === false) this.#closeBatch();
  }

  #closeBatch(waiting = MISSING): void {
    this.#conversation = this.#answered(waiting);
    this.#batch = null;
  }

  /** With the results of the current batch. `waiting`: the text for calls that have not started. */
  #answered(waiting: string): Conversation {
    if (this.#batch === null) return this.#conversation;
    const results = this.#batch.calls.map((call) => carriedResult(call, waiting));
    return addResults(this.#conversation, results);
  }

  #hasRunningCalls(): boolean {
    return this.#batch?.calls.some(isRunning) === true;
  }

  #goBack(rewindId: string): void {
    if (this.#rewind?.rewindId !== rewindId || this.#hasRunningCalls()) return;
    const { conversation } = this.#rewind;
    this.#rewind = null;
    this.#closeBatch();
    if (conversation === undefined) return;
    // A text without a reply stays in the queue: a machine whose turn runs refuses the rewind.
    this.#conversation =
      rewoundConversation(this.#conversation, conversation) ?? this.#conversation;
  }

  #summarise(summary: string): void {
    if (this.#isClosed || this.#hasRunningCalls()) return; // too late
    this.#closeBatch();
    const length = compactableLength(this.#conversation);
    this.#conversation = replaceBySummary(this.#conversation, length, summary);
  }

  #shutDown({ outcomes = [], at }: On<'ShutdownRequested'>): void {
    // A cancelled outcome is of a call that this shutdown stopped: it counts as interrupted.
    for (const { batchId, callId, outcome } of outcomes)
      if (outcome.status !== 'cancelled')
        this.#changeCall({ batchId, callId }, (call) => endedCall(call, outcome, at));
    this.#closeBatch(closedText);
    if (this.#partial !== '') this.#settle(true);
    this.#rewind = null;
    this.#isClosed = true;
  }

  /** A resumed session goes on by itself, or from the session that an upgrade carries. */
  #resume({ upgrade }: On<'Resumed'>): void {
    this.#isClosed = false;
    if (this.#isCancelled && !this.#hasRunningCalls()) this.#settle();
    this.#partial = '';
    if (upgrade?.session !== undefined) this.#continue(upgrade.session);
    // The process that had sent the other requests has ended: no report of them can come.
    const running = spendingIds(this.#work());
    for (const id of this.#unaccounted) {
      if (running.includes(id)) continue;
      this.#unaccounted.delete(id);
      this.#usage = { ...this.#usage, atLeast: true };
    }
  }

  #continue(session: CarriedSession): void {
    const { messages, queue, usage, unaccounted = [], work, idsFrom } = session;
    this.#conversation = conversationFrom(messages);
    this.#queue = queue;
    this.#sent = 0;
    this.#isCancelled = false;
    this.#usage = usage;
    this.#unaccounted.clear();
    for (const id of [...unaccounted, ...spendingIds(work)]) this.#unaccounted.add(id);
    this.#inputs = idsFrom;
    this.#rewind = work.kind === 'rewind' ? work : null;
    this.#batch = work.kind === 'calls' ? { batchId: work.batchId, calls: [...work.calls] } : null;
  }

  #start(call: CarriedCall, { batchId, callId, at }: On<'ToolStarted'>): CarriedCall {
    const started = startedCall(call, at);
    if (started !== call && isSpending(call.judged))
      this.#addUnaccounted(spendingId(batchId, callId));
    return started;
  }

  #addUnaccounted(id: string): void {
    if (!this.#counted.has(id)) this.#unaccounted.add(id);
  }

  /** Counts usage once per id. `usage`: null with coverage `whole` means that it cost nothing. */
  #countUsage(id: string, usage: Usage | null, coverage: UsageCoverage = 'whole'): void {
    if (usage !== null || coverage === 'whole') this.#unaccounted.delete(id);
    else this.#addUnaccounted(id);
    if (usage === null || this.#counted.has(id)) return;
    this.#counted.add(id);
    const bound = coverage === 'partial' ? { atLeast: true } : {};
    this.#usage = addUsage(this.#usage, { ...usage, ...bound });
  }
}

/** The conversation with these messages. */
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
  /** Both machines came to the same state here, so the present one has missed nothing so far. */
  agree(): void;
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
/**
 * Whether the conversation or a running call lacks something if the machine refuses this event. A
 * text of the user is not among them: every machine takes one in every state.
 */
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
    agree() {
      hasMissed = false;
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

/**
 * `before` with all that the carried session knows; counters go on above its ids. Of the money that
 * `before` has set aside only that for unaccounted work stays: other usage is in `usage` already.
 */
const sessionFrom = (before: SessionData, carried: CarriedSession): SessionData => {
  const { messages, queue, usage, work, idsFrom, at } = carried;
  const { timeMs } = before.settings.limits;
  const isTurnRunning = work.kind === 'request' || work.kind === 'calls';
  const unaccounted = [...(carried.unaccounted ?? []), ...spendingIds(work)];
  return changeSession(before, {
    conversation: conversationFrom(messages),
    queue,
    usage,
    unaccounted,
    reserved: before.reserved.filter(({ id }) => unaccounted.includes(id)),
    contextTokens: estimateTokens(messages),
    emptyReplies: 0,
    mayCompact: 'yes',
    notes: [],
    measured: NOTHING_COUNTED,
    turn: {
      turnId: `turn-${idsFrom}`,
      rounds: 0,
      truncations: 0,
      streaks: noStreaks,
      finishing: 'no',
      startedAt: at,
      // A running turn gets its whole time again, since its events don't tell how much is left.
      timeLimit:
        isTurnRunning && timeMs !== 'unlimited' ? timerFrom(`timer-${idsFrom}`, at, timeMs) : null,
      warned: [],
      objections: 0,
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
 * The state that goes on from a carried session. Settings, grants, the number of openings and the
 * pictures that a provider refused are those of `before`.
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
