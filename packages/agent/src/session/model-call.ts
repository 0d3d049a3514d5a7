/**
 * Calls of the model: prepares a request, reads the reply to its end, and prices its tokens.
 *
 * The usage of a call is reported even after an abort, since the provider charges for it. A late
 * tool joins after the start of the session, for example when its server has connected.
 *
 * From top to bottom: `admitRequest`, which reserves money; `ModelCalls`, the performer of
 * SendLlmRequest; `readStream`, one reply; and the price of tokens.
 */

import {
  estimateTokens,
  imageTokens,
  messagesOf,
  requestMessages,
} from '../machine/conversation.js';
import type { ModelError } from '../machine/event.js';
import type { AssistantPart, Message } from '../machine/message.js';
import {
  costsNothing,
  HIDDEN_TOKENS_MAX,
  IMAGE_TOKENS_MAX,
  OUTPUT_TOKENS_MIN,
} from '../machine/moves/request.js';
import {
  noUsage,
  type Prices,
  type Settings,
  type Usage,
  type UsageCoverage,
} from '../machine/settings.js';
import { findReservation, measuredId, type SessionData, type State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import { type Clock, createJoiner } from '../platform/clock.js';
import type { HookVerdicts, JudgedCall } from '../policy/judged-call.js';
import type { Model, ModelPiece, ModelRequest, RawCall, TokenUsage } from '../ports/model.js';
import type { LateTools, Tool } from '../ports/tool.js';
import { declare, type Equipment, isOffered, type RunningSession } from './equipment.js';
import { judgeCall } from './judge-call.js';
import type { Post } from './loop.js';
import { checkPiece } from './outside-values.js';
import { mapShown, withImages } from './request-pictures.js';

/** What an admission needs beside the request; `signal` ends its wait. */
type Admission = {
  readonly post: Post;
  readonly usageId: string;
  readonly settings: Settings;
  readonly model: Model;
  readonly signal: AbortSignal;
};

/**
 * The request as it may be sent. `countFresh`: of its bytes, those that no model has counted.
 *
 * Under a limit in dollars the request is measured, and the machine reserves its worst case and
 * sets the length of the reply. null: it must not be sent, since it can't be paid or was aborted.
 * After the wait the caller looks at `signal` once more: an abort may come with the reservation.
 */
export const admitRequest = (
  { post, usageId, settings: { limits }, model: { id, facts }, signal }: Admission,
  request: ModelRequest,
  countFresh?: (bytes: number) => number,
): ModelRequest | Promise<ModelRequest | null> => {
  if (limits.usd === 'unlimited') return request;
  const { prices } = facts;
  const { outputTokensMax = facts.outputTokensMax } = request;
  const size = measureRequest(request);
  const fresh = countFresh === undefined ? {} : { freshBytes: countFresh(size.bytes) };
  const measured = { model: id, ...size, outputTokensMax, prices, ...fresh };
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(null);
    // The session may end before the event is applied.
    signal.addEventListener('abort', () => resolve(null), { once: true });
    post({ type: 'RequestMeasured', usageId, ...measured }, (accepted, state) => {
      const reservation = findReservation(state.session, usageId);
      // after an abort the machine waits for another request
      const isAwaited = measuredId(state) === usageId;
      const mayBeSent = accepted && reservation !== undefined && isAwaited;
      if (!mayBeSent) return resolve(null);
      resolve({ ...request, outputTokensMax: reservation.outputTokens, isBoundPaid: true });
    });
  });
};

/** This share of a window stays free, since the size of a request is only estimated. */
const FREE_SHARE = 1 / 50;

/**
 * The request with an output limit that fits into the window behind its prompt: servers refuse a
 * request that might not fit. With a window of 32,768 tokens and a prompt of 30,000 the reply may
 * have 32,768 × 0.98 − 30,000 = 2,112.
 */
