import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { StopReason } from '../machine/event.js';
import type { AssistantText, ProviderMetadata, ReasoningPart } from '../machine/message.js';
import { createFetch, type LeanFetch } from '../platform/http.js';
import { asText, isObject, type Loose } from '../platform/untrusted-input.js';
import type {
  Model,
  ModelFacts,
  ModelPiece,
  ModelRequest,
  RawCall,
  TokenUsage,
} from '../ports/model.js';
import { nearestEffort } from './catalogue.js';
import { classify, type ErrorSource } from './errors.js';
import { readEvents, type WireRequest } from './http.js';
import type { Dialect } from './request.js';

/**
 * A model that is reached over a wire.
 *
 * - One call is one request: nothing here retries. Only a wire that learns from a refusal which
 *   option its provider does not take asks once more without it, and Google's goes on with a reply
 *   that its provider hands out in parts.
 * - Our own abort can surface as any error: the signal is looked at before the error is.
 * - A reply is whole only with the provider's own reason for its end.
 */

/** The differences between wires. */
export type Wire = {
  readonly provider: ErrorSource;
  readonly dialect: Dialect;
  /** Sends a request and reads its answer into the reply. Rejects if that fails. */
  call(request: ModelRequest, reply: StreamedReply, signal: AbortSignal): Promise<void>;
};

/** What every adapter makes a model from. */
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

export const wireModel = (
  wire: Wire,
  { facts, now = Date.now }: Pick<AdapterOptions, 'facts' | 'now'>,
): Model => ({
  id: wire.dialect.modelId,
  facts,
  canAbort: 'yes',
  stream: (request, signal) => {
    const abortion = new AbortController();
    const abort = (): void => abortion.abort(signal.reason);
    const queue = createPieceQueue(() => {
      if (signal.aborted) return queue.end();
      signal.addEventListener('abort', abort, { once: true });
      const sent = withNearestEffort(request, facts);
      void converse(wire, sent, abortion.signal, queue.push, now).finally(() => {
        signal.removeEventListener('abort', abort);
        queue.end();
      });
    }, abort);
    return queue;
  },
});

const converse = async (
  wire: Wire,
  request: ModelRequest,
  signal: AbortSignal,
  push: (piece: ModelPiece) => void,
  now: () => number,
): Promise<void> => {
  const reply = new StreamedReply(push);
  try {
    await wire.call(request, reply, signal);
    push(reply.finish());
  } catch (thrown) {
    const { usage } = reply;
    // Nobody waits for an end after our own abort, but charged tokens are still reported.
    if (signal.aborted && usage === null) return;
    push({ type: 'failed', error: classify(reply.explain(thrown), wire.provider, now()), usage });
  }
};

/** Reads one event of a wire into the reply. `end`: nothing behind it is read. */
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
  host: new URL(url).host,
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

/**
 * The error of a stream without the provider's own end, which looks whole to a client and is not.
 */
export const brokenOff = (): Error =>
  Object.assign(new Error('the reply broke off before its end'), { type: 'broken_off' });

/**
 * The error of a reply that the provider itself could not read: it is useless, a retry may succeed.
 */
export const malformedReply = (reason: string): Error =>
  Object.assign(new Error(`the model wrote what its provider could not read (${reason})`), {
    type: 'malformed_call',
  });

/** The error of a reply that its provider broke off for want of machines. */
export const overloaded = (reason: string): Error =>
  Object.assign(new Error(`the reply broke off before its end (${reason})`), {
    type: 'overloaded_error',
  });

/**
 * The error of a reply that reached the end of the model's window: only a shorter conversation
 * helps.
 */
export const windowFull = (): Error =>
  Object.assign(new Error('the reply reached the end of the context window'), {
    type: 'model_context_window_exceeded',
  });

/** The error of an event that we know, but not like this. */
export const oddEvent = (what: string): Error =>
  new Error(`a part of its reply could not be read: ${what}`);

/**
 * The error that an event of the stream holds, as errors.ts reads it. `statusCode` where it is to
 * count as a status.
 */
export const eventError = (error: Loose, statusCode?: number): Error =>
  Object.assign(new Error(asText(error.message) ?? ''), {
    responseBody: JSON.stringify(error),
    ...(statusCode === undefined ? {} : { statusCode }),
  });

/** A text of an event; throws if it is none. */
export const textIn = (event: Loose, name: string): string => {
  const text = event[name];
  if (typeof text !== 'string') throw oddEvent(`${name} is no text`);
  return text;
};

type Draft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
};

