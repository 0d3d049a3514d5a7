/**
 * Classifies every error that a provider sends or its client throws; no other file does. The
 * message has what a user can act on: the status, the provider's sentence, advice.
 *
 * The signs of an error are its status (429), labels (`rate_limit_error`), sentence and code
 * (`ECONNRESET`); providers send them in many forms.
 *
 * From top to bottom: `classify`; the message; the delay before a retry; the kind of an error; and
 * reading its signs.
 */

import type { ModelError, ModelErrorKind } from '../machine/event.js';
import { firstCharacters } from '../platform/text.js';
import { asText, isObject, type Loose, listIn, objectIn } from '../platform/untrusted-input.js';

/** The provider that an error came from. */
export type ErrorSource = {
  readonly name: string;
  /** The environment variable or setting with the key, for messages. */
  readonly keyVariable: string;
  /** The key. A server may repeat it in its sentence, and messages are stored. */
  readonly apiKey?: string;
  readonly host: string;
  /** The address of its API; absent: unknown, since the caller made the model. */
  readonly url?: string;
};

/** The error as the machine sees it. `now`: ms since 1970, for a retry-after that is a date. */
export const classify = (error: unknown, provider: ErrorSource, now: number): ModelError => {
  const read = readSigns(error);
  // Before `describeError` cuts the sentence: a part of the key would not be recognised.
  const signs = { ...read, sentence: redactKey(read.sentence, provider) };
  const { kind, retryable } = errorKind(signs);
  const untrusted = signs.code !== null && CERTIFICATE_CODES.test(signs.code);
  const isUnsent = signs.status === null && NEVER_CONNECTED.has(signs.code ?? '');
  const isAboutPicture = namesPicture(signs);
  return {
    kind,
    message: redactKey(describeError(kind, signs, provider), provider),
    retryable: retryable && !untrusted && !isAboutPicture,
    retryAfterMs:
      readRetryAfter(signs, now) ?? (kind === 'rateLimited' ? readResets(signs, now) : null),
    ...(isUnsent ? { sent: 'no' } : {}),
    ...(isAboutPicture ? { about: 'picture' } : {}),
    ...(kind === 'unreachable' && isAnswered(signs) ? { answered: 'yes' } : {}),
  };
};

/** Shorter keys are not replaced: they could be words of the message. */
const KEY_CHARACTERS_MIN = 8;

const redactKey = (message: string, { apiKey = '' }: ErrorSource): string =>
  apiKey.length < KEY_CHARACTERS_MIN ? message : message.replaceAll(apiKey, '…');

/** Without a status only a failed connection has a code: a stream's error is an `eventError`. */
const isAnswered = ({ status, code }: ErrorSigns): boolean => status !== null || code === null;

/** A request that a server understands and refuses. */
export type Refusal = {
  /** The server's words. */
  readonly sentence: string;
  /** Names of fields that the error lists beside its sentence. */
  readonly named: readonly string[];
};

/** Statuses of a request that is wrong as such. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

/** The refusal that an error reports; null for any other error. */
export const readRefusal = (error: unknown): Refusal | null => {
  const signs = readSigns(error);
  const { status, labels, sentence, named } = signs;
  const isRefused =
    status === null
      ? labels.includes(REPORTED) && errorKind(signs).kind === 'badRequest'
      : REFUSED.has(status);
  return isRefused ? { sentence, named } : null;
};

const PICTURE_WORDS =
  /\b(images?|image_url|pictures?|pixels?|vision|multi-?modal|inline_?data|media_?types?|mime types?)\b/i;

/** Statuses with which servers refuse a picture. */
const PICTURE_STATUSES: ReadonlySet<number> = new Set([400, 404, 413, 415, 422]);

/** Some servers answer a refused picture with status 500. */
const PICTURE_INPUT = /\bimage (input|data)\b/i;

const namesPicture = ({ status, labels, sentence, named }: ErrorSigns): boolean => {
  if (status === null) return labels.some((label) => /image/i.test(label));
  return status === 500
    ? PICTURE_INPUT.test(sentence)
    : PICTURE_STATUSES.has(status) && PICTURE_WORDS.test([sentence, ...named].join(' '));
};

