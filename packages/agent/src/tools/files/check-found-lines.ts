import path from 'node:path';
import { decodeFile, loadFile } from './file-text.js';

/**
 * Verifies the lines that ripgrep found.
 *
 * ripgrep opens files by path. While it runs, another process may replace a folder with a symlink, and ripgrep would
 * report lines of a file outside. So a line is shown only if the file at the allowed real path contains it.
 */

export type FoundLine =
  | {
      readonly kind: 'line';
      readonly file: string;
      readonly number: number;
      readonly mark: string;
      readonly text: string;
    }
  /** Separates groups of lines. */
  | { readonly kind: 'gap' };

/** `FILE NUL NUMBER:TEXT`; with `-` instead of `:` a context line. Any other record separates groups. */
export const readLine = (record: string): FoundLine => {
  const [, file, number, mark, text] = /^([^\0]+)\0(\d+)([:-])(.*)$/s.exec(record) ?? [];
  if (file === undefined || mark === undefined || text === undefined) return { kind: 'gap' };
  return { kind: 'line', file: file.replace(/^\.\//, ''), number: Number(number), mark, text };
};

export type CheckedLines = {
  /** Formatted lines. */
  readonly lines: readonly string[];
  /** Number of found lines that the file no longer has. */
  readonly changed: number;
};

/** Ripgrep's note after the start of a long line. */
const PREVIEW = /( \[\.\.\. (omitted end of long line|\d+ more match(es)?)\])$/;

/** Without byte order marks and replacement characters, which do not matter for the comparison. */
const plain = (text: string): string => text.replace(/[\ufeff\ufffd]/g, '').replace(/\r$/, '');

const isSameLine = (found: string, there: string | undefined): boolean => {
  if (there === undefined) return false;
  const [one, other] = [plain(found), plain(there)];
  if (one === other) return true;
  const beginning = one.replace(PREVIEW, '');
  return beginning.length < one.length && other.startsWith(beginning);
};

type Lines = ReadonlyMap<number, string>;

/** The lines with these numbers in the file at the real path; none if it can't be read. */
const linesOf = async (real: string, numbers: ReadonlySet<number>): Promise<Lines> => {
  const loaded = await loadFile(real);
  const found = new Map<number, string>();
  if (loaded.kind !== 'file') return found;
  const decoded = decodeFile(loaded.bytes);
  const text = decoded.kind === 'text' ? decoded.text : loaded.bytes.toString('utf8');
  let number = 1;
  for (let from = 0; from <= text.length && found.size < numbers.size; number++) {
    const end = text.indexOf('\n', from);
    const stop = end < 0 ? text.length : end;
    if (numbers.has(number)) found.set(number, text.slice(from, stop));
    from = stop + 1;
  }
  return found;
};

/** `folder`: real path that the file names are relative to. */
export const checkLines = async (
  found: readonly FoundLine[],
  folder: string,
  filesOnly: boolean,
): Promise<CheckedLines> => {
  const numbers = new Map<string, Set<number>>();
  for (const line of found) {
    if (line.kind === 'line') numbers.set(line.file, (numbers.get(line.file) ?? new Set()).add(line.number));
  }
  const files = new Map<string, Lines>();
  for (const [file, wanted] of numbers) files.set(file, await linesOf(path.resolve(folder, file), wanted));
  const lines: string[] = [];
  let changed = 0;
  for (const line of found) {
    if (line.kind === 'gap') {
      if (!filesOnly) lines.push('--');
    } else if (!isSameLine(line.text, files.get(line.file)?.get(line.number))) changed += 1;
    else if (filesOnly) lines.push(line.file);
    else lines.push(`${line.file}${line.mark}${line.number}${line.mark}${line.text}`);
  }
  return { lines, changed };
};
