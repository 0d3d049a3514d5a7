/**
 * The shared code of all wires. A wire is the HTTP API of a model's provider, such as Anthropic
 * Messages; its adapter is one file of this folder. wire-errors.ts has the errors of all wires.
 *
 * - One call is one request, without retries. Two exceptions: after a refusal that shows what the
 *   server accepts (a lesson, lessons.ts), the request is adapted and sent again; and Google's wire
 *   continues a reply that its provider returns in parts.
 * - Our own abort can surface as any error, so the signal is checked before the error.
 *
 * An adapter gives `wireModel` a `body`, which it makes of `sentMessages`, and a `send`, which it
 * makes of `exchange`. From top to bottom:
 *
 * 1. `wireModel`: a model from a wire.
 * 2. `exchange` and others: what adapters share.
 * 3. `readTokens`, `readTotals`: token counts.
 * 4. `StreamedReply`: the reply while it streams.
 * 5. `performRequest`, which only `exchange` calls: one HTTP request, and the events of its answer.
 * 6. `sentMessages`: the messages of a request. Of the above it uses only `Dialect`.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { StopReason } from '../machine/event.js';
import type {
  AssistantMessage,
  AssistantPart,
  AssistantText,
  Message,
  ProviderMetadata,
  ReasoningPart,
  ResultPart,
  UserMessage,
  UserText,
} from '../machine/message.js';
import { VERSION } from '../platform/environment.js';
import { createFetch, EventParser, type LeanBody, type LeanFetch } from '../platform/http.js';
import { asCount, isJsonObject, isObject, type Loose } from '../platform/untrusted-input.js';
import type {
  Model,
  ModelFacts,
  ModelPiece,
  ModelRequest,
  RawCall,
  TokenUsage,
} from '../ports/model.js';
import { nearestEffort } from './catalogue.js';
import { classify, type ErrorSource, readRefusal } from './errors.js';
import { learn, type Terms } from './lessons.js';
import { brokenOff, eventError, failedAnswer, oddAnswer, oddEvent } from './wire-errors.js';

/** The parts of a model that differ between wires. */
export type Wire = {
  readonly provider: ErrorSource;
  readonly dialect: Dialect;
  /** The body of the HTTP request. */
  body(request: ModelRequest): object;
  /** Sends a body and reads the answer into the reply. Rejects if that fails. */
  send(body: object, reply: StreamedReply, signal: AbortSignal): Promise<void>;
};

/** The model and the limits of a wire, for the messages of its requests. */
export type Dialect = {
  /** The model that gets the request: `provider/name`. */
  readonly modelId: string;
  /** The server; absent: unknown. */
  readonly server?: string;
  /**
   * True if the provider caches only marked parts. Consecutive user messages then stay separate,
   * since each may have a mark.
   */
  readonly marksCache: boolean;
  /**
   * Set if the provider accepts no GIF: it would refuse this request, and every later one.
   */
  readonly refusesGif?: true;
};

/** The options of every adapter. */
export type AdapterOptions = {
  /** Name of the model here, such as `anthropic/claude-sonnet-5-5`. */
  readonly modelId: string;
  /** Name of the model at its provider, such as `claude-sonnet-5-5`. */
  readonly name: string;
  /** Name of the provider in messages. */
  readonly providerName: string;
  /** With the version at its end if the provider's own clients write it there. */
  readonly baseUrl: string;
  /** Absent for servers without keys. */
  readonly apiKey?: string;
  /** The environment variable with the key, for messages about a wrong key. */
  readonly keyVariable: string;
  readonly facts: ModelFacts;
  /** The model thinks by default, so a summary of its thoughts is free. Default: no. */
  readonly thinksByItself?: boolean;
  /** Whether summaries of thoughts are asked for; default `on`. */
  readonly summaries?: 'on' | 'off';
  readonly fetch?: LeanFetch;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
};

/** The request with the nearest level of effort that the model has. */
const withNearestEffort = (request: ModelRequest, facts: ModelFacts): ModelRequest =>
  request.effort === undefined
    ? request
    : { ...request, effort: nearestEffort(facts, request.effort) };

