/**
 * All that keeps the secrets of the environment and of the settings away from the model and from
 * commands.
 *
 * | part | question | uses |
 * |---|---|---|
 * | `createRedactor` | which secrets does this text hold? It replaces them | the next two |
 * | search for many texts | where does one of many texts stand? Knows nothing of secrets | |
 * | forms of a secret | how may a value appear in a text? Escaped, encoded, alone | |
 * | `findSecrets`, `secretVariables` | which variables are secret, by name or by value? | |
 * | `hideEnvironment` | what do other processes see of our environment? | `secretVariables` |
 *
 * The redactor: without secrets, texts pass unchanged and nothing is searched. A streamed text is
 * passed on only up to where a secret may begin. The placeholder names the variable, or the place
 * in the settings: `[secret:$NAME]`.
 */

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { keyVariables } from '../models/provider-table.js';
import type { ProcessEnvironment } from '../platform/environment.js';

export type Redacted = {
  readonly text: string;
  /** How many values were replaced. */
  readonly count: number;
  /** Names of the variables, or places in the settings, that hold them, without duplicates. */
  readonly names: readonly string[];
};

/** Redacts a text that comes in pieces. */
export type RedactedStream = {
  /** Adds a piece and returns the text that may be passed on. */
  add(piece: string): string;
  /** Returns the rest at the end of the text. */
  end(): string;
};

export type Redactor = {
  /** There are no secrets to replace. */
  readonly isIdle: boolean;
  redact(text: string): Redacted;
  /** Like `redact`, but returns the text only. */
  clean(text: string): string;
  stream(): RedactedStream;
  /** The first of our placeholders in a text; null if there is none. */
  placeholderIn(text: string): string | null;
};

export const createRedactor = (secrets: readonly SecretValue[]): Redactor => {
  const sought = soughtIn(secrets);
  const finder = createFinder(sought);
  const placeholders = [...new Set(sought.map(({ name }) => formatPlaceholder(name)))];
  const redact = (text: string): Redacted => {
    const matches = finder.find(text);
    if (matches.length === 0) return { text, count: 0, names: [] };
    const names = [...new Set(matches.map(({ name }) => name))];
    return { text: replaceIn(text, matches), count: matches.length, names };
  };
  return {
    isIdle: sought.length === 0,
    redact,
    clean: (text) => redact(text).text,
    stream: () => createStream(finder),
    placeholderIn: (text) =>
      text.includes(PLACEHOLDER_START)
        ? (placeholders.find((one) => text.includes(one)) ?? null)
        : null,
  };
};

const PLACEHOLDER_START = '[secret:$';
const formatPlaceholder = (name: string): string => `${PLACEHOLDER_START}${name}]`;

const replaceIn = (text: string, matches: readonly FoundText[]): string => {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, name } of matches) {
    parts.push(text.slice(from, start), formatPlaceholder(name));
    from = end;
  }
  parts.push(text.slice(from));
  return parts.join('');
};

/**
 * Index from which the text is held back: a secret may begin there whose end has not come yet. A
 * match that crosses this index is replaced now, as a whole; then only the text behind it is held.
 * With the secrets `key-a` and `aab`, `aa` in `key-aa` could begin the second one. But `key-a` ends
 * within it, so only the last `a` is held.
 */
const heldFrom = (text: string, matches: readonly FoundText[], finder: Finder): number => {
  let heldAt = text.length - finder.pendingAt(text);
  for (const { start, end } of matches)
    if (start < heldAt && heldAt < end) heldAt = text.length - finder.pendingAt(text.slice(end));
  return heldAt;
};

/** First character of a piece before which output was left out (progress of a long command). */
const GAP = '…';
/**
 * `createProgress` (command/output.ts) sends longer ones. A shorter piece with this first character
 * is ordinary output.
 */
const BEHIND_GAP_MIN = 4_096;

const createStream = (finder: Finder): RedactedStream => {
  let held = '';
  return {
    add(piece) {
      const isBehindGap = piece.startsWith(GAP) && piece.length > BEHIND_GAP_MIN;
      // Drop the held text: it may be half of a secret whose other half was left out.
      const text = isBehindGap ? piece : held + piece;
      const matches = finder.find(text);
      const until = heldFrom(text, matches, finder);
      held = text.slice(until);
      return replaceIn(
        text.slice(0, until),
        matches.filter(({ end }) => end <= until),
      );
    },
    end() {
      const rest = held;
      held = '';
      return replaceIn(rest, finder.find(rest));
    },
  };
};