/** Codes of certificates that are not trusted: a retry does not help. */
const CERTIFICATE_CODES = /^(CERT_|ERR_TLS_(?!HANDSHAKE)|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** Codes of connections that were never made. */
const NEVER_CONNECTED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

// ---- The message ----

/** Characters of a provider's sentence that are shown. */
const SHOWN_MAX = 300;

/** One sentence: the kind, the status or code, the provider's words, what to do. */
const describeError = (kind: ModelErrorKind, signs: ErrorSigns, provider: ErrorSource): string => {
  const { status, code } = signs;
  const isOfConnection = (status === null || status === 200) && code !== null;
  const byCode = isOfConnection ? connectionProblems.get(code) : undefined;
  const words = (byCode ?? signs.sentence).replace(/\s+/g, ' ').trim().replace(/\.$/, '');
  const oneLine = firstCharacters(words, SHOWN_MAX);
  // the request never reached the provider, so the message does not name it
  if (signs.labels.includes('unusable_proxy')) return oneLine;
  const codeMark = code === null ? '' : ` (${code})`;
  const mark = status !== null && status !== 200 ? ` (${status})` : codeMark;
  const advice = adviceFor(kind, signs, provider);
  const detail = oneLine === '' ? '' : `: ${oneLine}`;
  return `${messageStart(kind, provider)}${mark}${detail}${advice === '' ? '' : `. ${advice}`}`;
};

const connectionProblems: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'the connection was refused'],
  ['ECONNRESET', 'the connection was cut'],
  ['EPIPE', 'the connection was cut'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['EAI_AGAIN', 'the host name could not be looked up'],
  ['ETIMEDOUT', 'the connection timed out'],
  ['EHOSTUNREACH', 'there is no route to the host'],
  ['ENETUNREACH', 'there is no network'],
]);

/** The beginning of the message. */
const messageStart = (kind: ModelErrorKind, { name, host }: ErrorSource): string => {
  switch (kind) {
    case 'rateLimited':
      return `${name} limits the rate`;
    case 'overloaded':
      return `${name} is overloaded`;
    case 'unreachable':
      return `no whole reply from ${name} at ${host}`;
    case 'timeout':
      return `${name} took too long`;
    case 'contextOverflow':
      return 'the conversation is too long for this model';
    case 'auth':
      return `${name} refused the key`;
    case 'badRequest':
      return `${name} rejected the request`;
    case 'quotaExhausted':
      return `the account at ${name} is used up`;
    case 'refused':
      return `${name} refused the request`;
    case 'malformed':
      return `${name} sent something that makes no sense`;
    default:
      return kind satisfies never;
  }
};

/** A 404 or 405 because of the path. A 404 for an unknown model mentions the model. */
const isWrongPath = ({ status, labels, sentence }: ErrorSigns): boolean =>
  (status === 404 || status === 405) && !/model/i.test(`${labels.join(' ')} ${sentence}`);

const adviceFor = (
  kind: ModelErrorKind,
  signs: ErrorSigns,
  { name, keyVariable, url }: ErrorSource,
): string => {
  const { code } = signs;
  if (url !== undefined && isWrongPath(signs)) {
    const version = /\/v\d/.test(url) ? '' : ', and most servers want /v1 at its end';
    return `Look at the address (${url})${version}: --base-url.`;
  }
  if (kind === 'auth') return `Set ${keyVariable} to a key that may use this model.`;
  if (kind === 'quotaExhausted') return `Add credit at ${name}, or use another key or model.`;
  if (code !== null && CERTIFICATE_CODES.test(code)) {
    return (
      'The certificate is not trusted: if a proxy re-signs it, name its CA in ' +
      'NODE_EXTRA_CA_CERTS.'
    );
  }
  return '';
};

// ---- The delay before a retry ----

