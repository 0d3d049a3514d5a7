import type { ModelErrorKind } from '../../machine/event.js';
import type { ErrorSigns } from './read-error-facts.js';

/**
 * The kind of an error, from its status, its label and its words, in this order.
 *
 * 1. An unambiguous status decides. For an ambiguous one (429 means a rate limit or an empty account) label and words
 *    may choose.
 * 2. An exact label comes next, then words. Labels that only repeat the status (`invalid_request_error`, `api_error`)
 *    count for nothing beside a status, and come last without one.
 */

/** `malformedCall`: malformed, but a retry may succeed. */
type Cause = ModelErrorKind | 'malformedCall';

const causesByLabel: Readonly<Record<string, Cause>> = {
  // Anthropic
  authentication_error: 'auth',
  permission_error: 'auth',
  billing_error: 'quotaExhausted',
  rate_limit_error: 'rateLimited',
  overloaded_error: 'overloaded',
  timeout_error: 'timeout',
  api_error: 'unreachable',
  request_too_large: 'contextOverflow',
  not_found_error: 'badRequest',
  invalid_request_error: 'badRequest',
  // OpenAI and compatible servers
  invalid_api_key: 'auth',
  insufficient_quota: 'quotaExhausted',
  billing_hard_limit_reached: 'quotaExhausted',
  rate_limit_exceeded: 'rateLimited',
  rate_limited: 'rateLimited',
  server_error: 'unreachable',
  server_is_overloaded: 'overloaded',
  engine_overloaded_error: 'overloaded',
  slow_down: 'overloaded',
  context_length_exceeded: 'contextOverflow',
  exceed_context_size_error: 'contextOverflow',
  model_max_prompt_tokens_exceeded: 'contextOverflow',
  model_context_window_exceeded: 'contextOverflow',
  too_many_prompt_tokens: 'contextOverflow',
  tool_use_failed: 'malformedCall',
  content_filter: 'refused',
  content_policy_violation: 'refused',
  invalid_prompt: 'refused',
  model_not_found: 'badRequest',
  // z.ai
  '1113': 'quotaExhausted',
  '1261': 'contextOverflow',
  '1301': 'refused',
  '1302': 'rateLimited',
  '1303': 'rateLimited',
  '1305': 'rateLimited',
  '1308': 'quotaExhausted',
  // Google
  API_KEY_INVALID: 'auth',
  UNAUTHENTICATED: 'auth',
  PERMISSION_DENIED: 'auth',
  QUOTA_OF_THE_DAY: 'quotaExhausted',
  RESOURCE_EXHAUSTED: 'rateLimited',
  UNAVAILABLE: 'overloaded',
  INTERNAL: 'unreachable',
  DEADLINE_EXCEEDED: 'timeout',
  NOT_FOUND: 'badRequest',
  FAILED_PRECONDITION: 'badRequest',
  INVALID_ARGUMENT: 'badRequest',
  // Our own
  broken_off: 'unreachable',
  damaged_frame: 'unreachable',
  malformed_call: 'malformedCall',
  odd_answer: 'malformed',
  redirected: 'badRequest',
};

/** True for labels that a provider gives to any failure. */
const isVague = (cause: Cause): boolean => cause === 'badRequest' || cause === 'unreachable';

type Decision = {
  readonly cause: Cause;
  /** Causes that label and words may choose instead. */
  readonly unless: readonly Cause[];
};

const decisions: Readonly<Record<number, Decision>> = {
  401: { cause: 'auth', unless: [] },
  402: { cause: 'quotaExhausted', unless: [] },
  403: { cause: 'auth', unless: ['quotaExhausted', 'refused'] },
  408: { cause: 'timeout', unless: [] },
  413: { cause: 'contextOverflow', unless: [] },
  429: { cause: 'rateLimited', unless: ['quotaExhausted', 'overloaded', 'contextOverflow'] },
  503: { cause: 'overloaded', unless: [] },
  504: { cause: 'timeout', unless: [] },
  529: { cause: 'overloaded', unless: [] },
};

type Wording = readonly [RegExp, Cause];

