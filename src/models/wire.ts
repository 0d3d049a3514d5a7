import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
} from '@ai-sdk/provider';
import type { StopReason } from '../agent/event.js';
import type { ProviderMetadata } from '../agent/message.js';
import type { ModelFacts, TokenUsage } from '../needs.js';
import type { Provider } from './classify.js';
import { createFetch, type LeanFetch } from './http.js';
import type { Loose } from './loose.js';
import type { Dialect } from './request.js';

/** What is particular to one provider; what is common to all is in wire-model.ts. */

/** What an event of the provider's says besides the parts that the package makes of it. */
export type FromEvent = {
  /** Tokens that are charged for already, whatever becomes of the reply. */
  readonly usage?: TokenUsage;
  /** Words of a refusal, which packages drop. */
  readonly refusal?: string;
  /** The model is at work, unseen: nothing to show, but the reply is not silent. */
  readonly isAlive?: boolean;
  /** What has to go back with the thoughts of this event. */
  readonly thoughtMetadata?: ProviderMetadata;
};

export type Wire = {
  readonly provider: Provider;
  /** Loads the package. */
  open(): Promise<LanguageModelV3>;
  readonly dialect: Dialect;
  /** What a request asks for besides the conversation. */
  readonly options?: Partial<LanguageModelV3CallOptions>;
  /** Why the reply ended: null if the provider has not said so, an error if it failed. */
  stopReason(finish: LanguageModelV3FinishReason): StopReason | Error | null;
  fromEvent?(event: Loose): FromEvent;
  /** Begins with a stream; says of each part, in order, whether it is nothing of a reply. */
  passOver?(): (part: LanguageModelV3StreamPart) => boolean;
};

/** What every model behind a wire is made from. */
export type WireOptions = {
  /** As the provider writes it, e.g. `claude-sonnet-5-5`. */
  readonly name: string;
  readonly facts: ModelFacts;
  readonly fetch?: LeanFetch;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
};

/** The packages call it with a text body and read status, headers and body of the answer: what LeanFetch offers. */
export const fetchOf = ({ fetch }: WireOptions): typeof globalThis.fetch =>
  (fetch ?? createFetch({})) as unknown as typeof globalThis.fetch;

/** The end of a reply as its package understands it; one for which it has no word and no reason is none. */
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

/** A stream that ended without the provider's own end looks whole to a client, and is not. */
export const brokenOff = (): Error =>
  Object.assign(new Error('the reply broke off before its end'), { type: 'broken_off' });

/** The model wrote a call that its own provider could not read: nothing of the reply can be used, another may be whole. */
export const malformedCall = (reason: string): Error =>
  Object.assign(new Error(`the model wrote a call that could not be read (${reason})`), {
    type: 'malformed_call',
  });

/** A base URL with the version at its end; the providers' own clients leave it out, the packages want it. */
export const versionedUrl = (baseUrl: string, version: string): string => {
  const bare = baseUrl.replace(/\/+$/, '');
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${version}`;
};
