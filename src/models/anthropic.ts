import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider';
import type { Model, ModelFacts, ModelPiece, ModelRequest } from '../needs.js';
import { passOverNews } from './anthropic-news.js';
import { type Gathering, gather } from './anthropic-reply.js';
import { convertRequest } from './anthropic-request.js';
import { classify, type Provider } from './classify.js';
import { createFetch, type LeanFetch } from './http.js';

/**
 * Anthropic's Messages API, through the AI SDK's provider package called at `doStream`.
 *
 * 1. The package is loaded with the first call, or by `prepare`, and not before.
 * 2. One call is one request: neither the package at this level nor anything here retries.
 * 3. Our own abort can surface as any error: the signal is looked at before the error is.
 */

export type AnthropicOptions = {
  /** As the provider writes it, e.g. `claude-sonnet-5-5`. */
  readonly name: string;
  readonly apiKey: string;
  /** With or without the version at its end; default the provider's own. */
  readonly baseUrl?: string;
  readonly fetch?: LeanFetch;
  readonly facts: ModelFacts;
  /** `summarized`: the model thinks as it sees fit, and what it thinks is streamed in short. Default: nothing is asked for. */
  readonly thinking?: 'summarized';
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
};

const DEFAULT_BASE_URL = 'https://api.anthropic.com';

/** Anthropic's own clients leave the version out of the base URL, the AI SDK's puts it in: both are taken. */
const versionedUrl = (baseUrl: string): string => {
  const bare = baseUrl.replace(/\/+$/, '');
  return /\/v\d+$/.test(bare) ? bare : `${bare}/v1`;
};

type Call = {
  readonly open: () => Promise<LanguageModelV3>;
  readonly options: (request: ModelRequest) => Omit<LanguageModelV3CallOptions, 'abortSignal'>;
  readonly provider: Provider;
  readonly now: () => number;
};

/** A stream that ended without the provider's own end looks whole to a client, and is not. */
const brokenOff = (): Error =>
  Object.assign(new Error('the reply broke off before its end'), { type: 'api_error' });

async function* readPieces(
  call: Call,
  request: ModelRequest,
  signal: AbortSignal,
  gathering: Gathering,
): AsyncGenerator<ModelPiece> {
  const model = await call.open();
  if (signal.aborted) return;
  const { stream } = await model.doStream({ ...call.options(request), abortSignal: signal });
  const reader = stream.getReader();
  const passOver = passOverNews();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw brokenOff();
      if (passOver(value)) continue;
      if (value.type === 'error') throw value.error;
      const piece = gathering.add(value);
      if (piece !== null) yield piece;
      if (value.type !== 'finish') continue;
      const completed = gathering.finish();
      if (completed === null) throw brokenOff();
      return yield completed;
    }
  } finally {
    // The rest of the body is nobody's business any more; a failure of it changes nothing.
    reader.cancel().catch(() => undefined);
  }
}

async function* converse(call: Call, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPiece> {
  const gathering = gather();
  try {
    yield* readPieces(call, request, signal, gathering);
  } catch (thrown) {
    const usage = gathering.usage();
    // After our own abort nobody waits for an end, but tokens that were charged are still reported.
    if (signal.aborted && usage === null) return;
    yield { type: 'failed', error: classify(thrown, call.provider, call.now()), usage };
  }
}

export const anthropicModel = (options: AnthropicOptions): Model => {
  const { name, facts } = options;
  const url = versionedUrl(options.baseUrl ?? DEFAULT_BASE_URL);
  let opened: Promise<LanguageModelV3> | null = null;
  const load = async (): Promise<LanguageModelV3> => {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    const lean = options.fetch ?? createFetch({});
    // The package calls it with a text body and reads status, headers and body of the answer: what LeanFetch offers.
    const fetch = lean as unknown as typeof globalThis.fetch;
    return createAnthropic({ apiKey: options.apiKey, baseURL: url, fetch })(name);
  };
  const thinking = { anthropic: { thinking: { type: 'adaptive', display: 'summarized' } } } as const;
  const call: Call = {
    open: () => (opened ??= load()),
    options: (request) => ({
      ...convertRequest(request),
      maxOutputTokens: facts.outputTokensMax,
      includeRawChunks: true,
      ...(options.thinking === undefined ? {} : { providerOptions: thinking }),
    }),
    provider: { name: 'Anthropic', keyVariable: 'ANTHROPIC_API_KEY', host: new URL(url).host },
    now: options.now ?? Date.now,
  };
  return {
    id: `anthropic/${name}`,
    facts,
    canAbort: 'yes',
    prepare: () => void call.open().catch(() => undefined), // the first call meets the same failure, and reports it
    stream: (request, signal) => converse(call, request, signal),
  };
};
