/**
 * Replaces the values of secrets in the output of tools.
 *
 * 1. Without secrets, texts pass unchanged and nothing is searched.
 * 2. A streamed text is passed on only up to where a secret may begin.
 * 3. The placeholder names the variable: `[secret:$NAME]`.
 */

import type { SecretValue } from './secret-variables.js';

export type Redacted = {
  readonly text: string;
  /** How many values were replaced. */
  readonly count: number;
  /** Names of the variables that hold them, without duplicates. */
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
  readonly isIdle: boolean;
  redact(text: string): Redacted;
  /** Like `redact`, but returns the text only. */
  clean(text: string): string;
  stream(): RedactedStream;
  /** The first of our placeholders in a text; null if there is none. */
  placeholderIn(text: string): string | null;
};

const formatPlaceholder = (name: string): string => `[secret:$${name}]`;

const replaced = (text: string, matches: readonly FoundText[]): string => {
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
 * Index from which the text must be held back, since a secret or a longer form of one may begin
 * there.
 */
const heldFrom = (text: string, matches: readonly FoundText[], finder: Finder): number => {
  const from = text.length - finder.pendingAt(text);
  const cut = matches.find(({ start, end }) => start < from && from < end);
  return cut === undefined ? from : text.length - finder.pendingAt(text.slice(cut.end));
};

/** First character of a piece before which output was left out. */
const GAP = '…';

const createStream = (finder: Finder): RedactedStream => {
  let held = '';
  const give = (text: string): string => replaced(text, finder.find(text));
  return {
    add(piece) {
      // Drop the held text: it may be half of a secret whose other half was left out.
      const text = piece.startsWith(GAP) ? piece : held + piece;
      const matches = finder.find(text);
      const until = heldFrom(text, matches, finder);
      held = text.slice(until);
      return replaced(
        text.slice(0, until),
        matches.filter(({ end }) => end <= until),
      );
    },
    end() {
      const rest = held;
      held = '';
      return give(rest);
    },
  };
};

const soughtIn = (secrets: readonly SecretValue[]): readonly SearchText[] => {
  const byText = new Map<string, SearchText>();
  for (const { name, value } of secrets)
    for (const text of secretForms(value)) if (!byText.has(text)) byText.set(text, { text, name });
  return [...byText.values()];
};

export const createRedactor = (secrets: readonly SecretValue[]): Redactor => {
  const sought = soughtIn(secrets);
  const finder = createFinder(sought);
  const placeholders = [...new Set(sought.map(({ name }) => formatPlaceholder(name)))];
  const redact = (text: string): Redacted => {
    const matches = finder.find(text);
    if (matches.length === 0) return { text, count: 0, names: [] };
    const names = [...new Set(matches.map(({ name }) => name))];
    return { text: replaced(text, matches), count: matches.length, names };
  };
  return {
    isIdle: sought.length === 0,
    redact,
    clean: (text) => redact(text).text,
    stream: () => createStream(finder),
    placeholderIn: (text) =>
      text.includes('[secret:$') ? (placeholders.find((one) => text.includes(one)) ?? null) : null,
  };
};

/** The note that follows a text in which values were replaced. */
export const redactionNote = ({ count, names }: Pick<Redacted, 'count' | 'names'>): string => {
  const values = count === 1 ? '1 secret value' : `${count} secret values`;
  return `[${values} replaced: ${names.map((name) => `$${name}`).join(', ')}]`;
};

/**
 * Finds many texts in a longer one in a single pass (Wu-Manber search with blocks of two
 * characters).
 *
 * 1. The time is linear in the length of the text, and independent of the number of sought texts.
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
  readonly shortest: number;
  readonly shifts: Uint16Array;
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

/**
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
/** Shorter parts of a secret are not searched. */
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

const escaped = (value: string): readonly string[] => {
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
  const written = [value, ...escaped(value), hex, hex.toUpperCase()];
  const pieces = [...base64Forms(value), ...valueLines(value)].filter(
    (piece) =>
      piece.length >= Math.min(PIECE_MIN, value.length) &&
      !/^-----/.test(piece) &&
      isDistinctive(piece),
  );
  return [...new Set([...written, ...pieces])];
};
