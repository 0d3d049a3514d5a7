import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import type { Model, ModelPiece, ModelRequest } from '../../ports/model.js';
import { classify } from '../errors/classify-error.js';
import { type Gathering, gather } from '../gather-reply.js';
import { bindExchange } from '../http/request-side-channel.js';
import { createPieceQueue } from '../piece-queue.js';
import { convertRequest } from '../sdk-request.js';
import { type AdapterOptions, brokenOff, type Wire } from './provider-adapter.js';

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