const soughtIn = (secrets: readonly SecretValue[]): readonly SearchText[] => {
  const byText = new Map<string, SearchText>();
  for (const { name, value } of secrets)
    for (const text of secretForms(value)) if (!byText.has(text)) byText.set(text, { text, name });
  return [...byText.values()];
};

/** The note that follows a text in which values were replaced. */
export const redactionNote = ({ count, names }: Pick<Redacted, 'count' | 'names'>): string => {
  const values = count === 1 ? '1 secret value' : `${count} secret values`;
  return `[${values} replaced: ${names.map((name) => `$${name}`).join(', ')}]`;
};

// ---- Search for many texts ----

/*
 * Finds many texts in a longer one in a single pass (Wu-Manber search with blocks of two
 * characters).
 *
 * 1. The time is linear in the length of the text; more sought texts make it a little longer.
 * 2. Of several matches at one place the longest counts. The search continues behind a match.
 */

type SearchText = { readonly text: string; readonly name: string };
type FoundText = { readonly start: number; readonly end: number; readonly name: string };

type Finder = {
  /** In the order of the text, never overlapping. */
  find(text: string): readonly FoundText[];
  /** Number of characters at the end of a text that may begin a sought text. */
  pendingAt(text: string): number;
};

const BLOCKS = 1 << 14;

/** Table index of the two characters before `end`. */
const blockAt = (text: string, end: number): number =>
  ((text.charCodeAt(end - 2) * 131) ^ text.charCodeAt(end - 1)) & (BLOCKS - 1);

type Tables = {
  /** Length of the shortest sought text. */
  readonly shortest: number;
  /** By block: how far the search may move on; 0: the first `shortest` characters may end here. */
  readonly shifts: Uint16Array;
  /** The sought texts by the block at which their first `shortest` characters end. */
  readonly ending: Map<number, SearchText[]>;
};

const buildTables = (sought: readonly SearchText[]): Tables => {
  const shortest = Math.min(...sought.map(({ text }) => text.length));
  const shifts = new Uint16Array(BLOCKS).fill(shortest - 1);
  const ending = new Map<number, SearchText[]>();
  for (const one of sought) {
    for (let end = 2; end <= shortest; end++) {
      const block = blockAt(one.text, end);
      shifts[block] = Math.min(shifts[block] ?? 0, shortest - end);
    }
    const last = blockAt(one.text, shortest);
    ending.set(last, [...(ending.get(last) ?? []), one]);
  }
  for (const all of ending.values()) all.sort((one, other) => other.text.length - one.text.length);
  return { shortest, shifts, ending };
};

const findIn = (text: string, { shortest, shifts, ending }: Tables): readonly FoundText[] => {
  const matches: FoundText[] = [];
  let end = shortest;
  while (end <= text.length) {
    const block = blockAt(text, end);
    const shift = shifts[block] ?? 1;
    if (shift > 0) {
      end += shift;
      continue;
    }
    const start = end - shortest;
    const hit = ending.get(block)?.find((one) => text.startsWith(one.text, start));
    if (hit === undefined) end++;
    else {
      matches.push({ start, end: start + hit.text.length, name: hit.name });
      end = start + hit.text.length + shortest;
    }
  }
  return matches;
};

const NOTHING: Finder = { find: () => [], pendingAt: () => 0 };

/** Every sought text must have at least two characters. */
const createFinder = (sought: readonly SearchText[]): Finder => {
  if (sought.length === 0) return NOTHING;
  const tables = buildTables(sought);
  const longest = Math.max(...sought.map(({ text }) => text.length));
  const firsts = new Set(sought.map(({ text }) => text.charAt(0)));
  return {
    find: (text) => findIn(text, tables),
    pendingAt(text) {
      for (let start = Math.max(0, text.length - longest + 1); start < text.length; start++) {
        if (!firsts.has(text.charAt(start))) continue;
        const rest = text.slice(start);
        if (sought.some((one) => one.text.startsWith(rest))) return rest.length;
      }
      return 0;
    },
  };
};

// ---- The forms of a secret ----

/*
 * The forms in which a secret appears in texts: verbatim, escaped and encoded.
 *
 * 1. Values that are too short or too plain are not searched: `true`, `1234`, a word or a path
 *    would be replaced everywhere.
 * 2. Covers forms that occur by accident: JSON, URLs, base64, hex. It does not stop someone who
 *    hides a secret on purpose.
 */

const LENGTH_MIN = 8;
const DISTINCT_MIN = 5;
/** Plain words and numbers are ordinary text unless they have at least this many characters. */
const PLAIN_LENGTH_MIN = 20;
/** Line lengths of `base64` and `openssl`. */
const LINE_LENGTHS = [76, 64];
/** Shorter parts of a secret are not searched, unless the secret itself is shorter. */
const PIECE_MIN = 16;