const withAnswerRoom = (
  request: ModelRequest,
  { facts }: Model,
  { contextTokens, settings: { windowTokens } }: SessionData,
): ModelRequest => {
  const { instructions, tools, messages } = request;
  // `contextTokens` is what the model counted, tools included, and estimates of later texts. After
  // a compaction it estimates the messages alone, so all of this request is estimated too.
  const otherCharacters = instructions.length + JSON.stringify(tools).length;
  const estimated = estimateTokens(messages) + Math.ceil(otherCharacters / CHARACTERS_PER_TOKEN);
  const freeTokens = windowTokens * (1 - FREE_SHARE) - Math.max(contextTokens, estimated);
  const room = Math.max(OUTPUT_TOKENS_MIN, Math.floor(freeTokens));
  return room < facts.outputTokensMax ? { ...request, outputTokensMax: room } : request;
};

const CHARACTERS_PER_TOKEN = 4;

/** The size of a request without the bytes of its pictures, which count by their number. */
export const measureRequest = (
  request: ModelRequest,
): { readonly bytes: number; readonly images: number } => {
  let images = 0;
  const messages = mapShown(request.messages, (part) => ({
    ...part,
    images: part.images.map(({ base64, ...image }) => {
      if (base64 !== undefined) images += 1;
      return image;
    }),
  }));
  return { bytes: Buffer.byteLength(JSON.stringify({ ...request, messages })), images };
};

/** The state after the hooks before a request, and why the call is held back; null: it is not. */
type MayCall = { readonly state: State; readonly heldBackBy: string | null };

/**
 * Performs SendLlmRequest and AbortLlmRequest. A request is prepared, admitted, and then open until
 * its reply has ended; an abort ends it in each of these.
 */
export class ModelCalls {
  readonly #equipment: Equipment;
  readonly #session: RunningSession;
  readonly #requests = new OpenRequests();
  /**
   * Ids of requests that are not sent yet: they wait for tools, hooks, the user's stopping policy
   * or pictures. An abort removes the id.
   */
  readonly #preparing = new Set<string>();
  /** Ends the wait of the request with this id, for tools and for its money. */
  readonly #waits = new Map<string, AbortController>();
  /** null: all tools were there from the start. */
  readonly #lateTools: LateTools | null;
  /** Whether the model has replied in this session. */
  #hasReplied = false;
  /** Models whose servers refuse the effort, once the user was told so. */
  readonly #effortRefusers = new Set<string>();

  constructor(equipment: Equipment, session: RunningSession) {
    this.#equipment = equipment;
    this.#session = session;
    this.#lateTools = equipment.lateTools ?? null;
  }

