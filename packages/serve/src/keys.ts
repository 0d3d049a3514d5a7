/**
 * The keys of a node: who may use it, and how much. Each has a name, a token that the client sends,
 * and limits.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import * as v from 'valibot';
import { ApiFault } from './api-fault.js';

export type KeyLimits = {
  /** Sessions that are open at once. */
  readonly sessions: number;
  /** Bytes of the body of one request. */
  readonly inputBytes: number;
  readonly requestsPerMinute: number;
  /** Streams of events that are read at once. */
  readonly streams: number;
};

export const defaultKeyLimits: KeyLimits = {
  sessions: 20,
  inputBytes: 16 * 1024 * 1024,
  requestsPerMinute: 600,
  streams: 100,
};

/** The body of an input becomes one line of a journal, in which a character may take six bytes. */
const INPUT_BYTES_MAX = 48 * 1024 * 1024;
/** A shorter token could be guessed. */
const TOKEN_LENGTH_MIN = 16;

export type ServeKey = {
  readonly name: string;
  /** sha256 of the token: the text itself is not stored. */
  readonly digest: Buffer;
  readonly limits: KeyLimits;
  /**
   * `yes`: its holder is the user whose sessions these are, and may change settings and limits, as
   * for a detached session. Absent: a client, for whom the operator of the node has chosen them.
   */
  readonly isOwner?: 'yes';
};

const wholeNumber = (most: number) =>
  v.pipe(
    v.number(),
    v.integer('must be a whole number'),
    v.minValue(1, 'must be at least 1'),
    v.maxValue(most, `must be at most ${most}`),
  );

const token = v.pipe(
  v.string(),
  v.regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces'),
  v.minLength(TOKEN_LENGTH_MIN, `must have at least ${TOKEN_LENGTH_MIN} characters`),
);

const keySchema = v.strictObject({
  name: v.pipe(
    v.string(),
    v.regex(
      /^[a-z0-9][a-z0-9._-]{0,62}$/i,
      'must have 1 to 63 letters, digits, dots, underscores or hyphens',
    ),
  ),
  token,
  sessions: v.optional(wholeNumber(100_000), defaultKeyLimits.sessions),
  inputBytes: v.optional(wholeNumber(INPUT_BYTES_MAX), defaultKeyLimits.inputBytes),
  requestsPerMinute: v.optional(wholeNumber(1_000_000), defaultKeyLimits.requestsPerMinute),
  streams: v.optional(wholeNumber(100_000), defaultKeyLimits.streams),
});
const fileSchema = v.strictObject({
  keys: v.pipe(v.array(keySchema), v.minLength(1, 'must have at least one key')),
});

const tokenDigest = (text: string): Buffer => createHash('sha256').update(text).digest();

export type ReadKeys =
  | { readonly kind: 'ok'; readonly keys: readonly ServeKey[] }
  /** `why` never repeats a token. */
  | { readonly kind: 'invalid'; readonly why: string };

const invalid = (why: string): ReadKeys => ({ kind: 'invalid', why });

const firstIssue = (issues: readonly v.BaseIssue<unknown>[]): string => {
  const [issue] = issues;
  const path = issue?.path?.map(({ key }) => String(key)).join('.') ?? '';
  // The default texts repeat what was received, which may be a token.
  const message = issue?.message.replace(/ but received .*$/s, '') ?? 'it is invalid';
  return `${path === '' ? 'the file' : path}: ${message}`;
};

/** Reads the text of a file of keys. */
export const readKeys = (text: string): ReadKeys => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return invalid('it is not JSON'); // the parser's message would show a part of the file
  }
  const parsed = v.safeParse(fileSchema, json);
  if (!parsed.success) return invalid(firstIssue(parsed.issues));
  const keys = parsed.output.keys.map(({ name, token: text, ...limits }) => ({
    name,
    digest: tokenDigest(text),
    limits,
  }));
  const twice = keys.find(
    ({ name }, index) => keys.findIndex((other) => other.name === name) !== index,
  );
  if (twice !== undefined)
    return invalid(`two keys have the name ${twice.name}: their sessions would be shared`);
  const same = keys.find(
    ({ digest }, index) => keys.findIndex((other) => other.digest.equals(digest)) !== index,
  );
  return same === undefined
    ? { kind: 'ok', keys }
    : invalid(`the key ${same.name} has the token of another key`);
};

/** The only key of a node whose token is in a variable. */
export const keyOfToken = (text: string): ReadKeys => {
  const parsed = v.safeParse(token, text);
  if (!parsed.success)
    return invalid(`the token ${firstIssue(parsed.issues).replace(/^the file: /, '')}`);
  return {
    kind: 'ok',
    keys: [{ name: 'default', digest: tokenDigest(text), limits: defaultKeyLimits }],
  };
};

/** The key of an `Authorization: Bearer` header. Takes as long for every token, right or wrong. */
export const findKey = (
  keys: readonly ServeKey[],
  authorization: string | undefined,
): ServeKey | null => {
  const digest = tokenDigest(/^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '');
  let match: ServeKey | null = null;
  for (const key of keys) if (timingSafeEqual(digest, key.digest)) match = key;
  return match;
};

type Use = {
  /** Requests that may be sent now. The number grows with time, up to those of a minute. */
  requests: number;
  /** When `requests` was computed. */
  at: number;
  /** Sessions that are being created. */
  creating: number;
  streams: number;
};

const MINUTE_MS = 60_000;

/** Current use of each key: requests, sessions, streams. */
export class KeyUse {
  readonly #uses = new Map<string, Use>();
  readonly #now: () => number;

  /** `now`: a clock in milliseconds that is never set. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts a request. Returns the seconds to wait if there are too many. */
  countRequest(key: ServeKey): number {
    const use = this.#getUse(key);
    const perMs = key.limits.requestsPerMinute / MINUTE_MS;
    const now = this.#now();
    use.requests = Math.min(key.limits.requestsPerMinute, use.requests + (now - use.at) * perMs);
    use.at = now;
    if (use.requests < 1) return Math.max(1, Math.ceil((1 - use.requests) / perMs / 1_000));
    use.requests -= 1;
    return 0;
  }

  /**
   * Runs `work`, which opens a session; throws if the key has too many. `open`: its open sessions.
   * Sessions that are still being opened count too.
   */
  async withinSessionLimit<T>(key: ServeKey, open: number, work: () => Promise<T>): Promise<T> {
    const use = this.#getUse(key);
    const { sessions } = key.limits;
    if (open + use.creating >= sessions)
      throw new ApiFault(
        'tooManySessions',
        `The key ${key.name} has ${sessions} sessions open, its limit. Close one: POST ` +
          '/v1/sessions/ID/close.',
      );
    use.creating += 1;
    try {
      return await work();
    } finally {
      use.creating -= 1;
    }
  }

  /** Counts a stream until the returned function is called. */
  openStream(key: ServeKey): () => void {
    const use = this.#getUse(key);
    if (use.streams >= key.limits.streams)
      throw new ApiFault(
        'tooManyStreams',
        `The key ${key.name} reads ${key.limits.streams} streams, its limit. End one of them ` +
          'first.',
      );
    use.streams += 1;
    let isOpen = true;
    return () => {
      if (isOpen) use.streams -= 1;
      isOpen = false;
    };
  }

  #getUse(key: ServeKey): Use {
    const use = this.#uses.get(key.name) ?? {
      requests: key.limits.requestsPerMinute,
      at: this.#now(),
      creating: 0,
      streams: 0,
    };
    this.#uses.set(key.name, use);
    return use;
  }
}