type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
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
  /** Tokens counted so far; null before the provider named any. */
  usage: TokenUsage | null = null;
  readonly #push: (piece: ModelPiece) => void;
  readonly #drafts: Draft[] = [];
  #stopped: StopReason | Error | null = null;
  #isRefused = false;
  #isDone = false;
  /** OpenRouter's `reasoning_details`, which go back in one piece. */
  #details: readonly JsonObject[] = [];
  #errorLine: string | null = null;
  #hasFailedEvent = false;

  constructor(push: (piece: ModelPiece) => void) {
    this.#push = push;
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

  /** Adds metadata to a part: a signature comes after the text that it signs. */
  note(type: 'text' | 'reasoning', id: string, metadata: ProviderMetadata | undefined): void {
    addMetadata(this.#find(type, id), metadata);
  }

  /** Words of a refusal are a part of their own. */
  refuse(text: string): void {
    this.#isRefused = true;
    this.add('text', 'refusal', text);
  }

  addDetails(pieces: readonly Loose[]): void {
    this.#details = joinDetails(this.#details, pieces);
  }

  /** The model works without output: nothing to show, but the reply is not silent. */
  alive(): void {
    this.#push({ type: 'reasoning', text: '' });
  }

  /** Why the reply ends: an error if it has failed, null if the provider gives no reason. */
  stop(reason: StopReason | Error | null): void {
    this.#stopped = reason;
  }

  sawDone(): void {
    this.#isDone = true;
  }

  sawErrorLine(text: string): void {
    this.#errorLine = text;
  }

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
      return JSON.parse(line);
    } catch {
      return { message: line }; // plain text
    }
  }

  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed {
    const stopped = this.#reason();
    const parts = this.#parts();
    // Some servers report a plain end for a reply with calls.
    const isCalling = stopped === 'end' && parts.some(({ type }) => type === 'call');
    const stopReason = this.#isRefused ? 'refusal' : isCalling ? 'toolUse' : stopped;
    return { type: 'completed', parts, stopReason, usage: this.usage ?? NO_TOKENS };
  }

  /** The part that began last with this id. */
  #find(type: Draft['type'], id: string): Draft {
    const draft = this.#drafts.findLast((draft) => draft.type === type && draft.id === id);
    return draft ?? this.#open(type, id);
  }

  #open(type: Draft['type'], id: string, tool = ''): Draft {
    const draft: Draft = { type, id, tool, text: '', metadata: undefined };
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

  /** Reasoning details go back with the thoughts, even if there are no words of thought. */
  #parts(): Completed['parts'] {
    const parts = this.#drafts.flatMap(closeDraft);
    if (this.#details.length === 0) return parts;
    const metadata = { openaiCompatible: { reasoning_details: [...this.#details] } };
    const text = parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
    return [
      { type: 'reasoning', text, metadata },
      ...parts.filter(({ type }) => type !== 'reasoning'),
    ];
  }
}

/** Metadata of a part comes in pieces, by provider. */
const addMetadata = (draft: Draft, added: ProviderMetadata | undefined): void => {
  if (added === undefined) return;
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(draft.metadata ?? {}), ...Object.keys(added)])) {
    const [known, more] = [draft.metadata?.[provider], added[provider]];
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
}: Draft): readonly (AssistantText | ReasoningPart | RawCall)[] => {
  const noted = metadata === undefined ? {} : { metadata };
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
 * OpenRouter's `reasoning_details`: a model's thoughts, signed or encrypted by its provider. They
 * come in pieces and must go back whole and in order, or the provider forgets the thoughts, or
 * refuses the conversation.
 */
const joinDetails = (
  details: readonly JsonObject[],
  pieces: readonly Loose[],
): readonly JsonObject[] => {
  const joined = [...details];
  for (const piece of pieces) {
    const at = findBlock(joined, piece);
    const last = joined[at];
    if (last === undefined)
      joined.push(piece as JsonObject); // it came as JSON
    else joined[at] = joinBlock(last, piece);
  }
  return joined;
};

/** The block that a piece continues, or -1. A piece without an index is a block by itself. */
const findBlock = (details: readonly JsonObject[], piece: Loose): number =>
  piece.index === undefined || piece.index === null
    ? -1
    : details.findLastIndex((last) => isSameBlock(last, piece));

const isSameBlock = (last: Loose, piece: Loose): boolean =>
  last.type === piece.type &&
  last.index === piece.index &&
  (piece.id ?? last.id) === (last.id ?? piece.id);

/** Fields that come in pieces; any other field of a later piece replaces the earlier one. */
const STREAMED: ReadonlySet<string> = new Set(['text', 'summary']);

const joinBlock = (last: JsonObject, piece: Loose): JsonObject => {
  const joined: { [key: string]: unknown } = { ...last };
  for (const [key, value] of Object.entries(piece)) {
    if (value === undefined || value === null || key === '__proto__') continue;
    const known = joined[key];
    joined[key] =
      STREAMED.has(key) && typeof known === 'string' && typeof value === 'string'
        ? known + value
        : value;
  }
  return joined as JsonObject; // it came as JSON
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
