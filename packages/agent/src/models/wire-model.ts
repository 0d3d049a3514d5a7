/** A model that is reached over a wire: the differences between wires, one call, and the reply that is gathered from its stream. */

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { AssistantText, JsonObject, ProviderMetadata, ReasoningPart } from '../machine/message.js';
import { createFetch, type LeanFetch } from '../platform/http.js';
import type { Model, ModelFacts, ModelPiece, ModelRequest, RawCall, TokenUsage } from '../ports/model.js';
import { factsOf } from './catalogue.js';
import { classify, type ErrorSource } from './errors.js';
import { bindExchange, type EditEvent, providerFetch } from './http.js';
import { convertRequest, type Dialect } from './request.js';
import { isObject, type Loose } from './untyped-json.js';

/** Content of a provider's event that its package leaves out. */
export type FromEvent = {
  /** Tokens that are charged already, even if the reply fails. */
  readonly usage?: TokenUsage;
  /** Text of a refusal. */
  readonly refusal?: string;
  /** The model works without output: nothing to show, but the reply is not silent. */
  readonly isAlive?: boolean;
  /** Metadata that must go back with the thoughts of this event. */
  readonly thoughtMetadata?: ProviderMetadata;
  /** Text of a thought. */
  readonly thought?: string;
  /** Pieces of the details that go back with the whole reply (reasoning-details.ts). */
  readonly details?: readonly Loose[];
};

