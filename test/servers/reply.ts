/** A reply in words that are no wire's: each server says it in its own. */

export type WirePart =
  | { readonly type: 'text'; readonly text: string }
  /** `secret`: what the provider wants back with it. */
  | { readonly type: 'thinking'; readonly text: string; readonly secret: string }
  /** `rawInput` is sent as it is, whether or not it is JSON; `half`: the call is not closed. */
  | {
      readonly type: 'call';
      readonly id: string;
      readonly name: string;
      readonly input?: object;
      readonly rawInput?: string;
      readonly half?: boolean;
    }
  /** Words of a refusal, where the wire keeps them apart. */
  | { readonly type: 'refusal'; readonly text: string };

export type WireStop =
  | 'end'
  | 'toolUse'
  | 'maxTokens'
  | 'filter'
  | 'refusal'
  | 'unknown'
  | 'malformedCall';

/**
 * `whole`; or, after the parts: `clean` (the response ends, and the provider's own end is missing), `cut` (the socket is
 * destroyed), `silent` (nothing more comes), `error` (an event that says: overloaded).
 */
export type WireEnd = 'whole' | 'clean' | 'cut' | 'silent' | 'error';

export type WireTokens = {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
};

export type WireFailure =
  | 'rateLimit'
  | 'quota'
  | 'auth'
  | 'overloaded'
  | 'broken'
  | 'tooLong'
  | 'badRequest'
  | 'picture'
  | 'filtered'
  | 'page';

export type WireReply =
  | {
      readonly type: 'message';
      readonly parts: readonly WirePart[];
      readonly stop?: WireStop;
      readonly end?: WireEnd;
      readonly tokens?: WireTokens;
    }
  | { readonly type: 'failure'; readonly failure: WireFailure; readonly retryAfterS?: number }
  | { readonly type: 'nothing' };

export type MessageReply = Extract<WireReply, { readonly type: 'message' }>;

export const DEFAULT_TOKENS: WireTokens = { input: 10, cached: 0, output: 5 };

export const stopOf = ({ stop, parts }: MessageReply): WireStop =>
  stop ?? (parts.some(({ type }) => type === 'call') ? 'toolUse' : 'end');

export const inputOf = (part: Extract<WirePart, { readonly type: 'call' }>): string =>
  part.rawInput ?? JSON.stringify(part.input ?? {});

const PIECE = /[\s\S]{1,20}/gu;
export const cutUp = (text: string): readonly string[] => text.match(PIECE) ?? [];

export const frame = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

export const PAGE = '<html><body>502 Bad Gateway</body></html>';
