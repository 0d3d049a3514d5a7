/**
 * What all wires share. A wire is the HTTP API of a model's provider, and its adapter is one file
 * of this folder. From top to bottom: `wireModel`, which makes a model from a wire; small parts
 * that adapters use; `StreamedReply`, the reply as it comes; `readEvents`, one request and the
 * events of its answer; and `sentMessages`, which says what is sent of the conversation, in its own
 * types. wire-errors.ts has the errors of all wires.
 *
 * - One call is one request: nothing here retries. Only where a refusal teaches what the server
 *   takes (lessons.ts), the request is sent once more as it takes it, and Google's wire goes on
 *   with a reply that its provider hands out in parts.
 * - Our own abort can surface as any error: the signal is looked at before the error is.
 * - A reply is whole only with the provider's own reason for its end.
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
import { asCount, isObject, type Loose } from '../platform/untrusted-input.js';
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

/** The differences between wires. */
export type Wire = {
  readonly provider: ErrorSource;
  /** What it takes in a request, and what it does not. */
  readonly dialect: Dialect;
  /** The request in the words of the wire. */
  body(request: ModelRequest): object;
  /** Sends a body and reads the answer into the reply. Rejects if that fails. */
  send(body: object, reply: StreamedReply, signal: AbortSignal): Promise<void>;
};

/** What every adapter gets to make a model. */
export type AdapterOptions = {
  /** Name of the model here, such as `anthropic/claude-sonnet-5-5`. */
  readonly modelId: string;
  /** Name of the model at its provider, such as `claude-sonnet-5-5`. */
  readonly name: string;
  /** Name of the provider in messages. */
  readonly providerName: string;
  /** With the version at its end where the provider's clients have it there. */
  readonly baseUrl: string;
  /** Left out for servers that want none. */
  readonly apiKey?: string;
  /** Variable that messages about a wrong key name. */
  readonly keyVariable: string;
  readonly facts: ModelFacts;
  /** The model thinks unasked, so a summary of its thoughts costs nothing more. Default: no. */
  readonly thinksByItself?: boolean;
  /** Whether summaries of thoughts are asked for; default `on`. */
  readonly summaries?: 'on' | 'off';
  readonly fetch?: LeanFetch;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
};

/** The request with a level of effort that the model has. */
const withNearestEffort = (request: ModelRequest, facts: ModelFacts): ModelRequest =>
  request.effort === undefined
    ? request
    : { ...request, effort: nearestEffort(facts, request.effort) };

/** What the options say of the server and the account; a model that is given ready says less. */
type ServerOptions = Pick<AdapterOptions, 'facts' | 'now'> &
  Partial<Pick<AdapterOptions, 'baseUrl' | 'apiKey'>>;

/** The terms of servers, by address, key and model: this process learns each only once. */
const knownTerms = new Map<string, Terms>();

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

/** A server may refuse one field after the other. */
const LESSONS_MAX = 4;

type Call = {
  readonly wire: Wire;
  readonly options: ServerOptions;
  readonly request: ModelRequest;
};

/** Performs one call: pushes the pieces of the reply, and then its end or its failure. */
const converse = async (
  { wire, options, request }: Call,
  signal: AbortSignal,
  push: (piece: ModelPiece) => void,
): Promise<void> => {
  const { facts, now = Date.now, baseUrl = '', apiKey = '' } = options;
  const server = [baseUrl, apiKey, wire.dialect.modelId].join(' ');
  for (let lessons = 0; ; lessons++) {
    const terms = knownTerms.get(server);
    const reply = new StreamedReply(push, wire.dialect.server);
    const limited = terms?.limit(request) ?? request;
    let body: object = {};
    try {
      body = wire.body(limited);
      if (terms !== undefined) body = terms.apply(body);
      await wire.send(body, reply, signal);
      const isEffortless = request.effort !== undefined && terms?.effort === 'refused';
      return push({ ...reply.finish(), ...(isEffortless ? { effort: 'refused' } : {}) });
    } catch (thrown) {
      const { usage } = reply;
      // Nobody waits for an end after our own abort, but charged tokens are still reported.
      if (signal.aborted && usage === null) return;
      const error = reply.explain(thrown);
      const refusal = signal.aborted || lessons === LESSONS_MAX ? null : readRefusal(error);
      const learned = refusal && learn(refusal, { request: limited, body, facts }, terms);
      if (learned === null)
        return push({ type: 'failed', error: classify(error, wire.provider, now()), usage });
      knownTerms.set(server, learned);
    }
  }
};