export type Wire = {
  readonly provider: ErrorSource;
  /** Loads the package. */
  open(): Promise<LanguageModelV3>;
  readonly dialect: Dialect;
  /** Options of a request besides the conversation. */
  options?(request: ModelRequest): Partial<LanguageModelV3CallOptions>;
  /** Learns from a refused request. True if the wire leaves the refused option out from now on: ask once more. */
  learn?(thrown: unknown): boolean;
  /** Rewrites the package's body, JSON text. */
  editBody?(body: string, request: ModelRequest): string;
  /** Output tokens by another of the provider's counts; the larger count is charged. */
  outputTokens?(usage: LanguageModelV3Usage): number;
  /** Reason for the reply's end: null if the provider gave none, an error if the reply failed. */
  stopReason(finish: LanguageModelV3FinishReason): StopReason | Error | null;
  fromEvent?(event: Loose): FromEvent;
  /** Called for each stream; the function it returns edits each event before the package reads it. */
  editEvents?(): EditEvent;
  /** Called for each stream; the function it returns is true for parts to skip. */
  passOver?(): (part: LanguageModelV3StreamPart) => boolean;
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

/** The server and the account that errors speak of. */
export const errorSourceOf = (options: AdapterOptions, url: string): ErrorSource => ({
  name: options.providerName,
  keyVariable: options.keyVariable,
  host: new URL(url).host,
});

/** The cast is safe: packages pass a text body and read only status, headers and body, which LeanFetch offers. */
export const fetchOf = ({ fetch }: AdapterOptions): typeof globalThis.fetch =>
  providerFetch(fetch ?? createFetch({})) as unknown as typeof globalThis.fetch;

/** The package's reason for a reply's end; null if the provider gave none. */
export const unifiedStopReason = ({ unified, raw }: LanguageModelV3FinishReason): StopReason | null => {
  switch (unified) {
    case 'stop':
      return 'end';
    case 'tool-calls':
      return 'toolUse';
    case 'length':
      return 'maxTokens';
    case 'content-filter':
      return 'contentFilter';
    case 'other':
      return raw === undefined ? null : 'other';
    case 'error':
      return null;
    default:
      return unified satisfies never;
  }
};

/** The error of a stream without the provider's own end, which looks whole to a client and is not. */
export const brokenOff = (): Error =>
  Object.assign(new Error('the reply broke off before its end'), { type: 'broken_off' });

/** The error of a reply that the provider itself could not read: it is useless, a retry may succeed. */
export const malformedReply = (reason: string): Error =>
  Object.assign(new Error(`the model wrote what its provider could not read (${reason})`), {
    type: 'malformed_call',
  });

/** The error of a reply that its provider broke off for want of machines. */
export const overloaded = (reason: string): Error =>
  Object.assign(new Error(`the reply broke off before its end (${reason})`), { type: 'overloaded_error' });

/** The error of a reply that reached the end of the model's window: only a shorter conversation helps. */
export const windowFull = (): Error =>
  Object.assign(new Error('the reply reached the end of the context window'), {
    type: 'model_context_window_exceeded',
  });

/** Adds the version to a base URL: providers' own clients leave it out, the packages want it. */
export const versionedUrl = (baseUrl: string, version: string): string => {
  const bare = baseUrl.replace(/\/+$/, '');
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${version}`;
};

/**
 * Calls a model through `doStream` of an AI SDK package. The `Wire` holds the differences between providers.
 *
 * 1. The first call, or `prepare`, loads the package.
 * 2. One call is one request: neither the package at this level nor anything here retries. Only a wire that learns from
 *    a refusal which option its provider does not take asks once more without it.
 * 3. Our own abort can surface as any error: the signal is looked at before the error is.
 * 4. A reply is whole only with the provider's own reason for its end.
 */

type Call = {
  readonly wire: Wire;
  readonly open: () => Promise<LanguageModelV3>;
  readonly outputTokensMax: number;
  readonly now: () => number;
};

/** A call in progress. */
type Running = {
  readonly call: Call;
  readonly request: ModelRequest;
  readonly gathering: Gathering;
  /** Aborted with the caller's signal, and when the reader stops reading. */
  readonly abortion: AbortController;
  readonly push: (piece: ModelPiece) => void;
  /** Text of an `error:` line, which is no event. */
  saidError: string | null;
  /** An event was an error, or could not be read. */
  hasFailedEvent: boolean;
};

type Parts = { read(): PromiseLike<{ readonly done: boolean; readonly value?: LanguageModelV3StreamPart }> };

const askModel = async ({ call, request, abortion }: Running) => {
  const { wire, open, outputTokensMax } = call;
  const model = await open();
  const ask = () =>
    model.doStream({
      ...convertRequest(request, wire.dialect),
      maxOutputTokens: outputTokensMax,
      includeRawChunks: true,
      ...wire.options?.(request),
      abortSignal: abortion.signal,
    });
  try {
    return await ask();
  } catch (thrown) {
    if (abortion.signal.aborted || wire.learn?.(thrown) !== true) throw thrown;
    return await ask();
  }
};

const readParts = async (running: Running, parts: Parts): Promise<void> => {
  const { call, gathering, push } = running;
  const passOver = call.wire.passOver?.();
  for (;;) {
    const { done, value } = await parts.read();
    if (done || value === undefined) throw brokenOff();
    if (passOver?.(value)) continue;
    if (value.type === 'error') {
      running.hasFailedEvent = true;
      throw value.error;
    }
    const piece = gathering.add(value);
    if (piece !== null) push(piece);
    if (value.type === 'finish') return push(gathering.finish());
  }
};

/**
 * The server's own `error:` line says more than the package's error about a stream that ended early. A failed event is
 * the reason itself: the line may come after it in the same chunk, and chunks must not decide.
 */
const reasonOf = (thrown: unknown, { saidError, hasFailedEvent }: Running): unknown => {
  if (saidError === null || hasFailedEvent) return thrown;
  try {
    return JSON.parse(saidError);
  } catch {
    return { message: saidError }; // plain text
  }
};

const converse = async (running: Running): Promise<void> => {
  const { call, request, gathering, abortion, push } = running;
  const { editBody } = call.wire;
  const editEvent = call.wire.editEvents?.();
  bindExchange(abortion.signal, {
    onAlive: () => push({ type: 'reasoning', text: '' }),
    onDone: () => gathering.sawDone(),
    onError: (text) => {
      running.saidError = text;
    },
    ...(editEvent === undefined ? {} : { editEvent }),
    ...(editBody === undefined ? {} : { editBody: (body: string) => editBody(body, request) }),
  });
  try {
    const { stream } = await askModel(running);
    const reader = stream.getReader();
    try {
      await readParts(running, reader);
    } finally {
      // Nobody reads the rest of the body, so its failure changes nothing.
      reader.cancel().catch(() => undefined);
    }
  } catch (thrown) {
    const usage = gathering.usage();
    // Nobody waits for an end after our own abort, but charged tokens are still reported.
    if (abortion.signal.aborted && usage === null) return;
    const error = classify(reasonOf(thrown, running), call.wire.provider, call.now());
    push({ type: 'failed', error, usage });
  }
};

const stream = (call: Call, request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPiece> => {
  const abortion = new AbortController();
  const abort = (): void => abortion.abort(signal.reason);
  const queue = createPieceQueue(() => {
    if (signal.aborted) return queue.end();
    signal.addEventListener('abort', abort, { once: true });
    const { push, end } = queue;
    const running: Running = {
      call,
      request,
      abortion,
      push,
      gathering: gather(call.wire),
      saidError: null,
      hasFailedEvent: false,
    };
    void converse(running).finally(() => {
      signal.removeEventListener('abort', abort);
      end();
    });
  }, abort);
  return queue;
};

/** A model that is reached over a wire. */
export const wireModel = (
  wire: Wire,
  { facts, now = Date.now }: Pick<AdapterOptions, 'facts' | 'now'>,
): Model => {
  let opened: Promise<LanguageModelV3> | null = null;
  const open = (): Promise<LanguageModelV3> => (opened ??= wire.open());
  const call: Call = { wire, open, outputTokensMax: facts.outputTokensMax, now };
  return {
    id: wire.dialect.modelId,
    facts,
    canAbort: 'yes',
    prepare: () => void open().catch(() => undefined), // the first call meets the same failure and reports it
    stream: (request, signal) => stream(call, request, signal),
  };
};

/** A queue of pieces from several writers for one reader, in order of arrival. */
type PieceQueue = AsyncIterable<ModelPiece> & {
  push(piece: ModelPiece): void;
  /** Nothing more comes. */
  end(): void;
};

type Next = IteratorResult<ModelPiece, undefined>;
const END: Next = { done: true, value: undefined };

/** `begin` runs when the reader first asks, `leave` if it stops reading before the end. */
const createPieceQueue = (begin: () => void, leave: () => void): PieceQueue => {
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
  const answer = (found: Next): boolean => {
    const resolve = waiting;
    waiting = null;
    resolve?.(found);
    return resolve !== null;
  };
  const end = (): void => {
    state = 'ended';
    answer(END);
  };
  return {
    push(value) {
      if (state !== 'ended' && !answer({ done: false, value })) queue.push(value);
    },
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

/**
 * Gathers the parts of a stream into one reply.
 *
 * 1. Parts stand in the order in which they began. A call that was never closed is kept as far as it came.
 * 2. The text of a call's input is handed on as the model wrote it. A call that the provider ran itself is no part of the
 *    reply: nobody here can answer it.
 * 3. A reply is whole only with the provider's own reason for stopping; without it `finish` throws. `[DONE]` is one if
 *    every call of the reply is whole.
 */

type Draft = {
  readonly type: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly tool: string;
  text: string;
  metadata: ProviderMetadata | undefined;
};

type StreamedPiece = Extract<ModelPiece, { readonly type: 'text' | 'reasoning' | 'toolCall' }>;
type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;

type Gathering = {
  /** Takes one part of the stream; returns the piece that can be shown. */
  add(part: LanguageModelV3StreamPart): StreamedPiece | null;
  /** The stream said `[DONE]`. */
  sawDone(): void;
  /** The whole reply; throws if it broke off, or ended with a failure. */
  finish(): Completed;
  /** Tokens counted so far; null before the provider named any. */
  usage(): TokenUsage | null;
};

/** Input tokens that no cache served. Packages subtract cached tokens even from a total that leaves them out. */
const uncached = ({ noCache = 0, total = 0 }: LanguageModelV3Usage['inputTokens']): number =>
  noCache < 0 ? total : noCache;

/** `atLeast`: output tokens that the provider charges for by another count. */
const countTokens = ({ inputTokens, outputTokens }: LanguageModelV3Usage, atLeast: number): TokenUsage => ({
  inputTokens: uncached(inputTokens),
  outputTokens: Math.max(outputTokens.total ?? 0, atLeast),
  cacheReadTokens: inputTokens.cacheRead ?? 0,
  cacheWriteTokens: inputTokens.cacheWrite ?? 0,
});

/** Joins the metadata of one block's parts: a signature comes after the text that it signs. */
const mergeMetadata = (
  old: ProviderMetadata | undefined,
  added: SharedV3ProviderMetadata | ProviderMetadata,
): ProviderMetadata => {
  const merged: { [provider: string]: JsonObject } = {};
  for (const provider of new Set([...Object.keys(old ?? {}), ...Object.keys(added)])) {
    const [known, more] = [old?.[provider], added[provider]];
    // It is JSON by provider; the SDK's type differs from ours only in being writable.
    merged[provider] = { ...(isObject(known) ? known : {}), ...(isObject(more) ? more : {}) } as JsonObject;
  }
  return merged;
};

const closeDraft = ({
  type,
  id,
  tool,
  text,
  metadata,
}: Draft): readonly (AssistantText | ReasoningPart | RawCall)[] => {
  const kept = metadata === undefined ? {} : { metadata };
  if (type === 'call') return [{ type, callId: id, tool, rawInput: text, ...kept }];
  if (type === 'reasoning') return text === '' && metadata === undefined ? [] : [{ type, text, ...kept }];
  return text.trim() === '' ? [] : [{ type, text, ...kept }];
};

type Gathered = {
  readonly wire: Wire;
  readonly drafts: Draft[];
  /** Ids of calls that the provider ran itself. */
  readonly ranElsewhere: Set<string>;
  usage: TokenUsage | null;
  stopped: StopReason | Error | null;
  refused: boolean;
  /** Goes back to the provider with the thoughts of this reply. */
  thoughtMetadata: ProviderMetadata | undefined;
  /** OpenRouter's `reasoning_details`, which go back in one piece. */
  details: readonly JsonObject[];
  done: boolean;
};

const openDraft = ({ drafts }: Gathered, type: Draft['type'], id: string, tool = ''): Draft => {
  const draft: Draft = { type, id, tool, text: '', metadata: undefined };
  drafts.push(draft);
  return draft;
};

const findDraft = (gathered: Gathered, type: Draft['type'], id: string): Draft =>
  gathered.drafts.findLast((draft) => draft.type === type && draft.id === id) ??
  openDraft(gathered, type, id);

const addMetadata = (
  draft: Draft,
  metadata: SharedV3ProviderMetadata | ProviderMetadata | undefined,
): void => {
  if (metadata !== undefined) draft.metadata = mergeMetadata(draft.metadata, metadata);
};

const typeOf = (part: LanguageModelV3StreamPart): 'text' | 'reasoning' =>
  part.type.startsWith('text') ? 'text' : 'reasoning';

/** Takes what the package leaves out of an event. A refusal becomes a text part of its own. */
const addEvent = (gathered: Gathered, event: FromEvent): StreamedPiece | null => {
  gathered.usage = event.usage ?? gathered.usage;
  gathered.thoughtMetadata = event.thoughtMetadata ?? gathered.thoughtMetadata;
  if (event.details !== undefined) gathered.details = joinDetails(gathered.details, event.details);
  if (event.thought !== undefined) {
    findDraft(gathered, 'reasoning', 'raw').text += event.thought;
    return { type: 'reasoning', text: event.thought };
  }
  if (event.refusal !== undefined) {
    gathered.refused = true;
    findDraft(gathered, 'text', 'refusal').text += event.refusal;
    return { type: 'text', text: event.refusal };
  }
  return event.isAlive === true ? { type: 'reasoning', text: '' } : null;
};

const addPart = (gathered: Gathered, part: LanguageModelV3StreamPart): StreamedPiece | null => {
  switch (part.type) {
    case 'text-start':
    case 'reasoning-start':
      addMetadata(openDraft(gathered, typeOf(part), part.id), part.providerMetadata);
      return null;
    case 'text-delta':
    case 'reasoning-delta': {
      const draft = findDraft(gathered, typeOf(part), part.id);
      addMetadata(draft, part.providerMetadata);
      if (draft.type === 'reasoning') addMetadata(draft, gathered.thoughtMetadata);
      draft.text += part.delta;
      return part.delta === '' ? null : { type: typeOf(part), text: part.delta };
    }
    case 'text-end':
    case 'reasoning-end':
      addMetadata(findDraft(gathered, typeOf(part), part.id), part.providerMetadata);
      return null;
    case 'tool-input-start':
      if (part.providerExecuted === true) {
        gathered.ranElsewhere.add(part.id);
        return null;
      }
      openDraft(gathered, 'call', part.id, part.toolName);
      return { type: 'toolCall', tool: part.toolName, text: '' };
    case 'tool-input-delta': {
      if (gathered.ranElsewhere.has(part.id)) return null;
      const draft = findDraft(gathered, 'call', part.id);
      draft.text += part.delta;
      return { type: 'toolCall', tool: draft.tool, text: part.delta };
    }
    case 'tool-call': {
      if (part.providerExecuted === true) return null;
      const draft = findDraft(gathered, 'call', part.toolCallId);
      draft.text = part.input;
      addMetadata(draft, part.providerMetadata);
      return null;
    }
    case 'raw':
      return isObject(part.rawValue)
        ? addEvent(gathered, gathered.wire.fromEvent?.(part.rawValue) ?? {})
        : null;
    case 'finish':
      gathered.stopped = gathered.wire.stopReason(part.finishReason);
      if (part.usage.inputTokens.total !== undefined) {
        gathered.usage = countTokens(part.usage, gathered.wire.outputTokens?.(part.usage) ?? 0);
      }
      return null;
    default:
      return null; // warnings, sources, results of the provider's own tools: no part of a reply here
  }
};

const NO_TOKENS: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

const isWhole = ({ type, text }: Draft): boolean => {
  if (type !== 'call') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // half of its arguments
  }
};

/** The provider's reason for the end (rule 3). */
const reasonFor = ({ stopped, done, drafts }: Gathered): StopReason => {
  if (stopped instanceof Error) throw stopped;
  if (stopped !== null) return stopped;
  if (!done || drafts.length === 0 || !drafts.every(isWhole)) throw brokenOff();
  return 'end';
};

/** The parts of the reply. Reasoning details go back with the thoughts, even if there are no words of thought. */
const partsOf = ({ drafts, details }: Gathered): Completed['parts'] => {
  const parts = drafts.flatMap(closeDraft);
  if (details.length === 0) return parts;
  const metadata = { openaiCompatible: { reasoning_details: [...details] } };
  const text = parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
  return [{ type: 'reasoning', text, metadata }, ...parts.filter(({ type }) => type !== 'reasoning')];
};

const finishReply = (gathered: Gathered): Completed => {
  const stopped = reasonFor(gathered);
  const parts = partsOf(gathered);
  // Some servers report a plain end for a reply with calls.
  const isCalling = stopped === 'end' && parts.some(({ type }) => type === 'call');
  const stopReason = gathered.refused ? 'refusal' : isCalling ? 'toolUse' : stopped;
  return { type: 'completed', parts, stopReason, usage: gathered.usage ?? NO_TOKENS };
};

const gather = (wire: Wire): Gathering => {
  const gathered: Gathered = {
    wire,
    drafts: [],
    ranElsewhere: new Set(),
    usage: null,
    stopped: null,
    refused: false,
    thoughtMetadata: undefined,
    details: [],
    done: false,
  };
  return {
    add: (part) => addPart(gathered, part),
    sawDone: () => {
      gathered.done = true;
    },
    finish: () => finishReply(gathered),
    usage: () => gathered.usage,
  };
};

/**
 * OpenRouter's `reasoning_details`: a model's thoughts, signed or encrypted by its provider. They come in pieces and must
 * go back whole and in order, or the provider forgets the thoughts, or refuses the conversation.
 */

/** Fields that come in pieces; any other field of a later piece replaces the earlier one. */
const STREAMED: ReadonlySet<string> = new Set(['text', 'summary']);

const isSameBlock = (last: Loose, piece: Loose): boolean =>
  last.type === piece.type && last.index === piece.index && (piece.id ?? last.id) === (last.id ?? piece.id);

/** The block that a piece continues, or -1. A piece without an index is a block by itself. */
const findBlock = (details: readonly JsonObject[], piece: Loose): number =>
  piece.index === undefined || piece.index === null
    ? -1
    : details.findLastIndex((last) => isSameBlock(last, piece));

const joinBlock = (last: JsonObject, piece: Loose): JsonObject => {
  const joined: { [key: string]: unknown } = { ...last };
  for (const [key, value] of Object.entries(piece)) {
    if (value === undefined || value === null) continue;
    const known = joined[key];
    joined[key] =
      STREAMED.has(key) && typeof known === 'string' && typeof value === 'string' ? known + value : value;
  }
  return joined as JsonObject; // it came as JSON
};

/** Adds the pieces of one event. */
const joinDetails = (details: readonly JsonObject[], pieces: readonly Loose[]): readonly JsonObject[] => {
  const joined = [...details];
  for (const piece of pieces) {
    const at = findBlock(joined, piece);
    const last = joined[at];
    if (last === undefined)
      joined.push(piece as JsonObject); // likewise
    else joined[at] = joinBlock(last, piece);
  }
  return joined;
};

/** The part of an AI SDK language model (`LanguageModelV3`) that Pawl calls, so that its type needs no package. */
export type AiSdkLanguageModel = {
  readonly specificationVersion: 'v3';
  /** For example `openai.responses`. */
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ readonly stream: object }>;
};

/**
 * Makes an agent's model from an AI SDK model. Pawl calls its `doStream`, so that only the machine retries. Facts that
 * are not given come from the catalogue; for a model that is not in it they are safe assumptions without a price.
 * Throws for a package of another generation.
 */
export const aiSdkModel = (languageModel: AiSdkLanguageModel, facts: Partial<ModelFacts> = {}): Model => {
  const { specificationVersion, provider, modelId } = languageModel;
  if (specificationVersion !== 'v3') {
    throw new TypeError(
      `${provider}/${modelId} is a model of the specification ${String(specificationVersion)}: install a version of its package that offers v3 (AI SDK 6)`,
    );
  }
  const [family = provider] = provider.split('.');
  const id = `${family}/${modelId}`;
  const model: unknown = languageModel;
  const wire: Wire = {
    provider: { name: family, keyVariable: `the key that ${family}'s package was given`, host: provider },
    open: async () => model as LanguageModelV3, // it says that it is one
    dialect: { modelId: id, marksCache: family === 'anthropic', keepsCut: false },
    stopReason: unifiedStopReason,
  };
  return wireModel(wire, { facts: { ...factsOf(id), ...facts } });
};
