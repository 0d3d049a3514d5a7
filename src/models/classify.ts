import type { ModelError, ModelErrorKind } from '../agent/event.js';

/**
 * Whatever a provider's client throws or sends as an error becomes one kind, here and nowhere else.
 *
 * 1. The provider's own type of error decides, then its sentence, then the status, then the connection's code.
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
  readonly type: string | null;
  readonly sentence: string;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

type Loose = { readonly [key: string]: unknown };

const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;
const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** `{error: {type, message}}` or `{type, message}`, as an object or as JSON text. */
const readDetail = (value: unknown): { type: string | null; message: string | null } => {
  let found = value;
  if (typeof value === 'string') {
    try {
      found = JSON.parse(value);
    } catch {
      return { type: null, message: null }; // no JSON: a gateway's page, of which the status says enough
    }
  }
  if (!isObject(found)) return { type: null, message: null };
  const inner = isObject(found.error) ? found.error : found;
  return { type: asText(inner.type), message: asText(inner.message) };
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

const readSigns = (error: unknown): Signs => {
  const loose: Loose = isObject(error) ? error : { message: String(error) };
  const status = typeof loose.statusCode === 'number' ? loose.statusCode : null;
  const body = readDetail(loose.responseBody);
  const own = status === null ? readDetail(loose) : body;
  return {
    status,
    type: body.type ?? own.type,
    sentence: body.message ?? own.message ?? asText(loose.message) ?? '',
    code: readCode(error),
    headers: isStrings(loose.responseHeaders) ? loose.responseHeaders : {},
  };
};

const kindsByType: Readonly<Record<string, ModelErrorKind>> = {
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

/** Sentences that say more than the type they come with, which is mostly invalid_request_error. */
const kindsBySentence: readonly (readonly [RegExp, ModelErrorKind])[] = [
  [
    /prompt is too long|exceeds? (the )?(model'?s )?context (limit|window|length)|too many input tokens/i,
    'contextOverflow',
  ],
  [/credit balance is too low|specified API usage limits|exceeded your current quota/i, 'quotaExhausted'],
  [/blocked by content filtering/i, 'refused'],
];

const TIMEOUT_CODES = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT)$/;
const CERTIFICATE_CODES = /^(CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

const kindOf = ({ status, type, sentence, code }: Signs): ModelErrorKind => {
  const byType = type === null ? undefined : kindsByType[type];
  if (byType === undefined || byType === 'badRequest') {
    const told = kindsBySentence.find(([pattern]) => pattern.test(sentence));
    if (told && (status !== null || type !== null)) return told[1];
  }
  if (byType !== undefined) return byType;
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

const readRetryAfter = (headers: Readonly<Record<string, string>>, now: number): number | null => {
  const exactMs = headers['retry-after-ms'];
  if (exactMs !== undefined && /^\d+(\.\d+)?$/.test(exactMs)) return Math.round(Number(exactMs));
  const after = headers['retry-after'];
  if (after === undefined) return null;
  if (/^\d+(\.\d+)?$/.test(after)) return Math.round(Number(after) * 1_000);
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
    retryable: RETRYABLE.has(kind) && !untrusted,
    retryAfterMs: readRetryAfter(signs.headers, now),
  };
};