  /**
   * Sends the first `length` messages of the conversation. Results are posted under `requestId`.
   * `before`: the state in which the machine asked for it.
   */
  send(requestId: string, length: number, before: State): void {
    const waiting = new AbortController();
    this.#preparing.add(requestId);
    this.#waits.set(requestId, waiting);
    const conversing = attempt(async () => {
      const prepared = await this.#prepare(requestId, before, waiting.signal);
      if (prepared === null) return;
      const { state, heldBackBy } = prepared;
      const { session } = state;
      const model = this.#equipment.model(session.settings.model);
      const plain = requestMessages(session.conversation, length, model.id);
      const messages = plain.some(hasImages)
        ? await withImages(plain, model, this.#session.journal.blobs, session.refusedPictures)
        : plain;
      // Without the id an abort came meanwhile.
      if (!this.#preparing.delete(requestId)) return;
      if (heldBackBy === null)
        await this.#converse(requestId, model, messages, session, waiting.signal);
      else this.#session.post({ type: 'PolicyStopped', requestId, why: heldBackBy });
    }).then((sent) => {
      this.#waits.delete(requestId);
      if (sent.kind === 'done') return;
      this.#preparing.delete(requestId);
      const message = `the request could not be made: ${sent.fault.message}`;
      this.#fail({ requestId }, { ...failure('malformed', false, message), coverage: 'whole' });
    });
    this.#requests.track(conversing);
  }

  /** The state with every tool of a request, after its hooks; null: an abort came meanwhile. */
  async #prepare(requestId: string, before: State, signal: AbortSignal): Promise<MayCall | null> {
    const afterJoin =
      this.#lateTools === null ? before : await this.#joinTools(this.#lateTools, signal, before);
    const offered = this.#newlyOffered(afterJoin);
    const ready =
      offered.length === 0 ? afterJoin : await this.#declare(offered, afterJoin, signal);
    return this.#preparing.has(requestId) ? await this.#mayCall(requestId, ready) : null;
  }

  /** The state with the tools that have come since the last request. */
  async #joinTools(lateTools: LateTools, signal: AbortSignal, before: State): Promise<State> {
    const { clock } = this.#equipment;
    this.#hasReplied ||= hasReplied(before.session);
    // Before the first reply nothing is cached, so a wait for all tools pays off.
    const tools = await lateTools.before({
      isFirst: !this.#hasReplied,
      declared: new Set(this.#equipment.declarations().map(({ name }) => name)),
      clock,
      signal,
    });
    return tools.length === 0 ? before : this.#declare(tools, before, signal);
  }

  /**
   * Tools that the settings did not offer at the start and offer now: the tool that proposes a plan
   * (preset `plan`), and tools that reach hosts. Declarations stay afterwards, since the prompt is
   * cached; the policy then denies the calls.
   */
  #newlyOffered({ session: { settings } }: State): readonly Tool[] {
    const declared = this.#equipment.declarations();
    return [...this.#equipment.tools.values()].filter(
      (tool) =>
        (tool.traits.asks === 'plan' || tool.reaches === 'hosts') &&
        isOffered(tool, settings) &&
        !declared.some(({ name }) => name === tool.name),
    );
  }

