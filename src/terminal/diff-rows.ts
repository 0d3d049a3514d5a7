import { harmless, type Look, paint } from './print.js';
import { wrapText } from './width.js';

/** Rows of a diff, and how many more lines it has. */
export type DiffRows = { readonly rows: readonly string[]; readonly left: number };

type Line = { readonly number: number; readonly sign: '+' | '-' | ' '; readonly text: string };

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;

/** The lines of a unified diff with their numbers: in the new text, or in the old one where they are gone; null between hunks. */
const linesOf = (diff: string): readonly (Line | null)[] => {
  const lines: (Line | null)[] = [];
  let before = 0;
  let after = 0;
  for (const line of harmless(diff).trimEnd().split('\n')) {
    const hunk = HUNK.exec(line);
    if (hunk !== null) {
      if (lines.length > 0) lines.push(null);
      before = Number(hunk[1]);
      after = Number(hunk[2]);
    } else if (after === 0 && before === 0)
      continue; // the header
    else if (line.startsWith('+')) lines.push({ number: after++, sign: '+', text: line.slice(1) });
    else if (line.startsWith('-')) lines.push({ number: before++, sign: '-', text: line.slice(1) });
    else if (!line.startsWith('\\')) {
      lines.push({ number: after++, sign: ' ', text: line.slice(1) });
      before += 1;
    }
  }
  return lines;
};

const INDENT = '    ';
const COLOURS = { '+': 'green', '-': 'red', ' ': null } as const;

/** A unified diff as rows of `look.columns` with line numbers, of at most `limit` lines. */
export const diffRows = (look: Look, diff: string, limit: number): DiffRows => {
  const lines = linesOf(diff);
  const digits = String(Math.max(0, ...lines.map((line) => line?.number ?? 0))).length;
  const room = Math.max(8, look.columns - INDENT.length - digits - 3);
  const rows = lines.slice(0, limit).flatMap((line) => {
    if (line === null) return [`${INDENT}${paint(look, 'dim', '⋮'.padStart(digits))}`];
    const colour = COLOURS[line.sign];
    return wrapText(line.text, room).map((part, index) => {
      const number = index === 0 ? String(line.number) : '';
      const text = `${line.sign} ${part}`.trimEnd();
      const painted = colour === null ? text : paint(look, colour, text);
      return `${INDENT}${paint(look, 'dim', number.padStart(digits))} ${painted}`.trimEnd();
    });
  });
  return { rows, left: Math.max(0, lines.length - limit) };
};
