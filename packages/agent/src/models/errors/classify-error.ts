import type { ModelError, ModelErrorKind } from '../../machine/event.js';
import { kindOf } from './error-kind-rules.js';
import { type ErrorSigns, readSigns } from './read-error-facts.js';

/**
 * Classifies every error that a provider sends or its client throws; nothing else does. The message says what a user
 * can act on: the status, the provider's sentence, what to do.
 */

/** The provider that an error came from. */
export type ErrorSource = {
  readonly name: string;
  /** The environment variable that holds the key. */
  readonly keyVariable: string;
  readonly host: string;
};

const CERTIFICATE_CODES = /^(CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

const UNITS_MS: readonly (readonly [RegExp, number])[] = [
  [/^(ms|milli)/i, 1],
  [/^s/i, 1_000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
  [/^d/i, 86_400_000],
];

const DELAY_WORDS =
  /(?:(?:try again|retry|retrying|reset|resets|available again|wait)(?: (?:in|after|for))?:? )((?:(?:about |at least )?\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])[\s,]*(?:and )?)+)/i;

/** A delay in words, in milliseconds: "Please try again in 1m2.5s", "retry after 30 seconds"; null if there is none. */
const readDelayWords = (sentence: string): number | null => {
  const said = DELAY_WORDS.exec(sentence)?.[1];
  if (said === undefined) return null;
  let sum = 0;
  for (const [, count, unit = ''] of said.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    sum += Number(count) * (UNITS_MS.find(([pattern]) => pattern.test(unit))?.[1] ?? 0);
  }
  return Math.ceil(sum);
};

const readRetryAfter = ({ headers, retryDelay, sentence }: ErrorSigns, now: number): number | null => {
  const exactMs = headers['retry-after-ms'];
  if (exactMs !== undefined && /^\d+(\.\d+)?$/.test(exactMs)) return Math.round(Number(exactMs));
  const after = headers['retry-after'] ?? retryDelay;
  if (after === null) return readDelayWords(sentence);
  const seconds = /^(\d+(?:\.\d+)?)s?$/.exec(after)?.[1];
  if (seconds !== undefined) return Math.round(Number(seconds) * 1_000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? readDelayWords(sentence) : Math.max(0, at - serverTime(headers, now));
};

/** The server's time, since it counts by its own clock and ours may be set wrongly; else ours. */
const serverTime = ({ date = '' }: ErrorSigns['headers'], now: number): number => {
  const at = Date.parse(date);
  return Number.isNaN(at) ? now : at;
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

const explain = (kind: ModelErrorKind, { name, host }: ErrorSource): string => {
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

const adviceFor = (kind: ModelErrorKind, code: string | null, { name, keyVariable }: ErrorSource): string => {
  if (kind === 'auth') return `Set ${keyVariable} to a key that may use this model.`;
  if (kind === 'quotaExhausted') return `Add credit at ${name}, or use another key or model.`;
  if (code !== null && CERTIFICATE_CODES.test(code)) {
    return 'The certificate is not trusted: if a proxy re-signs it, name its CA in NODE_EXTRA_CA_CERTS.';
  }
  return '';
};

const describe = (kind: ModelErrorKind, signs: ErrorSigns, provider: ErrorSource): string => {
  const { status, code } = signs;
  const byCode = (status === null || status === 200) && code !== null ? connectionProblems[code] : undefined;
  const oneLine = (byCode ?? signs.sentence).replace(/\s+/g, ' ').trim().replace(/\.$/, '').slice(0, 300);
  const mark = status !== null && status !== 200 ? ` (${status})` : code === null ? '' : ` (${code})`;
  const advice = adviceFor(kind, code, provider);
  const said = oneLine === '' ? '' : `: ${oneLine}`;
  return `${explain(kind, provider)}${mark}${said}${advice === '' ? '' : `. ${advice}`}`;
};

/** The error in the machine's words. `now` in milliseconds since 1970, for a retry-after that is a date. */
export const classify = (error: unknown, provider: ErrorSource, now: number): ModelError => {
  const signs = readSigns(error);
  const { kind, retryable } = kindOf(signs);
  const untrusted = signs.code !== null && CERTIFICATE_CODES.test(signs.code);
  return {
    kind,
    message: describe(kind, signs, provider),
    retryable: retryable && !untrusted,
    retryAfterMs: readRetryAfter(signs, now),
  };
};