  /** Adds tools by an event, so that a resumed or forked session has them. */
  async #declare(tools: readonly Tool[], before: State, signal: AbortSignal): Promise<State> {
    const all = [...this.#equipment.declarations(), ...tools.map(declare)];
    const patch = { tools: await this.#session.journal.blobs.put(JSON.stringify(all)) };
    if (signal.aborted) return before;
    return new Promise((resolve) => {
      // The session may end before the event is applied.
      signal.addEventListener('abort', () => resolve(before), { once: true });
      this.#session.post({ type: 'SettingsChanged', patch }, (_accepted, state) => {
        this.#equipment.join(tools); // from now on requests declare them
        resolve(state);
      });
    });
  }

  async #mayCall(requestId: string, state: State): Promise<MayCall> {
    const heldBackBy = await this.#askPolicy(state);
    const { userHooks } = this.#session;
    if (heldBackBy !== null || userHooks === null) return { state, heldBackBy };
    return userHooks.beforeRequest(requestId, state);
  }

  /**
   * Why the user's stopping policy holds the call back, or null. A policy that fails holds it back
   * too.
   */
  async #askPolicy(state: State): Promise<string | null> {
    if (state.session.settings.userPolicy === 'none') return null;
    const { stoppingPolicy } = this.#equipment;
    if (stoppingPolicy === null)
      return 'the stopping policy of this session is not connected: open it with one';
    const answer = await attempt(() => stoppingPolicy(state));
    if (answer.kind === 'fault') return `the stopping policy failed: ${answer.fault.message}`;
    const why: unknown = answer.value; // the user's function may return any value
    if (why === null || typeof why === 'string') return why;
    return 'the stopping policy failed: it answered neither null nor a sentence';
  }

  abort(requestId: string): void {
    this.#preparing.delete(requestId);
    this.#waits.get(requestId)?.abort();
    this.#session.userHooks?.abort(requestId);
    this.#requests.abort(requestId);
  }

  /** Aborts every request. Resolves when the last one has reported its usage. */
  stopAll(): Promise<void> {
    this.#preparing.clear();
    for (const waiting of this.#waits.values()) waiting.abort();
    return this.#requests.stopAll();
  }

  async #converse(
    requestId: string,
    model: Model,
    messages: readonly Message[],
    session: SessionData,
    signal: AbortSignal,
  ): Promise<void> {
    const { settings } = session;
    const { post } = this.#session;
    const draft = {
      instructions: this.#equipment.instructions,
      tools: this.#equipment.declarations(),
      ...(session.turn.finishing === 'no' ? {} : { toolChoice: 'none' as const }),
      ...effortOption(settings),
      messages,
    };
    const admitted = admitRequest(
      { post, usageId: requestId, settings, model, signal },
      withAnswerRoom(draft, model, session),
    );
    // Without a limit it is sent at once.
    const request = admitted instanceof Promise ? await admitted : admitted;
    if (request === null) return;
    if (signal.aborted) return this.#fail({ requestId }, UNSENT);
    let firstPiece: FirstPiece = {};
    const joiner = createJoiner(this.#equipment.clock, (key, text) =>
      postDelta(this.#session.post, requestId, key, text),
    );
    const openRequest = readStream({
      model,
      request,
      clock: this.#equipment.clock,
      firstByteMs: settings.firstByteMs,
      silenceMs: settings.silenceMs,
      onPiece: (piece) => {
        firstPiece = { firstPieceAt: firstPiece.firstPieceAt ?? this.#equipment.clock.now() };
        joiner.add(deltaKey(piece), piece.text);
      },
      estimates: settings.limits.tokens !== 'unlimited',
      onLateUsage: (usage, coverage) =>
        postUsage(this.#session.post, requestId, { usage, coverage }),
    });
    const ending = await this.#requests.follow(requestId, openRequest);
    if (ending.type === 'aborted') return joiner.drop();
    joiner.flush();
    const replied = { requestId, ...firstPiece };
    if (ending.type === 'failed') return this.#fail(replied, ending);
    const completed = await attempt(() => this.#complete(replied, ending, model, settings));
    if (completed.kind === 'done') return;
    const message = `its reply could not be judged: ${completed.fault.message}`;
    const known = { usage: ending.usage, coverage: 'whole' } as const;
    this.#fail(replied, { ...failure('malformed', false, message), ...known });
  }

  #fail(
    request: FirstPiece & { readonly requestId: string },
    { error, usage, coverage }: FailedEnding,
  ): void {
    const jitter = this.#equipment.random();
    // that a refusal cost nothing is seen by its error
    const whole = coverage === 'whole' && !costsNothing({ error, ...request }) ? { coverage } : {};
    this.#session.post({ type: 'LlmFailed', ...request, error, usage, ...whole, jitter });
  }

  async #complete(
    request: FirstPiece & { readonly requestId: string },
    reply: Completed,
    model: Model,
    { workspace, sandbox }: Settings,
  ): Promise<void> {
    const { tools, redactor, userPlaces } = this.#equipment;
    const { userHooks } = this.#session;
    const judged = new Map<RawCall, JudgedCall>();
    for (const part of reply.parts) {
      if (part.type !== 'call') continue;
      // asks the tool for the facts by which the machine decides whether the call may run
      const call = await judgeCall(part, tools, workspace, redactor, userPlaces, sandbox);
      judged.set(
        part,
        userHooks === null ? call : await userHooks.beforeTool(request.requestId, call),
      );
    }
    const { stopReason } = reply;
    // `cut`: broken off, for example at the output limit
    const cut = stopReason !== 'end' && stopReason !== 'toolUse';
    const message = {
      role: 'assistant',
      model: model.id,
      cut,
      parts: reply.parts
        .filter((part) => !isEmptyText(part))
        .map((part) => storePart(part, judged)),
    } as const;
    const { usage, effort } = reply; // `effort`: the server has refused it
    const isFirstRefusal = effort !== undefined && !this.#effortRefusers.has(model.id);
    if (isFirstRefusal) this.#effortRefusers.add(model.id);
    const calls = [...judged.values()];
    const hooks = calls.length === 0 ? await this.#judgeEnd(request.requestId, reply) : {};
    this.#session.post({
      type: 'LlmCompleted',
      ...request,
      message,
      calls,
      stopReason,
      usage,
      ...(isFirstRefusal ? { effort } : {}),
      ...hooks,
    });
  }

  /**
   * The verdicts of hooks about the end of the turn. A cut or cancelled reply ends it in any case.
   */
  async #judgeEnd(requestId: string, reply: Completed): Promise<{ readonly hooks?: HookVerdicts }> {
    const state = this.#session.state();
    // Mode `open`: the user has not cancelled the request.
    const isOpen =
      state.name === 'CallingLlm' && state.requestId === requestId && state.call.mode === 'open';
    const text = replyText(reply);
    const isAnswer = text !== '' && (reply.stopReason === 'end' || reply.stopReason === 'toolUse');
    const { userHooks } = this.#session;
    if (userHooks === null || !isOpen || !isAnswer) return {};
    const hooks = await userHooks.turnEnd(requestId, state, text);
    return hooks.length === 0 ? {} : { hooks };
  }
}

