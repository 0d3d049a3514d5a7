import path from 'node:path';
import { decodeFile, loadFile } from './file-text.js';

/**
 * Lines that ripgrep found, looked at again.
 *
 * ripgrep opens files by their paths. While it runs, another process may put a symlink where a folder was, and lines of
 * a file outside would be found. So each line is shown only if it stands in the file of that real path.
 */

export type FoundLine =
  | {
      readonly kind: 'line';
      readonly file: string;
      readonly number: number;
      readonly mark: string;
      readonly text: string;
    }
  /** Between groups of lines. */
  | { readonly kind: 'gap' };

/** `FILE NUL NUMBER:TEXT`, or with `-` a line around a match; anything else separates groups. */
export const readLine = (record: string): FoundLine => {
  const [, file, number, mark, text] = /^([^\0]+)\0(\d+)([:-])(.*)$/s.exec(record) ?? [];
  if (file === undefined || mark === undefined || text === undefined) return { kind: 'gap' };
  return { kind: 'line', file: file.replace(/^\.\//, ''), number: Number(number), mark, text };
};

export type CheckedLines = {
  /** Formatted lines. */
  readonly lines: readonly string[];
  /** Number of lines that ripgrep found and the file no longer has. */
  readonly changed: number;
};

/** Ripgrep's note behind the beginning of a long line. */
const PREVIEW = /( \[\.\.\. (omitted end of long line|\d+ more match(es)?)\])$/;

/** Marks of the encoding and characters that can't be decoded are no matter of whose line it is. */
const plain = (text: string): string => text.replace(/[\ufeff\ufffd]/g, '').replace(/\r$/, '');

const isSameLine = (found: string, there: string | undefined): boolean => {
  if (there === undefined) return false;
  const [one, other] = [plain(found), plain(there)];
  if (one === other) return true;
  const beginning = one.replace(PREVIEW, '');
  return beginning.length < one.length && other.startsWith(beginning);
};

type Lines = ReadonlyMap<number, string>;

/** The lines of those numbers, of the file of that real path; none where it can't be read. */
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

/** `folder`: the real path that the files' names are relative to. */
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
