import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { StopReason } from '../../machine/event.js';
import type { ProviderMetadata } from '../../machine/message.js';
import type { ModelFacts, ModelRequest, TokenUsage } from '../../ports/model.js';
import type { ErrorSource } from '../errors/classify-error.js';
import type { EditEvent } from '../http/edit-event-lines.js';
import { createFetch, type LeanFetch } from '../http/node-fetch.js';
import { providerFetch } from '../http/provider-fetch.js';
import type { Dialect } from '../sdk-request.js';
import type { Loose } from '../untyped-json.js';

/** The differences between wires. sdk-model.ts holds the common part. */

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