type Completed = Extract<ReplyEnding, { readonly type: 'completed' }>;
type FailedEnding = Extract<ReplyEnding, { readonly type: 'failed' }>;
/** When the first piece of a reply came; empty if none came. */
export type FirstPiece = { readonly firstPieceAt?: number };

export const effortOption = ({ effort = 'auto' }: Settings): Pick<ModelRequest, 'effort'> =>
  effort === 'auto' ? {} : { effort };

/** Whether the model has replied in the session. A summary may have replaced its replies. */
export const hasReplied = ({ conversation, counters }: SessionData): boolean =>
  counters.compaction > 0 || messagesOf(conversation).some(({ role }) => role === 'assistant');

const hasImages = ({ parts }: Message): boolean => parts.some((part) => imageTokens(part) > 0);

/** Usage that comes after the end of what has used it. */
export const postUsage = (
  post: Post,
  usageId: string,
  { usage, coverage }: { readonly usage: Usage; readonly coverage: UsageCoverage },
): void =>
  post({
    ...{ type: 'UsageReported', usageId, usage },
    ...(coverage === 'whole' ? { coverage } : {}),
  });

const deltaKey = (piece: Streamed): string =>
  piece.type === 'toolCall' ? `toolCall ${piece.tool}` : piece.type;

const postDelta = (post: Post, requestId: string, key: string, text: string): void => {
  if (key === 'text') post({ type: 'TextDelta', requestId, text });
  else if (key === 'reasoning') post({ type: 'ReasoningDelta', requestId, text });
  else post({ type: 'ToolCallDelta', requestId, tool: key.slice('toolCall '.length), text });
};

/** The part as it is stored; a call gets its tool's name and parsed input from its judgement. */
const storePart = (
  part: Completed['parts'][number],
  judged: ReadonlyMap<RawCall, JudgedCall>,
): AssistantPart => {
  if (part.type !== 'call') return part;
  const { callId, metadata } = part;
  const { tool = part.tool, input = {}, rawInput } = judged.get(part) ?? {};
  return {
    type: 'call',
    callId,
    tool,
    input,
    ...(rawInput === undefined ? {} : { rawInput }),
    ...(metadata === undefined ? {} : { metadata }),
  };
};

const isEmptyText = (part: Completed['parts'][number]): boolean =>
  part.type === 'text' && part.text === '' && part.metadata === undefined;

// ---- One model call, read to its end ----

/*
 * 1. There is exactly one ending, whatever the model does; no piece is shown after it.
 * 2. Usage after the ending is still reported, since it was paid for.
 * 3. Pieces are validated: an invalid piece ends the call, invalid usage counts as missing.
 * 4. A reply of more than REPLY_MAX characters fails as `malformed`.
 * 5. A whole reply has usage: if its server reports none, its tokens are estimated, and its cost is
 *    unknown. With `estimates` a broken reply has it, too, unless it cost nothing.
 * 6. `coverage` says what is known of the cost of any other ending: `whole` without usage is none,
 *    since it was refused, not sent, or free; `partial` without usage is unknown.
 */

