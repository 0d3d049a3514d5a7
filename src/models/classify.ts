import type { ModelError, ModelErrorKind } from '../agent/event.js';
import { asText, isObject, type Loose, objectIn } from './loose.js';

/**
 * Whatever a provider's client throws or sends as an error becomes one kind, here and nowhere else.
 *
 * 1. The provider's own label decides, then its sentence, then the status, then the connection's code.
 * 2. The message is one that a user can act on: status, the provider's sentence, what to do.
 */

export type Provider = {
  /** As people call it. */
  readonly name: string;
  /** The environment variable that holds the key. */
  readonly keyVariable: string;
  /** Where it is called. */
  readonly host: string;
};

/** What can be read off an error, whatever class it has. */
type Signs = {
  readonly status: number | null;
  /** The provider's own words for the kind of error, the most exact first. */
  readonly labels: readonly string[];
  readonly sentence: string;
  /** Of the connection. */
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** What the provider says in the body of when to come back. */
  readonly retryDelay: string | null;
};

type Detail = Pick<Signs, 'labels' | 'retryDelay'> & {
  readonly message: string | null;
  readonly status: number | null;
};

const NOTHING: Detail = { labels: [], message: null, status: null, retryDelay: null };

const isErrorStatus = (value: unknown): value is number =>
  typeof value === 'number' && value >= 400 && value < 600;

