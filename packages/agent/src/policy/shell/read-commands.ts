import { type Cursor, type Findings, Unclear } from './cursor.js';
import { readList } from './read-statements.js';

/** The commands that bash would run for a text, or why they can't be determined. */
export type ShellReading =
  | (Findings & { readonly kind: 'read' })
  | { readonly kind: 'unclear'; readonly why: string };

/** Reads a whole text as bash does. No text makes it throw. */
export const readCommands = (text: string): ShellReading => {
  const findings: Findings = { commands: [], functions: [], evaluates: false, quotesSubstitution: false };
  const cursor: Cursor = { text, at: 0, limit: text.length, depth: 0, pending: [], findings, readList };
  try {
    readList(cursor, []);
  } catch (error) {
    if (error instanceof Unclear) return { kind: 'unclear', why: error.message };
    throw error;
  }
  if (cursor.pending.length > 0) return { kind: 'unclear', why: 'a here-document has no body' };
  return { kind: 'read', ...findings };
};