type EndingPiece<T extends ModelPiece['type']> = Extract<ModelPiece, { readonly type: T }>;

export type ReplyEnding =
  | (Omit<EndingPiece<'completed'>, 'usage'> & { readonly usage: Usage })
  | (Omit<EndingPiece<'failed'>, 'usage'> & Reported)
  | { readonly type: 'aborted' };
/** What is known of the usage of a call that did not complete. */
export type Reported = { readonly usage: Usage | null; readonly coverage: UsageCoverage };
type Streamed = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;

export const reportedBy = (ending: ReplyEnding): Reported => {
  if (ending.type === 'aborted') return { usage: null, coverage: 'partial' };
  return ending.type === 'failed' ? ending : { usage: ending.usage, coverage: 'whole' };
};

export type OpenRequest = {
  readonly ended: Promise<ReplyEnding>;
  /**
   * Resolves when nothing more can arrive, even after an abort: all paid usage has been reported.
   */
  readonly silent: Promise<void>;
  /** Ends the reply with `aborted`, unless it has ended already. */
  abort(): void;
};

type StreamParts = {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly clock: Clock;
  /** Deadlines; 0 means none. */
  readonly firstByteMs: number;
  readonly silenceMs: number;
  /** Whether a limit in tokens counts broken replies, too. */
  readonly estimates: boolean;
  readonly onPiece: (piece: Streamed) => void;
  readonly onLateUsage: (usage: Usage, coverage: UsageCoverage) => void;
};

/** Many times what any model writes in one reply. */
const REPLY_MAX = 32 * 1024 * 1024;
const TOO_LONG =
  `sent more than ${REPLY_MAX / 1024 / 1024} million characters in one reply; the request was ` +
  'ended';

/** The text of a reply. */
export const replyText = (reply: Completed): string =>
  reply.parts
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();

const failure = (kind: ModelError['kind'], retryable: boolean, message: string): FailedEnding => ({
  type: 'failed',
  error: { kind, message, retryable, retryAfterMs: null },
  usage: null,
  coverage: 'partial',
});

/** A request that was cancelled after its money was reserved: the reservation is released. */
const UNSENT: FailedEnding = {
  type: 'failed',
  error: {
    kind: 'unreachable',
    message: 'it was cancelled before it was sent',
    retryable: false,
    retryAfterMs: null,
    sent: 'no',
  },
  usage: null,
  coverage: 'whole',
};

/** A timer for silence of the model. Each piece restarts it. */
type Silence = { restart(): void; stop(): void };

/** Calls `onTimeout` after a silence that is too long. One timer serves any number of pieces. */
const watchSilence = (call: StreamParts, onTimeout: (message: string) => void): Silence => {
  const { clock, model } = call;
  let limitMs = call.firstByteMs;
  let what = 'sent nothing';
  let lastAt = clock.now();
  let cancel: (() => void) | null = null;
  const check = (): void => {
    const leftMs = lastAt + limitMs - clock.now();
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else onTimeout(`${model.id} ${what} for ${limitMs / 1000} s; the request was ended`);
  };
  const arm = (): void => {
    cancel?.();
    cancel = limitMs > 0 ? clock.after(limitMs, check) : null;
  };
  arm();
  let first = true;
  return {
    restart() {
      lastAt = clock.now();
      if (!first) return;
      first = false;
      limitMs = call.silenceMs;
      what = 'fell silent in the middle of a reply';
      arm();
    },
    stop() {
      cancel?.();
    },
  };
};

/** For estimates. Most texts have more bytes per token, so estimates are high. */
const BYTES_PER_TOKEN = 2;