/** An ordinary word, possibly followed by a short number. */
const PLAIN_WORD = /^(?:[A-Z]+|[A-Za-z][a-z]*(?:[A-Z][a-z]{2,})*)?\d{0,4}$/;

/** Whether a value can be searched for: it is long enough and not ordinary text. */
export const isDistinctive = (value: string): boolean => {
  if (value.length < LENGTH_MIN || new Set(value).size < DISTINCT_MIN) return false;
  const isNumber = /^[\d\s.,:/-]+$/.test(value);
  const isPlain = isNumber || value.split(/[-_./:\s]+/).every((word) => PLAIN_WORD.test(word));
  return !isPlain || (value.length >= PLAIN_LENGTH_MIN && !value.includes('/'));
};

/**
 * Base64 forms of a value at each offset within three bytes, without the characters that
 * neighbouring bytes influence.
 */
const base64Forms = (value: string): readonly string[] => {
  const bytes = Buffer.from(value);
  const whole = bytes.toString('base64');
  const inside = [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const start = before === 0 ? 0 : before + 1;
    const isWhole = (before + bytes.length) % 3 === 0;
    return encoded.slice(start, isWhole ? undefined : -1);
  });
  const lines = LINE_LENGTHS.flatMap((length) =>
    whole.length <= length ? [] : (whole.match(new RegExp(`.{1,${length}}`, 'g')) ?? []),
  );
  const standard = [whole, whole.replace(/=+$/, ''), ...inside, ...lines];
  return [...standard, ...standard.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
};

const escapedForms = (value: string): readonly string[] => {
  const url = encodeURIComponent(value);
  const json = JSON.stringify(value).slice(1, -1);
  const form = new URLSearchParams([['', value]]).toString().slice(1);
  return [
    url,
    url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    form,
    json,
    json.replaceAll('/', '\\/'),
  ];
};

/** The lines of a value such as a private key, which may appear indented, quoted or in part. */
const valueLines = (value: string): readonly string[] =>
  value.includes('\n') ? value.split(/\r?\n/).map((line) => line.trim()) : [];

/** All forms to search for; none if the value is not distinctive. */
const secretForms = (value: string): readonly string[] => {
  if (!isDistinctive(value)) return [];
  const hex = Buffer.from(value).toString('hex');
  const written = [value, ...escapedForms(value), hex, hex.toUpperCase()];
  const pieces = [...base64Forms(value), ...valueLines(value)].filter(
    (piece) =>
      piece.length >= Math.min(PIECE_MIN, value.length) &&
      !/^-----/.test(piece) &&
      isDistinctive(piece),
  );
  return [...new Set([...written, ...pieces])];
};

// ---- Variables that hold secrets ----

/*
 * Recognizes environment variables that hold secrets.
 *
 * 1. The keys of the providers in packages/agent/src/models/provider-table.ts are included.
 * 2. Others are recognized by name (GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD) or by value:
 *    an address with a password, a token of a known form.
 */

/** Variables that only lead to a secret: a socket, a file, an id. Their values are not redacted. */
const ONLY_LEADS_TO_SECRET: ReadonlySet<string> = new Set([
  ...'AWS_ACCESS_KEY_ID AZURE_CLIENT_ID GOOGLE_APPLICATION_CREDENTIALS BOTO_CONFIG'.split(' '),
  ...'CLOUDSDK_CONFIG KUBECONFIG NETRC SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO'.split(' '),
  ...'GNOME_KEYRING_CONTROL KRB5CCNAME XAUTHORITY'.split(' '),
]);

/** Names that no pattern covers, which hold a secret or give access to one. */
const NAMED: ReadonlySet<string> = new Set([
  ...keyVariables,
  ...ONLY_LEADS_TO_SECRET,
  ...'DOCKER_AUTH_CONFIG COMPOSER_AUTH MYSQL_PWD REDISCLI_AUTH SSHPASS SENTRY_DSN'.split(' '),
  ...'SLACK_WEBHOOK_URL DISCORD_WEBHOOK_URL OTEL_EXPORTER_OTLP_HEADERS'.split(' '),
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
]);

const SECRET_WORD = new RegExp(
  '(?:^|_)(?:' +
    '[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY)S?|' +
    '(?:ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER|ACCOUNT|AUTH|LICENSE|SSH|DEPLOY|ADMIN|' +
    'SERVICE)?KEY|' +
    'PASS|PWD|PAT|JWT|BEARER|COOKIE|AUTH)(?:_|$)',
);
/**
 * Endings of names that describe a secret instead of holding one: its length, its file, its limit.
 */
