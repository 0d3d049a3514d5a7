import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Model, ModelPiece, ModelRequest } from '../needs.js';
import { classify } from './classify.js';
import { type Gathering, gather } from './reply.js';
import { convertRequest } from './request.js';
import { brokenOff, type Wire, type WireOptions } from './wire.js';

/**
 * One call of a model through an AI SDK package called at `doStream`, the same for every provider; what differs is its
 * `Wire`.
 *
 * 1. The package is loaded with the first call, or by `prepare`, and not before.
 * 2. One call is one request: neither the package at this level nor anything here retries.
 * 3. Our own abort can surface as any error: the signal is looked at before the error is.
 * 4. A reply is whole only with the provider's own reason for its end.
 */

type Call = {
  readonly wire: Wire;
  readonly open: () => Promise<LanguageModelV3>;
  readonly outputTokensMax: number;
  readonly now: () => number;
};

async function* readPieces(
  { wire, open, outputTokensMax }: Call,
  request: ModelRequest,
  signal: AbortSignal,
  gathering: Gathering,
): AsyncGenerator<ModelPiece> {
  const model = await open();
  if (signal.aborted) return;
  const { stream } = await model.doStream({
    ...convertRequest(request, wire.dialect),
    maxOutputTokens: outputTokensMax,
    includeRawChunks: true,
    ...wire.options,
    abortSignal: signal,
  });
  const reader = stream.getReader();
  const passOver = wire.passOver?.();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw brokenOff();
      if (passOver?.(value)) continue;
      if (value.type === 'error') throw value.error;
      const piece = gathering.add(value);
      if (piece !== null) yield piece;
      if (value.type === 'finish') return yield gathering.finish();
    }
  } finally {
    // The rest of the body is nobody's business any more; a failure of it changes nothing.
    reader.cancel().catch(() => undefined);
  }
}

async function* converse(call: Call, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPiece> {
  const gathering = gather(call.wire);
  try {
    yield* readPieces(call, request, signal, gathering);
  } catch (thrown) {
    const usage = gathering.usage();
    // After our own abort nobody waits for an end, but tokens that were charged are still reported.
    if (signal.aborted && usage === null) return;
    yield { type: 'failed', error: classify(thrown, call.wire.provider, call.now()), usage };
  }
}

/** The model of that id behind a wire. */
export const wireModel = (wire: Wire, { facts, now = Date.now }: WireOptions): Model => {
  let opened: Promise<LanguageModelV3> | null = null;
  const open = (): Promise<LanguageModelV3> => (opened ??= wire.open());
  const call: Call = { wire, open, outputTokensMax: facts.outputTokensMax, now };
  return {
    id: wire.dialect.modelId,
    facts,
    canAbort: 'yes',
    prepare: () => void open().catch(() => undefined), // the first call meets the same failure, and reports it
    stream: (request, signal) => converse(call, request, signal),
  };
};