/** A high estimate of a call's tokens, for servers that report none. The price is unknown. */
const estimateUsage = ({ request }: StreamParts, reply: string, characters: number): Usage => {
  const { bytes, images } = measureRequest(request);
  const outputBytes = Math.max(Buffer.byteLength(reply), characters);
  return {
    ...UNKNOWN_USAGE,
    inputTokens: Math.ceil(bytes / BYTES_PER_TOKEN) + images * IMAGE_TOKENS_MAX + HIDDEN_TOKENS_MAX,
    outputTokens: Math.ceil(outputBytes / BYTES_PER_TOKEN),
  };
};

/** Whether a failed call was refused or not sent; 0 stands for the time of its first piece. */
const isFree = ({ error }: Pick<EndingPiece<'failed'>, 'error'>, characters: number): boolean =>
  costsNothing(characters === 0 ? { error } : { error, firstPieceAt: 0 });

/** Whether nothing of the model has a price. */
const isFreeModel = ({ facts: { prices } }: Model): boolean =>
  prices !== null && Object.values(prices).every((price) => price === 0);

/** Whether the call may have cost something without reporting usage. */
const isUncounted = (ending: ReplyEnding, characters: number): boolean =>
  ending.type === 'aborted' ||
  (ending.type === 'failed' && ending.usage === null && !isFree(ending, characters));

/** The ending with its usage in dollars, or with an estimate in place of missing usage. */
const withUsage = (
  call: StreamParts,
  ending: EndingPiece<'completed' | 'failed'>,
  characters: number,
): ReplyEnding => {
  const { id, facts } = call.model;
  const { usage: tokens } = ending;
  if (ending.type === 'completed') {
    if (tokens !== null) return { ...ending, usage: priceUsage(tokens, facts.prices) };
    const estimate = estimateUsage(call, JSON.stringify(ending.parts), characters);
    return { ...ending, usage: { ...estimate, estimated: [id] } };
  }
  const costsNone = isFree(ending, characters);
  const isEstimated = call.estimates && !costsNone;
  const estimate = isEstimated ? estimateUsage(call, '', characters) : null;
  const isWhole = tokens === null ? costsNone : isFreeModel(call.model);
  const coverage = isWhole ? 'whole' : 'partial';
  if (tokens === null) return { ...ending, usage: estimate, coverage };
  // the server's last count may lie before the end of the output
  const outputTokens = Math.max(tokens.outputTokens, estimate?.outputTokens ?? 0);
  const usage = priceUsage({ ...tokens, outputTokens }, facts.prices);
  return { ...ending, usage, coverage };
};

/** Starts the call. Deadlines, faults of the model and a missing ending become `failed`. */
export const readStream = (call: StreamParts): OpenRequest => {
  const abortion = new AbortController();
  let ending: ReplyEnding | null = null;
  let resolveEnded: (ending: ReplyEnding) => void;
  const ended = new Promise<ReplyEnding>((resolve) => {
    resolveEnded = resolve;
  });
  const finish = (first: ReplyEnding): void => {
    if (ending !== null) return;
    const isFree = first.type === 'failed' && first.usage === null && isFreeModel(call.model);
    ending = isFree ? { ...first, coverage: 'whole' } : first;
    silence.stop();
    resolveEnded(ending);
    if (first.type !== 'completed') abortion.abort();
  };
  const silence = watchSilence(call, (message) => finish(failure('timeout', true, message)));
  let characters = 0;
  let isReported = false;
  const receive = (piece: ModelPiece): void => {
    const isEnding = piece.type === 'completed' || piece.type === 'failed';
    if (isEnding && piece.usage !== null) isReported = true;
    if (ending !== null) {
      if (!isEnding || piece.usage === null) return;
      const isWhole = piece.type === 'completed' || isFreeModel(call.model);
      const usage = priceUsage(piece.usage, call.model.facts.prices);
      call.onLateUsage(usage, isWhole ? 'whole' : 'partial');
      return;
    }
    silence.restart();
    if (isEnding) finish(withUsage(call, piece, characters));
    else call.onPiece(piece);
  };
  /** Checks and receives one piece. Returns whether to continue reading. */
  const check = (raw: unknown): boolean => {
    const checkedPiece = checkPiece(call.model, raw);
    if (checkedPiece.kind === 'bad') {
      const message = `${call.model.id} sent what is no piece of a reply: ${checkedPiece.why}`;
      receive({ ...failure('malformed', false, message), usage: checkedPiece.usage });
      return false;
    }
    const { piece } = checkedPiece;
    if (piece.type !== 'completed' && piece.type !== 'failed') characters += piece.text.length;
    if (characters > REPLY_MAX) {
      finish(failure('malformed', false, `${call.model.id} ${TOO_LONG}`));
      return false;
    }
    receive(piece);
    return true;
  };
  const receiveAll = async (): Promise<void> => {
    for await (const raw of call.model.stream(call.request, abortion.signal))
      if (!check(raw)) return;
  };
  // Nothing more comes. If the reply has ended before, `finish` has no effect.
  const silent = attempt(receiveAll).then((received) => {
    const { id } = call.model;
    finish(
      received.kind === 'done'
        ? failure('unreachable', true, `the reply of ${id} broke off`)
        : failure('malformed', false, `the connection to ${id} failed: ${received.fault.message}`),
    );
    if (isReported || ending === null || !isUncounted(ending, characters)) return;
    if (call.estimates) call.onLateUsage(estimateUsage(call, '', characters), 'partial');
    else if (ending.type === 'aborted' && isFreeModel(call.model))
      call.onLateUsage(noUsage, 'whole');
  });
  return { ended, silent, abort: () => finish({ type: 'aborted' }) };
};