/** The options about the server and the account. */
type ServerOptions = Pick<AdapterOptions, 'facts' | 'now'> &
  Partial<Pick<AdapterOptions, 'baseUrl' | 'apiKey'>>;

/**
 * The terms (accepted fields) of servers, by address, key and model: what this process has learned
 * by lessons.
 */
const knownTerms = new Map<string, Terms>();

// ---- A model from a wire ----

/** A model whose calls go over a wire. */
export const wireModel = (wire: Wire, options: ServerOptions): Model => ({
  id: wire.dialect.modelId,
  facts: options.facts,
  canAbort: 'yes',
  stream: (request, signal) => {
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal.reason);
    const queue = createPieceQueue(() => {
      if (signal.aborted) return queue.end();
      signal.addEventListener('abort', abort, { once: true });
      const sent = withNearestEffort(request, options.facts);
      void converse({ wire, options, request: sent }, controller.signal, queue.push).finally(() => {
        signal.removeEventListener('abort', abort);
        queue.end();
      });
    }, abort);
    return queue;
  },
});

/** A server may refuse one field after the other, so several lessons may follow. */
const RETRIES_MAX = 4;

type Call = {
  readonly wire: Wire;
  readonly options: ServerOptions;
  readonly request: ModelRequest;
};

/** Performs one call: pushes the pieces of the reply, then its end or its failure. */
const converse = async (
  { wire, options, request }: Call,
  signal: AbortSignal,
  push: (piece: ModelPiece) => void,
): Promise<void> => {
  const { facts, now = Date.now, baseUrl = '', apiKey = '' } = options;
  const termsKey = [baseUrl, apiKey, wire.dialect.modelId].join(' ');
  for (let retries = 0; ; retries++) {
    const terms = knownTerms.get(termsKey);
    const reply = new StreamedReply(push, wire.dialect.server);
    // `limit` keeps the request within what the server accepts; `apply` removes fields of its body.
    const adapted = terms?.limit(request) ?? request;
    let body: object = {};
    try {
      body = wire.body(adapted);
      if (terms !== undefined) body = terms.apply(body, request);
      await wire.send(body, reply, signal);
      const isEffortless = request.effort !== undefined && terms?.effort === 'refused';
      return push({ ...reply.finish(), ...(isEffortless ? { effort: 'refused' } : {}) });
    } catch (thrown) {
      const { usage } = reply;
      // After our own abort the end is not needed, but charged tokens are still reported.
      if (signal.aborted && usage === null) return;
      const error = reply.explain(thrown);
      const refusal = signal.aborted || retries === RETRIES_MAX ? null : readRefusal(error);
      const learned = refusal && learn(refusal, { request: adapted, body, facts }, terms);
      if (learned !== null) knownTerms.set(termsKey, learned);
      // The reader has the beginning of this reply, so only the next request uses the lesson.
      if (learned === null || reply.hasBegun)
        return push({ type: 'failed', error: classify(error, wire.provider, now()), usage });
    }
  }
};

type Next = IteratorResult<ModelPiece, undefined>;
const END: Next = { done: true, value: undefined };

/**
 * A queue of pieces for one reader, in order of arrival. `begin` runs at the first read, `onLeave`
 * if the reader stops before the end.
 */
const createPieceQueue = (begin: () => void, onLeave: () => void) => {
  let queue: ModelPiece[] = [];
  let waiting: ((next: Next) => void) | null = null;
  let state: 'new' | 'open' | 'ended' = 'new';
  const next = async (): Promise<Next> => {
    if (state === 'new') {
      state = 'open';
      begin();
    }
    const value = queue.shift();
    if (value !== undefined) return { done: false, value };
    if (state === 'ended') return END;
    return new Promise((resolve) => {
      waiting = resolve;
    });
  };
  const answer = (result: Next): boolean => {
    const resolve = waiting;
    waiting = null;
    resolve?.(result);
    return resolve !== null;
  };
  const end = (): void => {
    state = 'ended';
    answer(END);
  };
  return {
    push(value: ModelPiece): void {
      if (state !== 'ended' && !answer({ done: false, value })) queue.push(value);
    },
    /** Nothing more comes. */
    end,
    [Symbol.asyncIterator]: () => ({
      next,
      async return() {
        if (state === 'open') onLeave();
        queue = [];
        end();
        return END;
      },
    }),
  };
};