/** The delay that the provider asks for, in ms; null: none. */
const readRetryAfter = (
  { headers, retryDelay, sentence }: ErrorSigns,
  now: number,
): number | null => {
  const exactMs = headers['retry-after-ms'];
  if (exactMs !== undefined && /^\d+(\.\d+)?$/.test(exactMs)) return Math.round(Number(exactMs));
  const after = headers['retry-after'] ?? retryDelay;
  if (after === null) return readDelayWords(sentence);
  const seconds = /^(\d+(?:\.\d+)?)s?$/.exec(after)?.[1];
  if (seconds !== undefined) return Math.round(Number(seconds) * 1_000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? readDelayWords(sentence) : Math.max(0, at - serverTime(headers, now));
};

/** The time on the server's clock, since dates in its headers refer to that; else ours. */
const serverTime = ({ date = '' }: ErrorSigns['headers'], now: number): number => {
  const at = Date.parse(date);
  return Number.isNaN(at) ? now : at;
};

const UNITS_MS: readonly (readonly [RegExp, number])[] = [
  [/^(ms|milli)/i, 1],
  [/^s/i, 1_000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
  [/^d/i, 86_400_000],
];

const DELAY_WORDS =
  /(?:(?:try again|retry|retrying|reset|resets|available again|wait)(?: (?:in|after|for))?:? )((?:(?:about |at least )?\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])[\s,]*(?:and )?)+)/i;

/**
 * A delay in words, in ms: "Please try again in 1m2.5s" is 62,500, "retry after 30 seconds" 30,000;
 * null: none.
 */
const readDelayWords = (sentence: string): number | null => {
  const words = DELAY_WORDS.exec(sentence)?.[1];
  return words === undefined ? null : sumDelays(words);
};

const sumDelays = (words: string): number => {
  let sum = 0;
  for (const [, count, unit = ''] of words.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    sum += Number(count) * (UNITS_MS.find(([pattern]) => pattern.test(unit))?.[1] ?? 0);
  }
  return Math.ceil(sum);
};

/**
 * The delay until the limits of the account are reset, in ms, from headers such as
 * `x-ratelimit-reset-requests` or `anthropic-ratelimit-tokens-reset`: the latest reset of an
 * exhausted limit. null: no such header.
 */
const readResets = ({ headers }: ErrorSigns, now: number): number | null => {
  const waits = Object.entries(headers).flatMap(([name, value]) => {
    if (!/ratelimit.*reset/.test(name)) return [];
    const isLeft = Number(headers[name.replace('reset', 'remaining')] ?? 0) > 0;
    return isLeft ? [] : (readReset(value, serverTime(headers, now)) ?? []);
  });
  return waits.length === 0 ? null : Math.max(0, ...waits);
};

/** Larger numbers are times since 1970: in seconds, and from the second limit on in ms. */
const SECONDS_FROM = 1e9;
const MILLISECONDS_FROM = 1e11;

/** The delay, in ms, of a number of seconds, a time, a date, or a duration such as `6m0s`. */
const readReset = (value: string, now: number): number | null => {
  const number = Number(value);
  if (value.trim() !== '' && Number.isFinite(number)) {
    if (number < SECONDS_FROM) return Math.round(number * 1_000);
    return Math.round(number < MILLISECONDS_FROM ? number * 1_000 - now : number - now);
  }
  if (/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(value)) return sumDelays(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : at - now;
};

/*
 * ---- The kind of an error, from its status, its label and its words, in this order ----
 *
 * 1. A status in `decisions` decides. For an ambiguous one, label and words may choose another
 *    cause: 429 with `insufficient_quota` is an empty account, otherwise a rate limit.
 * 2. For another status from 500 on, exact labels decide, and words only if there is no label.
 * 3. Then exact words, then exact labels, then other words.
 * 4. Another status from 400 on is a bad request, unless its words are about length.
 * 5. Then vague labels, which any failure may have (`invalid_request_error`, `api_error`).
 * 6. Then the code of the connection.
 */

/** Our label for an error that a server reports within its stream. */
export const REPORTED = 'reported_error';

/** Not an error's `cause`. `malformedCall`: malformed, but a retry may succeed. */
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
  [REPORTED]: 'unreachable',
  broken_off: 'unreachable',
  damaged_frame: 'unreachable',
  malformed_call: 'malformedCall',
  odd_answer: 'malformed',
  redirected: 'badRequest',
  unusable_proxy: 'badRequest',
};

/** Patterns for labels that are not in `causesByLabel`. */
const labelWordings: readonly (readonly [RegExp, Cause])[] = [
  [/policy|moderation|safety|inspection|content_?filter/i, 'refused'],
  [/quota|billing/i, 'quotaExhausted'],
  [/rate_?limit/i, 'rateLimited'],
  [/overload/i, 'overloaded'],
  [/timeout|timed_?out/i, 'timeout'],
  [/authentication|permission/i, 'auth'],
  [/context_length/i, 'contextOverflow'],
  [/invalid|bad_?request|not_found|unsupported|image/i, 'badRequest'],
];