const listIn = (value: unknown): readonly Loose[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** Google says more in a list: a reason, the quota that is used up, when to come back. */
const readDetails = (details: readonly Loose[]): Pick<Detail, 'labels' | 'retryDelay'> => {
  const violations = details.flatMap(({ violations: found }) => listIn(found));
  const isDaily = violations.some(({ quotaId }) => /PerDay/.test(asText(quotaId) ?? ''));
  const reasons = details.flatMap(({ reason }) => asText(reason) ?? []);
  return {
    labels: [...(isDaily ? ['QUOTA_OF_THE_DAY'] : []), ...reasons],
    retryDelay: details.map(({ retryDelay }) => asText(retryDelay)).find((delay) => delay !== null) ?? null,
  };
};

const readObject = (found: Loose): Detail => {
  const failed = objectIn(found, 'response').error;
  const inner = isObject(found.error) ? found.error : isObject(failed) ? failed : found;
  const { labels, retryDelay } = readDetails(listIn(inner.details));
  const own = [inner.code, inner.status, inner.type].flatMap((label) => asText(label) ?? []);
  return {
    labels: [...labels, ...own],
    message: asText(inner.message) ?? asText(found.error) ?? asText(found.detail),
    status: isErrorStatus(inner.code) ? inner.code : null,
    retryDelay,
  };
};

/** `{error: {type, code, message}}`, `{error: text}` or `{type, message}`, as an object or as JSON text. */
const readDetail = (value: unknown): Detail => {
  if (typeof value !== 'string') return isObject(value) ? readObject(value) : NOTHING;
  try {
    const json: unknown = JSON.parse(value);
    return isObject(json) ? readObject(Array.isArray(json) ? objectIn(json, 0) : json) : NOTHING;
  } catch {
    return NOTHING; // no JSON: a gateway's page, of which the status says enough
  }
};

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

/** What came in place of an event that could be understood: `value`, as the package hands it on. */
const readUnknownEvent = ({ value }: Loose): Detail =>
  isObject(value) && value.error !== undefined ? readDetail(value) : NOTHING;

const readSigns = (error: unknown): Signs => {
  const loose: Loose = isObject(error) ? error : { message: String(error) };
  const given = typeof loose.statusCode === 'number' ? loose.statusCode : null;
  // Events that carry an error are read as the body of an answer is.
  const sources = [
    readDetail(loose.responseBody),
    readDetail(loose.data),
    readUnknownEvent(loose),
    given === null ? readDetail(loose) : NOTHING,
  ];
  const said = sources.find(({ message }) => message !== null) ?? NOTHING;
  return {
    status: given ?? said.status,
    labels: sources.flatMap(({ labels }) => labels),
    sentence: said.message ?? asText(loose.message) ?? '',
    code: readCode(error),
    headers: isStrings(loose.responseHeaders) ? loose.responseHeaders : {},
    retryDelay: said.retryDelay,
  };
};

const kindsByLabel: Readonly<Record<string, ModelErrorKind>> = {
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
  // OpenAI, and what speaks like it
  invalid_api_key: 'auth',
  insufficient_quota: 'quotaExhausted',
  billing_hard_limit_reached: 'quotaExhausted',
  rate_limit_exceeded: 'rateLimited',
  server_error: 'unreachable',
  server_is_overloaded: 'overloaded',
  slow_down: 'overloaded',
  context_length_exceeded: 'contextOverflow',
  exceed_context_size_error: 'contextOverflow',
  content_filter: 'refused',
  content_policy_violation: 'refused',
  invalid_prompt: 'refused',
  model_not_found: 'badRequest',
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
  malformed_call: 'malformed',
};

const kindsByStatus: Readonly<Record<number, ModelErrorKind>> = {
  401: 'auth',
  402: 'quotaExhausted',
  403: 'auth',
  408: 'timeout',
  413: 'contextOverflow',
  429: 'rateLimited',
  503: 'overloaded',
  504: 'timeout',
  529: 'overloaded',
};

/** Sentences that say more than the label they come with, which is mostly that the request was invalid. */
const kindsBySentence: readonly (readonly [RegExp, ModelErrorKind])[] = [
  [
    /prompt is too long|exceeds? (the )?(model'?s )?(available |maximum )?context (limit|window|length|size)|maximum context length|too many input tokens|input token count .*exceeds|context the overflows|exceeds the context window/i,
    'contextOverflow',
  ],
  [
    /credit balance is too low|specified API usage limits|exceeded your current quota|insufficient credits|requires more credits/i,
    'quotaExhausted',
  ],
  [/blocked by content filtering/i, 'refused'],
  [/api key not valid|incorrect api key/i, 'auth'],
  [/ended without a finish reason/i, 'unreachable'],
];

const TIMEOUT_CODES = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT)$/;
const CERTIFICATE_CODES = /^(CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

const kindOf = ({ status, labels, sentence, code }: Signs): ModelErrorKind => {
  const known = labels.flatMap((label) => (Object.hasOwn(kindsByLabel, label) ? kindsByLabel[label] : []));
  const exact = known.find((kind) => kind !== 'badRequest');
  if (exact !== undefined) return exact;
  const told = kindsBySentence.find(([pattern]) => pattern.test(sentence));
  if (told !== undefined && (status !== null || labels.length > 0 || code === null)) return told[1];
  if (known.length > 0) return 'badRequest';
  if (status !== null && status !== 200) {
    return kindsByStatus[status] ?? (status >= 500 ? 'unreachable' : 'badRequest');
  }
  if (code !== null) return TIMEOUT_CODES.test(code) ? 'timeout' : 'unreachable';
  return status === 200 ? 'unreachable' : 'malformed';
};

const RETRYABLE: ReadonlySet<ModelErrorKind> = new Set([
  'rateLimited',
  'overloaded',
  'unreachable',
  'timeout',
]);

const readRetryAfter = ({ headers, retryDelay }: Signs, now: number): number | null => {
  const exactMs = headers['retry-after-ms'];
  if (exactMs !== undefined && /^\d+(\.\d+)?$/.test(exactMs)) return Math.round(Number(exactMs));
  const after = headers['retry-after'] ?? retryDelay;
  if (after === null) return null;
  const seconds = /^(\d+(?:\.\d+)?)s?$/.exec(after)?.[1];
  if (seconds !== undefined) return Math.round(Number(seconds) * 1_000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
};

const connectionProblems: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be looked up',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no network',
};

const explain = (kind: ModelErrorKind, { name, host }: Provider): string => {
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

const adviceFor = (kind: ModelErrorKind, code: string | null, { name, keyVariable }: Provider): string => {
  if (kind === 'auth') return `Set ${keyVariable} to a key that may use this model.`;
  if (kind === 'quotaExhausted') return `Add credit at ${name}, or use another key or model.`;
  if (code !== null && CERTIFICATE_CODES.test(code)) {
    return 'The certificate is not trusted: if a proxy re-signs it, name its CA in NODE_EXTRA_CA_CERTS.';
  }
  return '';
};

const describe = (kind: ModelErrorKind, signs: Signs, provider: Provider): string => {
  const { status, code } = signs;
  const byCode = (status === null || status === 200) && code !== null ? connectionProblems[code] : undefined;
  const oneLine = (byCode ?? signs.sentence).replace(/\s+/g, ' ').trim().replace(/\.$/, '').slice(0, 300);
  const mark = status !== null && status !== 200 ? ` (${status})` : code === null ? '' : ` (${code})`;
  const advice = adviceFor(kind, code, provider);
  const said = oneLine === '' ? '' : `: ${oneLine}`;
  return `${explain(kind, provider)}${mark}${said}${advice === '' ? '' : `. ${advice}`}`;
};

/** The error as the machine reads it. `now` in milliseconds since 1970, for a retry-after that is a date. */
export const classify = (error: unknown, provider: Provider, now: number): ModelError => {
  const signs = readSigns(error);
  const kind = kindOf(signs);
  const untrusted = signs.code !== null && CERTIFICATE_CODES.test(signs.code);
  return {
    kind,
    message: describe(kind, signs, provider),
    retryable: (RETRYABLE.has(kind) && !untrusted) || signs.labels.includes('malformed_call'),
    retryAfterMs: readRetryAfter(signs, now),
  };
};