const ABOUT = new RegExp(
  '(?:_(?:FILE|FILES|PATH|DIR|FOLDER|HOME|LENGTH|SIZE|LIMIT|MAX|MIN|COUNT|TTL|EXPIRY|EXPIRES|' +
    'EXPIRES_IN|TIMEOUT|NAME|TYPE|METHOD|URL|URI|HOST|PORT|ENABLED|MODE|PROVIDER|DOMAIN|AUDIENCE|' +
    'ISSUER|SOCK|REQUIRE|PROMPT|ALGORITHM|REGION|VERSION|ENDPOINT|HELPER)|' +
    '(?:^|_)(?:MAX|MIN|NUM|TOTAL)_TOKENS?)$',
);
/** Names with a secret word that mean something else. */
const HARMLESS = new RegExp(
  '^(?:PWD|CACHE_KEY|PRIMARY_KEY|SORT_KEY|GPG_KEY|(?:.*_)?PUBLIC_KEY|MAX_.*_TOKENS|' +
    'XDG_ACTIVATION_TOKEN|PASSWORD_STORE_.*)$',
);
/**
 * npm's credentials, named after a registry's address: `npm_config_//registry.example/:_authToken`.
 */
const NPM_AUTH = /^npm_config_.*(?:_auth|_authtoken|_password|:_\w+)$/i;

const KNOWN_FORM = new RegExp(
  '^(?:sk-[\\w-]{16,}|gh[opusr]_\\w{20,}|github_pat_\\w{20,}|glpat-[\\w-]{16,}|' +
    'xox[abeoprs]-[\\w-]{10,}|AKIA[A-Z0-9]{16}|AIza[\\w-]{30,}|npm_\\w{20,}|hf_\\w{20,}|' +
    'pypi-[\\w-]{20,}|dop_v1_\\w{32,}|[rs]k_(?:live|test)_\\w{16,}|' +
    'SG\\.[\\w-]{16,}\\.[\\w-]{16,}|eyJ[\\w-]{10,}\\.[\\w-]{10,}\\.[\\w-]*|' +
    '-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*)$',
);

/** Proxies, which programs need to reach anything. Their passwords are still redacted in output. */
const PROXY = /^(?:https?|all|ftp|no)_proxy$/i;

/**
 * A user without a password that is at least so long is a token, in an address of the web:
 * `https://TOKEN@host`, `https://TOKEN:@host`, `https://TOKEN:x-oauth-basic@github.com`.
 */
const TOKEN_LENGTH = 16;
const NO_PASSWORDS = ['', 'x-oauth-basic'];
const USER = /(https?)?:\/\/([^\s/:@]*)(?::([^\s/@]*))?@/gi;