/** Sentences that say more than their label. */
const exactWordings: readonly Wording[] = [
  // The request never fits into a minute's limit: only a shorter conversation helps.
  [/request too large for .*tokens per min/i, 'contextOverflow'],
  [/failed to call a function\b.*failed_generation|tool call validation failed/i, 'malformedCall'],
];

/** Overflow messages as seen from providers; the tests hold a body of each. */
const OVERFLOWS: readonly RegExp[] = [
  /prompt is too long|prompt too long|input is too long|input is longer than|total length of all messages is too long/i,
  /exceeds? (the )?((this )?model'?s? )?(available |maximum |model )?context (limit|window|length|size)/i,
  /maximum context length|maximum prompt length is \d|maximum allowed input length/i,
  /too many input tokens|input token(s| count) .*exceeds|number of input tokens exceeds/i,
  /context the overflows|context window exceeds limit|exceeded max(imum)? context length/i,
  /exceeded model token limit|model max length exceeded|prompt exceeds max length/i,
  /greater than the context length|longer than the model'?s context length|cannot truncate prompt with n_keep/i,
  /prompt token count of \d+ exceeds the limit|reduce the length of the (messages|input|prompt)/i,
  /range of input length should be/i,
];

const wordings: readonly Wording[] = [
  ...OVERFLOWS.map((pattern): Wording => [pattern, 'contextOverflow']),
  [
    /credit balance is too low|specified API usage limits|exceeded your current quota|insufficient (credits|balance)|requires more credits|(doesn't|does not) have any credits|please recharge|\u4f59\u989d\u4e0d\u8db3/i,
    'quotaExhausted',
  ],
  [/rate limit(ed| reached| exceeded)|too many requests/i, 'rateLimited'],
  [/\boverloaded\b/i, 'overloaded'],
  [/blocked by content filtering/i, 'refused'],
  [/api key not valid|incorrect api key/i, 'auth'],
];

const TIMEOUT_CODES = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT)$/;

const fits =
  (sentence: string) =>
  ([pattern]: Wording): boolean =>
    pattern.test(sentence);

const causeOf = ({ status, labels, sentence, code }: ErrorSigns): Cause => {
  const known = labels.flatMap((label) =>
    Object.hasOwn(causesByLabel, label) ? (causesByLabel[label] ?? []) : [],
  );
  // A connection's failure is in its code, not in its words.
  const isSaid = status !== null || labels.length > 0 || code === null;
  const exact = isSaid ? exactWordings.find(fits(sentence))?.[1] : undefined;
  const told = isSaid ? wordings.find(fits(sentence))?.[1] : undefined;
  const said: readonly Cause[] = [
    ...(exact === undefined ? [] : [exact]),
    ...known.filter((cause) => !isVague(cause)),
    ...(told === undefined ? [] : [told]),
  ];
  const decision = status === null ? undefined : decisions[status];
  if (decision !== undefined) {
    return (
      said.find((cause) => cause === decision.cause || decision.unless.includes(cause)) ?? decision.cause
    );
  }
  if (status !== null && status >= 500) {
    // A server that reports its own failure is believed, even if it mentions the prompt.
    return (known.length > 0 ? known.find((cause) => !isVague(cause)) : said[0]) ?? 'unreachable';
  }
  const [first] = said;
  if (first !== undefined) return first;
  if (status !== null && status >= 400) return 'badRequest';
  const [vague] = known;
  if (vague !== undefined) return vague;
  if (code !== null) return TIMEOUT_CODES.test(code) ? 'timeout' : 'unreachable';
  return status === 200 ? 'unreachable' : 'malformed';
};

const RETRYABLE: ReadonlySet<Cause> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
  'malformedCall',
]);

/** The kind of the error, and whether a retry of the same request may succeed. */
export const kindOf = (signs: ErrorSigns): { readonly kind: ModelErrorKind; readonly retryable: boolean } => {
  const cause = causeOf(signs);
  return {
    kind: cause === 'malformedCall' ? 'malformed' : cause,
    retryable: RETRYABLE.has(cause),
  };
};