// ---- What adapters share ----

/**
 * An adapter's function that reads one event, as unchecked JSON, into the reply. `end`: later
 * events are skipped.
 */
export type EventReader = (event: Loose) => 'more' | 'end';

/** Sends a request to a provider, and reads the events of its answer into the reply. */
export const exchange = (
  fetch: LeanFetch,
  request: WireRequest,
  read: EventReader,
  reply: StreamedReply,
  signal: AbortSignal,
): Promise<void> =>
  performRequest(fetch, request, signal, {
    event: (event) => reply.watchEvent(() => read(event)),
    alive: () => reply.alive(),
    done: () => reply.sawDone(),
    errorLine: (text) => reply.sawErrorLine(text),
  });

/** The `fetch` for all calls of a model, which share its connection. */
export const connect = ({ fetch }: AdapterOptions): LeanFetch => fetch ?? createFetch({});

/** The server and the account, for error messages. */
export const errorSource = (options: AdapterOptions, url: string): ErrorSource => ({
  name: options.providerName,
  keyVariable: options.keyVariable,
  ...(options.apiKey === undefined ? {} : { apiKey: options.apiKey }),
  host: new URL(url).host,
  url,
});

/** Adds the version to a base URL without one. */
export const versionedUrl = (baseUrl: string, version: string): string => {
  const bare = baseUrl.replace(/\/+$/, '');
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${version}`;
};

/** The stop reason for a provider's word, which may be any text: `toString` is not in `reasons`. */
export const findStopReason = (
  reasons: Readonly<Record<string, StopReason>>,
  word: string,
): StopReason => (Object.hasOwn(reasons, word) ? reasons[word] : undefined) ?? 'other';

/** A text field of an event; throws if the field is not a text. */
export const textIn = (event: Loose, name: string): string => {
  const text = event[name];
  if (typeof text !== 'string') throw oddEvent(`${name} is no text`);
  return text;
};

// ---- Token counts ----

type Counts = { readonly [Field in keyof TokenUsage]: unknown };

/**
 * Tokens from a server's counts. Null if the input or output is missing, or any count is not a
 * number. The counts of caches may be missing.
 */
export const readTokens = (counts: Counts): TokenUsage | null => {
  const inputTokens = asCount(counts.inputTokens);
  const outputTokens = asCount(counts.outputTokens);
  const cacheReadTokens = asCount(counts.cacheReadTokens ?? 0);
  const cacheWriteTokens = asCount(counts.cacheWriteTokens ?? 0);
  return inputTokens === null ||
    outputTokens === null ||
    cacheReadTokens === null ||
    cacheWriteTokens === null
    ? null
    : { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens };
};

/** The sum; null if one of them is unknown. */
export const addTokens = (one: TokenUsage | null, other: TokenUsage | null): TokenUsage | null =>
  one === null || other === null
    ? null
    : {
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
        cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
      };

/**
 * Like `readTokens`, for servers whose input usually includes cached tokens. An input below the
 * cached count does not include them. With 800 cached tokens, an input of 1,000 has 200 uncached
 * ones, and an input of 100 has 100.
 */
export const readTotals = (counts: Counts): TokenUsage | null => {
  const usage = readTokens(counts);
  if (usage === null) return null;
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const cached = cacheReadTokens + cacheWriteTokens;
  return { ...usage, inputTokens: inputTokens < cached ? inputTokens : inputTokens - cached };
};

// ---- The reply while it streams ----

/** A part of the reply while it streams. */
type PartDraft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
};

type Origin = { readonly server?: string };

type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

/**
 * Collects one reply from the events that a wire reads.
 *
 * - Parts are in the order of their beginnings. An unfinished call stays, with the input so far.
 * - The input of a call stays the text that the model wrote.
 * - A reply is whole only with the provider's own reason for stopping. `[DONE]` counts as one if
 *   every call of the reply is whole.
 */
export class StreamedReply {
  /** Tokens so far; null if the provider has reported none. */
  usage: TokenUsage | null = null;
  /** Whether `usage` is that of the whole reply. */
  #isCounted = false;
  readonly #push: (piece: ModelPiece) => void;
  /** The server of the whole reply, added to the metadata of each part. */
  readonly #origin: Origin;
  readonly #drafts: PartDraft[] = [];
  /** Why the reply ends, or the error with which it has failed; null: unknown so far. */
  #stopped: StopReason | Error | null = null;
  /** The model has refused to answer. */
  #isRefused = false;
  /** `[DONE]` came. */
  #isDone = false;
  /** Fields of the message beside text and calls, by name. */
  #extraFields: JsonObject = {};
  /** The text of a line `error: …`; null: no such line came. */
  #errorLine: string | null = null;
  /** An event reports an error, or has an odd form. Damaged JSON never becomes an event. */
  #hasFailedEvent = false;

  /** `server`: stored with metadata, which goes back to that server alone; absent: to any. */
  constructor(push: (piece: ModelPiece) => void, server?: string) {
    this.#push = push;
    this.#origin = server === undefined ? {} : { server };
  }

  /**
   * Replaces the usage by a newer report: reports are totals. `part`: more must follow. Null: the
   * report can't be read.
   */
  count(usage: TokenUsage | null, coverage: 'whole' | 'part' = 'whole'): void {
    this.usage = usage;
    this.#isCounted = usage !== null && coverage === 'whole';
  }

  /** Begins a part. */
  begin(type: 'text' | 'reasoning', id: string, metadata?: ProviderMetadata): void {
    addMetadata(this.#open(type, id), metadata);
  }

  /** Adds to a part, and begins it if necessary. */
  add(type: 'text' | 'reasoning', id: string, text: string, metadata?: ProviderMetadata): void {
    const draft = this.#find(type, id);
    addMetadata(draft, metadata);
    draft.text += text;
    if (text !== '') this.#push({ type, text });
  }

  beginCall(id: string, tool: string, metadata?: ProviderMetadata): void {
    addMetadata(this.#open('call', id, tool), metadata);
    this.#push({ type: 'toolCall', tool, text: '' });
  }

  addInput(id: string, text: string): void {
    const draft = this.#find('call', id);
    draft.text += text;
    this.#push({ type: 'toolCall', tool: draft.tool, text });
  }

  /** `input`: the whole text, in place of the pieces before. */
  endCall(id: string, input: string, metadata?: ProviderMetadata): void {
    const draft = this.#find('call', id);
    draft.text = input;
    addMetadata(draft, metadata);
  }

  /** Adds only metadata to a part, such as a signature after the text that it signs. */
  addOnlyMetadata(
    type: PartDraft['type'],
    id: string,
    metadata: ProviderMetadata | undefined,
  ): void {
    addMetadata(this.#find(type, id), metadata);
  }

  /** Adds the text of a refusal, a separate part. */
  refuse(text: string): void {
    this.#isRefused = true;
    this.add('text', 'refusal', text);
  }

  /** Adds fields of the message beside text and calls; they may come in pieces. */
  addExtraFields(fields: Loose): void {
    this.#extraFields = joinFields(this.#extraFields, fields);
  }

  /** The model works without output: nothing to show, but the reply is not silent. */
  alive(): void {
    this.#push({ type: 'reasoning', text: '' });
  }

  /** Why the reply ends: an error if it has failed, null if the provider gives no reason. */
  stop(reason: StopReason | Error | null): void {
    this.#stopped = reason;
  }

  /** `[DONE]` came: some servers end a reply with nothing else. */
  sawDone(): void {
    this.#isDone = true;
  }

  /** A line `error: …` came in place of an event. */
  sawErrorLine(text: string): void {
    this.#errorLine = text;
  }

  /** Runs the reader of an event, and remembers for `explain` whether that failed. */
  watchEvent<T>(read: () => T): T {
    this.#hasFailedEvent = true;
    const result = read();
    this.#hasFailedEvent = false;
    return result;
  }

  /**
   * The error of a failed reply. The server's own `error:` line says more than the end of the
   * stream, or than JSON that is cut off by this line; a failed event says more than the line.
   */
  explain(thrown: unknown): unknown {
    const line = this.#errorLine;
    if (line === null || this.#hasFailedEvent) return thrown;
    try {
      return eventError(JSON.parse(line));
    } catch {
      return eventError({ message: line }); // plain text
    }
  }

  /** Text, a thought or a call of this reply was shown. */
  get hasBegun(): boolean {
    return this.#drafts.some(({ type, text }) => type === 'call' || text !== '');
  }

  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed {
    const reason = this.#reason();
    const parts = this.#parts();
    // Some servers report a plain end for a reply with calls.
    const isCalling = reason === 'end' && parts.some(({ type }) => type === 'call');
    const completeReason = isCalling ? 'toolUse' : reason;
    const stopReason = this.#isRefused ? 'refusal' : completeReason;
    const usage = this.#isCounted ? this.usage : null;
    // Impossible counts are ignored: each request has input, a reply with parts has output.
    const { inputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
    const hasInput = inputTokens + cacheReadTokens + cacheWriteTokens > 0;
    const isPlausible = hasInput && (usage?.outputTokens !== 0 || parts.length === 0);
    return { type: 'completed', parts, stopReason, usage: isPlausible ? usage : null };
  }

  /** The part that began last with this id. */
  #find(type: PartDraft['type'], id: string): PartDraft {
    const draft = this.#drafts.findLast((one) => one.type === type && one.id === id);
    return draft ?? this.#open(type, id);
  }

  #open(type: PartDraft['type'], id: string, tool = ''): PartDraft {
    const draft: PartDraft = { type, id, tool, text: '', metadata: undefined };
    this.#drafts.push(draft);
    return draft;
  }

  #reason(): StopReason {
    if (this.#stopped instanceof Error) throw this.#stopped;
    if (this.#stopped !== null) return this.#stopped;
    if (!this.#isDone || this.#drafts.length === 0 || !this.#drafts.every(isWhole))
      throw brokenOff();
    return 'end';
  }

  /** The parts. Extra fields become metadata of a thought, which may be empty. */
  #parts(): Completed['parts'] {
    const parts: Completed['parts'][number][] = [];
    for (const draft of this.#drafts) parts.push(...closeDraft(draft, this.#origin));
    if (Object.keys(this.#extraFields).length === 0) return parts;
    const metadata = { openaiCompatible: this.#extraFields, ...this.#origin };
    return [{ type: 'reasoning', text: '', metadata }, ...parts];
  }
}

/** Adds metadata, which comes in pieces, by provider. */
const addMetadata = (draft: PartDraft, added: ProviderMetadata | undefined): void => {
  if (added === undefined) return;
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(draft.metadata ?? {}), ...Object.keys(added)])) {
    const before = draft.metadata?.[provider];
    const more = added[provider];
    merged[provider] = {
      ...(isObject(before) ? before : {}),
      ...(isObject(more) ? more : {}),
    } as JsonObject; // JSON
  }
  draft.metadata = merged;
};

const closeDraft = (
  { type, id, tool, text, metadata }: PartDraft,
  origin: Origin,
): readonly (AssistantText | ReasoningPart | RawCall)[] => {
  const noted = metadata === undefined ? {} : { metadata: { ...metadata, ...origin } };
  if (type === 'call') return [{ type, callId: id, tool, rawInput: text, ...noted }];
  if (type === 'reasoning')
    return text === '' && metadata === undefined ? [] : [{ type, text, ...noted }];
  return isBlank(text) ? [] : [{ type, text, ...noted }];
};

const isWhole = ({ type, text }: PartDraft): boolean => {
  if (type !== 'call') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // incomplete arguments
  }
};

/**
 * Joins fields that come in pieces, such as OpenRouter's `reasoning_details`: a model's thoughts,
 * signed or encrypted by its provider. They must go back whole and in order, or the provider
 * ignores the thoughts, or refuses the conversation. `streamed`: the fields whose texts are joined;
 * default: all.
 */
const joinFields = (before: Loose, added: Loose, streamed?: ReadonlySet<string>): JsonObject => {
  const joined: { [key: string]: unknown } = { ...before };
  for (const [key, value] of Object.entries(added)) {
    if (value === undefined || value === null || key === '__proto__') continue;
    const isStreamed = streamed === undefined || streamed.has(key);
    joined[key] = isStreamed ? joinValues(joined[key], value) : value;
  }
  return joined as JsonObject; // it came as JSON
};

const joinValues = (before: unknown, value: unknown): unknown => {
  if (typeof before === 'string' && typeof value === 'string') return before + value;
  if (Array.isArray(value)) return joinLists(Array.isArray(before) ? before : [], value);
  return isObject(before) && isObject(value) ? joinFields(before, value) : value;
};

/**
 * Fields of a block whose texts are joined. Any other field of a later piece replaces the earlier.
 */
const STREAMED: ReadonlySet<string> = new Set(['text', 'summary', 'thinking']);

const joinLists = (before: readonly unknown[], pieces: readonly unknown[]): readonly unknown[] => {
  const joined = [...before];
  for (const piece of pieces) {
    const at = joined.findLastIndex((last) => isSameBlock(last, piece));
    const last = joined[at];
    if (isObject(last) && isObject(piece)) joined[at] = joinFields(last, piece, STREAMED);
    else joined.push(piece);
  }
  return joined;
};

/**
 * Whether a piece continues a block: it has the same index, and no other id. Without an index a
 * piece of thinking continues a block without a signature.
 */
const isSameBlock = (last: unknown, piece: unknown): boolean => {
  if (!isObject(last) || !isObject(piece) || last.type !== piece.type) return false;
  const isUnnumbered = (piece.index ?? null) === null;
  return isUnnumbered
    ? typeof piece.thinking === 'string' && !last.signature
    : last.index === piece.index && (piece.id ?? last.id) === (last.id ?? piece.id);
};

// ---- One HTTP request, and the events of its answer ----

export type WireRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
};

/** Receives the events and the other lines of an answer. */
type EventSink = {
  /** An event. `end`: later lines are skipped. */
  event(event: Loose): 'more' | 'end';
  /** A comment, with which gateways report that a provider is at work. */
  alive(): void;
  /** `[DONE]`. */
  done(): void;
  /** A line `error: …`, which some servers write in place of an event. */
  errorLine(text: string): void;
};

const USER_AGENT = `pawl/${VERSION}`;

/**
 * Sends a request and reads the events of its answer. Rejects if the answer is not a stream of
 * events, or breaks off.
 *
 * - The request has our user agent, and asks for an uncompressed answer.
 * - A success with another body (a login page, JSON) fails with the body's first words. A redirect
 *   fails, too: a key is sent only to the address that the user named.
 * - Half characters (lone surrogates) are replaced: a provider would refuse this request, and every
 *   later one of the session.
 */
const performRequest = async (
  fetch: LeanFetch,
  { url, headers, body }: WireRequest,
  signal: AbortSignal,
  sink: EventSink,
): Promise<void> => {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...headers,
      'user-agent': USER_AGENT,
      'accept-encoding': 'identity',
    },
    body: replaceLoneSurrogates(JSON.stringify(body)),
    signal,
  });
  if (!response.ok) throw await failedAnswer(response);
  await readBody(response.body, sink);
};

/** An escaped surrogate in JSON is a lone one, since JSON.stringify writes pairs as they are. */
const LONE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

const replaceLoneSurrogates = (json: string): string =>
  json.includes('\\ud') ? json.replace(LONE, '$1\\ufffd') : json;

/** Characters of an unexpected body that are read. */
const ODD_CHARACTERS_MAX = 65_536;

/** Feeds the body to the parser, unless its beginning is not that of an event stream. */
const readBody = async (body: LeanBody, sink: EventSink): Promise<void> => {
  const parser = new EventParser({
    event: (text) => (text === '[DONE]' ? 'more' : sink.event(parseEvent(text))),
    comment: () => sink.alive(),
    data(line) {
      // counts even without the empty line that ends an event, so `event` skips it
      if (line.startsWith('[DONE]')) sink.done();
    },
    error: (text) => sink.errorLine(text.slice(0, ERROR_LINE_MAX).trim()),
  });
  const decoder = new TextDecoder();
  let start: Start = 'unknown';
  let text = '';
  for await (const bytes of body) {
    if (start !== 'events') text += decoder.decode(bytes, { stream: true });
    if (start === 'unknown') start = classifyStart(text);
    if (start !== 'odd') {
      if (parser.add(bytes) === 'end') return;
    } else if (text.length > ODD_CHARACTERS_MAX) break;
  }
  if (start === 'odd') throw oddAnswer(text.trimStart());
  parser.end();
};

/** A field with a value, a field alone, an `error:` line, or a comment. */
const EVENT_STARTS = [
  ...['data', 'event', 'id', 'retry'].flatMap((field) => [
    `${field}:`,
    `${field}\n`,
    `${field}\r\n`,
  ]),
  'error:',
  ':',
];

/** The beginning of a body. `unknown`: too short to decide; `odd`: not an event stream. */
type Start = 'unknown' | 'events' | 'odd';

const classifyStart = (text: string): Start => {
  const trimmed = text.trimStart();
  if (EVENT_STARTS.some((start) => trimmed.startsWith(start))) return 'events';
  return EVENT_STARTS.some((start) => start.startsWith(trimmed)) ? 'unknown' : 'odd';
};

/** Characters of an `error:` line that are read. */
const ERROR_LINE_MAX = 8_192;

const parseEvent = (text: string): Loose => {
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    // the connection has damaged it; errors.ts reads the type
    throw Object.assign(new Error('a part of its reply is no JSON'), { type: 'damaged_frame' });
  }
  if (!isJsonObject(event)) throw new Error('a part of its reply is no object');
  return event;
};

// ---- The messages of a request ----

export type SentPicture = {
  readonly type: 'picture';
  readonly mediaType: string;
  readonly base64: string;
};

/** A user message: its results come first, then texts and all pictures. */
export type SentUser = {
  readonly role: 'user';
  readonly results: readonly ResultPart[];
  readonly content: readonly (UserText | SentPicture)[];
};

/** A message of a request, never empty. Metadata of a reply goes back to the provider. */
export type SentMessage = SentUser | AssistantMessage;

/**
 * The messages of a request as its model gets them.
 *
 * 1. It is a pure function of the messages: earlier messages are sent again byte for byte.
 * 2. Results come before text. Blank texts, which wires forbid, are omitted.
 * 3. Metadata goes back with its part, but only to the model and the server that sent it. Metadata
 *    of a whole reply (OpenRouter's `reasoning_details`) comes with a thought.
 * 4. Call ids of another model are replaced by nine letters and digits, the only form that every
 *    provider accepts (Mistral): `c00003001` is the first call of message 3 (counted from 0).
 */
export const sentMessages = (
  messages: readonly Message[],
  dialect: Dialect,
): readonly SentMessage[] => {
  const sent: SentMessage[] = [];
  // The ids of the last reply's calls, where others are sent (rule 4). Its results come next.
  let ids = NO_IDS;
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') {
      addUser(sent, sentUser(message, ids, dialect), dialect);
      continue;
    }
    const isOurs = message.model === dialect.modelId;
    ids = isOurs ? NO_IDS : plainIds(message, index);
    // Only the model that wrote a reply gets its metadata back.
    const parts = message.parts.flatMap((part) =>
      sentPart(part, ids, isOurs ? ownMetadata(part, dialect) : undefined),
    );
    if (parts.length > 0) sent.push({ ...message, parts });
  }
  return sent;
};

/** The tool choice of a request, if it has tools. */
export const sentChoice = ({ tools, toolChoice }: ModelRequest): ModelRequest['toolChoice'] =>
  tools.length === 0 ? undefined : toolChoice;

export const isBlank = (text: string): boolean => text.trim() === '';

/**
 * The last two user messages. The provider caches the prompt at their ends; one of them is the end
 * of the previous request.
 */
export const cachedUsers = (messages: readonly SentMessage[]): ReadonlySet<SentMessage> =>
  new Set(messages.filter(({ role }) => role === 'user').slice(-2));

/** Adds a user message, joined with the user message before if possible. */
const addUser = (sent: SentMessage[], user: SentUser, { marksCache }: Dialect): void => {
  const last = sent.at(-1);
  if (last?.role === 'user' && user.results.length === 0 && !marksCache)
    sent.splice(-1, 1, { ...last, content: [...last.content, ...user.content] });
  else if (user.results.length > 0 || user.content.length > 0) sent.push(user);
};

const sentUser = (
  { parts }: UserMessage,
  ids: ReadonlyMap<string, string>,
  dialect: Dialect,
): SentUser => {
  const results = parts.filter((part) => part.type === 'result');
  const texts = parts.filter((part) => part.type === 'text');
  return {
    role: 'user',
    results: results.map((part) => ({
      ...part,
      callId: ids.get(part.callId) ?? part.callId,
      text: isBlank(part.text) ? '(no output)' : part.text, // no wire takes an error without text
    })),
    // Pictures follow all results, since not every wire takes them inside a result.
    content: [
      ...results.flatMap((part) => sentPictures(part, dialect)),
      ...texts.flatMap((part) => [
        ...(isBlank(part.text) ? [] : [part]),
        ...sentPictures(part, dialect),
      ]),
    ],
  };
};

const sentPictures = (
  { images = [] }: ResultPart | UserText,
  { modelId, refusesGif }: Dialect,
): SentUser['content'] =>
  images.flatMap(({ mediaType, base64 }): SentUser['content'] => {
    if (base64 === undefined) return [];
    const text = `[a picture is not shown: ${modelId} takes no GIF]`;
    return mediaType === 'image/gif' && refusesGif
      ? [{ type: 'text', origin: 'note', text }]
      : [{ type: 'picture', mediaType, base64 }];
  });

/** The metadata of a part, if the server of this request sent it. */
const ownMetadata = (
  { metadata }: AssistantPart,
  { server }: Dialect,
): ProviderMetadata | undefined => {
  if (metadata === undefined) return undefined;
  const { server: from, ...sent } = metadata;
  // Older sessions do not name the server.
  return from === undefined || from === server ? sent : undefined;
};

/** `metadata`: goes back with the part, in place of its own; undefined: none. */
const sentPart = (
  part: AssistantPart,
  ids: ReadonlyMap<string, string>,
  metadata: ProviderMetadata | undefined,
): readonly AssistantPart[] => {
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? [] : [{ ...part, metadata: metadata ?? {} }];
    case 'reasoning':
      // a thought without its metadata, such as its signature, would be rejected
      return metadata === undefined ? [] : [{ ...part, metadata }];
    case 'call':
      return [{ ...part, callId: ids.get(part.callId) ?? part.callId, metadata: metadata ?? {} }];
    default:
      return part satisfies never;
  }
};

/** A number in letters and digits (base 36), for short ids. */
const digits = (number: number, length: number): string =>
  number.toString(36).padStart(length, '0');

/** Ids of a reply's calls for another provider, made from their places. */
const plainIds = ({ parts }: AssistantMessage, messageIndex: number): ReadonlyMap<string, string> =>
  new Map(
    parts
      .filter((part) => part.type === 'call')
      .map(({ callId }, index) => [callId, `c${digits(messageIndex, 5)}${digits(index + 1, 3)}`]),
  );

const NO_IDS: ReadonlyMap<string, string> = new Map();