/** What follows an address: `?api_key=TOKEN&page=2`, or `#access_token=TOKEN`. */
const QUERY = /:\/\/[^\s"'?#]*[?#]([^\s"']+)/g;
const PARAMETER = /([^=?&#]+)=([^&#]+)/g;

/**
 * Passwords and tokens in the addresses of a variable: those of a user, and in a query. A proxy's
 * may stand without a scheme.
 */
export const passwordsIn = (name: string, value: string): readonly string[] => {
  const text = PROXY.test(name) ? value.replace(/^(?!\w+:\/\/)/, '://') : value;
  const ofUsers = [...text.matchAll(USER)].flatMap(([, web, user = '', password = '']) => {
    const isAlone = NO_PASSWORDS.includes(password);
    const isToken = web !== undefined && isAlone && user.length >= TOKEN_LENGTH;
    return [password, isToken || KNOWN_FORM.test(user) ? user : ''].filter((part) => part !== '');
  });
  const inQueries = [...text.matchAll(QUERY)].flatMap(([, query = '']) =>
    [...query.matchAll(PARAMETER)].flatMap(([, parameter = '', part = '']) => {
      const isToken =
        isSecretName(decoded(parameter).replace(/\W/g, '_')) || KNOWN_FORM.test(decoded(part));
      return isToken ? part : [];
    }),
  );
  return [...ofUsers, ...inQueries];
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not a valid escape: keep the text
  }
};

const isSecretName = (name: string): boolean => {
  if (NAMED.has(name) || NPM_AUTH.test(name)) return true;
  const upper = name.toUpperCase();
  return SECRET_WORD.test(upper) && !ABOUT.test(upper) && !HARMLESS.test(upper);
};

const isSecret = (name: string, value: string): boolean =>
  isSecretName(name) || KNOWN_FORM.test(value.trim()) || passwordsIn(name, value).length > 0;

/**
 * Names of the variables that a command must not inherit: keys, tokens, passwords, and sockets of
 * agents that hold them. Proxies with a password are not among them, since nothing can be reached
 * without them.
 */
export const secretVariables = (environment: ProcessEnvironment): readonly string[] =>
  Object.entries(environment)
    .filter(([name, value]) => value !== undefined && !PROXY.test(name) && isSecret(name, value))
    .map(([name]) => name);

export type SecretValue = {
  /** The variable that holds it, or the place in the settings: `docs.headers.Authorization`. */
  readonly name: string;
  readonly value: string;
};

/** Values that must not be shown; of an address only its passwords and tokens. */
export const secretValues = (environment: ProcessEnvironment): readonly SecretValue[] =>
  Object.entries(environment).flatMap(([name, whole]): readonly SecretValue[] => {
    const value = whole?.trim() ?? '';
    if (value === '' || ONLY_LEADS_TO_SECRET.has(name) || !isSecret(name, value)) return [];
    const passwords = passwordsIn(name, value);
    const isWhole = passwords.length === 0 || (isSecretName(name) && !/^[^\s/]+:\/\//.test(value));
    const values = [
      ...(isWhole ? [value] : []),
      ...passwords.flatMap((one) => [one, decoded(one)]),
    ];
    return [...new Set(values)].map((one) => ({ name, value: one }));
  });

/** The secrets of an environment, and `known` ones, by their places in the settings. */
export const findSecrets = (
  environment: ProcessEnvironment,
  known: Readonly<Record<string, string>>,
): readonly SecretValue[] => [
  ...Object.entries(known).map(([name, value]) => ({ name, value })),
  ...secretValues(environment),
];

// ---- Secrets in /proc/PID/environ ----

/*
 * Removes secrets from `/proc/PID/environ`.
 *
 * The kernel shows there the environment that a process was started with, whatever the process has
 * changed since. Any process of the same user may read it, so a command without a sandbox could
 * find the keys that its own environment lacks. So the bytes in our own memory are overwritten,
 * after the variables were copied.
 *
 * 1. `process.env` keeps every value.
 * 2. Nothing is written unless the memory holds exactly the expected bytes.
 * 3. It is best effort: on other systems, or without /proc, nothing happens. It does not protect
 *    against processes that may read our memory (root, or a debugger if the system allows one).
 */

/** Index in /proc/self/stat, counted after the name, of the environment's address (field 50). */
const ENVIRONMENT_START = 47;

type Entry = { readonly name: string; readonly bytes: Buffer; readonly at: number };

const parseEntries = (block: Buffer): readonly Entry[] => {
  const entries: Entry[] = [];
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const stop = end < 0 ? block.length : end;
    const bytes = block.subarray(at, stop);
    const sign = bytes.indexOf('=');
    if (sign > 0) entries.push({ name: bytes.toString('latin1', 0, sign), bytes, at });
    at = stop + 1;
  }
  return entries;
};

/** Moves a variable to new memory, which the C library allocates for every value that is set. */
const moveAway = (name: string, environment: NodeJS.ProcessEnv): void => {
  const value = environment[name];
  if (value !== undefined) environment[name] = value;
};

const overwrite = (memory: number, address: number, { name, bytes }: Entry): void => {
  const there = Buffer.alloc(bytes.length);
  readSync(memory, there, 0, there.length, address);
  if (!there.equals(bytes)) return; // other bytes than expected are never written over
  const from = name.length + 1;
  const length = bytes.length - from;
  writeSync(memory, Buffer.alloc(length), 0, length, address + from);
};

/** Call it once, before anything keeps references to the environment. Never throws. */
export const hideEnvironment = (): void => {
  if (process.platform !== 'linux') return;
  // also includes proxies with a password
  const held = secretValues(process.env).map(({ name }) => name);
  const names = new Set([...secretVariables(process.env), ...held]);
  if (names.size === 0) return;
  let memory: number | null = null;
  try {
    const status = readFileSync('/proc/self/stat', 'latin1');
    const start = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[ENVIRONMENT_START]);
    const entries = parseEntries(readFileSync('/proc/self/environ')).filter(({ name }) =>
      names.has(name),
    );
    memory = openSync('/proc/self/mem', 'r+');
    for (const entry of entries) {
      const value = process.env[entry.name];
      moveAway(entry.name, process.env);
      overwrite(memory, start + entry.at, entry);
      // If the C library did not move it, restore it from our copy.
      if (value !== undefined && process.env[entry.name] !== value) process.env[entry.name] = value;
    }
  } catch {
    // Without /proc the environment stays as it was; after a later fault, a part of it.
  } finally {
    if (memory !== null) closeSync(memory);
  }
};