const causeOfLabel = (label: string): Cause | undefined =>
  Object.hasOwn(causesByLabel, label)
    ? causesByLabel[label]
    : labelWordings.find(([pattern]) => pattern.test(label))?.[1];

/** True for labels that a provider gives to any failure. */
const isVague = (cause: Cause): boolean => cause === 'badRequest' || cause === 'unreachable';

type Decision = {
  readonly cause: Cause;
  /** Causes that label and words may choose instead. */
  readonly unless: readonly Cause[];
};

/** Causes by status. */
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

/** Words of a sentence, and the cause that they name. */
type Wording = readonly [RegExp, Cause];

/** Sentences that are more exact than their label. */
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
  /ContextWindowExceeded/i,
  /inputs?\W+tokens?\W+max_new_tokens\W+must be/i,
];

/** A refused request whose sentence is about length, for wordings that are not in OVERFLOWS. */
const LENGTH_WORDS =
  /\b(context|prompt|tokens?)\b[^.]*\b(exceed\w*|too (long|large|many|big)|(longer|larger|greater|more) than)\b|\b(exceed\w*|too (long|large|many|big))\b[^.]*\b(context|prompt|tokens)\b/i;

// A loop, since a callback is one more function of every start (test/house/ways.test.ts).
const overflows: Wording[] = [];
for (const pattern of OVERFLOWS) overflows.push([pattern, 'contextOverflow']);