type Next = IteratorResult<ModelPiece, undefined>;
const END: Next = { done: true, value: undefined };

/**
 * A queue of pieces for one reader, in order of arrival. `begin` runs when the reader first asks,
 * `leave` if it stops reading before the end.
 */
const createPieceQueue = (begin: () => void, leave: () => void) => {
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
        if (state === 'open') leave();
        queue = [];
        end();
        return END;
      },
    }),
  };
};

// ---- Parts of adapters ----

/**
 * Reads one event of a wire, as unchecked JSON, into the reply. `end`: nothing behind it is read.
 */
export type ReadEvent = (event: Loose) => 'more' | 'end';

/** Sends a request to a provider, and reads the events of its answer into the reply. */
export const exchange = (
  fetch: LeanFetch,
  request: WireRequest,
  read: ReadEvent,
  reply: StreamedReply,
  signal: AbortSignal,
): Promise<void> =>
  readEvents(fetch, request, signal, {
    event: (event) => reply.readEvent(() => read(event)),
    alive: () => reply.alive(),
    done: () => reply.sawDone(),
    errorLine: (text) => reply.sawErrorLine(text),
  });

/** One for all calls of a model: it keeps their connection. */
export const connect = ({ fetch }: AdapterOptions): LeanFetch => fetch ?? createFetch({});

/** The server and the account that errors speak of. */
export const errorSource = (options: AdapterOptions, url: string): ErrorSource => ({
  name: options.providerName,
  keyVariable: options.keyVariable,
  ...(options.apiKey === undefined ? {} : { apiKey: options.apiKey }),
  host: new URL(url).host,
  url,
});

