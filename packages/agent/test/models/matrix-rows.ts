import type { WireName } from '../../../../test/kit/models/wires.js';
import type { WirePart, WireReply } from '../../../../test/servers/reply.js';
import type { ModelErrorKind, StopReason } from '../../src/machine/event.js';
import type { TokenUsage } from '../../src/ports/model.js';

/** The traps, and what comes of each on every wire that can express it. */

/** What a reply comes to. */
export type Outcome =
  | {
      readonly kind: ModelErrorKind;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      readonly about?: 'picture';
      readonly says?: RegExp;
    }
  | {
      readonly stop: StopReason;
      /** Raw inputs of its calls. */
      readonly calls?: readonly string[];
      readonly text?: string;
      readonly usage?: TokenUsage;
    };

export type Row = {
  /** A sentence. */
  readonly trap: string;
  readonly given: WireReply;
  readonly then: Outcome;
  /** Where the wire has its own way. */
  readonly except?: Partial<Record<WireName, Outcome>>;
  /** Why a wire can't express it. */
  readonly empty?: Partial<Record<WireName, string>>;
};

const text = (words: string): WirePart => ({ type: 'text', text: words });
const call = (rawInput: string, half = false): WirePart => ({
  type: 'call',
  id: 'c1',
  name: 'read',
  rawInput,
  input: { path: 'x' },
  half,
});
const message = (
  parts: readonly WirePart[],
  rest: Partial<Extract<WireReply, { type: 'message' }>> = {},
): WireReply => ({ type: 'message', parts, ...rest });
const failure = (
  what: Extract<WireReply, { type: 'failure' }>['failure'],
  retryAfterS?: number,
): WireReply => ({
  type: 'failure',
  failure: what,
  ...(retryAfterS === undefined ? {} : { retryAfterS }),
});

const brokenOff: Outcome = {
  kind: 'unreachable',
  retryable: true,
  says: /broke off|finish reason/,
};
const WHOLE_CALLS = 'a call comes whole, in one event';
const HALF = '{"path": "on';

