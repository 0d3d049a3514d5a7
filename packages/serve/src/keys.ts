/**
 * The keys of a node: who may use it, where, and how much. Each has a name, a token that the client
 * sends, and limits. A key with folders or repositories that no other key has is a tenant.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { Preset } from '@pawl/agent/policy/presets';
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

/** Where sessions may work. */
export type KeyPlaces = {
  /** Paths of the folders in which, and below which, sessions may work. */
  readonly folders: readonly string[];
  /** Paths of the offered repositories by name. */
  readonly repositories: ReadonlyMap<string, string>;
  /** Paths that can't be used now, and that other keys do not see all the same. */
  readonly withheld?: readonly string[];
};

/** Names and values that a session carries, by which a list can be filtered. */
export type Labels = Readonly<Record<string, string>>;

/** What may be spent; absent: no limit. */
export type SpendingLimits = { readonly usd?: number; readonly tokens?: number };

export type ServeKey = {
  readonly name: string;
  /** sha256 of the token: the text itself is not stored. */
  readonly digest: Buffer;
  readonly limits: KeyLimits;
  /** Of this key alone: it is a tenant. Absent: it uses the places of the node. */
  readonly places?: KeyPlaces;
  /** The first is that of a session that names none. Absent: only the model of the node. */
  readonly models?: readonly string[];
  /** Absent: that of the node. */
  readonly preset?: Preset;
  readonly perSession?: SpendingLimits;
  /** Of a day in UTC, over all its sessions. */
  readonly perDay?: SpendingLimits;
  /** Each of its sessions carries them. */
  readonly labels?: Labels;
  /** `yes`: it may read the figures of the node, of all keys. */
  readonly isOperator?: 'yes';
  /**
   * `yes`: its holder is the user whose sessions these are, and may change settings and limits, as
   * for a detached session. Absent: a client, for whom the operator of the node has chosen them.
   */
  readonly isOwner?: 'yes';
};

