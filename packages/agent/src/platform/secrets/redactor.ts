import { createFinder, type Finder, type FoundText, type SearchText } from './find-texts.js';
import { formsOf } from './secret-forms.js';
import type { SecretValue } from './secret-variables.js';

/**
 * Replaces the values of secrets in the output of tools.
 *
 * 1. Without secrets, texts pass unchanged and nothing is searched.
 * 2. A streamed text is passed on only up to where a secret may begin.
 * 3. The placeholder names the variable: `[secret:$NAME]`.
 */

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

const placeholderOf = (name: string): string => `[secret:$${name}]`;

const replaced = (text: string, found: readonly FoundText[]): string => {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, name } of found) {
    parts.push(text.slice(from, start), placeholderOf(name));
    from = end;
  }
  parts.push(text.slice(from));
  return parts.join('');
};

/** Index from which the text must be held back, since a secret or a longer form of one may begin there. */
const heldFrom = (text: string, found: readonly FoundText[], finder: Finder): number => {
  const from = text.length - finder.pendingAt(text);
  const cut = found.find(({ start, end }) => start < from && from < end);
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
      const found = finder.find(text);
      const until = heldFrom(text, found, finder);
      held = text.slice(until);
      return replaced(
        text.slice(0, until),
        found.filter(({ end }) => end <= until),
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
    for (const text of formsOf(value)) if (!byText.has(text)) byText.set(text, { text, name });
  return [...byText.values()];
};

export const createRedactor = (secrets: readonly SecretValue[]): Redactor => {
  const sought = soughtIn(secrets);
  const finder = createFinder(sought);
  const placeholders = [...new Set(sought.map(({ name }) => placeholderOf(name)))];
  const redact = (text: string): Redacted => {
    const found = finder.find(text);
    if (found.length === 0) return { text, count: 0, names: [] };
    const names = [...new Set(found.map(({ name }) => name))];
    return { text: replaced(text, found), count: found.length, names };
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