export const rows: readonly Row[] = [
  {
    trap: 'a stream that ends cleanly without its end mark is no reply',
    given: message([text('half a rep')], { end: 'clean' }),
    then: brokenOff,
  },
  {
    trap: 'an empty stream is no reply',
    given: message([], { end: 'clean' }),
    then: brokenOff,
  },
  {
    trap: 'a whole call in a stream without its end mark is not handed on',
    given: message([call('{"path":"x"}')], { end: 'clean' }),
    then: brokenOff,
  },
  {
    trap: 'a call with half its arguments in a stream without its end mark is not handed on',
    given: message([call(HALF, true)], { end: 'clean' }),
    then: brokenOff,
    empty: { google: WHOLE_CALLS },
  },
  {
    trap: 'a connection that is cut in the middle is unreachable',
    given: message([text('half a rep')], { end: 'cut' }),
    then: { kind: 'unreachable', retryable: true, says: /cut/ },
  },
  {
    trap: 'an error in the middle of a stream is what it says',
    given: message([text('half a rep')], { end: 'error' }),
    then: { kind: 'overloaded', retryable: true, says: /overloaded/i },
  },
  {
    trap: 'an error at the beginning of a stream is what it says',
    given: message([], { end: 'error' }),
    then: { kind: 'overloaded', retryable: true, says: /overloaded/i },
  },
  {
    trap: 'a reason for the end that nobody knows is another reason',
    given: message([text('wait')], { stop: 'unknown' }),
    then: { stop: 'other', text: 'wait' },
  },
  {
    trap: 'a reply cut at the output limit hands on half a call as it is',
    given: message([call(HALF, true)], { stop: 'maxTokens' }),
    then: { stop: 'maxTokens', calls: [HALF] },
    empty: { google: WHOLE_CALLS },
  },
  {
    trap: 'a reply cut at the output limit keeps its text',
    given: message([text('so')], { stop: 'maxTokens' }),
    then: { stop: 'maxTokens', text: 'so' },
  },
  {
    trap: 'arguments that are no JSON are handed on untouched',
    given: message([call('{"path": one}}')]),
    then: { stop: 'toolUse', calls: ['{"path": one}}'] },
    empty: { google: 'arguments are an object, not text' },
  },
  {
    trap: 'a reply with calls that is said to have simply ended asks for tools',
    given: message([call('{"path":"x"}')], { stop: 'end' }),
    then: { stop: 'toolUse', calls: ['{"path":"x"}'] },
    empty: { openai: 'a whole reply has no reason of its own' },
  },
  {
    trap: 'a call that the provider itself could not read is asked for again',
    given: message([text('so')], { stop: 'malformedCall' }),
    then: { kind: 'malformed', retryable: true, says: /MALFORMED_FUNCTION_CALL/ },
    except: { chat: brokenOff },
    empty: { anthropic: 'hands on what the model wrote', openai: 'hands on what the model wrote' },
  },
  {
    trap: 'a refusal is a refusal, and its words are kept',
    given: message([{ type: 'refusal', text: 'I will not do that.' }], { stop: 'refusal' }),
    then: { stop: 'refusal', text: 'I will not do that.' },
    except: { google: { stop: 'contentFilter', text: 'I will not do that.' } },
  },
  {
    trap: 'a reply that a filter ended is said to be so',
    given: message([text('so')], { stop: 'filter' }),
    then: { stop: 'contentFilter', text: 'so' },
    empty: { anthropic: 'its filter is a refusal, or an error' },
  },
  {
    trap: 'a prompt that a filter stopped is refused',
    given: failure('filtered'),
    then: { kind: 'refused', retryable: false },
    except: { google: { stop: 'contentFilter', text: '' } },
  },
  {
    trap: 'a rate limit says when to come back',
    given: failure('rateLimit', 7),
    then: { kind: 'rateLimited', retryable: true, retryAfterMs: 7_000 },
  },
  {
    trap: 'a used-up quota is no rate limit, whatever its status',
    given: failure('quota'),
    then: { kind: 'quotaExhausted', retryable: false },
  },
  {
    trap: 'a bad key names the variable that holds it',
    given: failure('auth'),
    then: { kind: 'auth', retryable: false, says: /Set [A-Z_]+_API_KEY/ },
  },
  {
    trap: 'an overloaded provider is asked again',
    given: failure('overloaded'),
    then: { kind: 'overloaded', retryable: true },
  },
  {
    trap: 'a fault inside the provider is unreachable',
    given: failure('broken'),
    then: { kind: 'unreachable', retryable: true },
  },
  {
    trap: 'a page of a gateway in place of an answer is unreachable',
    given: failure('page'),
    then: { kind: 'unreachable', retryable: true, says: /502/ },
  },
  {
    trap: 'a conversation that is too long is an overflow',
    given: failure('tooLong'),
    then: { kind: 'contextOverflow', retryable: false },
  },
  {
    trap: 'a request that is wrong is not sent again',
    given: failure('badRequest'),
    then: { kind: 'badRequest', retryable: false },
  },
  {
    trap: 'a picture that is refused is not sent again as it is',
    given: failure('picture'),
    then: { kind: 'badRequest', retryable: false, about: 'picture' },
    except: { chat: { kind: 'unreachable', retryable: false, about: 'picture' } },
  },
  {
    trap: 'tokens from the cache are counted apart',
    given: message([text('yes')], { tokens: { input: 100, cached: 60, output: 20 } }),
    then: {
      stop: 'end',
      text: 'yes',
      usage: { inputTokens: 40, outputTokens: 20, cacheReadTokens: 60, cacheWriteTokens: 0 },
    },
  },
  {
    trap: 'an empty reply is whole',
    given: message([]),
    then: { stop: 'end', text: '', calls: [] },
  },
];