/** The open model calls of one session, by the ids under which they are reported. */
export class OpenRequests {
  readonly #open = new Map<string, OpenRequest>();
  readonly #tracked = new Set<Promise<void>>();

  /** Resolves with the ending of the call, whose id is then free again. */
  async follow(id: string, request: OpenRequest): Promise<ReplyEnding> {
    this.track(request.silent);
    this.#open.set(id, request);
    const ending = await request.ended;
    if (this.#open.get(id) === request) this.#open.delete(id);
    return ending;
  }

  /** Makes `stopAll` wait for work, which must not reject. */
  track(work: Promise<void>): void {
    const tracked: Promise<void> = work.then(() => void this.#tracked.delete(tracked));
    this.#tracked.add(tracked);
  }

  abort(id: string): void {
    this.#open.get(id)?.abort();
  }

  /**
   * Aborts every call. Resolves when the last one has reported its usage and all of it is posted.
   */
  async stopAll(): Promise<void> {
    for (const request of this.#open.values()) request.abort();
    await Promise.all(this.#tracked);
  }
}

const MILLION = 1_000_000;

/** Usage of a call without any report: no tokens, at an unknown price. */
export const UNKNOWN_USAGE: Usage = { ...noUsage, costUsd: null };

/** null if the sum is not a possible amount of money, because a price is wrong. */
const knownCost = (usd: number): number | null => (usd <= Number.MAX_SAFE_INTEGER ? usd : null);

/** The cost of tokens. Without prices the cost is null, which means unknown, not free. */
export const priceUsage = (tokens: TokenUsage, prices: Prices | null): Usage => ({
  inputTokens: tokens.inputTokens,
  outputTokens: tokens.outputTokens,
  cacheReadTokens: tokens.cacheReadTokens,
  cacheWriteTokens: tokens.cacheWriteTokens,
  costUsd:
    prices === null
      ? null
      : knownCost(
          (tokens.inputTokens * prices.input +
            tokens.outputTokens * prices.output +
            tokens.cacheReadTokens * prices.cacheRead +
            tokens.cacheWriteTokens * prices.cacheWrite) /
            MILLION,
        ),
});

/**
 * Dollars for reading the conversation anew, without the provider's cache; null if the price is
 * unknown.
 */
export const coldUsd = (
  { session }: Pick<State, 'session'>,
  prices: Prices | null,
): number | null =>
  prices === null
    ? null
    : (session.contextTokens * Math.max(prices.input, prices.cacheWrite)) / MILLION;