/** Adds the version to a base URL, which providers' own clients leave out. */
export const versionedUrl = (baseUrl: string, version: string): string => {
  const bare = baseUrl.replace(/\/+$/, '');
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${version}`;
};

/**
 * The reason for the end that a provider's word means. Words come from outside: no field of every
 * object is one.
 */
export const findStopReason = (
  reasons: Readonly<Record<string, StopReason>>,
  word: string,
): StopReason => (Object.hasOwn(reasons, word) ? reasons[word] : undefined) ?? 'other';

/** A text of an event; throws if it is none. */
export const textIn = (event: Loose, name: string): string => {
  const text = event[name];
  if (typeof text !== 'string') throw oddEvent(`${name} is no text`);
  return text;
};

// ---- The reply as it comes ----

/** A part of the reply whose end has not come. */
type Draft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
  /** The server to which the metadata goes back. */
  readonly place: { readonly server?: string };
};

type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

type Counts = { readonly [Field in keyof TokenUsage]: unknown };

/**
 * Tokens from a server's counts. Null if one that must be there is missing, or if one is no count:
 * half of a report is none. The caches' counts may be missing.
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

/** The sum; null if one of them is not known. */
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
 * Like `readTokens`, where the input includes cached tokens. Some servers report a total with
 * them, some without: a total below the cached count does not include them.
 */
export const readTotals = (counts: Counts): TokenUsage | null => {
  const usage = readTokens(counts);
  if (usage === null) return null;
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const cached = cacheReadTokens + cacheWriteTokens;
  return { ...usage, inputTokens: inputTokens < cached ? inputTokens : inputTokens - cached };
};

/**
 * One reply, as its wire reads it from the events.
 *
 * - Parts stand in the order in which they began. A call that was never closed is kept as far as it
 *   came.
 * - The text of a call's input is handed on as the model wrote it.
 * - It is whole only with the provider's own reason for stopping. `[DONE]` is one if every call of
 *   the reply is whole.
 */
export class StreamedReply {
  /** Tokens counted so far; null if the provider has named none. */
  usage: TokenUsage | null = null;
  /** Whether they are those of the whole reply. */
  #isCounted = false;
  readonly #push: (piece: ModelPiece) => void;
  readonly #place: { readonly server?: string };
  readonly #drafts: Draft[] = [];
  /** Why the reply ends, or the error with which it has failed; null: unknown so far. */
  #stopped: StopReason | Error | null = null;
  /** The model has refused to answer. */
  #isRefused = false;
  /** `[DONE]` came. */
  #isDone = false;
  /** What the server has sent beside text and calls, by the names of its fields. */
  #beside: JsonObject = {};
  /** The text of a line `error: …`; null: none came. */
  #errorLine: string | null = null;
  /** An event could not be read, or tells an error. */
  #hasFailedEvent = false;

  /** `server`: goes with all that goes back to it; absent: it goes back to any. */
  constructor(push: (piece: ModelPiece) => void, server?: string) {
    this.#push = push;
    this.#place = server === undefined ? {} : { server };
  }

  /**
   * Takes a report of tokens so far, in place of the one before: reports are sums, and none is
   * added to another. `part`: more must follow. Null: it can't be read.
   */
  count(usage: TokenUsage | null, coverage: 'whole' | 'part' = 'whole'): void {
    this.usage = usage;
    this.#isCounted = usage !== null && coverage === 'whole';
  }

  /** Begins a part. */
  begin(type: 'text' | 'reasoning', id: string, metadata?: ProviderMetadata): void {
    addMetadata(this.#open(type, id), metadata);
  }

  /** Adds to a part, and begins it if nobody has. */
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

  /** `input`: its whole text, in place of what came of it in pieces. */
  endCall(id: string, input: string, metadata?: ProviderMetadata): void {
    const draft = this.#find('call', id);
    draft.text = input;
    addMetadata(draft, metadata);
  }

  /** Adds only metadata to a part: a signature comes after the text that it signs. */
  note(type: Draft['type'], id: string, metadata: ProviderMetadata | undefined): void {
    addMetadata(this.#find(type, id), metadata);
  }

  /** Words of a refusal are a part of their own. */
  refuse(text: string): void {
    this.#isRefused = true;
    this.add('text', 'refusal', text);
  }

  /** Fields of the message that are neither text nor calls; they come in pieces, too. */
  addBeside(fields: Loose): void {
    this.#beside = joinFields(this.#beside, fields);
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

  /** Reads an event, and remembers for `explain` whether that failed. */
  readEvent<T>(read: () => T): T {
    this.#hasFailedEvent = true;
    const result = read();
    this.#hasFailedEvent = false;
    return result;
  }

  /**
   * Why the reply failed. The server's own `error:` line says more than the end of the stream. A
   * failed event is the reason itself: the line may come after it in the same chunk, and chunks
   * must not decide.
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

  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed {
    const stopped = this.#reason();
    const parts = this.#parts();
    // Some servers report a plain end for a reply with calls.
    const isCalling = stopped === 'end' && parts.some(({ type }) => type === 'call');
    const stopReason = this.#isRefused ? 'refusal' : isCalling ? 'toolUse' : stopped;
    const usage = this.#isCounted ? this.usage : null;
    // Counts that can't be true are none: each request has input, a reply with parts has output.
    const { inputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
    const hasInput = inputTokens + cacheReadTokens + cacheWriteTokens > 0;
    const isTrue = hasInput && (usage?.outputTokens !== 0 || parts.length === 0);
    return { type: 'completed', parts, stopReason, usage: isTrue ? usage : null };
  }

  /** The part that began last with this id. */
  #find(type: Draft['type'], id: string): Draft {
    const draft = this.#drafts.findLast((draft) => draft.type === type && draft.id === id);
    return draft ?? this.#open(type, id);
  }

  #open(type: Draft['type'], id: string, tool = ''): Draft {
    const draft: Draft = { type, id, tool, text: '', metadata: undefined, place: this.#place };
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

  /** What came beside the message goes back with a thought, even if there are no words of one. */
  #parts(): Completed['parts'] {
    const parts = this.#drafts.flatMap(closeDraft);
    if (Object.keys(this.#beside).length === 0) return parts;
    const metadata = { openaiCompatible: this.#beside, ...this.#place };
    return [{ type: 'reasoning', text: '', metadata }, ...parts];
  }
}

/** Metadata of a part comes in pieces, by provider. */
const addMetadata = (draft: Draft, added: ProviderMetadata | undefined): void => {
  if (added === undefined) return;
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(draft.metadata ?? {}), ...Object.keys(added)])) {
    const known = draft.metadata?.[provider];
    const more = added[provider];
    merged[provider] = {
      ...(isObject(known) ? known : {}),
      ...(isObject(more) ? more : {}),
    } as JsonObject; // JSON
  }
  draft.metadata = merged;
};

const closeDraft = ({
  type,
  id,
  tool,
  text,
  metadata,
  place,
}: Draft): readonly (AssistantText | ReasoningPart | RawCall)[] => {
  const noted = metadata === undefined ? {} : { metadata: { ...metadata, ...place } };
  if (type === 'call') return [{ type, callId: id, tool, rawInput: text, ...noted }];
  if (type === 'reasoning')
    return text === '' && metadata === undefined ? [] : [{ type, text, ...noted }];
  return text.trim() === '' ? [] : [{ type, text, ...noted }];
};

const isWhole = ({ type, text }: Draft): boolean => {
  if (type !== 'call') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // half of its arguments
  }
};

/**
 * Fields that come in pieces, such as OpenRouter's `reasoning_details`: a model's thoughts, signed
 * or encrypted by its provider. They must go back whole and in order, or the provider forgets the
 * thoughts, or refuses the conversation. `streamed`: the fields whose texts are joined; without it
 * all are.
 */
const joinFields = (known: Loose, added: Loose, streamed?: ReadonlySet<string>): JsonObject => {
  const joined: { [key: string]: unknown } = { ...known };
  for (const [key, value] of Object.entries(added)) {
    if (value === undefined || value === null || key === '__proto__') continue;
    const isStreamed = streamed === undefined || streamed.has(key);
    joined[key] = isStreamed ? joinValues(joined[key], value) : value;
  }
  return joined as JsonObject; // it came as JSON
};

const joinValues = (known: unknown, value: unknown): unknown => {
  if (typeof known === 'string' && typeof value === 'string') return known + value;
  if (Array.isArray(value)) return joinLists(Array.isArray(known) ? known : [], value);
  return isObject(known) && isObject(value) ? joinFields(known, value) : value;
};

/** Fields of a block that come in pieces; any other field of a later piece replaces the earlier. */
const STREAMED: ReadonlySet<string> = new Set(['text', 'summary', 'thinking']);

const joinLists = (known: readonly unknown[], pieces: readonly unknown[]): readonly unknown[] => {
  const joined = [...known];
  for (const piece of pieces) {
    const at = joined.findLastIndex((last) => isSameBlock(last, piece));
    const last = joined[at];
    if (isObject(last) && isObject(piece)) joined[at] = joinFields(last, piece, STREAMED);
    else joined.push(piece);
  }
  return joined;
};

/**
 * Whether a piece continues a block; without an index a piece of thinking does, if the block has no
 * signature.
 */
const isSameBlock = (last: unknown, piece: unknown): boolean => {
  if (!isObject(last) || !isObject(piece) || last.type !== piece.type) return false;
  const isUnnumbered = (piece.index ?? null) === null;
  return isUnnumbered
    ? typeof piece.thinking === 'string' && !last.signature
    : last.index === piece.index && (piece.id ?? last.id) === (last.id ?? piece.id);
};

// ---- One request, and the events of its answer ----

export type WireRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
};

/** What the lines of an answer mean. */
export type EventSink = {
  /** Takes an event. `end`: nothing behind it is read. */
  event(event: Loose): 'more' | 'end';
  /** A comment came, by which gateways say that a provider is at work. */
  alive(): void;
  /** `[DONE]` came. */
  done(): void;
  /** A line `error: …` came, which some servers write in place of an event. */
  errorLine(text: string): void;
};

const USER_AGENT = `pawl/${VERSION}`;

/**
 * Sends a request and reads the events of its answer. Rejects if the answer is none, or breaks off.
 *
 * - It sends our user agent, and asks for an uncompressed answer.
 * - A success whose body is no event stream (a login page, JSON) fails with the body's first words.
 *   A redirect fails, too: a key is sent only to the address that the user named.
 * - A request has no half characters (lone surrogates): a provider refuses it, and with it every
 *   later one of the session.
 */
const readEvents = async (
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
const LONE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/gi;

const replaceLoneSurrogates = (json: string): string =>
  json.includes('\\ud') ? json.replace(LONE, '$1\\ufffd') : json;

/** Characters of an unexpected body that are read. */
const ODD_CHARACTERS_MAX = 65_536;

/** Feeds the body to the parser, until its beginning shows that it is no stream of events. */
const readBody = async (body: LeanBody, sink: EventSink): Promise<void> => {
  const parser = new EventParser({
    event: (text) => (text === '[DONE]' ? 'more' : sink.event(parseEvent(text))),
    comment: () => sink.alive(),
    data(line) {
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

const EVENT_START = /^(?:(?:data|event|id|retry|error)?:|(?:data|event|id|retry)\r?\n)/;
const EVENT_STARTS = ['data', 'event', 'id', 'retry', 'error'].flatMap((field) => [
  `${field}:`,
  `${field}\r\n`,
]);

/** What a body begins with; `unknown` may become an event, `odd` is no stream of events. */
type Start = 'unknown' | 'events' | 'odd';

const classifyStart = (text: string): Start => {
  const trimmed = text.trimStart();
  if (EVENT_START.test(trimmed)) return 'events';
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
  if (!isObject(event) || Array.isArray(event)) throw new Error('a part of its reply is no object');
  return event;
};

// ---- What is sent of the conversation ----

/** What a wire takes in a request, and what it does not. */
export type Dialect = {
  /** The model that gets the request: `provider/name`. */
  readonly modelId: string;
  /** Where it is reached; absent: unknown. */
  readonly server?: string;
  /**
   * True if the provider caches only marked parts. Messages of the user that follow each other stay
   * apart then, since each may have a mark.
   */
  readonly marksCache: boolean;
  /**
   * True if metadata of a cut (broken-off) reply goes back. Its thoughts never do, so metadata that
   * refers to them must not either.
   */
  readonly keepsCut: boolean;
  /**
   * Set if the provider takes no GIF: it would refuse the request, and every later one of the
   * conversation.
   */
  readonly refusesGif?: true;
};

export type SentPicture = {
  readonly type: 'picture';
  readonly mediaType: string;
  readonly base64: string;
};

/** A user message: its results come first, then what the user says and all pictures. */
export type SentUser = {
  readonly role: 'user';
  readonly results: readonly ResultPart[];
  readonly content: readonly (UserText | SentPicture)[];
};

/** The metadata of a reply is what goes back with it. No message is empty. */
export type SentMessage = SentUser | AssistantMessage;

/**
 * The messages of a request as its model gets them.
 *
 * 1. What was sent before is sent again byte for byte: a pure function of the messages.
 * 2. Results come before text. A part that a wire forbids (blank text) is left out.
 * 3. What a server sent beside text goes back to the model and the server that it came from, and to
 *    no other, with the part that it came with. What belongs to the whole reply (OpenRouter's
 *    `reasoning_details`) comes with a thought.
 * 4. Ids of calls of another model become nine letters and digits, the one form that every provider
 *    takes (Mistral).
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
    const isOwn = isOurs && (!message.cut || dialect.keepsCut);
    const parts = message.parts.flatMap((part) =>
      sentPart(part, ids, isOwn ? ownMetadata(part, dialect) : undefined),
    );
    if (parts.length > 0) sent.push({ ...message, parts });
  }
  return sent;
};

/** Whether the tools may be called: as a request says it, if it has tools. */
export const sentChoice = ({ tools, toolChoice }: ModelRequest): ModelRequest['toolChoice'] =>
  tools.length === 0 ? undefined : toolChoice;

export const isBlank = (text: string): boolean => text.trim() === '';

/**
 * The last two user messages, at whose ends the provider caches the prompt: so the point where the
 * previous request ended is always one of them.
 */
export const cachedUsers = (messages: readonly SentMessage[]): ReadonlySet<SentMessage> =>
  new Set(messages.filter(({ role }) => role === 'user').slice(-2));

/** Adds to the user message before, if there is one. */
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

/** What came with a part, if it came from the server that gets the request. */
const ownMetadata = (
  { metadata }: AssistantPart,
  { server }: Dialect,
): ProviderMetadata | undefined => {
  if (metadata === undefined) return undefined;
  const { server: from, ...sent } = metadata;
  // Older sessions do not name the server.
  return from === undefined || from === server ? sent : undefined;
};

/** `metadata`: what goes back with the part; undefined: nothing. */
const sentPart = (
  part: AssistantPart,
  ids: ReadonlyMap<string, string>,
  metadata: ProviderMetadata | undefined,
): readonly AssistantPart[] => {
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? [] : [{ ...part, metadata: metadata ?? {} }];
    case 'reasoning':
      // Without what came with it, such as its signature, it would be rejected.
      return metadata === undefined ? [] : [{ ...part, metadata }];
    case 'call':
      return [{ ...part, callId: ids.get(part.callId) ?? part.callId, metadata: metadata ?? {} }];
    default:
      return part satisfies never;
  }
};

/** A number in letters and digits, as short ids need it. */
const digits = (number: number, length: number): string =>
  number.toString(36).padStart(length, '0');

/** Ids of a reply's calls for another provider, made from their places. */
const plainIds = ({ parts }: AssistantMessage, place: number): ReadonlyMap<string, string> =>
  new Map(
    parts
      .filter((part) => part.type === 'call')
      .map(({ callId }, index) => [callId, `c${digits(place, 5)}${digits(index + 1, 3)}`]),
  );

const NO_IDS: ReadonlyMap<string, string> = new Map();