/** Keys that change while a node runs. */
export type KeySource = {
  now(): readonly ServeKey[];
  /** Calls `listener` after each change. */
  onChange(listener: () => void): void;
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

export const amount = v.pipe(
  v.number(),
  v.finite('must be a number'),
  v.gtValue(0, 'must be above 0'),
);
export const count = wholeNumber(Number.MAX_SAFE_INTEGER);
const absolutePath = v.pipe(v.string(), v.regex(/^\//, 'must be an absolute path'));
const LABELS_MAX = 20;
/** A client names a repository by it, and worktrees begin with it. */
export const REPOSITORY_NAME = /^[\w][\w.-]{0,62}$/;
const PRESETS = ['plan', 'careful', 'ci', 'auto', 'full'] as const satisfies readonly Preset[];
/** Of a tenant: no answer of a user lets their sessions leave the sandbox or the workspace. */
const FIRM_PRESETS: readonly Preset[] = ['ci', 'plan'];

const plainName = v.pipe(
  v.string(),
  v.regex(
    /^[a-z0-9][a-z0-9._-]{0,62}$/i,
    'a name must have 1 to 63 letters, digits, dots, underscores or hyphens',
  ),
);

export const labelsSchema = v.pipe(
  v.record(
    plainName,
    v.pipe(
      v.string(),
      v.regex(/^[^,=\p{Cc}]{1,100}$/u, 'must have 1 to 100 characters, no , or ='),
    ),
  ),
  v.check((labels) => Object.keys(labels).length <= LABELS_MAX, `takes ${LABELS_MAX} at most`),
);

const keySchema = v.strictObject({
  name: plainName,
  token,
  sessions: v.optional(wholeNumber(100_000), defaultKeyLimits.sessions),
  inputBytes: v.optional(wholeNumber(INPUT_BYTES_MAX), defaultKeyLimits.inputBytes),
  requestsPerMinute: v.optional(wholeNumber(1_000_000), defaultKeyLimits.requestsPerMinute),
  streams: v.optional(wholeNumber(100_000), defaultKeyLimits.streams),
  folders: v.optional(v.array(absolutePath)),
  repositories: v.optional(
    v.record(
      v.pipe(v.string(), v.regex(REPOSITORY_NAME, 'is no name of a repository')),
      absolutePath,
    ),
  ),
  models: v.optional(v.pipe(v.array(v.string()), v.minLength(1, 'must name a model'))),
  preset: v.optional(v.picklist(PRESETS, `must be one of ${PRESETS.join(', ')}`)),
  usdPerSession: v.optional(amount),
  tokensPerSession: v.optional(count),
  usdPerDay: v.optional(amount),
  tokensPerDay: v.optional(count),
  labels: v.optional(labelsSchema),
  operator: v.optional(v.boolean()),
});
type WrittenKey = v.InferOutput<typeof keySchema>;
const fileSchema = v.strictObject({
  keys: v.pipe(v.array(keySchema), v.minLength(1, 'must have at least one key')),
});

const tokenDigest = (text: string): Buffer => createHash('sha256').update(text).digest();

export type ReadKeys =
  | { readonly kind: 'ok'; readonly keys: readonly ServeKey[] }
  /** `why` never repeats a token. */
  | { readonly kind: 'invalid'; readonly why: string };

const invalid = (why: string): ReadKeys => ({ kind: 'invalid', why });

/** The first wrong field and why. `whole`: the name of the value that is checked. */
export const firstIssue = (issues: readonly v.BaseIssue<unknown>[], whole: string): string => {
  const [issue] = issues;
  const path = issue?.path?.map(({ key }) => String(key)).join('.') ?? whole;
  // The default texts repeat what was received, which may be a token.
  const message = (issue?.message ?? 'it is invalid')
    .replace(/ but received .*$/s, '')
    .replace('Invalid key: Expected never', 'is no field here: remove it, or correct its name')
    .replace(/^Invalid key: Expected .*/, 'is missing')
    .replace('Invalid type: Expected', 'must be');
  return `${path}: ${message}`;
};

/** A name that stands twice in an object of the text, which is JSON; undefined without one. */
const findRepeated = (text: string): string | undefined => {
  const names: Set<string>[] = [];
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') names.push(new Set());
    else if (token === '}') names.pop();
    else if (name !== undefined) {
      const parsed: string = JSON.parse(name);
      if (names.at(-1)?.has(parsed)) return parsed;
      names.at(-1)?.add(parsed);
    }
  }
  return undefined;
};

/** The fields that have a value. */
export const definedFields = <T extends object>(
  fields: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T; // the same fields

const spendingLimits = (
  usd: number | undefined,
  tokens: number | undefined,
): SpendingLimits | undefined =>
  usd === undefined && tokens === undefined ? undefined : definedFields({ usd, tokens });

/** The rights of a key, without the fields that its file leaves out. */
const rightsIn = (written: WrittenKey): Partial<ServeKey> => {
  const { folders, repositories, models, labels, operator } = written;
  const isTenant = folders !== undefined || repositories !== undefined;
  const places = {
    folders: folders ?? [],
    repositories: new Map(Object.entries(repositories ?? {})),
  };
  return definedFields({
    places: isTenant ? places : undefined,
    models,
    preset: written.preset ?? (isTenant ? 'ci' : undefined),
    perSession: spendingLimits(written.usdPerSession, written.tokensPerSession),
    perDay: spendingLimits(written.usdPerDay, written.tokensPerDay),
    labels,
    isOperator: operator === true ? ('yes' as const) : undefined,
  });
};

/** Why a tenant can't have this preset; null if it can. */
const presetFault = ({ name, places, preset }: ServeKey): string | null =>
  places === undefined || preset === undefined || FIRM_PRESETS.includes(preset)
    ? null
    : `the key ${name} has places that other keys must not see, and with the preset ${preset} ` +
      'its holder may allow commands to leave the sandbox: choose ci or plan';

/** Reads the text of a file of keys. */
export const readKeys = (text: string): ReadKeys => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return invalid('it is not JSON'); // the parser's message would show a part of the file
  }
  const repeated = findRepeated(text);
  if (repeated !== undefined)
    return invalid(`the field ${repeated.slice(0, 50)} stands twice in one object: remove one`);
  const parsed = v.safeParse(fileSchema, json);
  if (!parsed.success) return invalid(firstIssue(parsed.issues, 'the file'));
  const keys = parsed.output.keys.map((written): ServeKey => {
    const { name, token: text, sessions, inputBytes, requestsPerMinute, streams } = written;
    const limits = { sessions, inputBytes, requestsPerMinute, streams };
    return { name, digest: tokenDigest(text), limits, ...rightsIn(written) };
  });
  const fault = keys.map(presetFault).find((one) => one !== null);
  if (fault !== undefined && fault !== null) return invalid(fault);
  const findTwice = (isSame: (one: ServeKey, other: ServeKey) => boolean) =>
    keys.find((key, index) => keys.slice(0, index).some((other) => isSame(key, other)));
  const twice = findTwice((one, other) => one.name === other.name);
  if (twice !== undefined)
    return invalid(`two keys have the name ${twice.name}: their sessions would be shared`);
  const same = findTwice((one, other) => one.digest.equals(other.digest));
  return same === undefined
    ? { kind: 'ok', keys }
    : invalid(`the key ${same.name} has the token of another key`);
};

/** The only key of a node whose token is in a variable. */
export const keyOfToken = (text: string): ReadKeys => {
  const parsed = v.safeParse(token, text);
  if (!parsed.success) return invalid(firstIssue(parsed.issues, 'the token'));
  return {
    kind: 'ok',
    keys: [
      { name: 'default', digest: tokenDigest(text), limits: defaultKeyLimits, isOperator: 'yes' },
    ],
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
    this.refuseSessions(key, open + use.creating + 1);
    use.creating += 1;
    try {
      return await work();
    } finally {
      use.creating -= 1;
    }
  }

  /** Throws if the key may not have so many sessions open. */
  refuseSessions({ name, limits: { sessions } }: ServeKey, open: number): void {
    if (open > sessions)
      throw new ApiFault(
        'tooManySessions',
        `The key ${name} has ${sessions} sessions open, its limit. Close one: POST ` +
          '/v1/sessions/ID/close.',
      );
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