const wordings: readonly Wording[] = [
  ...overflows,
  [
    /credit balance is too low|specified API usage limits|exceeded your current quota|insufficient (credits|balance)|requires more credits|(doesn't|does not) have any credits|please recharge|\u4f59\u989d\u4e0d\u8db3/i,
    'quotaExhausted',
  ],
  [/rate limit(ed| reached| exceeded)|too many requests/i, 'rateLimited'],
  [/\boverloaded\b/i, 'overloaded'],
  [/blocked by content filtering/i, 'refused'],
  [/api key not valid|incorrect api key/i, 'auth'],
];

const TIMEOUT_CODES = /(TIMEDOUT|TIMEOUT)$/;

const matches =
  (sentence: string) =>
  ([pattern]: Wording): boolean =>
    pattern.test(sentence);

const findCause = ({ status, labels, sentence, code }: ErrorSigns): Cause => {
  const causesOfLabels = labels.flatMap((label) => causeOfLabel(label) ?? []);
  // the failure of a connection has a code; its words don't count
  const hasSentence = status !== null || labels.length > 0 || code === null;
  const causeByExactWords = hasSentence ? exactWordings.find(matches(sentence))?.[1] : undefined;
  const causeByWords = hasSentence ? wordings.find(matches(sentence))?.[1] : undefined;
  const causes: readonly Cause[] = [
    ...(causeByExactWords === undefined ? [] : [causeByExactWords]),
    ...causesOfLabels.filter((cause) => !isVague(cause)),
    ...(causeByWords === undefined ? [] : [causeByWords]),
  ];
  const decision = status === null ? undefined : decisions[status];
  if (decision !== undefined) {
    return (
      causes.find((cause) => cause === decision.cause || decision.unless.includes(cause)) ??
      decision.cause
    );
  }
  if (status !== null && status >= 500) {
    // with a label the words don't count, even if they mention the prompt
    const labelCause = causesOfLabels.find((cause) => !isVague(cause));
    return (causesOfLabels.length > 0 ? labelCause : causes[0]) ?? 'unreachable';
  }
  const [first] = causes;
  if (first !== undefined) return first;
  if (status !== null && status >= 400)
    return LENGTH_WORDS.test(sentence) ? 'contextOverflow' : 'badRequest';
  const [vague] = causesOfLabels;
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
const errorKind = (
  signs: ErrorSigns,
): { readonly kind: ModelErrorKind; readonly retryable: boolean } => {
  const cause = findCause(signs);
  return {
    kind: cause === 'malformedCall' ? 'malformed' : cause,
    retryable: RETRYABLE.has(cause),
  };
};

/*
 * ---- The signs of an error, in whatever form a provider sends or its client throws it ----
 *
 * The client is one of our adapters, or a package of the AI SDK that a user of the library brings.
 * "The package" below means such a package.
 */

/** The signs of an error. */
type ErrorSigns = {
  /**
   * Status of the answer, or the one that its body names; null for an error in a stream or of a
   * connection.
   */
  readonly status: number | null;
  /** The provider's names for the kind of error, the most exact first. */
  readonly labels: readonly string[];
  /** The provider's sentence; the words of a page if the answer is no JSON. */
  readonly sentence: string;
  /** The connection's error code, e.g. `ECONNRESET`. */
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Delay before a retry as the body names it: `12s` or `12.5s`. */
  readonly retryDelay: string | null;
  /** Fields of the request that the body names. */
  readonly named: readonly string[];
};

/** The signs in a body or an event. */
type Detail = Pick<ErrorSigns, 'labels' | 'retryDelay' | 'named' | 'headers'> & {
  readonly message: string | null;
  readonly status: number | null;
};

const NO_DETAIL: Detail = {
  labels: [],
  message: null,
  status: null,
  retryDelay: null,
  named: [],
  headers: {},
};

/** Characters of a provider's sentence that are read. */
const SENTENCE_MAX = 2_000;

/** A code, number or text, as an HTTP status; null if it is not one. */
const asStatus = (code: unknown): number | null => {
  const status = typeof code === 'string' ? Number(code) : code;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : null;
};

/** Google's list of details: a reason, the exhausted quota, the delay before a retry. */
const readDetails = (details: readonly Loose[]): Pick<Detail, 'labels' | 'retryDelay'> => {
  const violations = details.flatMap(({ violations: each }) => listIn(each));
  const isDaily = violations.some(({ quotaId }) => /PerDay/.test(asText(quotaId) ?? ''));
  const reasons = details.flatMap(({ reason }) => asText(reason) ?? []);
  return {
    labels: [...(isDaily ? ['QUOTA_OF_THE_DAY'] : []), ...reasons],
    retryDelay:
      details.map(({ retryDelay }) => asText(retryDelay)).find((delay) => delay !== null) ?? null,
  };
};

const asLabel = (value: unknown): string | null =>
  typeof value === 'number' && asStatus(value) === null ? String(value) : asText(value);

/** A fault of a request as FastAPI lists it: the place in the request, and its sentence. */
type Fault = { readonly place: string; readonly sentence: string };

const readFaults = (detail: unknown): readonly Fault[] =>
  listIn(detail).flatMap(({ loc, msg }) => {
    const keys = Array.isArray(loc) ? loc.filter((key) => key !== 'body') : [];
    const sentence = asText(msg);
    return sentence === null ? [] : [{ place: keys.join('.'), sentence }];
  });

const faultText = (faults: readonly Fault[]): string | null =>
  asText(
    faults
      .map(({ place, sentence }) => (place === '' ? sentence : `${place}: ${sentence}`))
      .join('; '),
  );

/** The signs in an error object of any provider. */
const readObject = (body: Loose): Detail => {
  const error = [body.error, objectIn(body, 'response').error].find(isObject);
  const inner = error ?? body;
  // A gateway only reports that the provider behind it failed: that provider's error counts.
  const upstream = readDetail(objectIn(inner, 'metadata').raw, 'words');
  const { labels, retryDelay } = readDetails(listIn(inner.details));
  const faults = readFaults(body.detail ?? objectIn(inner, 'message').detail);
  const ownLabels = [inner.code, inner.status, inner.type].flatMap((label) => asLabel(label) ?? []);
  return {
    labels: [...upstream.labels, ...labels, ...ownLabels],
    message:
      upstream.message ??
      asText(inner.message) ??
      asText(body.error) ??
      asText(body.detail) ??
      faultText(faults),
    status: asStatus(inner.code) ?? upstream.status,
    retryDelay: upstream.retryDelay ?? retryDelay,
    headers: lowerNames(objectIn(inner, 'metadata').headers),
    named: [
      ...upstream.named,
      ...(asText(inner.param) ?? '').split(' ').filter((name) => name !== ''),
      ...faults.map(({ place }) => place).filter((place) => place !== ''),
    ],
  };
};

/** The title of an HTML page, or its words. */
export const pageWords = (page: string): string => {
  const title = /<title[^>]*>([^<]*)</i.exec(page)?.[1];
  const words =
    title ?? page.replace(/<(script|style)[\s\S]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ');
  return words.replace(/\s+/g, ' ').trim();
};

const readPage = (text: string): Detail => ({ ...NO_DETAIL, message: asText(pageWords(text)) });

/**
 * The signs in `{error: {type, code, message}}`, `{error: text}` or `{type, message}`, as an object
 * or as JSON text. `ifText`: what to do with other text: read it as a gateway's page, or ignore it.
 */
function readDetail(value: unknown, ifText: 'words' | 'nothing'): Detail {
  if (typeof value !== 'string') return isObject(value) ? readObject(value) : NO_DETAIL;
  try {
    const json: unknown = JSON.parse(value);
    return isObject(json) ? readObject(Array.isArray(json) ? objectIn(json, 0) : json) : NO_DETAIL;
  } catch {
    return ifText === 'words' ? readPage(value) : NO_DETAIL; // no JSON: status or code must do
  }
}

const readCode = (error: unknown): string | null => {
  let current = error;
  for (let depth = 0; depth < 8 && isObject(current); depth++) {
    const code = asText(current.code);
    if (code !== null) return code;
    current = current.cause;
  }
  return null;
};

const isStrings = (value: unknown): value is Readonly<Record<string, string>> =>
  isObject(value) && Object.values(value).every((entry) => typeof entry === 'string');

/** Headers of the provider behind a gateway (OpenRouter), from the body. */
const lowerNames = (headers: unknown): Readonly<Record<string, string>> =>
  isStrings(headers)
    ? Object.fromEntries(Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text]))
    : {};

/** The error in an event that the package did not understand and returns as `value`. */
const readUnknownEvent = ({ value }: Loose): Detail =>
  isObject(value) && value.error !== undefined ? readDetail(value, 'nothing') : NO_DETAIL;

/** The unexpected body of an answer with status 200, which packages wrap into a cause. */
const readCause = ({ cause }: Loose): Detail => {
  if (!isObject(cause)) return NO_DETAIL;
  if (cause.responseBody !== undefined) return readDetail(cause.responseBody, 'words');
  return typeof cause.type === 'string' ? readDetail(cause, 'nothing') : NO_DETAIL;
};

/** True for a fault in a package's code: its message tells a user nothing. */
const isFaultOfCode = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;

/** A piece of a reply with invalid JSON: the connection has damaged it. */
const isCutFrame = (error: unknown): boolean =>
  error instanceof Error && error.name === 'AI_JSONParseError';

/** The signs of an error itself. The code of a failed connection is no label: see `readCode`. */
const readThrown = (error: Loose): Detail => {
  const isOfSystem = error instanceof Error && /^[A-Z][A-Z\d_]*$/.test(asText(error.code) ?? '');
  return readDetail(isOfSystem ? { message: error.message, type: error.type } : error, 'nothing');
};

const readSigns = (error: unknown): ErrorSigns => {
  const loose: Loose = isObject(error) ? error : { message: String(error) };
  const status = typeof loose.statusCode === 'number' ? loose.statusCode : null;
  // Events that carry an error are read like the body of an answer.
  const sources = [
    readDetail(loose.responseBody, 'words'),
    readDetail(loose.data, 'nothing'),
    readUnknownEvent(loose),
    readCause(loose),
    status === null ? readThrown(loose) : NO_DETAIL,
  ];
  const source = sources.find(({ message }) => message !== null) ?? NO_DETAIL;
  const code = readCode(error);
  const isFault = (isFaultOfCode(error) || isFaultOfCode(loose.cause)) && code === null;
  return {
    status: status ?? source.status,
    labels: [
      ...sources.flatMap(({ labels }) => labels),
      ...(isCutFrame(error) ? ['damaged_frame'] : []),
    ],
    sentence: firstCharacters(
      isFault
        ? 'a part of its reply could not be read'
        : (source.message ?? asText(loose.message) ?? ''),
      SENTENCE_MAX,
    ),
    code,
    headers: {
      ...source.headers,
      ...(isStrings(loose.responseHeaders) ? loose.responseHeaders : {}),
    },
    retryDelay: source.retryDelay,
    named: source.named,
  };
};
